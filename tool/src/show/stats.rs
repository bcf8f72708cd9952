//! `snug stats PID`: the statistics of a running program, once.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use crate::live::{Depth, Format, Program};
use crate::output;

/// Print the statistics of a running program once
///
/// It must have been started on snug, and nothing else be prepared. The same user may look, and root, as far as the
/// system lets processes be looked into.
#[derive(Debug, Args)]
pub struct StatsArgs {
    /// The process
    pub pid: i32,

    /// The format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,

    /// All numbers and all sizes in text, not just what fits a screen
    #[arg(long)]
    pub detail: bool,
}

pub fn run(args: &StatsArgs) -> Result<ExitCode> {
    let values = Program::find(args.pid)?.values(Depth::Whole)?;
    output::print(&values.written(args.format, args.detail)?)?;
    Ok(ExitCode::SUCCESS)
}
