//! `snug replay --footprint`: how much memory an allocator holds for the same requests, counted rather than sampled.
//!
//! One thread carries out all operations in the recorded order, with addresses that are not randomised, and looks at
//! its own resident memory, but that of files, after equal numbers of operations. So two runs of one allocator differ by
//! a few pages at most, and two allocators, or two versions of one, can be compared by single runs.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{bail, ensure, Context, Result};
use serde::Serialize;

use super::footprint_report;
use super::reader::STOPPED;
use super::replay::{Program, Touch};
use crate::bench::allocators::Allocator;
use crate::bench::child::{self, Failure, Limit};
use crate::bench::report::ReportArgs;
use crate::bench::results::Unit;
use crate::output;

const SAMPLES: u32 = 256;

/// So often it is looked whether a signal came that has not ended the wait.
const LOOK: Duration = Duration::from_millis(100);

/// A moment of the replay, without the replayer's own memory.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Sample {
    /// So many were carried out.
    pub operations: i64,
    pub live_bytes: i64,
    pub resident_kib: i64,
}

/// What one allocator holds through a trace.
#[derive(Debug, PartialEq, Serialize)]
pub struct Footprint {
    pub peak_kib: i64,
    pub end_kib: i64,
    /// Resident over requested bytes, each added up over the samples.
    pub overhead: f64,
    pub samples: Vec<Sample>,
}

/// A trace on all allocators.
#[derive(Debug, Serialize)]
pub struct OfTrace {
    pub trace: String,
    pub requested_peak_bytes: u64,
    /// In the order of the allocators.
    pub footprints: Vec<Footprint>,
}

#[derive(Debug, Serialize)]
pub struct Footprints {
    pub allocators: Vec<Allocator>,
    pub traces: Vec<OfTrace>,
}

pub fn run(
    replayer: &Path,
    programs: &[Program],
    allocators: Vec<Allocator>,
    touch: Touch,
    stop: &AtomicBool,
    report: &ReportArgs,
) -> Result<ExitCode> {
    ensure!(report.frontier.is_none(), "a footprint has no speed, which --frontier draws");
    let mut traces = Vec::new();
    let progress = output::bar((programs.len() * allocators.len()) as u64, "replay {pos} of {len}");
    for program in programs {
        let on = |allocator: &Allocator| {
            let measured = measure(replayer, program, allocator, touch, stop);
            progress.inc(1);
            measured
        };
        traces.push(OfTrace {
            trace: program.name.clone(),
            requested_peak_bytes: program.converted.totals.peak_live_bytes,
            footprints: allocators.iter().map(on).collect::<Result<_>>()?,
        });
    }
    progress.finish_and_clear();
    footprint_report::publish(&Footprints { allocators, traces }, report)?;
    Ok(ExitCode::SUCCESS)
}

fn measure(
    replayer: &Path,
    program: &Program,
    allocator: &Allocator,
    touch: Touch,
    stop: &AtomicBool,
) -> Result<Footprint> {
    let mut command = Command::new(replayer);
    command.arg(format!("--samples={SAMPLES}")).arg(touch.word()).arg(program.path());
    command.env_remove("LD_PRELOAD");
    if let Some(library) = &allocator.library {
        command.env("LD_PRELOAD", library);
    }
    command.envs(allocator.settings.iter().map(|(name, value)| (name, value)));
    // SAFETY: personality is a system call and async-signal-safe. Where it is forbidden, addresses vary.
    unsafe {
        command.pre_exec(|| {
            libc::personality(libc::ADDR_NO_RANDOMIZE as libc::c_ulong);
            Ok(())
        });
    }
    let limit = Limit { stop, most_time: Duration::MAX };
    let place = || format!("{} on {}", program.name, allocator.name);
    match child::finish(&mut command, Unit::NsPerOperation, &limit, &mut |_, _| LOOK) {
        Ok(finished) => read(&finished.stdout).with_context(place),
        Err(Failure::Stopped) => bail!(STOPPED),
        Err(Failure::Broken(why)) => bail!("{}: {why}", place()),
    }
}

/// What snugreplay printed.
fn read(text: &str) -> Result<Footprint> {
    let mut samples: Vec<Sample> = Vec::new();
    let mut base = None;
    for word in text.split_whitespace() {
        match word.split_once('=') {
            Some(("sample", fields)) => samples.push(parse_sample(fields)?),
            Some(("base_kib", kib)) => base = Some(kib.parse::<i64>()?),
            _ => {}
        }
    }
    let base = base.context("it did not print base_kib=")?;
    samples.iter_mut().for_each(|sample| sample.resident_kib -= base);
    let Some(&last) = samples.last() else { bail!("it took no samples") };
    let resident: i64 = samples.iter().map(|sample| sample.resident_kib).sum();
    let live: i64 = samples.iter().map(|sample| sample.live_bytes).sum();
    Ok(Footprint {
        peak_kib: samples.iter().map(|sample| sample.resident_kib).max().unwrap_or(0),
        end_kib: last.resident_kib,
        overhead: if live > 0 { resident as f64 * 1024.0 / live as f64 } else { 0.0 },
        samples,
    })
}

fn parse_sample(fields: &str) -> Result<Sample> {
    let numbers: Vec<i64> = fields.split(',').map(str::parse).collect::<Result<_, _>>()?;
    let [operations, live_bytes, resident_kib] = numbers[..] else { bail!("sample={fields} has not three figures") };
    Ok(Sample { operations, live_bytes, resident_kib })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_footprint_of_known_samples() {
        let text = "sample=10,1024,1010\nsample=20,3072,1030\nsample=30,0,1004\nops=30 base_kib=1000 peak_rss_kib=9\n";
        let found = read(text).unwrap();
        assert_eq!((found.peak_kib, found.end_kib, found.overhead), (30, 4, 11.0));
        assert_eq!(found.samples[1], Sample { operations: 20, live_bytes: 3072, resident_kib: 30 });
        for wrong in ["", "sample=1,2,3", "base_kib=3", "sample=1,2 base_kib=3", "sample=1,2,x base_kib=3"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
