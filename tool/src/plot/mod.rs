//! `snug run --plot=FILE.svg`: runs a command, and draws its memory over time.
//!
//! The library writes a row of CSV at short intervals; the picture is drawn from those rows when the command has
//! ended. Of a command that starts others, only the first process is drawn.

mod draw;

use std::env;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::path::{absolute, Path};
use std::process::{Command, ExitCode};

use anyhow::{bail, Context, Result};
use serde::Deserialize;

use crate::output::Whole;
use crate::refusal::Refusal;

/// One row; bytes, but for the time.
#[derive(Debug, Deserialize)]
pub struct Row {
    milliseconds: f64,
    requested: f64,
    live: f64,
    mapped: f64,
    metadata: f64,
    metadata_used: f64,
    resident: Option<f64>,
}

/// What the library is told, unless the user has said otherwise.
const DEFAULTS: [(&str, &str); 2] = [("SNUG_STATS_ON", "exit,interval"), ("SNUG_STATS_EVERY", "10ms")];

/// Runs the command, which is set up but for the statistics, and leaves the picture at `plot`.
pub fn run(mut command: Command, plot: &OsStr) -> Result<ExitCode> {
    let plot = absolute(plot).context("--plot= needs the name of a file")?;
    ensure_svg(&plot)?;
    let picture = Whole::new(&plot)?;
    let place = tempfile::tempdir()?;
    let set: Vec<_> = command.get_envs().map(|(name, _)| name.to_os_string()).collect();
    command.env("SNUG_STATS", place.path().join("%p.csv")).env("SNUG_STATS_FORMAT", "csv");
    for (name, value) in DEFAULTS {
        if env::var_os(name).is_none() && !set.iter().any(|known| known == name) {
            command.env(name, value);
        }
    }
    let program = command.get_program().to_string_lossy().into_owned();
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => bail!(Refusal::cannot_run(format!("{program} cannot be run: {error}"))),
    };
    let process = child.id();
    pass_signals_to(process)?;
    let status = child.wait()?;
    let drawn = rows_of(&place.path().join(format!("{process}.csv"))).and_then(|rows| {
        let name = Path::new(&program).file_name().unwrap_or_default().to_string_lossy();
        picture.write(draw::svg(&rows, &name)?.as_bytes())
    });
    if let Err(error) = drawn {
        eprintln!("snug: {} was not drawn: {error:#}", plot.display());
    }
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
}

/// Pictures are SVG, which any browser shows and most programs for pictures read; a name that promises another format
/// would make a file that nothing opens.
fn ensure_svg(plot: &Path) -> Result<()> {
    match plot.extension() {
        Some(ending) if ending.eq_ignore_ascii_case("svg") => Ok(()),
        None if !plot.is_file() && plot.exists() => Ok(()), // such as /dev/stdout
        _ => bail!("--plot={}: pictures are SVG, so the name must end in .svg", plot.display()),
    }
}

/// What the terminal sends, the command gets too; what is sent to snug alone is handed on.
fn pass_signals_to(process: u32) -> Result<()> {
    for signal in [libc::SIGINT, libc::SIGQUIT] {
        // SAFETY: the handler does nothing.
        unsafe { signal_hook::low_level::register(signal, || {}) }?;
    }
    for signal in [libc::SIGTERM, libc::SIGHUP, libc::SIGUSR1, libc::SIGUSR2] {
        // SAFETY: kill is async-signal-safe.
        unsafe {
            signal_hook::low_level::register(signal, move || {
                libc::kill(process as i32, signal);
            })
        }?;
    }
    Ok(())
}

fn rows_of(path: &Path) -> Result<Vec<Row>> {
    let file = File::open(path).context("the command left no statistics; it may have ended by SIGKILL or _exit")?;
    let rows = csv::Reader::from_reader(file).deserialize().collect::<Result<Vec<Row>, _>>()?;
    if rows.is_empty() {
        bail!("the command left no statistics");
    }
    Ok(rows)
}
