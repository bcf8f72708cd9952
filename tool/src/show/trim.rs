//! `snug trim PID`: asks a running program to give back its free memory.

use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Args;
use indicatif::HumanBytes;

use crate::live::{Depth, Program};
use crate::period::period;

/// How often is looked whether the program has done it.
const STEP: Duration = Duration::from_millis(10);

/// Ask a running program to give back its free memory
///
/// It does so when one of its threads next needs more than its magazines have, or has them full: at once in a program
/// that works, never in one that sleeps, unless it was started with SNUG_PURGE_THREAD=1 and has free memory to give.
/// Objects in the magazines of its other threads stay there.
///
/// Exit status: 0 if it was done in time, 1 if not yet.
#[derive(Debug, Args)]
pub struct TrimArgs {
    /// The process
    pub pid: i32,

    /// How long to wait until it is done: 2, 0.5, 500ms
    #[arg(long, value_name = "TIME", default_value = "2", value_parser = period)]
    pub wait: Duration,
}

pub fn run(args: &TrimArgs) -> Result<ExitCode> {
    let program = Program::find(args.pid)?;
    let resident = || Ok::<u64, anyhow::Error>(program.values(Depth::Resident)?.get("resident_snug").unwrap_or(0));
    let before = resident()?;
    let done = program.trims()?;
    program.request_trim().with_context(|| format!("process {} must not be written to", args.pid))?;
    let begun = Instant::now();
    while program.trims().with_context(|| format!("process {} has ended", args.pid))? == done {
        if begun.elapsed() >= args.wait {
            println!(
                "process {} was asked; it will do it when a thread of it next needs more than its magazines",
                args.pid
            );
            return Ok(ExitCode::FAILURE);
        }
        sleep(STEP);
    }
    let after = resident()?;
    println!("snug's resident memory: {} before, {} after", HumanBytes(before), HumanBytes(after));
    Ok(ExitCode::SUCCESS)
}
