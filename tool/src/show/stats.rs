//! `snug stats PID`: the statistics of a running program, once.

use std::process::ExitCode;

use anyhow::{ensure, Result};

use crate::cli::StatsArgs;
use crate::live::{Depth, Program};

pub fn run(args: &StatsArgs) -> Result<ExitCode> {
    let values = Program::find(args.pid)?.values(Depth::Whole)?;
    ensure!(values.write(args.format, args.detail, libc::STDOUT_FILENO), "the statistics could not be written");
    Ok(ExitCode::SUCCESS)
}
