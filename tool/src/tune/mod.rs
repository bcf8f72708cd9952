//! `snug tune`: which options of snug serve a program best.
//!
//!     candidates  what is tried      verdict  what is best, and how sure that is

mod candidates;
mod verdict;

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use anyhow::{bail, ensure, Result};
use clap::Args;
use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, Table};

use crate::bench::assemble;
use crate::bench::child::Job;
use crate::bench::report::{self, terminal, ReportArgs};
use crate::bench::results::{Lab, Row, RowResult, Unit};
use crate::bench::runner::{self, Plan};
use crate::bench::stats::{Estimate, Interval};
use crate::refusal::Refusal;
use crate::settings::leave_out_surroundings;
use crate::trace::program::Pace;
use crate::trace::reader::Trace;
use crate::trace::replay::{self, Program, Touch};
use crate::trace::summary::Summary;
use crate::{cache, carried, launch, output, target};
use candidates::Candidate;
use verdict::{Goal, GOALS};

/// Of each goal, how many single options get into the second part.
const FINALISTS: usize = 2;
/// Of the first part. That all of five ratios are below 1 by chance happens once in 32 times, of three once in eight.
const LEAST_ROUNDS: u32 = 5;

const EXPLANATION: &str = "\
Ratios to snug without options, in the same round: the median, and where it lies with 95 % confidence. Below 1 is better.";

/// Find the options of snug that serve a command, or a recorded trace, best
///
/// The presets and every option that matters are tried in turn, interleaved; those that seem to help, and all of them
/// together, are then measured anew, beside the default. The command runs some dozen times, without standard input and
/// with its output thrown away, so it must do the same each time. Ctrl-C ends with what is known until then.
#[derive(Debug, Args)]
#[command(override_usage = "snug tune [OPTIONS] FILE.trace\n       snug tune [OPTIONS] [--] CMD [ARGS]...")]
pub struct TuneArgs {
    /// Rounds of the second part; the first has a third of them, but at least 5
    #[arg(long, alias = "runs", value_name = "N", default_value_t = 15, value_parser = clap::value_parser!(u32).range(3..=10_000))]
    pub rounds: u32,

    #[command(flatten)]
    pub report: ReportArgs,

    /// Of a trace of several processes, the number of the one to replay [default: the one that allocated most]
    #[arg(long, value_name = "N")]
    pub process: Option<u32>,

    /// Use what is whole of a trace that is cut short or damaged
    #[arg(long)]
    pub whole: bool,

    /// A trace that snug record wrote, or a command and its arguments
    #[arg(value_name = "CMD", trailing_var_arg = true, required = true)]
    pub words: Vec<OsString>,
}

/// What is measured. A trace's program lives as long as this.
struct Subject {
    job: Job,
    is_trace: bool,
    _program: Option<Program>,
}

/// One part of the search.
struct Part {
    candidates: Vec<Candidate>,
    lab: Lab,
}

pub fn run(args: &TuneArgs) -> Result<ExitCode> {
    args.report.ensure_writable()?;
    let library = cache::library()?;
    let subject = subject(args)?;
    let (singles, unknown) = candidates::singles();
    leave_out_surroundings();
    let stop = runner::stop_at_signals()?;
    let mut part = measure(&subject, singles, (args.rounds / 3).max(LEAST_ROUNDS), &library, &stop)?;
    ensure_works(&part)?;
    let mut tables = table_of(&part, "First part: one option at a time");
    if part.lab.ended_early.is_none() {
        let finalists = verdict::finalists(part.row(), &part.candidates, FINALISTS);
        if finalists.len() > 1 {
            part = measure(&subject, finalists, args.rounds, &library, &stop)?;
            tables += &table_of(&part, "Second part: what seemed to help, measured anew");
        }
    }
    for word in unknown {
        let _ = writeln!(tables, "Not tried, as this snug does not know it: {word}");
    }
    let text = format!("{}\n{tables}", conclusion(&part, &subject, &args.words));
    report::publish(&text, &part.lab, &args.report)?;
    Ok(ExitCode::SUCCESS)
}

fn subject(args: &TuneArgs) -> Result<Subject> {
    let words = &args.words;
    if let [word] = words.as_slice() {
        let path = Path::new(word);
        if Trace::is_trace(path) {
            let mut trace = Trace::open(path, args.whole)?;
            let program = replay::convert(&mut trace, path, args.process, false, Pace::Fast)?;
            eprint!("{}", Summary::new(&trace, 0, &program.converted).warnings());
            let job = replay::job(&cache::unpack(&carried::REPLAYER)?, &program, Touch::All);
            return Ok(Subject { job, is_trace: true, _program: Some(program) });
        }
    }
    if let [word] = words.as_slice() {
        let is_neither = Path::new(word).is_file() && target::find(word).is_err();
        let message = format!("{} is neither a trace of snug record nor a command", word.to_string_lossy());
        ensure!(!is_neither, Refusal::misuse(message));
    }
    let message = "--whole and --process are for traces, and this is a command";
    ensure!(!args.whole && args.process.is_none(), Refusal::misuse(message.to_string()));
    launch::command_for(words)?; // says what is wrong with the command before anything runs
    let name = Path::new(&words[0]).file_name().unwrap_or(&words[0]).to_string_lossy().into_owned();
    let row = Row { name: name.clone(), family: name, about: String::new(), threads: 1, unit: Unit::Seconds };
    let job = Job { row, words: words.to_vec(), folder: None, variables: Vec::new(), doubled: None };
    Ok(Subject { job, is_trace: false, _program: None })
}

fn measure(
    subject: &Subject,
    candidates: Vec<Candidate>,
    rounds: u32,
    library: &Path,
    stop: &AtomicBool,
) -> Result<Part> {
    let allocators: Vec<_> = candidates.iter().map(|candidate| candidate.allocator(library)).collect();
    let plan = Plan { rounds, ..Plan::default() };
    let measured = runner::measure(std::slice::from_ref(&subject.job), &allocators, plan, stop)?;
    Ok(Part { candidates, lab: assemble("snug tune", allocators, measured, false) })
}

/// A command that fails under the default would fail everywhere, and quickly.
fn ensure_works(part: &Part) -> Result<()> {
    match &part.row().series[0].failure {
        Some(why) => bail!("the command fails: {why}"),
        None => Ok(()),
    }
}

impl Part {
    fn row(&self) -> &RowResult {
        &self.lab.rows[0]
    }
}

/// The options of a candidate stand beside each other, or, where that is too wide, below each other.
fn table_of(part: &Part, title: &str) -> String {
    let width = output::terminal_width().unwrap_or(output::WIDTH);
    let beside = grid(part, " ").to_string();
    let is_wide = beside.lines().any(|line| line.chars().count() > width);
    let table = if is_wide { grid(part, "\n").to_string() } else { beside };
    let note = output::filled(&format!("{} {EXPLANATION}", terminal::rounds(&part.lab)), width);
    let mut text = format!("{title}\n{table}\n{note}\n\n");
    for (candidate, series) in part.candidates.iter().zip(&part.row().series) {
        if let Some(why) = &series.failure {
            let _ = writeln!(text, "FAILED with {}: {why}", candidate.name());
        }
    }
    if let Some(why) = &part.lab.ended_early {
        let _ = writeln!(text, "NOT COMPLETE: {why}.");
    }
    text
}

fn grid(part: &Part, between: &str) -> Table {
    let mut table = Table::new();
    table.load_preset(UTF8_FULL_CONDENSED);
    table.set_header(["options", "time", "peak memory"]);
    let row = part.row();
    for (place, candidate) in part.candidates.iter().enumerate() {
        let series = &row.series[place];
        let [time, memory] = match (place, &series.failure) {
            (_, Some(_)) => ["failed".to_string(), "-".to_string()],
            (0, None) => [time(row.row.unit, series.time()), memory(series.peak_bytes())],
            _ => GOALS.map(|goal| verdict::ratio(row, place, goal).map_or("-".to_string(), show)),
        };
        let name = if place == 0 { "(none)".to_string() } else { candidate.words().replace(' ', between) };
        table.add_row([name, time, memory]);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn time(unit: Unit, value: Option<f64>) -> String {
    match (unit, value) {
        (_, None) => "-".into(),
        (Unit::NsPerOperation, Some(ns)) => format!("{ns:.1} ns"),
        (Unit::Seconds, Some(seconds)) => format!("{seconds:.3} s"),
    }
}

fn memory(value: Option<f64>) -> String {
    value.map_or("-".into(), |bytes| format!("{:.1} MiB", bytes / 1_048_576.0))
}

fn show(estimate: Estimate) -> String {
    match estimate.interval {
        Some(interval) => format!("{:.3} ({:.3} to {:.3})", estimate.median, interval.low, interval.high),
        None => format!("{:.3}", estimate.median),
    }
}

/// What to do, in a few lines.
fn conclusion(part: &Part, subject: &Subject, words: &[OsString]) -> String {
    let mut text = String::new();
    for goal in GOALS {
        let name = if goal == Goal::Time { "time" } else { "memory" };
        let Some(best) = verdict::best(part.row(), &part.candidates, goal) else {
            let _ = writeln!(text, "Best for {name}: no options; none is better by 1 % and beyond chance.");
            continue;
        };
        let options = part.candidates[best.place].words();
        let sure = surety(part.lab.settings.rounds);
        let _ = writeln!(text, "Best for {name}, {sure}: {options}");
        let _ = writeln!(text, "    {}", change(name, best.gain));
        if let Some(elsewhere) = best.elsewhere {
            let other = if goal == Goal::Time { "memory" } else { "time" };
            let _ = writeln!(text, "    {}", change(other, elsewhere));
        }
        if !subject.is_trace {
            let command: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
            let _ = writeln!(text, "    snug run {options} -- {}", command.join(" "));
        }
    }
    text
}

/// Of few rounds no interval holds 95 %, so none is claimed.
fn surety(rounds: u32) -> String {
    match rounds < terminal::SURE_FROM as u32 {
        true => format!("as far as {rounds} rounds tell, which is not far"),
        false => "with 95 % confidence".to_string(),
    }
}

/// `4.1 % less time (2.0 % less to 6.1 % less)`, with 95 % confidence.
fn change(what: &str, ratio: Estimate) -> String {
    let percent = |value: f64| {
        let change = (value - 1.0) * 100.0;
        format!("{:.1} % {}", change.abs(), if change < 0.0 { "less" } else { "more" })
    };
    let range = match ratio.interval {
        // The smaller change first.
        Some(Interval { low, high }) if ratio.median < 1.0 && high < 1.0 => {
            format!(" ({} to {})", percent(high), percent(low))
        }
        Some(Interval { low, high }) => format!(" ({} to {})", percent(low), percent(high)),
        None => String::new(),
    };
    let beyond_chance = ratio.is_below(1.0) || ratio.is_above(1.0);
    match beyond_chance {
        true => format!("{} {what}{range}", percent(ratio.median)),
        false => format!("no difference in {what} seen{range}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_rounds_claim_no_confidence() {
        assert_eq!(surety(5), "as far as 5 rounds tell, which is not far");
        assert_eq!(surety(6), "with 95 % confidence");
    }

    #[test]
    fn a_table_fits_however_many_options_stand_together() {
        let mut lab = crate::bench::report::samples::lab();
        lab.rows.truncate(1);
        let of = |name: &str, value: &str| Candidate(std::collections::BTreeMap::from([(name.into(), value.into())]));
        let all = [
            of("SNUG_DIRTY", "64M"),
            of("SNUG_PURGE_DELAY", "0"),
            of("SNUG_THREAD_CACHE", "256K"),
            of("SNUG_CACHE_SEGMENTS", "0"),
        ];
        let candidates = vec![Candidate::default(), all[2].clone(), Candidate::together(&all)];
        let text = table_of(&Part { candidates, lab }, "First part");
        assert!(text.lines().all(|line| line.chars().count() <= output::WIDTH), "{text}");
        let below: Vec<bool> = text.lines().map(|line| line.starts_with("│ SNUG_PURGE_DELAY=0 ")).collect();
        assert!(below.contains(&true) && text.contains(" to "), "{text}");
    }

    #[test]
    fn changes_in_words() {
        let estimate = |median, low, high| Estimate { median, interval: Some(Interval { low, high }) };
        let less = change("time", estimate(0.9, 0.85, 0.95));
        assert_eq!(less, "10.0 % less time (5.0 % less to 15.0 % less)");
        let more = change("memory", estimate(1.5, 1.4, 1.6));
        assert_eq!(more, "50.0 % more memory (40.0 % more to 60.0 % more)");
        let unknown = change("time", estimate(0.99, 0.7, 1.4));
        assert_eq!(unknown, "no difference in time seen (30.0 % less to 40.0 % more)");
    }
}
