//! `snug replay`: recorded programs' allocations under several allocators, by the laboratory of `snug bench`.
//!
//! Each trace becomes a program for snugreplay (program.rs), and that a row. Time is that of the allocations and of
//! writing to what was allocated; what the program did besides is not in the trace.

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{bail, ensure, Context, Result};
use clap::{Args, ValueEnum};

use super::footprint;
use super::program::{self, Converted, Pace};
use super::reader::{Trace, STOPPED};
use super::summary::Summary;
use crate::bench::allocators::{self, AllocatorArgs};
use crate::bench::assemble;
use crate::bench::child::Job;
use crate::bench::report::{self, ReportArgs};
use crate::bench::results::{Row, Unit};
use crate::bench::runner::{self, Plan};
use crate::bench::system_calls;
use crate::output;
use crate::refusal::Refusal;
use crate::scratch;
use crate::whole::Whole;
use crate::{cache, carried};

/// Replay recorded programs' allocations under several allocators, and compare time and memory
///
/// Every allocator runs every trace once in each round, with as many threads as the program had. Ctrl-C prints what
/// there is.
#[derive(Debug, Args)]
pub struct ReplayArgs {
    /// Traces that `snug record` wrote
    #[arg(value_name = "FILE", required = true)]
    pub traces: Vec<PathBuf>,

    /// Only say what the traces hold: as text, or with =json as a line of JSON for each
    #[arg(long, value_name = "AS", num_args = 0..=1, require_equals = true, default_missing_value = "text")]
    pub info: Option<Form>,

    /// Only memory, and always the same for the same allocator: one thread, in the recorded order, once
    #[arg(long, conflicts_with = "info")]
    pub footprint: bool,

    /// Only write what is to be replayed to TO, for snugreplay (beside libsnug.so) under a debugger or profiler
    #[arg(long, value_name = "TO", conflicts_with_all = ["info", "footprint"])]
    pub export: Option<PathBuf>,

    /// The number of the process to replay, of a trace of several [default: the one that allocated most]
    #[arg(long, value_name = "N")]
    pub process: Option<u32>,

    /// Use what is whole of a trace that is cut short or damaged
    #[arg(long)]
    pub whole: bool,

    /// What is written into a block when it was allocated: every byte, one on each page, nothing
    #[arg(long, value_enum, default_value_t = Touch::All)]
    pub touch: Touch,

    /// How fast the operations follow each other; as recorded, what is measured is memory, and time says nothing
    #[arg(long, value_enum, default_value_t = Pace::Fast)]
    pub pace: Pace,

    /// One thread does everything, in the recorded order
    #[arg(long)]
    pub one_thread: bool,

    /// Rounds; in each, every trace runs once on every allocator
    #[arg(long, alias = "runs", value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub rounds: u32,

    #[command(flatten)]
    pub allocators: AllocatorArgs,

    #[command(flatten)]
    pub report: ReportArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Form {
    Text,
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Touch {
    All,
    Pages,
    None,
}

impl Touch {
    pub fn word(self) -> &'static str {
        match self {
            Touch::All => "--touch=all",
            Touch::Pages => "--touch=pages",
            Touch::None => "--touch=none",
        }
    }
}

/// A trace as a program for snugreplay.
pub struct Program {
    pub name: String,
    /// It has no name that could be left behind.
    file: File,
    pub converted: Converted,
}

impl Program {
    /// What the replayer opens, as long as this process holds it.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd()))
    }
}

pub fn run(args: &ReplayArgs) -> Result<ExitCode> {
    if let Some(form) = args.info {
        for path in &args.traces {
            print_info(args, path, form)?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(to) = &args.export {
        return export(args, to);
    }
    args.report.ensure_writable()?;
    let stop = runner::stop_at_signals()?;
    let one_thread = args.one_thread || args.footprint;
    let mut programs = Vec::new();
    for path in &args.traces {
        let mut trace = Trace::open(path, args.whole)?;
        trace.stop_when(&stop);
        let program = convert(&mut trace, path, args.process, one_thread, args.pace)?;
        eprint!("{}", Summary::new(&trace, 0, &program.converted).warnings());
        programs.push(program);
    }
    let replayer = cache::unpack(&carried::REPLAYER)?;
    let found = allocators::find_with_surroundings(&args.allocators)?;
    for allocator in &found.allocators {
        allocators::ensure_loads(allocator, &replayer)?;
    }
    if args.footprint {
        return footprint::run(&replayer, &programs, found.allocators, args.touch, &stop, &args.report);
    }
    let jobs: Vec<Job> = programs.iter().map(|program| job(&replayer, program, args.touch)).collect();
    let measured = runner::measure(
        &jobs,
        &found.allocators,
        Plan { rounds: args.rounds, system_calls: system_calls::is_there(), ..Plan::default() },
        &stop,
    )?;
    let has_figures = measured.rows.iter().flat_map(|row| &row.series).any(|series| !series.figures.is_empty());
    ensure!(has_figures || measured.ended_early.is_none(), STOPPED);
    let mut lab = assemble("snug replay", found.allocators, measured, false);
    lab.missing = found.missing;
    lab.settings.paced = args.pace == Pace::Recorded;
    report::publish(&report::terminal::render(&lab), &lab, &args.report)?;
    Ok(if lab.has_failures() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn print_info(args: &ReplayArgs, path: &Path, form: Form) -> Result<()> {
    let mut trace = Trace::open(path, args.whole)?;
    let process = trace.choose(args.process)?.number;
    let program = convert(&mut trace, path, args.process, false, Pace::Fast)?;
    let summary = Summary::new(&trace, process, &program.converted);
    let text = match form {
        Form::Text => format!("{}: {}", path.display(), summary.to_text()),
        Form::Json => serde_json::to_string(&summary)? + "\n",
    };
    output::print(text.as_bytes())
}

fn export(args: &ReplayArgs, to: &Path) -> Result<ExitCode> {
    let [path] = args.traces.as_slice() else { bail!(Refusal::misuse("--export takes one trace".to_string())) };
    let mut trace = Trace::open(path, args.whole)?;
    let process = trace.choose(args.process)?.number;
    let identity = |path: &Path| fs::metadata(path).map(|found| (found.dev(), found.ino())).ok();
    let is_itself = identity(to).is_some_and(|it| Some(it) == identity(path));
    ensure!(!is_itself, Refusal::misuse(format!("--export: {} is the trace itself", to.display())));
    Whole::new(to)?.write_with(|file| {
        program::write(&mut trace, process, args.one_thread, args.pace, file)
            .with_context(|| format!("--export {}", to.display()))
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the program of one process of the trace into a temporary file, which goes with this process, however it ends.
pub fn convert(trace: &mut Trace, path: &Path, process: Option<u32>, one_thread: bool, pace: Pace) -> Result<Program> {
    let process = trace.choose(process)?.number;
    let mut file = scratch::large()?;
    let name = path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    let progress = trace.show_progress(process, &format!("reading {name}"));
    let converted = program::write(trace, process, one_thread, pace, &mut file);
    progress.finish_and_clear();
    Ok(Program { name, file, converted: converted? })
}

pub fn job(replayer: &Path, program: &Program, touch: Touch) -> Job {
    let totals = &program.converted.totals;
    let row = Row {
        name: format!("replay/{}", program.name),
        family: "replay".into(),
        about: format!("the {} recorded operations of {}", totals.operations, program.name),
        threads: totals.threads as u32,
        unit: Unit::NsPerOperation,
    };
    let words = vec![replayer.into(), touch.word().into(), program.path().into()];
    Job { row, words, folder: None, variables: Vec::new(), doubled: None }
}
