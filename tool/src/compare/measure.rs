//! The runs of `snug compare`: rounds in which each command runs once on each allocator, and the one that begins moves on.

use std::env;
use std::fs;
use std::io::{Read, Seek};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use std::collections::BTreeMap;
use std::ffi::OsString;

use anyhow::{ensure, Context, Result};
use indicatif::ProgressBar;

use crate::bench::allocators::Allocator;
use crate::bench::results::{Figures, Row, RowResult, Series};
use crate::launch;
use crate::output;
use crate::process::{self, Input, Next, Sample};
use crate::scratch;
use crate::settings::Setting;

/// How often is looked whether Ctrl-C was pressed; a signal wakes sooner.
const LOOK: Duration = Duration::from_millis(200);

/// A command.
pub struct Subject {
    pub row: Row,
    pub words: Vec<OsString>,
}

pub struct Plan {
    pub rounds: u32,
    pub warmup: u32,
    pub prepare: Option<String>,
}

pub struct Results {
    /// One for each command.
    pub rows: Vec<RowResult>,
    /// What each command said on stderr, on each allocator, in the first run that failed.
    pub said: Vec<Vec<String>>,
    pub rounds: u32,
    pub ended_early: Option<String>,
    /// What went wrong after some rounds, if something did.
    pub ended: Result<()>,
}

/// What would make the comparison another one than the user thinks.
pub fn warn_of_surroundings() {
    if let Some(list) = env::var_os("LD_PRELOAD").filter(|list| !list.is_empty()) {
        eprintln!("snug: LD_PRELOAD is set and stays so for all: {}", list.to_string_lossy());
    }
    if fs::metadata("/proc/self/fd/0").is_ok_and(|found| found.file_type().is_fifo()) {
        eprintln!("snug: a pipe cannot be read twice: the command's standard input is empty; give it a file with <");
    }
}

/// A command that belongs to the measurement and is not measured. When it is stopped, whatever it did, it has not failed. It
/// is in this process's group, since it may ask something at the terminal: so Ctrl-C reaches it, too.
pub fn run_by_shell(line: &str, what: &str, stop: &AtomicBool) -> Result<()> {
    let mut command = Command::new("sh");
    command.args(["-c", line]).stdin(Stdio::null()).stdout(Stdio::null());
    let ran = process::run_watched(&mut command, &mut |_, _| next(stop));
    let status = ran.with_context(|| format!("{what}: cannot run sh"))?.status;
    ensure!(status.success() || stop.load(Ordering::Relaxed), "{what} failed: {line}: {status}");
    Ok(())
}

fn next(stop: &AtomicBool) -> Next {
    match stop.load(Ordering::Relaxed) {
        true => Next::Kill,
        false => Next::LookAgainIn(LOOK),
    }
}

pub fn command_for(subject: &Subject, allocator: &Allocator, input: &Input) -> Result<Command> {
    let mut command = launch::command_for(&subject.words)?;
    if let Some(library) = &allocator.library {
        let settings: Vec<Setting> =
            allocator.settings.iter().map(|(name, value)| Setting { name: name.into(), value: value.into() }).collect();
        launch::set_up(&mut command, library, &settings);
    }
    command.stdin(input.open()?).stdout(Stdio::null());
    Ok(command)
}

pub fn run(
    subjects: &[Subject],
    allocators: &[Allocator],
    plan: &Plan,
    input: &Input,
    stop: &AtomicBool,
) -> Result<Results> {
    let mut runs = Runs::new(subjects, allocators, plan, input, stop);
    let (mut rounds, mut ended) = (0, Ok(()));
    for round in 0..plan.warmup + plan.rounds {
        match runs.round(round) {
            Ok(true) => rounds = (round + 1).saturating_sub(plan.warmup),
            Ok(false) => break,
            // What was measured until then stays.
            Err(error) if rounds > 0 => {
                ended = Err(error);
                break;
            }
            Err(error) => return Err(error),
        }
    }
    runs.progress.finish_and_clear();
    let mut results = Results { rows: runs.rows, said: runs.said, rounds, ended_early: None, ended };
    if rounds < plan.rounds {
        ensure!(rounds > 0, "stopped before the first round was done: there is nothing to compare");
        let why = results.ended.as_ref().err().map_or(String::new(), |error| format!(": {}", output::told(error)));
        results.ended_early = Some(format!("stopped after {rounds} of {} rounds{why}", plan.rounds));
    }
    for (place, endings) in runs.failed.into_iter().enumerate() {
        let series = &mut results.rows[place / allocators.len()].series[place % allocators.len()];
        let runs = series.figures.len();
        let each: Vec<_> = endings.iter().map(|(end, times)| format!("{end}, in {times} of {runs} runs")).collect();
        series.failure = (!each.is_empty()).then(|| each.join("; "));
    }
    Ok(results)
}

/// All runs, and what they gave.
struct Runs<'a> {
    subjects: &'a [Subject],
    allocators: &'a [Allocator],
    plan: &'a Plan,
    input: &'a Input,
    stop: &'a AtomicBool,
    progress: ProgressBar,
    rows: Vec<RowResult>,
    said: Vec<Vec<String>>,
    /// How runs ended that did not end well, for each command on each allocator, and how many.
    failed: Vec<BTreeMap<String, u32>>,
}

impl<'a> Runs<'a> {
    fn new(
        subjects: &'a [Subject],
        allocators: &'a [Allocator],
        plan: &'a Plan,
        input: &'a Input,
        stop: &'a AtomicBool,
    ) -> Self {
        let rows = subjects.iter().map(|subject| RowResult {
            row: subject.row.clone(),
            series: allocators.iter().map(|_| Series::default()).collect(),
        });
        let count = subjects.len() * allocators.len() * (plan.rounds + plan.warmup) as usize;
        Runs {
            progress: output::bar(count as u64, "run {pos} of {len}"),
            rows: rows.collect(),
            said: subjects.iter().map(|_| vec![String::new(); allocators.len()]).collect(),
            failed: vec![BTreeMap::new(); subjects.len() * allocators.len()],
            subjects,
            allocators,
            plan,
            input,
            stop,
        }
    }

    /// Whether it was done to its end.
    fn round(&mut self, round: u32) -> Result<bool> {
        for place in 0..self.subjects.len() {
            for turn in 0..self.allocators.len() {
                let turn = (turn + round.saturating_sub(self.plan.warmup) as usize) % self.allocators.len();
                let Some((sample, said)) = self.run(place, turn)? else { return Ok(false) };
                if let Some(round) = round.checked_sub(self.plan.warmup) {
                    self.keep(place, turn, round, &sample, said);
                }
                self.progress.inc(1);
            }
        }
        Ok(true)
    }

    /// One that counts: what it cost, and what it said on stderr; nothing if it was stopped.
    fn run(&self, place: usize, turn: usize) -> Result<Option<(Sample, String)>> {
        loop {
            let mut command = command_for(&self.subjects[place], &self.allocators[turn], self.input)?;
            if let Some(line) = self.plan.prepare.as_ref().filter(|_| !self.stop.load(Ordering::Relaxed)) {
                run_by_shell(line, "--prepare", self.stop)?;
            }
            if self.stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            match run_once(&mut command, self.stop)? {
                // The time would be that of the stop, as at Ctrl-Z, and not of the command.
                Some((sample, _)) if sample.halted => {}
                done => return Ok(done),
            }
        }
    }

    fn keep(&mut self, place: usize, turn: usize, round: u32, sample: &Sample, said: String) {
        self.rows[place].series[turn].figures.push(figures(sample, round));
        if !sample.status.success() {
            let failed = &mut self.failed[place * self.allocators.len() + turn];
            if failed.is_empty() {
                self.said[place][turn] = said;
            }
            *failed.entry(sample.status.to_string()).or_default() += 1;
        }
    }
}

fn figures(sample: &Sample, round: u32) -> Figures {
    Figures {
        round,
        time: sample.wall,
        cpu_seconds: sample.cpu,
        peak_bytes: sample.peak_kib * 1024,
        page_faults: sample.minor_faults + sample.major_faults,
        overhead: None,
        further: BTreeMap::new(),
    }
}

/// Runs the command once, and returns what it cost and what it said on stderr; nothing if it was stopped.
fn run_once(command: &mut Command, stop: &AtomicBool) -> Result<Option<(Sample, String)>> {
    let program = command.get_program().to_string_lossy().into_owned();
    let mut said = scratch::for_output()?;
    // In a group of its own: what the terminal sends at Ctrl-C reaches snug alone, which ends the run.
    command.stderr(said.try_clone()?).process_group(0);
    let mut stopped = false;
    let sample = process::run_watched(command, &mut |_, _| {
        let next = next(stop);
        stopped = matches!(next, Next::Kill);
        next
    })
    .with_context(|| format!("cannot run {program}"))?;
    let mut bytes = Vec::new();
    said.rewind()?;
    said.read_to_end(&mut bytes)?;
    Ok((!stopped).then(|| (sample, String::from_utf8_lossy(&bytes).into_owned())))
}
