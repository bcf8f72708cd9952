//! One run of a job on an allocator: a process (or a tree of them) with the library preloaded, measured.
//!
//! Two kinds of jobs. A workload prints a line of `name=value` figures, of which `ns_per_op` is its time by its own
//! clock; `peak_rss_kib`, if it is there, its peak. A program prints what it likes: its time is that from start to end.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Seek};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{bail, ensure, Context, Result};

use super::allocators::Allocator;
use super::meter::{self, Meter, Reading};
use super::results::{Figures, Row, Unit};
use crate::launch;
use crate::output;
use crate::proc;
use crate::process::{self, Next, Sample};
use crate::scratch;

/// A run that takes longer has failed, whatever else is known of it.
pub const MOST_TIME: Duration = Duration::from_secs(3600);
/// How much of what a failing program said is quoted.
const QUOTED: usize = 300;

/// A row, and what is run for it.
#[derive(Debug, Clone)]
pub struct Job {
    pub row: Row,
    /// The program and its arguments.
    pub words: Vec<OsString>,
    /// Where it runs; here unless given.
    pub folder: Option<PathBuf>,
    /// Variables besides those of the allocator.
    pub variables: Vec<(OsString, OsString)>,
    /// The same with twice the operations: what instructions are counted by. Nothing for rows that are not counted.
    pub doubled: Option<Vec<OsString>>,
}

impl Job {
    /// A program as it is; an error says why it cannot be run on snug.
    pub fn of_command(words: &[OsString]) -> Result<Job> {
        launch::command_for(words)?;
        let name = Path::new(&words[0]).file_name().unwrap_or_default().to_string_lossy();
        let row = Row {
            name: format!("command/{name}"),
            family: "command".into(),
            about: words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" "),
            threads: 1,
            unit: Unit::Seconds,
        };
        Ok(Job { row, words: words.to_vec(), folder: None, variables: Vec::new(), doubled: None })
    }
}

/// What one run gave.
pub struct Outcome {
    pub figures: Figures,
    pub reading: Reading,
}

/// Why there are no figures.
#[derive(Debug)]
pub enum Failure {
    /// Ctrl-C, or the time is over.
    Stopped,
    Broken(String),
}

impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure::Broken(output::told(&error.into()))
    }
}

/// When a run is killed.
pub struct Limit<'a> {
    /// Set by a signal.
    pub stop: &'a AtomicBool,
    pub most_time: Duration,
}

/// Runs the job once; again, if this process was stopped meanwhile.
pub fn run(job: &Job, allocator: &Allocator, round: u32, limit: &Limit) -> Result<Outcome, Failure> {
    let (finished, meter) = loop {
        let mut meter = Meter::new()?;
        let mut command = command_for(&job.words, job, allocator)?;
        command.env(meter::VARIABLE, meter.path());
        let finished = finish(&mut command, job.row.unit, limit, &mut |pid, since| meter.look(pid, since))?;
        if !finished.sample.halted {
            break (finished, meter);
        }
    };
    let reading = meter.finish();
    let figures = figures(&finished, job.row.unit, round, &reading)?;
    Ok(Outcome { figures, reading })
}

/// The command with the allocator under it, or an error that says why it cannot be.
pub fn command_for(words: &[OsString], job: &Job, allocator: &Allocator) -> Result<Command> {
    let mut command = launch::command_for(words)?;
    for (name, value) in variables_of(job, allocator) {
        command.env(name, value);
    }
    if allocator.library.is_none() && preloaded(job, allocator).is_none() {
        command.env_remove("LD_PRELOAD");
    }
    if let Some(folder) = &job.folder {
        command.current_dir(folder);
    }
    Ok(command)
}

/// All variables that a job is to have on an allocator.
pub fn variables_of(job: &Job, allocator: &Allocator) -> Vec<(OsString, OsString)> {
    let settings = allocator.settings.iter().map(|(name, value)| (name.into(), value.into()));
    let preload = preloaded(job, allocator).map(|library| ("LD_PRELOAD".into(), library.into()));
    job.variables.iter().cloned().chain(settings).chain(preload).collect()
}

/// A program may bring an allocator along, as Debian's redis-server does; so that it runs on the system's, libc is
/// preloaded: its malloc is found first then.
fn preloaded(job: &Job, allocator: &Allocator) -> Option<PathBuf> {
    match (&allocator.library, job.row.unit) {
        (Some(library), _) => Some(library.clone()),
        (None, Unit::Seconds) => libc_path(),
        (None, Unit::NsPerOperation) => None,
    }
}

/// The C library that this process runs on, as a file; nothing if it is inside the program.
fn libc_path() -> Option<PathBuf> {
    let maps = proc::text("/proc/self/maps").ok()?;
    let paths = maps.lines().filter_map(|line| line.find('/').map(|at| Path::new(&line[at..])));
    let is_libc = |path: &Path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("libc.so"));
    paths.into_iter().find(|path| is_libc(path)).map(Path::to_path_buf)
}

/// A run that ended well.
pub struct Finished {
    pub sample: Sample,
    pub stdout: String,
}

/// Runs a command to its end, in a process group of its own; `look` is called while it runs and says when next.
pub fn finish(
    command: &mut Command,
    unit: Unit,
    limit: &Limit,
    look: &mut dyn FnMut(u32, Duration) -> Duration,
) -> Result<Finished, Failure> {
    let (mut out, mut err) = (scratch::for_output()?, scratch::for_output()?);
    let stdout = match unit {
        Unit::NsPerOperation => out.try_clone().context(NO_FILE)?.into(),
        Unit::Seconds => Stdio::null(),
    };
    command.stdin(Stdio::null()).stdout(stdout).stderr(err.try_clone().context(NO_FILE)?).process_group(0);
    let program = command.get_program().to_string_lossy().into_owned();
    let (mut stopped, mut too_long) = (false, false);
    let sample = process::run_watched(command, &mut |pid, since| {
        stopped = limit.stop.load(Ordering::Relaxed);
        too_long = since > limit.most_time;
        match stopped || too_long {
            true => Next::Kill,
            false => Next::LookAgainIn(look(pid, since)),
        }
    })
    .with_context(|| format!("cannot run {program}"))?;
    if stopped {
        return Err(Failure::Stopped);
    }
    if too_long {
        return Err(Failure::Broken(format!("killed after {} s", limit.most_time.as_secs())));
    }
    if !sample.status.success() {
        let said = end_of(&text_of(&mut err)?);
        let separator = if said.is_empty() { "" } else { "; " };
        return Err(Failure::Broken(format!("{}{separator}{said}", sample.status)));
    }
    Ok(Finished { sample, stdout: text_of(&mut out)? })
}

const NO_FILE: &str = "cannot use a temporary file";

fn text_of(file: &mut File) -> Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The last lines of what was said, on one line.
fn end_of(text: &str) -> String {
    let line = text.trim().replace('\n', "; ");
    let start = line.char_indices().rev().take(QUOTED).last().map_or(0, |(at, _)| at);
    line[start..].to_string()
}

fn figures(finished: &Finished, unit: Unit, round: u32, reading: &Reading) -> Result<Figures> {
    let sample = &finished.sample;
    let mut figures = Figures {
        round,
        time: sample.wall,
        cpu_seconds: sample.cpu,
        peak_bytes: sample.peak_kib * 1024,
        page_faults: sample.minor_faults + sample.major_faults,
        overhead: reading.overhead,
        further: BTreeMap::new(),
    };
    if unit == Unit::NsPerOperation {
        let mut fields = parse(&finished.stdout)?;
        let shown = finished.stdout.trim();
        figures.time = fields.remove("ns_per_op").with_context(|| format!("it did not print ns_per_op=: {shown}"))?;
        ensure!(figures.time > 0.0, "a time that cannot be: {shown}");
        if let Some(kib) = fields.remove("peak_rss_kib") {
            figures.peak_bytes = (kib * 1024.0) as u64;
        }
        figures.further = fields;
    }
    Ok(figures)
}

/// Reads the numbers of the last line: `name=number` words. A word whose value is no number says what was run.
pub fn parse(text: &str) -> Result<BTreeMap<String, f64>> {
    let line = text.lines().last().unwrap_or_default();
    let mut fields = BTreeMap::new();
    for (name, value) in line.split_whitespace().filter_map(|word| word.split_once('=')) {
        let Ok(number) = value.parse::<f64>() else { continue };
        if !number.is_finite() || number < 0.0 {
            bail!("{name}={value} cannot be: {}", text.trim());
        }
        fields.insert(name.to_string(), number);
    }
    Ok(fields)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    fn read(line: &str) -> Result<Figures> {
        let status = ExitStatus::from_raw(0);
        let sample =
            Sample { wall: 2.0, cpu: 1.0, peak_kib: 5, minor_faults: 3, major_faults: 1, status, halted: false };
        let finished = Finished { sample, stdout: line.to_string() };
        figures(&finished, Unit::NsPerOperation, 7, &Reading::default())
    }

    #[test]
    fn figures_are_read() {
        let found = read("chatter\nrow=lifo ops=1000 ns_per_op=5.25 peak_rss_kib=2 p99_ns=80\n").unwrap();
        assert_eq!((found.round, found.time, found.peak_bytes, found.page_faults), (7, 5.25, 2048, 4));
        assert_eq!(found.further.keys().collect::<Vec<_>>(), ["ops", "p99_ns"]);
        assert_eq!(read("ns_per_op=1").unwrap().peak_bytes, 5 * 1024);
    }

    #[test]
    fn figures_that_are_not_are_refused() {
        for line in ["", "ops=3", "ns_per_op=x", "ns_per_op=NaN", "ns_per_op=0", "ns_per_op=-1", "ns_per_op=1 a=inf"] {
            assert!(read(line).is_err(), "{line}");
        }
    }

    #[test]
    fn the_end_of_what_was_said() {
        assert_eq!(end_of(" a\nb\n"), "a; b");
        assert_eq!(end_of(&"x".repeat(1000)).len(), QUOTED);
        assert_eq!(end_of(""), "");
    }
}
