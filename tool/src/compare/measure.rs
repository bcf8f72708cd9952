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

use crate::bench::allocators::Allocator;
use crate::bench::results::{Figures, Row, RowResult, Series};
use crate::launch;
use crate::output;
use crate::process::{self, Input, Next, Sample};
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
    /// What each command said on stderr, on each allocator, in its first run.
    pub said: Vec<Vec<String>>,
    pub rounds: u32,
    pub ended_early: Option<String>,
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

/// A command that belongs to the measurement and is not measured.
pub fn run_by_shell(line: &str, what: &str) -> Result<()> {
    let status = Command::new("sh").args(["-c", line]).stdin(Stdio::null()).stdout(Stdio::null()).status();
    let status = status.with_context(|| format!("{what}: cannot run sh"))?;
    ensure!(status.success(), "{what} failed: {line}: {status}");
    Ok(())
}

pub fn command_for(subject: &Subject, allocator: &Allocator, input: &Input) -> Result<Command> {
    let mut command = launch::command_for(&subject.words)?;
    if let Some(library) = &allocator.library {
        let settings: Vec<Setting> =
            allocator.settings.iter().map(|(name, value)| Setting { name: name.into(), value: value.into() }).collect();
        launch::set_up(&mut command, library, &settings);
    }
    command.env_remove("SNUG_STATS"); // writing them is no part of what is measured
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
    let rows = subjects.iter().map(|subject| RowResult {
        row: subject.row.clone(),
        series: allocators.iter().map(|_| Series::default()).collect(),
    });
    let said = subjects.iter().map(|_| vec![String::new(); allocators.len()]).collect();
    let mut results = Results { rows: rows.collect(), said, rounds: 0, ended_early: None };
    let runs = subjects.len() * allocators.len() * (plan.rounds + plan.warmup) as usize;
    let progress = output::bar(runs as u64, "run {pos} of {len}");
    let mut failed = vec![BTreeMap::<String, u32>::new(); subjects.len() * allocators.len()];
    'rounds: for round in 0..plan.warmup + plan.rounds {
        for (place, subject) in subjects.iter().enumerate() {
            for turn in 0..allocators.len() {
                let turn = (turn + round.saturating_sub(plan.warmup) as usize) % allocators.len();
                let mut command = command_for(subject, &allocators[turn], input)?;
                if let Some(prepare) = plan.prepare.as_ref().filter(|_| !stop.load(Ordering::Relaxed)) {
                    run_by_shell(prepare, "--prepare")?;
                }
                let (sample, said) = run_once(&mut command, stop)?;
                let Some(sample) = sample else { break 'rounds };
                if round == 0 {
                    results.said[place][turn] = said;
                }
                if let Some(round) = round.checked_sub(plan.warmup) {
                    results.rows[place].series[turn].figures.push(figures(&sample, round));
                    if !sample.status.success() {
                        *failed[place * allocators.len() + turn].entry(sample.status.to_string()).or_default() += 1;
                    }
                }
                progress.inc(1);
            }
        }
        results.rounds = (round + 1).saturating_sub(plan.warmup);
    }
    progress.finish_and_clear();
    if results.rounds < plan.rounds {
        results.ended_early = Some(format!("stopped after {} of {} rounds", results.rounds, plan.rounds));
        ensure!(results.rounds > 0, "stopped before the first round was done: there is nothing to compare");
    }
    for (place, endings) in failed.into_iter().enumerate() {
        let series = &mut results.rows[place / allocators.len()].series[place % allocators.len()];
        let runs = series.figures.len();
        let each: Vec<_> = endings.iter().map(|(end, times)| format!("{end}, in {times} of {runs} runs")).collect();
        series.failure = (!each.is_empty()).then(|| each.join("; "));
    }
    Ok(results)
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
fn run_once(command: &mut Command, stop: &AtomicBool) -> Result<(Option<Sample>, String)> {
    let program = command.get_program().to_string_lossy().into_owned();
    let mut said = tempfile::tempfile()?;
    // In a group of its own: what the terminal sends at Ctrl-C reaches snug alone, which ends the run.
    command.stderr(said.try_clone()?).process_group(0);
    let mut stopped = false;
    let sample = process::run_watched(command, &mut |_, _| {
        stopped = stop.load(Ordering::Relaxed);
        if stopped {
            Next::Kill
        } else {
            Next::LookAgainIn(LOOK)
        }
    })
    .with_context(|| format!("cannot run {program}"))?;
    let mut bytes = Vec::new();
    said.rewind()?;
    said.read_to_end(&mut bytes)?;
    Ok(((!stopped).then_some(sample), String::from_utf8_lossy(&bytes).into_owned()))
}
