//! `snug bench`: allocators beside each other, on workloads and programs, with each allocator preloaded in turn.
//!
//!     allocators  which there are, and that they really load      versions  of their libraries
//!     catalog     the choice of rows: `workloads` of bench/ with their arguments, and real `programs`
//!     child       one run, measured                                meter     its memory through the run
//!     runner      the interleaving, until the end or Ctrl-C        progress  the bar
//!     system_calls, count   runs of their own, under strace and callgrind
//!     results     what was found                                   machine   where
//!     stored      the same from a JSON file
//!     stats       medians, ratios of pairs, bootstrap intervals    behind    where snug is not the best
//!     report      terminal, JSON, CSV, Markdown, HTML              changes   between two JSON files
//!
//! For another command that measures: make jobs (child::Job, a row and the words to run), find allocators
//! (AllocatorArgs, or an Allocator with settings of its own), then `runner::measure`, `assemble` and `report::publish`.

pub mod allocators;
mod behind;
mod catalog;
mod changes;
pub mod child;
mod count;
pub mod machine;
pub mod meter;
mod programs;
mod progress;
pub mod report;
pub mod results;
pub mod runner;
pub mod stats;
mod stored;
pub mod system_calls;
mod versions;
mod workloads;

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime};

use anyhow::{ensure, Context, Result};
use clap::Args;

use crate::carried;
use crate::output;
use allocators::{Allocator, AllocatorArgs};
use child::Job;
use programs::Workshop;
use report::ReportArgs;
use results::{Lab, Settings};
use runner::{Measured, Plan};

/// Rounds unless said otherwise.
const ROUNDS: u32 = 10;
/// Of --quick: as many rounds as fit in this time, up to so many.
const QUICK_TIME: Duration = Duration::from_secs(85);
const QUICK_ROUNDS: u32 = 5;

/// Measure allocators beside each other: time, memory, page faults, system calls
///
/// Every workload runs under the system's malloc, snug, and each other allocator that is found, interleaved round by
/// round. Ctrl-C prints what there is.
#[derive(Debug, Args)]
pub struct BenchArgs {
    /// Small sizes, and as many rounds as fit into two minutes
    #[arg(long)]
    pub quick: bool,

    /// Rounds; in each, every row runs once on every allocator; 0 only counts system calls [default: 10, or up to 5
    /// if quick]
    #[arg(long, alias = "runs", value_name = "N", value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub rounds: Option<u32>,

    /// Go on from the results of an earlier run, a --json file: rounds are added to its rows, and rows to it. It must be
    /// of this machine, this snug and the same allocators
    #[arg(long, value_name = "FILE", conflicts_with = "count")]
    pub resume: Option<PathBuf>,

    /// Only these rows: names, families or patterns with *; may be given several times
    #[arg(long, value_name = "ROWS", value_delimiter = ',')]
    pub only: Vec<String>,

    /// Numbers of threads for the workloads that have a choice [default: by workload]
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Vec<u32>,

    #[command(flatten)]
    pub allocators: AllocatorArgs,

    #[command(flatten)]
    pub report: ReportArgs,

    /// List the rows and what they imitate
    #[arg(long)]
    pub list: bool,

    /// Count instructions for each operation, by callgrind, instead of measuring time
    #[arg(long)]
    pub count: bool,

    /// Do not count system calls (which takes one more run of each row, under strace)
    #[arg(long)]
    pub no_system_calls: bool,

    /// Measure nothing: say what became slower or larger, beyond noise, from one --json file to another; the exit
    /// status is 1 if snug did
    #[arg(long, num_args = 2, value_names = ["OLD", "NEW"])]
    pub compare: Vec<PathBuf>,

    /// Measure nothing: report the results of one or several --json files, whose rows are put together
    #[arg(long, num_args = 1.., value_name = "FILE", conflicts_with = "compare")]
    pub report_of: Vec<PathBuf>,

    /// Where the workload programs are [default: ../bench beside the folder of the snug binary]
    #[arg(long, value_name = "DIR", env = crate::settings::WORKLOADS_VARIABLE)]
    pub workloads: Option<PathBuf>,

    /// A command of your own to measure, instead of the rows
    #[arg(value_name = "CMD", last = true, conflicts_with_all = ["only", "list", "count", "quick"])]
    pub command: Vec<OsString>,
}

pub fn run(args: &BenchArgs) -> Result<ExitCode> {
    if let [old, new] = args.compare.as_slice() {
        return changes::run(&Lab::read(old)?, &Lab::read(new)?);
    }
    if !args.report_of.is_empty() {
        args.report.ensure_writable()?;
        let labs: Result<Vec<Lab>> = args.report_of.iter().map(|path| Lab::read(path)).collect();
        let lab = Lab::join(labs?)?;
        report::publish(&report::terminal::render(&lab), &lab, &args.report)?;
        return Ok(ExitCode::SUCCESS);
    }
    let chosen = catalog::choose(catalog::rows(args.quick, &args.threads), &args.only)?;
    if args.list {
        output::print(catalog::list(&chosen).as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    args.report.ensure_writable()?;
    let workshop = Workshop::new(args.quick)?;
    let (jobs, mut missing) = match args.command.as_slice() {
        [] => catalog::jobs(&chosen, &workload_folder(args.workloads.as_deref())?, &workshop),
        words => (vec![Job::of_command(words)?], Vec::new()),
    };
    ensure!(!jobs.is_empty(), "{}", missing.join("; "));
    let found = allocators::find_with_surroundings(&args.allocators)?;
    for allocator in &found.allocators {
        allocators::ensure_loads(allocator, Path::new(&jobs[0].words[0]))?;
    }
    missing.extend(found.missing);
    let nothing = Measured { rows: Vec::new(), rounds: 0, ended_early: None };
    let mut lab = assemble("snug bench", found.allocators, nothing, args.quick);
    let known = args.resume.as_deref().map(Lab::read).transpose()?;
    known.iter().try_for_each(|known| known.ensure_comparable(&lab))?;

    let stop = runner::stop_at_signals()?;
    let measured = match args.count {
        true => count_instructions(&jobs, &lab.allocators, &stop)?,
        false => measure(args, &jobs, known, &lab.allocators, &stop, &mut missing)?,
    };
    lab.take(measured);
    lab.missing = missing;
    report::publish(&report::terminal::render(&lab), &lab, &args.report)?;
    Ok(if lab.has_failures() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn count_instructions(jobs: &[Job], allocators: &[Allocator], stop: &AtomicBool) -> Result<Measured> {
    count::ensure_there()?;
    count::measure(jobs, allocators, stop)
}

fn measure(
    args: &BenchArgs,
    jobs: &[Job],
    known: Option<Lab>,
    allocators: &[Allocator],
    stop: &AtomicBool,
    missing: &mut Vec<String>,
) -> Result<Measured> {
    let mut plan = plan(args);
    plan.first_round = known.as_ref().map_or(0, Lab::rounds_begun);
    plan.system_calls = !args.no_system_calls && system_calls::is_there();
    if !args.no_system_calls && !plan.system_calls {
        missing.push(system_calls::MISSING.into());
    }
    let mut known = known.map_or(Vec::new(), |lab| lab.rows);
    let mut row_of = |job: &Job| match known.iter().position(|result| result.row.name == job.row.name) {
        Some(place) => known.remove(place),
        None => runner::empty_row(job, allocators),
    };
    let rows = jobs.iter().map(&mut row_of).collect();
    let mut measured = runner::go_on(jobs, rows, allocators, plan, stop)?;
    measured.rows.extend(known);
    Ok(measured)
}

fn plan(args: &BenchArgs) -> Plan {
    let (rounds, most_time) = match (args.quick, args.rounds) {
        (true, None) => (QUICK_ROUNDS, Some(QUICK_TIME)),
        (_, rounds) => (rounds.unwrap_or(ROUNDS), None),
    };
    Plan { rounds, most_time, system_calls: true, first_round: 0 }
}

/// The results with where and when they were found.
pub fn assemble(title: &str, allocators: Vec<Allocator>, measured: Measured, quick: bool) -> Lab {
    Lab {
        format: results::FORMAT,
        title: title.into(),
        version: format!("{}, library {}", env!("CARGO_PKG_VERSION"), carried::LIBRARY.id),
        date: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        machine: machine::Machine::describe_this(),
        settings: Settings { rounds: measured.rounds, quick, paced: false },
        allocators,
        missing: Vec::new(),
        rows: measured.rows,
        ended_early: measured.ended_early,
    }
}

/// Where the workload programs are: in the folder that was asked for, else where `./dev build` leaves them.
fn workload_folder(folder: Option<&Path>) -> Result<PathBuf> {
    let folder = match folder {
        Some(folder) => folder.to_path_buf(),
        None => build_folder()?.join("bench"),
    };
    let shown = folder.display();
    ensure!(folder.is_dir(), "there are no workloads in {shown}: build them with ./dev build, or give --workloads");
    Ok(std::path::absolute(&folder)?)
}

/// The folder above the one that holds this program.
fn build_folder() -> Result<PathBuf> {
    let own = env::current_exe().context("cannot tell where this program is")?;
    let folder = own.parent().and_then(Path::parent).context("this program is in no folder")?;
    Ok(folder.to_path_buf())
}
