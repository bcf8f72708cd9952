//! `snug compare`: commands on the system's malloc and on snug in turn, and on other allocators if wanted.
//!
//!     measure  the runs, interleaved, until the end or Ctrl-C
//!     report   the tables for the terminal      markdown  the same for a page
//!
//! The verdict and the other files are those of the lab (bench::report).

mod markdown;
mod measure;
mod report;

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::Ordering;

use anyhow::{ensure, Result};
use clap::Args;

use crate::bench::allocators::{self, Allocator, AllocatorArgs, SNUG};
use crate::bench::report::{self as files, ReportArgs};
use crate::bench::results::{Lab, Row, Unit};
use crate::bench::runner::{self, Measured};
use crate::bench::{assemble, report::terminal};
use crate::launch;
use crate::output;
use crate::process::Input;
use crate::refusal::Refusal;
use crate::settings::{leave_out_surroundings, Setting};
use crate::watch::{self, Children};
use measure::{Plan, Subject};

/// Compare a command on the system's malloc and on snug: time, peak memory, page faults
///
/// The command runs on each in turn. What it prints is thrown away, and of a file given with < each run reads all.
/// SNUG_NAME=value words before the command set options of snug. Ctrl-C ends it and keeps what there is; a run during
/// which Ctrl-Z stopped it is made again.
///
/// Exit status: 0; 1 if a run of the command failed, or something else after the first round; 2 for mistakes on the
/// command line; 126 or 127 if the command cannot be run on snug or was not found.
#[derive(Debug, Args)]
#[command(override_usage = "snug compare [SNUG_NAME=value]... [OPTIONS] [--] CMD [ARGS]...\n       \
                            snug compare [SNUG_NAME=value]... [OPTIONS] -c 'CMD ARGS' -c 'CMD ARGS'...")]
pub struct CompareArgs {
    /// Measured runs on each allocator
    #[arg(long, alias = "runs", value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub rounds: u32,

    /// Runs on each allocator before them, which do not count
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub warmup: u32,

    /// A command to compare, as for sh; may be given several times
    #[arg(short = 'c', long = "command", value_name = "CMD", conflicts_with = "words")]
    pub commands: Vec<String>,

    /// Run this by sh once, before everything
    #[arg(long, value_name = "CMD")]
    pub setup: Option<String>,

    /// Run this by sh before each run, for instance to empty a cache; it is not measured
    #[arg(long, value_name = "CMD")]
    pub prepare: Option<String>,

    /// snug with these presets, too: lean, fast; with commas between
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = ["lean", "fast"])]
    pub preset: Vec<String>,

    #[command(flatten)]
    pub allocators: AllocatorArgs,

    #[command(flatten)]
    pub report: ReportArgs,

    /// The command and its arguments; SNUG_NAME=value words may stand before it
    #[arg(value_name = "CMD", trailing_var_arg = true, required_unless_present = "commands")]
    pub words: Vec<OsString>,
}

pub fn run(args: &CompareArgs, settings: &[Setting]) -> Result<ExitCode> {
    launch::check_settings(settings)?;
    let subjects = subjects(args)?;
    args.report.ensure_writable()?;
    let contenders = contenders(args, settings)?;
    leave_out_surroundings();
    measure::warn_of_surroundings();
    let stop = runner::stop_at_signals()?;
    if let Some(setup) = &args.setup {
        measure::run_by_shell(setup, "--setup", &stop)?;
    }
    let plan = Plan { rounds: args.rounds, warmup: args.warmup, prepare: args.prepare.clone() };
    let input = Input::of_this_process();
    let results = measure::run(&subjects, &contenders, &plan, &input, &stop)?;
    let measured = Measured { rows: results.rows, rounds: results.rounds, ended_early: results.ended_early };
    let lab = assemble("snug compare", contenders, measured, false);

    let mut text = String::new();
    for (place, subject) in subjects.iter().enumerate() {
        if subjects.len() > 1 {
            let _ = writeln!(text, "{}{}", if place > 0 { "\n" } else { "" }, subject.row.about);
        }
        report::write(&mut text, &lab, place, &results.said[place], args.warmup);
    }
    let mut trouble = vec![results.ended];
    if !stop.load(Ordering::Relaxed) && trouble[0].is_ok() {
        let more = |subject| statistics(&mut text, subject, &lab, &input, subjects.len() > 1);
        trouble.extend(subjects.iter().map(more));
    }
    trouble.push(files::publish_with(&text, &|| markdown::render(&lab, args.warmup), &lab, &args.report));
    output::last_error(trouble)?; // with all reports written
    let failed = !terminal::failures(&lab).is_empty();
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The commands; an error says what is wrong with one before anything runs.
fn subjects(args: &CompareArgs) -> Result<Vec<Subject>> {
    let by_shell = |line: &String| (line.clone(), ["sh".into(), "-c".into(), line.into()].to_vec());
    let about = || args.words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
    let commands: Vec<(String, Vec<OsString>)> = match args.commands.as_slice() {
        [] => vec![(about(), args.words.clone())],
        lines => lines.iter().map(by_shell).collect(),
    };
    let subject = |(about, words): (String, Vec<OsString>)| {
        launch::command_for(&words)?;
        let first = about.split_whitespace().next().unwrap_or_default();
        let program = Path::new(first).file_name().unwrap_or_default().to_string_lossy().into_owned();
        let name = if args.commands.len() > 1 { about.clone() } else { program };
        let row = Row { name, family: "command".into(), about, threads: 1, unit: Unit::Seconds };
        Ok(Subject { row, words })
    };
    let subjects: Vec<Subject> = commands.into_iter().map(subject).collect::<Result<_>>()?;
    for (place, subject) in subjects.iter().enumerate() {
        let is_new = subjects[..place].iter().all(|other| other.row.name != subject.row.name);
        ensure!(is_new, Refusal::misuse(format!("{} is given twice", subject.row.about)));
    }
    Ok(subjects)
}

/// The system's malloc first, then snug with the settings, then what else is wanted.
fn contenders(args: &CompareArgs, settings: &[Setting]) -> Result<Vec<Allocator>> {
    let mut wanted = args.allocators.clone();
    // Unlike the lab, which measures all that are installed, this is about snug unless others are named.
    let names = wanted.peers.get_or_insert_with(Vec::new);
    names.extend(args.preset.iter().map(|preset| format!("{SNUG}-{preset}")));
    let mut found = allocators::find(&wanted)?;
    ensure!(found.missing.is_empty(), "not here: {}", found.missing.join(", "));
    for allocator in found.allocators.iter_mut().filter(|allocator| allocator.name.starts_with(SNUG)) {
        // What is given has the last word, as for the library: a preset is the only one that stays.
        for Setting { name, value } in settings {
            let (name, value) = (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned());
            if allocator.settings.iter().all(|(known, _)| *known != name) {
                allocator.settings.push((name, value));
            }
        }
    }
    for allocator in found.allocators.iter().filter(|allocator| !allocator.name.starts_with(SNUG)) {
        allocators::ensure_loads(allocator, Path::new("/bin/sh"))?;
    }
    Ok(found.allocators)
}

/// What snug says of one more run.
fn statistics(text: &mut String, subject: &Subject, lab: &Lab, input: &Input, named: bool) -> Result<()> {
    let Some(snug) = lab.place_of(SNUG) else { return Ok(()) };
    let mut command = measure::command_for(subject, &lab.allocators[snug], input)?;
    command.stderr(std::process::Stdio::null());
    let mut watched = watch::run(command, &Children::Highest, false)?;
    let of = if named { format!(" of {}", subject.row.name) } else { String::new() };
    let seen = watch::report::text(&mut watched, &Children::Highest, false)?;
    let _ = writeln!(
        text,
        "\nsnug's own statistics, from one more run{of}:\n{}",
        String::from_utf8_lossy(&seen).trim_end()
    );
    Ok(())
}
