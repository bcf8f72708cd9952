//! `snug bench --count`: instructions for each operation, counted by callgrind.
//!
//! Each row runs twice, once with twice the operations: the difference is what the operations execute, without start
//! and end of the program. Unlike times these counts repeat exactly, on any machine and under any load; what they do not
//! show is what the instructions wait for.

use std::fs;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{ensure, Context, Result};

use super::allocators::Allocator;
use super::child::{self, Failure, Job, Limit};
use super::progress::Progress;
use super::results::{RowResult, Series, Unit};
use super::runner::{self, Measured, Plan};

pub fn ensure_there() -> Result<()> {
    let there = Command::new("valgrind").arg("--version").output().is_ok_and(|output| output.status.success());
    ensure!(there, "--count needs valgrind (apt-get install valgrind)");
    Ok(())
}

/// The rows that can be counted, on each allocator.
pub fn measure(jobs: &[Job], allocators: &[Allocator], stop: &AtomicBool) -> Result<Measured> {
    let jobs: Vec<&Job> = jobs.iter().filter(|job| job.doubled.is_some()).collect();
    ensure!(!jobs.is_empty(), "none of these rows can be counted: that needs one thread and a number of operations");
    let mut progress = Progress::new(jobs.len(), allocators.len(), Plan { rounds: 1, ..Plan::default() });
    let mut rows = Vec::new();
    let mut ended_early = None;
    let limit = Limit { stop, most_time: child::MOST_TIME };
    for (place, job) in jobs.iter().enumerate() {
        let mut series: Vec<Series> = allocators.iter().map(|_| Series::default()).collect();
        for (series, allocator) in series.iter_mut().zip(allocators) {
            if ended_early.is_some() {
                break;
            }
            progress.begin(&format!("{} on {}", job.row.name, allocator.name));
            let start = std::time::Instant::now();
            match count(job, allocator, &limit) {
                Ok(instructions) => series.instructions = Some(instructions),
                Err(Failure::Stopped) => ended_early = Some(format!("stopped at {}", job.row.name)),
                Err(Failure::Broken(why)) => series.failure = Some(why),
            }
            progress.end(place, start.elapsed());
        }
        rows.push(RowResult { row: job.row.clone(), series });
    }
    progress.finish();
    Ok(runner::Measured { rows, rounds: 1, ended_early })
}

/// Instructions for each operation.
fn count(job: &Job, allocator: &Allocator, limit: &Limit) -> Result<f64, Failure> {
    let doubled = job.doubled.as_ref().context("a row that cannot be counted")?;
    let (once, once_operations) = run(job, &job.words, allocator, limit)?;
    let (twice, twice_operations) = run(job, doubled, allocator, limit)?;
    if twice_operations <= once_operations {
        return Err(Failure::Broken("the longer run has no more operations than the shorter".into()));
    }
    Ok((twice - once) / (twice_operations - once_operations))
}

/// The instructions of a run, and its operations.
fn run(job: &Job, words: &[std::ffi::OsString], allocator: &Allocator, limit: &Limit) -> Result<(f64, f64), Failure> {
    let out = tempfile::NamedTempFile::new()?;
    let mut place = std::ffi::OsString::from("--callgrind-out-file=");
    place.push(out.path());
    let mut command = Command::new("valgrind");
    command.args(["-q", "--tool=callgrind"]).arg(place).args(words);
    for (name, value) in child::variables_of(job, allocator) {
        command.env(name, value);
    }
    if allocator.library.is_none() {
        command.env_remove("LD_PRELOAD");
    }
    let look = &mut |_, _| Duration::from_millis(50);
    let finished = child::finish(&mut command, Unit::NsPerOperation, limit, look)?;
    let operations = *child::parse(&finished.stdout)?.get("ops").context("it did not print ops=")?;
    let text = fs::read_to_string(out.path()).context("callgrind left no figures")?;
    Ok((total(&text).context("callgrind left no total")?, operations))
}

fn total(text: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix("summary: ").or(line.strip_prefix("totals: ")))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals() {
        assert_eq!(total("events: Ir\nfn=x\n1 2\ntotals: 12345\n"), Some(12345.0));
        assert_eq!(total("summary: 7 8\n"), Some(7.0));
        assert_eq!(total("events: Ir\n"), None);
    }
}
