//! `snug stats PID`: the statistics of a running program, once or again and again.

use std::path::{absolute, PathBuf};
use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{ensure, Result};
use clap::Args;

use crate::live::{Depth, Format, Program};
use crate::output;
use crate::period::period;
use crate::process_id::process_id;
use crate::refusal::Refusal;
use crate::whole::Whole;

/// Print the statistics of a running program
///
/// It must have been started on snug, and nothing else be prepared. The same user may look, and root, as far as the
/// system lets processes be looked into.
///
/// Exit status: 0; 1 if it cannot be looked at; 2 for mistakes on the command line. With --every also 0 when the program
/// ends.
#[derive(Debug, Args)]
pub struct StatsArgs {
    /// The process
    #[arg(value_parser = process_id)]
    pub pid: i32,

    /// The format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,

    /// As --format json, and to FILE if one is given
    #[arg(long, group = "shorthand", value_name = "FILE", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = output::STANDARD, conflicts_with = "format")]
    pub json: Option<PathBuf>,

    /// As --format csv, and to FILE if one is given
    #[arg(long, group = "shorthand", value_name = "FILE", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = output::STANDARD, conflicts_with = "format")]
    pub csv: Option<PathBuf>,

    /// As --format openmetrics, and to FILE if one is given
    #[arg(long, group = "shorthand", value_name = "FILE", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = output::STANDARD, conflicts_with = "format")]
    pub openmetrics: Option<PathBuf>,

    /// All numbers and all sizes in text, not just what fits a screen
    #[arg(long)]
    pub detail: bool,

    /// Again after this time, until the program ends: 10, 0.5, 500ms, 1m
    #[arg(long, value_name = "TIME", value_parser = period)]
    pub every: Option<Duration>,

    /// Write to FILE, which is replaced as a whole each time: who reads it, such as a node exporter its textfiles, never
    /// sees a part
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

pub fn run(args: &StatsArgs) -> Result<ExitCode> {
    let (format, file) = match (&args.json, &args.csv, &args.openmetrics) {
        (Some(file), ..) => (Format::Json, Some(file)),
        (_, Some(file), _) => (Format::Csv, Some(file)),
        (.., Some(file)) => (Format::OpenMetrics, Some(file)),
        _ => (args.format, None),
    };
    let file = file.filter(|file| !output::is_standard(file));
    let two = "the statistics can go to one file; --output names a second one";
    ensure!(file.is_none() || args.output.is_none(), Refusal::misuse(two.to_string()));
    let output = file.or(args.output.as_ref()).filter(|file| !output::is_standard(file));
    let in_row = args.every.is_some() && output.is_none() && format == Format::OpenMetrics;
    let message = "an exposition is one look: with --every give --output=FILE, which then holds the last one";
    ensure!(!in_row, Refusal::misuse(message.to_string()));
    let output = output.map(absolute).transpose()?;
    let mut begun = Instant::now();
    let (program, mut values) = Program::with_named(args.pid, |program| program.values(Depth::Whole))?;
    let mut first = true;
    loop {
        let bytes = match format {
            Format::Text => values.told(Some(args.pid), args.detail)?,
            format => values.written(format, args.detail)?,
        };
        match &output {
            Some(path) => Whole::new(path)?.write(&bytes)?,
            None => output::print(&bytes[header_of(&bytes, format, first)..])?,
        }
        let Some(every) = args.every else { return Ok(ExitCode::SUCCESS) };
        if format == Format::Text && output.is_none() {
            output::print(b"\n")?;
        }
        first = false;
        sleep(every.saturating_sub(begun.elapsed()));
        begun = Instant::now();
        // That it has ended meanwhile is how a row of looks ends.
        values = match program.values(Depth::Whole) {
            Err(_) if program.has_ended() => return Ok(ExitCode::SUCCESS),
            values => values?,
        };
    }
}

/// How much of what is written is a header that stands above already.
fn header_of(bytes: &[u8], format: Format, first: bool) -> usize {
    match format {
        Format::Csv if !first => bytes.iter().position(|&byte| byte == b'\n').map_or(0, |end| end + 1),
        _ => 0,
    }
}
