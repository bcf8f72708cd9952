//! Runs jobs on every allocator, interleaved.
//!
//! In each round every job runs once on each allocator, one straight after the other, and the one that begins moves on
//! by one from round to round. So what slows the machine down for a while hits all of them, and none is always first.
//!
//! It ends when all rounds are done, when the time is over, or at Ctrl-C; what was measured until then is kept, and a
//! later run can go on from there.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::allocators::Allocator;
use super::child::{self, Failure, Job, Limit};
use super::progress::Progress;
use super::results::{RowResult, Series};
use super::system_calls;
use crate::halts;

/// An allocator that needs so many times the time of the fastest has failed, and does not hold up the others; but a run
/// may always take `LEAST_LIMIT`.
const SLOWEST: u32 = 20;
const LEAST_LIMIT: Duration = Duration::from_secs(20);
/// strace slows a program down, but hardly more than this.
const SLOWER_WHEN_TRACED: u32 = 6;

/// How much is to be measured.
#[derive(Debug, Clone, Copy, Default)]
pub struct Plan {
    /// At most.
    pub rounds: u32,
    /// What the first of them is called: so many were measured before.
    pub first_round: u32,
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

/// Ctrl-C, a request to end, and a terminal that goes away set it; a second Ctrl-C or request has its usual effect. What
/// runs stops with this process at Ctrl-Z.
pub fn stop_at_signals() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let cannot = "cannot handle signals";
    for signal in [libc::SIGINT, libc::SIGTERM] {
        signal_hook::flag::register_conditional_default(signal, stop.clone())
            .and_then(|_| signal_hook::flag::register(signal, stop.clone()))
            .context(cannot)?;
    }
    // It may come twice, from the shell and from the kernel; and where nohup(1) has it ignored it is none.
    if !halts::is_ignored(libc::SIGHUP) {
        signal_hook::flag::register(libc::SIGHUP, stop.clone()).context(cannot)?;
    }
    halts::follow().context(cannot)?;
    Ok(stop)
}

/// Measures all jobs on all allocators. `stop` ends it, as the plan's time does.
pub fn measure(jobs: &[Job], allocators: &[Allocator], plan: Plan, stop: &AtomicBool) -> Result<Measured> {
    go_on(jobs, empty_rows(jobs, allocators), allocators, plan, stop)
}

/// The same, with a row for each job that may have figures already.
pub fn go_on(
    jobs: &[Job],
    rows: Vec<RowResult>,
    allocators: &[Allocator],
    plan: Plan,
    stop: &AtomicBool,
) -> Result<Measured> {
    let shortest = vec![None; jobs.len()];
    let mut lab = Lab { jobs, allocators, rows, shortest, stop, start: Instant::now(), plan };
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
        ended_early = lab.run_round(plan.first_round + rounds, &mut progress)?;
        last_round = start.elapsed();
        rounds += 1;
    }
    if plan.system_calls && !stop.load(Ordering::Relaxed) {
        lab.plan.most_time = plan.most_time.map(|most| most + most / 3);
        ended_early = ended_early.or(lab.count_system_calls(&progress));
    }
    progress.finish();
    Ok(Measured { rows: lab.rows, rounds: plan.first_round + rounds, ended_early })
}

fn empty_rows(jobs: &[Job], allocators: &[Allocator]) -> Vec<RowResult> {
    jobs.iter().map(|job| empty_row(job, allocators)).collect()
}

pub fn empty_row(job: &Job, allocators: &[Allocator]) -> RowResult {
    RowResult { row: job.row.clone(), series: allocators.iter().map(|_| Series::default()).collect() }
}

struct Lab<'a> {
    jobs: &'a [Job],
    allocators: &'a [Allocator],
    rows: Vec<RowResult>,
    /// What the shortest run of each job took, once there was one.
    shortest: Vec<Option<Duration>>,
    stop: &'a AtomicBool,
    start: Instant,
    plan: Plan,
}

impl Lab<'_> {
    fn time_left(&self) -> Option<Duration> {
        self.plan.most_time.map(|most| most.saturating_sub(self.start.elapsed()))
    }

    fn most_time(&self, place: usize) -> Duration {
        most_time_of(self.shortest[place])
    }

    /// Returns why not all are counted, if so. Counts do not mind company, so each processor takes a row of its own;
    /// not a run, as those of a program share a folder.
    fn count_system_calls(&mut self, progress: &Progress) -> Option<String> {
        let (next, ended_early) = (AtomicUsize::new(0), Mutex::new(None));
        let rows = std::mem::take(&mut self.rows);
        let rows: Vec<Mutex<RowResult>> = rows.into_iter().map(Mutex::new).collect();
        let lab = &*self;
        let work = || loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(row) = rows.get(place) else { break };
            if locked(&ended_early).is_some() {
                break;
            }
            if let Some(why) = lab.count_calls_of(place, &mut locked(row), progress) {
                *locked(&ended_early) = Some(why);
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..std::thread::available_parallelism().map_or(1, |count| count.get()) {
                scope.spawn(work);
            }
        });
        let unlocked = |row: Mutex<RowResult>| row.into_inner().unwrap_or_else(PoisonError::into_inner);
        self.rows = rows.into_iter().map(unlocked).collect();
        ended_early.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those of one row, where they are not known yet. A run that fails will fail again, and be reported then.
    fn count_calls_of(&self, place: usize, row: &mut RowResult, progress: &Progress) -> Option<String> {
        let job = &self.jobs[place];
        let limit = Limit { stop: self.stop, most_time: self.most_time(place) * SLOWER_WHEN_TRACED };
        for (series, allocator) in row.series.iter_mut().zip(self.allocators) {
            if series.system_calls.is_some() || series.failure.is_some() {
                continue;
            }
            if self.time_left().is_some_and(|left| left.is_zero()) {
                return Some(format!("the time was over at the system calls of {}", job.row.name));
            }
            progress.begin(&format!("system calls of {} on {}", job.row.name, allocator.name));
            match system_calls::count(job, allocator, &limit) {
                Ok(calls) => series.system_calls = Some(calls),
                Err(Failure::Stopped) => return Some(format!("stopped at the system calls of {}", job.row.name)),
                Err(Failure::Broken(_)) => {}
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
                let limit = Limit { stop: self.stop, most_time: self.most_time(place) };
                let series = &mut self.rows[place].series[turn];
                match run_into(series, job, allocator, round, &limit) {
                    Went::Well => {
                        let shortest = &mut self.shortest[place];
                        *shortest = Some(shortest.map_or(start.elapsed(), |known| known.min(start.elapsed())));
                    }
                    Went::Wrong => {}
                    Went::Stopped => return Ok(Some(format!("stopped in round {}, at {}", round + 1, job.row.name))),
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

/// How long a run of a job may take of which the shortest took so long.
fn most_time_of(shortest: Option<Duration>) -> Duration {
    shortest.map_or(child::MOST_TIME, |shortest| (shortest * SLOWEST).max(LEAST_LIMIT))
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

enum Went {
    Well,
    Wrong,
    Stopped,
}

/// A series that failed is not continued.
fn run_into(series: &mut Series, job: &Job, allocator: &Allocator, round: u32, limit: &Limit) -> Went {
    if series.failure.is_some() {
        return Went::Wrong;
    }
    if limit.stop.load(Ordering::Relaxed) {
        return Went::Stopped;
    }
    match child::run(job, allocator, round, limit) {
        Ok(outcome) => {
            series.figures.push(outcome.figures);
            series.curve = outcome.reading.curve;
            Went::Well
        }
        Err(Failure::Stopped) => Went::Stopped,
        Err(Failure::Broken(why)) => {
            series.failure = Some(why);
            Went::Wrong
        }
    }
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
        let plan = Plan { rounds: 2, ..Plan::default() };
        let measured = measure(&[job("echo ns_per_op=3")], &system(), plan, &AtomicBool::new(false)).unwrap();
        let series = &measured.rows[0].series[0];
        assert_eq!((series.times(), series.figures[1].round), (vec![3.0, 3.0], 1));
        assert_eq!((measured.rounds, measured.ended_early), (2, None));
    }

    #[test]
    fn a_failure_is_kept_and_not_repeated() {
        let plan = Plan { rounds: 3, ..Plan::default() };
        let jobs = [job("echo bad >&2; exit 3"), job("echo ns_per_op=3")];
        let measured = measure(&jobs, &system(), plan, &AtomicBool::new(false)).unwrap();
        assert_eq!(measured.rows[0].series[0].failure.as_deref(), Some("exit status: 3; bad"));
        assert_eq!(measured.rows[1].series[0].figures.len(), 3);
    }

    #[test]
    fn rounds_are_added_to_those_that_were_measured() {
        let (jobs, stop) = ([job("echo ns_per_op=3")], AtomicBool::new(false));
        let plan = Plan { rounds: 2, ..Plan::default() };
        let first = measure(&jobs, &system(), plan, &stop).unwrap();
        let plan = Plan { rounds: 1, first_round: first.rounds, ..Plan::default() };
        let more = go_on(&jobs, first.rows, &system(), plan, &stop).unwrap();
        let rounds: Vec<u32> = more.rows[0].series[0].figures.iter().map(|figures| figures.round).collect();
        assert_eq!((rounds, more.rounds), (vec![0, 1, 2], 3));
    }

    #[test]
    fn the_slowest_does_not_hold_up_the_others() {
        let seconds = Duration::from_secs;
        assert_eq!(most_time_of(None), child::MOST_TIME);
        assert_eq!(most_time_of(Some(Duration::from_millis(1))), LEAST_LIMIT);
        assert_eq!(most_time_of(Some(seconds(30))), seconds(600));
        let (mut series, stop) = (Series::default(), AtomicBool::new(false));
        let limit = Limit { stop: &stop, most_time: Duration::from_millis(50) };
        let went = run_into(&mut series, &job("exec sleep 1000"), &system()[0], 0, &limit);
        assert!(matches!(went, Went::Wrong));
        assert!(series.failure.unwrap().starts_with("killed after 0 s"));
    }

    #[test]
    fn system_calls_of_every_row_are_counted_once() {
        if !system_calls::is_there() {
            return; // the test of the lab as a whole says that it is missing
        }
        let jobs = ["true", "true", "exit 3"].map(job);
        let plan = Plan { rounds: 0, system_calls: true, ..Plan::default() };
        let stop = AtomicBool::new(false);
        let mut counted = measure(&jobs, &system(), plan, &stop).unwrap();
        let calls = |rows: &[RowResult]| rows.iter().map(|row| row.series[0].system_call_count()).collect::<Vec<_>>();
        let found = calls(&counted.rows);
        assert!(found[0].unwrap() > 0 && found[1].is_some() && found[2].is_none(), "{found:?}");
        let late = Plan { most_time: Some(Duration::ZERO), ..plan };
        let why = measure(&jobs, &system(), late, &stop).unwrap().ended_early.unwrap();
        assert!(why.contains("the time was over at the system calls"), "{why}");
        counted.rows[0].series[0].system_calls = Some([("mmap".to_string(), 77)].into());
        let again = go_on(&jobs, counted.rows, &system(), plan, &stop).unwrap();
        assert_eq!(calls(&again.rows)[0], Some(77));
    }

    #[test]
    fn what_was_measured_before_the_stop_is_kept() {
        let plan = Plan { rounds: 3, ..Plan::default() };
        let stopped = measure(&[job("echo ns_per_op=3")], &system(), plan, &AtomicBool::new(true)).unwrap();
        assert!(stopped.ended_early.unwrap().contains("stopped in round 1"));

        // The second job never ends by itself; the first has its figures.
        let plan = Plan { rounds: 1, ..Plan::default() };
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
        let plan = Plan { rounds: 1000, most_time: Some(Duration::from_millis(700)), ..Plan::default() };
        let job = job("sleep 0.2; echo ns_per_op=3");
        let measured = measure(&[job], &system(), plan, &AtomicBool::new(false)).unwrap();
        assert!((1..=3).contains(&measured.rounds), "{}", measured.rounds);
    }
}
