//! Runs jobs on every allocator, interleaved.
//!
//! In each round every job runs once on each allocator, one straight after the other, and the one that begins moves on
//! by one from round to round. So what slows the machine down for a while hits all of them, and none is always first.
//!
//! It ends when all rounds are done, when the time is over, or at Ctrl-C; what was measured until then is kept.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::allocators::Allocator;
use super::child::{self, Failure, Job};
use super::progress::Progress;
use super::results::{RowResult, Series};
use super::system_calls;

/// How much is to be measured.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// At most.
    pub rounds: u32,
    /// No run begins after this time, and no round that would go beyond it; there is no limit unless it is given.
    pub most_time: Option<Duration>,
    /// One more run of each job on each allocator, at the end, in which its system calls are
    /// counted; if time is limited, there is a third more of it for that.
    pub system_calls: bool,
}

/// What was measured, and why not all of it, if so.
pub struct Measured {
    pub rows: Vec<RowResult>,
    pub rounds: u32,
    pub ended_early: Option<String>,
}

/// Ctrl-C and a request to end set it, once; a second one has its usual effect.
pub fn stop_at_signals() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [libc::SIGINT, libc::SIGTERM] {
        signal_hook::flag::register_conditional_default(signal, stop.clone())
            .and_then(|_| signal_hook::flag::register(signal, stop.clone()))
            .context("cannot handle signals")?;
    }
    Ok(stop)
}

/// Measures all jobs on all allocators. `stop` ends it, as the plan's time does.
pub fn measure(jobs: &[Job], allocators: &[Allocator], plan: Plan, stop: &AtomicBool) -> Result<Measured> {
    let mut lab = Lab { jobs, allocators, rows: empty_rows(jobs, allocators), stop, start: Instant::now(), plan };
    let mut progress = Progress::new(jobs.len(), allocators.len(), plan);
    let mut rounds = 0;
    let mut last_round = Duration::ZERO;
    let mut ended_early = None;
    while rounds < plan.rounds && ended_early.is_none() {
        // A round that could not be finished is not begun: its first rows would have figures that the others lack.
        if rounds > 0 && lab.time_left().is_some_and(|left| left < last_round) {
            break;
        }
        let start = Instant::now();
        ended_early = lab.run_round(rounds, &mut progress)?;
        last_round = start.elapsed();
        rounds += 1;
    }
    if plan.system_calls && !stop.load(Ordering::Relaxed) {
        lab.plan.most_time = plan.most_time.map(|most| most + most / 3);
        ended_early = ended_early.or(lab.count_system_calls(&mut progress));
    }
    progress.finish();
    Ok(Measured { rows: lab.rows, rounds, ended_early })
}

fn empty_rows(jobs: &[Job], allocators: &[Allocator]) -> Vec<RowResult> {
    let series = || allocators.iter().map(|_| Series::default()).collect();
    jobs.iter().map(|job| RowResult { row: job.row.clone(), series: series() }).collect()
}

struct Lab<'a> {
    jobs: &'a [Job],
    allocators: &'a [Allocator],
    rows: Vec<RowResult>,
    stop: &'a AtomicBool,
    start: Instant,
    plan: Plan,
}

impl Lab<'_> {
    fn time_left(&self) -> Option<Duration> {
        self.plan.most_time.map(|most| most.saturating_sub(self.start.elapsed()))
    }

    /// Returns why not all are counted, if so. A run that fails will fail again, and be reported then.
    fn count_system_calls(&mut self, progress: &mut Progress) -> Option<String> {
        for (place, job) in self.jobs.iter().enumerate() {
            if self.time_left().is_some_and(|left| left.is_zero()) {
                return Some(format!("the time was over at the system calls of {}", job.row.name));
            }
            for (series, allocator) in self.rows[place].series.iter_mut().zip(self.allocators) {
                progress.begin(&format!("system calls of {} on {}", job.row.name, allocator.name));
                match system_calls::count(job, allocator, self.stop) {
                    Ok(calls) => series.system_calls = Some(calls),
                    Err(Failure::Stopped) => return Some(format!("stopped at the system calls of {}", job.row.name)),
                    Err(Failure::Broken(_)) => {}
                }
            }
        }
        None
    }

    /// Returns why it is not complete, if so.
    fn run_round(&mut self, round: u32, progress: &mut Progress) -> Result<Option<String>> {
        for (place, job) in self.jobs.iter().enumerate() {
            for turn in turns(round, self.allocators.len()) {
                if self.time_left().is_some_and(|left| left.is_zero()) {
                    return Ok(Some(format!("the time was over in round {}, at {}", round + 1, job.row.name)));
                }
                let allocator = &self.allocators[turn];
                progress.begin(&format!("{} on {}", job.row.name, allocator.name));
                let start = Instant::now();
                if !run_into(&mut self.rows[place].series[turn], job, allocator, round, self.stop) {
                    return Ok(Some(format!("stopped in round {}, at {}", round + 1, job.row.name)));
                }
                progress.end(place, start.elapsed());
            }
        }
        Ok(None)
    }
}

/// The order of `count` contenders in a round.
fn turns(round: u32, count: usize) -> impl Iterator<Item = usize> {
    (0..count).map(move |turn| (turn + round as usize) % count)
}

/// A series that failed is not continued. False: it was stopped.
fn run_into(series: &mut Series, job: &Job, allocator: &Allocator, round: u32, stop: &AtomicBool) -> bool {
    if series.failure.is_some() {
        return true;
    }
    if stop.load(Ordering::Relaxed) {
        return false;
    }
    match child::run(job, allocator, round, stop) {
        Ok(outcome) => {
            series.figures.push(outcome.figures);
            series.curve = outcome.reading.curve;
        }
        Err(Failure::Stopped) => return false,
        Err(Failure::Broken(why)) => series.failure = Some(why),
    }
    true
}

#[cfg(test)]
mod tests {
    use super::super::results::{Row, Unit};
    use super::*;

    fn job(script: &str) -> Job {
        let row = Row {
            name: "family/row".into(),
            family: "family".into(),
            about: String::new(),
            threads: 1,
            unit: Unit::NsPerOperation,
        };
        let words = ["sh", "-c", script].map(Into::into).to_vec();
        Job { row, words, folder: None, variables: Vec::new(), doubled: None }
    }

    fn system() -> Vec<Allocator> {
        vec![Allocator { name: "system".into(), ..Allocator::default() }]
    }

    #[test]
    fn everyone_is_first_in_turn() {
        let order = |round| turns(round, 3).collect::<Vec<_>>();
        assert_eq!([order(0), order(1), order(2), order(3)], [[0, 1, 2], [1, 2, 0], [2, 0, 1], [0, 1, 2]]);
    }

    #[test]
    fn figures_by_round() {
        let plan = Plan { rounds: 2, most_time: None, system_calls: false };
        let measured = measure(&[job("echo ns_per_op=3")], &system(), plan, &AtomicBool::new(false)).unwrap();
        let series = &measured.rows[0].series[0];
        assert_eq!((series.times(), series.figures[1].round), (vec![3.0, 3.0], 1));
        assert_eq!((measured.rounds, measured.ended_early), (2, None));
    }

    #[test]
    fn a_failure_is_kept_and_not_repeated() {
        let plan = Plan { rounds: 3, most_time: None, system_calls: false };
        let jobs = [job("echo bad >&2; exit 3"), job("echo ns_per_op=3")];
        let measured = measure(&jobs, &system(), plan, &AtomicBool::new(false)).unwrap();
        assert_eq!(measured.rows[0].series[0].failure.as_deref(), Some("exit status: 3; bad"));
        assert_eq!(measured.rows[1].series[0].figures.len(), 3);
    }

    #[test]
    fn what_was_measured_before_the_stop_is_kept() {
        let plan = Plan { rounds: 3, most_time: None, system_calls: false };
        let stopped = measure(&[job("echo ns_per_op=3")], &system(), plan, &AtomicBool::new(true)).unwrap();
        assert!(stopped.ended_early.unwrap().contains("stopped in round 1"));

        // The second job never ends by itself; the first has its figures.
        let plan = Plan { rounds: 1, most_time: None, system_calls: false };
        let stop = AtomicBool::new(false);
        let jobs = [job("echo ns_per_op=3"), job("sleep 1000")];
        let measured = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(300));
                stop.store(true, Ordering::Relaxed);
            });
            measure(&jobs, &system(), plan, &stop).unwrap()
        });
        assert_eq!(measured.rows[0].series[0].figures.len(), 1);
        assert!(measured.ended_early.is_some() && measured.rows[1].series[0].figures.is_empty());
        assert!(measured.rows[1].series[0].failure.is_none(), "stopping is no failure");
    }

    #[test]
    fn no_round_is_begun_that_the_time_does_not_allow() {
        let plan = Plan { rounds: 1000, most_time: Some(Duration::from_millis(700)), system_calls: false };
        let job = job("sleep 0.2; echo ns_per_op=3");
        let measured = measure(&[job], &system(), plan, &AtomicBool::new(false)).unwrap();
        assert!((1..=3).contains(&measured.rounds), "{}", measured.rounds);
    }
}
