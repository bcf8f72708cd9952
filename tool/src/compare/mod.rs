//! `snug compare`: one command on the system's malloc and on snug in turn.

mod report;

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::{Read, Seek, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};

use crate::cache;
use crate::launch;
use crate::process::{self, Input, Sample};
use crate::settings::Setting;

/// How much of what a failing command said is shown.
const LINES_SHOWN: usize = 10;

/// The command and all that its runs have in common.
struct Subject<'a> {
    words: &'a [OsString],
    settings: &'a [Setting],
    library: PathBuf,
    input: Input,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Malloc {
    System,
    Snug,
}

const BOTH: [Malloc; 2] = [Malloc::System, Malloc::Snug];

/// The measured runs on one malloc, and what the warm-up run said on stderr.
#[derive(Default)]
struct Runs {
    samples: Vec<Sample>,
    said: String,
}

/// Run a command on the system's malloc and on snug in turn, and compare time and memory
///
/// After one warm-up run on each, the runs alternate. What the command prints is thrown away; its standard input is a
/// file given with `<`, which every run reads from its start, else empty. At the end stand the statistics that snug
/// prints after one more run.
#[derive(Debug, Args)]
#[command(override_usage = "snug compare [SNUG_NAME=value]... [--runs N] [--] CMD [ARGS]...")]
pub struct CompareArgs {
    /// Measured runs on each of the two
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub runs: u32,

    /// The command and its arguments; SNUG_NAME=value words may stand before it
    #[arg(value_name = "CMD", trailing_var_arg = true, required = true)]
    pub words: Vec<OsString>,
}

pub fn run(args: &CompareArgs, settings: &[Setting]) -> Result<ExitCode> {
    launch::check_settings(settings)?;
    launch::command_for(&args.words)?; // says what is wrong with the command before anything runs
    let library = cache::library()?;
    let subject = Subject { words: &args.words, settings, library, input: Input::of_this_process() };
    warn_of_surroundings();

    let [system, snug] = measure(&subject, args.runs)?;
    let statistics = statistics(&subject)?;

    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", report::table(&system.samples, &snug.samples))?;
    let failures = report::failures(&[("the system's malloc", &system), ("snug", &snug)]);
    write!(out, "{failures}")?;
    match statistics.as_str() {
        "" => writeln!(out, "\nsnug left no statistics; it writes them when a program ends by exit.")?,
        text => writeln!(out, "\nsnug's own statistics, from one more run:\n{}", text.trim_end())?,
    }
    Ok(if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What would make the comparison another one than the user thinks.
fn warn_of_surroundings() {
    if let Some(list) = env::var_os("LD_PRELOAD").filter(|list| !list.is_empty()) {
        eprintln!("snug: LD_PRELOAD is set and stays so for both: {}", list.to_string_lossy());
    }
    if fs::metadata("/proc/self/fd/0").is_ok_and(|found| found.file_type().is_fifo()) {
        eprintln!("snug: a pipe cannot be read twice: the command's standard input is empty; give it a file with <");
    }
}

/// One warm-up run on each, then rounds in which the one that began last time comes second.
fn measure(subject: &Subject, rounds: u32) -> Result<[Runs; 2]> {
    let style = ProgressStyle::with_template("{wide_bar} run {pos} of {len}")?;
    let progress = ProgressBar::new(2 * u64::from(rounds) + 2).with_style(style);
    let mut runs = [Runs::default(), Runs::default()];
    for malloc in BOTH {
        runs[malloc as usize].said = warm_up(subject, malloc)?;
        progress.inc(1);
    }
    for round in 0..rounds {
        let order = if round % 2 == 0 { [Malloc::System, Malloc::Snug] } else { [Malloc::Snug, Malloc::System] };
        for malloc in order {
            let sample = run_once(subject.command(malloc)?.stderr(Stdio::null()))?;
            runs[malloc as usize].samples.push(sample);
            progress.inc(1);
        }
    }
    progress.finish_and_clear();
    Ok(runs)
}

fn run_once(command: &mut Command) -> Result<Sample> {
    let program = command.get_program().to_string_lossy().into_owned();
    process::run(command).with_context(|| format!("cannot run {program}"))
}

/// Runs the command once and returns what it said on stderr.
fn warm_up(subject: &Subject, malloc: Malloc) -> Result<String> {
    let mut said = tempfile::tempfile()?;
    run_once(subject.command(malloc)?.stderr(said.try_clone()?))?;
    let mut bytes = Vec::new();
    said.rewind()?;
    said.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// What snug writes at the end of one more run.
fn statistics(subject: &Subject) -> Result<String> {
    let place = tempfile::NamedTempFile::new()?;
    let mut command = subject.command(Malloc::Snug)?;
    run_once(command.env("SNUG_STATS", place.path()).stderr(Stdio::null()))?;
    Ok(String::from_utf8_lossy(&fs::read(place.path())?).into_owned())
}

impl Subject<'_> {
    fn command(&self, malloc: Malloc) -> Result<Command> {
        let mut command = launch::command_for(self.words)?;
        if malloc == Malloc::Snug {
            launch::set_up(&mut command, &self.library, self.settings);
        }
        command.env_remove("SNUG_STATS"); // writing them is no part of what is measured
        command.stdin(self.input.open()?).stdout(Stdio::null());
        Ok(command)
    }
}
