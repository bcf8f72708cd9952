//! `snug export`: the metrics of all programs on snug, for who runs many: once, into a file, or over a Unix socket.
//!
//!     merge  expositions of several programs as one      serve  the socket

mod merge;
mod serve;

use std::path::{absolute, PathBuf};
use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{ensure, Result};
use clap::Args;

use crate::carried;
use crate::live::list::{name_of, programs};
use crate::live::{Depth, Format, Program, Values};
use crate::output;
use crate::period::period;
use crate::process_id::process_id;
use crate::whole::{ensure_is_a_name, Whole};
use merge::Source;

/// Export the metrics of all programs on snug that can be seen, in OpenMetrics, with labels pid and program
///
/// Prints them once; with --output, a file that is replaced as a whole, such as a node exporter's textfile; with --socket,
/// or started by a systemd socket unit, to everyone who connects, over HTTP if that is spoken (GET /metrics).
///
/// Exit status: 0; 1 if nothing could be exported; 2 for mistakes on the command line.
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// Answer at this Unix socket, until a signal ends it
    #[arg(long, value_name = "PATH", conflicts_with_all = ["output", "every"])]
    pub socket: Option<PathBuf>,

    /// Write to FILE, which is replaced as a whole each time
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Again after this time, until a signal ends it: 15, 500ms, 1m
    #[arg(long, value_name = "TIME", value_parser = period, requires = "output")]
    pub every: Option<Duration>,

    /// Print a dashboard for Grafana
    #[arg(long, exclusive = true)]
    pub dashboard: bool,

    /// Only these processes
    #[arg(value_parser = process_id)]
    pub pids: Vec<i32>,
}

pub fn run(args: &ExportArgs) -> Result<ExitCode> {
    if args.dashboard {
        output::print(carried::dashboard()?.as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    let socket = match &args.socket {
        Some(path) => Some(serve::bind(path)?),
        None => serve::handed()?,
    };
    if let Some(socket) = socket {
        serve::serve(socket, &|| exposition(&args.pids))?;
        return Ok(ExitCode::SUCCESS);
    }
    args.output.as_deref().map_or(Ok(()), ensure_is_a_name)?;
    let Some(path) = args.output.as_deref().map(absolute).transpose()? else {
        output::print(exposition(&args.pids)?.as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    };
    loop {
        let begun = Instant::now();
        let text = exposition(&args.pids)?;
        Whole::new(&path)?.write(text.as_bytes())?;
        let Some(every) = args.every else { return Ok(ExitCode::SUCCESS) };
        sleep(every.saturating_sub(begun.elapsed()));
    }
}

/// What ends while it is looked at is left out; of processes that were named, one must be there.
fn exposition(pids: &[i32]) -> Result<String> {
    let look = |program: &Program| program.values(Depth::Resident);
    let named = |pid| Program::with_named(pid, look).map(|(_, values)| (pid, values));
    let found: Vec<(i32, Values)> = match pids {
        [] => programs().iter().filter_map(|(pid, program)| Some((*pid, look(program).ok()?))).collect(),
        [one] => vec![named(*one)?],
        several => several.iter().filter_map(|&pid| named(pid).ok()).collect(),
    };
    ensure!(pids.is_empty() || !found.is_empty(), "none of these processes runs on snug");
    let source = |(process, values): &(i32, Values)| {
        let text = String::from_utf8(values.written(Format::OpenMetrics, false).ok()?).ok()?;
        Some(Source { process: *process, program: name_of(*process)?, text })
    };
    Ok(merge::merge(&found.iter().filter_map(source).collect::<Vec<_>>()))
}
