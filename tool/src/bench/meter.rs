//! Memory through a run: what the process holds, and what of it the program had asked for.
//!
//! The first the kernel tells, in /proc/PID/statm. The second only the program knows: a workload is handed a file of a
//! few pages by the variable BENCH_METER, maps it, and keeps in it how many bytes are live (bench/meter.h); each of its
//! threads does so in a cache line of its own, so that it costs a store. Here both are read every few milliseconds.
//! A program that does not know of the meter leaves it at zero, and has no overhead then, only a curve of its memory.
//!
//! The file is an array of u64: [0] bytes of tables that the workload has besides its blocks, which are left out of
//! what is resident; then, from byte 64 on and 64 bytes apart, the live bytes of each thread (in the last,
//! those of all further ones), as signed numbers: a block may be freed by another thread than the one that took it, so that
//! only the sum is meant.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use tempfile::NamedTempFile;

use super::machine::page_bytes;
use super::results::Point;
use crate::proc;

pub const VARIABLE: &str = "BENCH_METER";
const FILE_BYTES: usize = 16384;
const LINE: usize = 64;

/// The time between two looks at first; it doubles whenever the curve is full and every second point is dropped.
const SHORTEST_PAUSE: Duration = Duration::from_millis(4);
const MOST_POINTS: usize = 128;
/// Below this, what any process needs to run at all hides what its allocator adds.
const LEAST_LIVE_FOR_OVERHEAD: u64 = 1 << 20;

pub struct Meter {
    file: NamedTempFile,
    pause: Duration,
    page_bytes: u64,
    points: Vec<Point>,
    /// Sums over the time in which enough was live.
    resident_ms: f64,
    live_ms: f64,
}

/// What was seen of one run.
#[derive(Debug, Default)]
pub struct Reading {
    pub curve: Vec<Point>,
    /// Resident over requested bytes, the mean over the time of the run.
    pub overhead: Option<f64>,
}

impl Meter {
    pub fn new() -> Result<Meter> {
        let file = NamedTempFile::new().context("cannot make a file for the meter")?;
        file.as_file().set_len(FILE_BYTES as u64)?;
        let (pause, page_bytes) = (SHORTEST_PAUSE, page_bytes());
        Ok(Meter { file, pause, page_bytes, points: Vec::new(), resident_ms: 0.0, live_ms: 0.0 })
    }

    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Looks at the process and says when to look again.
    pub fn look(&mut self, pid: u32, since_start: Duration) -> Duration {
        if let Some(resident) = resident_bytes(pid, self.page_bytes) {
            let (own, live) = read(self.file.as_file());
            let resident_bytes = resident.saturating_sub(own);
            self.note(Point { ms: since_start.as_secs_f64() * 1e3, resident_bytes, live_bytes: live });
        }
        self.pause
    }

    fn note(&mut self, point: Point) {
        let since_last = point.ms - self.points.last().map_or(0.0, |last| last.ms);
        if point.live_bytes >= LEAST_LIVE_FOR_OVERHEAD {
            self.resident_ms += point.resident_bytes as f64 * since_last;
            self.live_ms += point.live_bytes as f64 * since_last;
        }
        self.points.push(point);
        if self.points.len() == MOST_POINTS {
            let mut odd = false;
            self.points.retain(|_| {
                odd = !odd;
                !odd
            });
            self.pause *= 2;
        }
    }

    pub fn finish(self) -> Reading {
        let overhead = (self.live_ms > 0.0).then(|| self.resident_ms / self.live_ms);
        Reading { curve: self.points, overhead }
    }
}

/// The second number of /proc/PID/statm: resident pages. Nothing if the process is gone, or not yet what it will be.
fn resident_bytes(pid: u32, page_bytes: u64) -> Option<u64> {
    let text = proc::text(format!("/proc/{pid}/statm")).ok()?;
    let pages: u64 = text.split_whitespace().nth(1)?.parse().ok()?;
    (pages > 0).then_some(pages * page_bytes)
}

/// The bytes of the workload's tables, and the live bytes of all threads.
fn read(file: &File) -> (u64, u64) {
    let mut bytes = [0u8; FILE_BYTES];
    if file.read_exact_at(&mut bytes, 0).is_err() {
        return (0, 0);
    }
    let word = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap_or_default());
    let live: i64 = (LINE..FILE_BYTES).step_by(LINE).map(|at| word(at) as i64).sum();
    (word(0), live.max(0) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(ms: f64, resident: u64, live: u64) -> Point {
        Point { ms, resident_bytes: resident, live_bytes: live }
    }

    #[test]
    fn live_bytes_are_the_sum_over_threads() {
        let meter = Meter::new().unwrap();
        let write = |at: usize, value: i64| {
            meter.file.as_file().write_all_at(&value.to_ne_bytes(), at as u64).unwrap();
        };
        write(0, 4096);
        write(LINE, 3_000_000);
        write(5 * LINE, -1_000_000);
        assert_eq!(read(meter.file.as_file()), (4096, 2_000_000));
        write(5 * LINE, -4_000_000);
        assert_eq!(read(meter.file.as_file()), (4096, 0));
    }

    #[test]
    fn overhead_is_a_mean_over_time() {
        let mut meter = Meter::new().unwrap();
        meter.note(point(10.0, 3 << 20, 2 << 20)); // 10 ms at 1.5
        meter.note(point(20.0, 900 << 10, 1 << 10)); // too little is live to count
        meter.note(point(50.0, 4 << 20, 2 << 20)); // 30 ms at 2
        assert_eq!(meter.finish().overhead, Some((1.5 + 3.0 * 2.0) / 4.0));
        assert_eq!(Meter::new().unwrap().finish().overhead, None);
    }

    #[test]
    fn a_long_curve_is_thinned_out() {
        let mut meter = Meter::new().unwrap();
        for ms in 1..=1000 {
            meter.note(point(f64::from(ms), 1, 0));
        }
        assert!(meter.pause > SHORTEST_PAUSE);
        let curve = meter.finish().curve;
        assert!(curve.len() < MOST_POINTS && curve.len() >= MOST_POINTS / 2, "{}", curve.len());
        assert_eq!(curve.last().unwrap().ms, 1000.0);
    }

    #[test]
    fn this_process_is_resident() {
        let mut meter = Meter::new().unwrap();
        meter.look(std::process::id(), Duration::from_millis(1));
        assert!(meter.finish().curve[0].resident_bytes > 100_000);
        assert_eq!(resident_bytes(u32::MAX, 4096), None);
    }
}
