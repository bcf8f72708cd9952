//! The bar that tells how far a lab is, and the time left: from what each job took when it last ran.

use std::time::{Duration, Instant};

use indicatif::{HumanDuration, ProgressBar, ProgressStyle};

use super::runner::Plan;
use crate::output;

/// Of a job that has not run yet.
const GUESS: Duration = Duration::from_millis(500);

pub struct Progress {
    bar: ProgressBar,
    start: Instant,
    plan: Plan,
    /// How long each job took on one allocator, the last time.
    took: Vec<Duration>,
    /// Runs of each job that are still to come.
    left: Vec<usize>,
}

impl Progress {
    pub fn new(jobs: usize, allocators: usize, plan: Plan) -> Progress {
        let style = ProgressStyle::with_template("{wide_bar} {msg}").unwrap_or_else(|_| ProgressStyle::default_bar());
        Progress {
            bar: ProgressBar::with_draw_target(Some(1), output::progress()).with_style(style),
            start: Instant::now(),
            plan,
            took: vec![GUESS; jobs],
            left: vec![allocators * plan.rounds as usize; jobs],
        }
    }

    pub fn begin(&self, what: &str) {
        let (past, left) = (self.start.elapsed(), self.left());
        self.bar.set_length((past + left).as_millis() as u64);
        self.bar.set_position(past.as_millis() as u64);
        self.bar.set_message(format!("{} left: {what}", HumanDuration(left)));
    }

    pub fn end(&mut self, job: usize, took: Duration) {
        self.took[job] = took;
        self.left[job] = self.left[job].saturating_sub(1);
    }

    fn left(&self) -> Duration {
        let runs: Duration = self.took.iter().zip(&self.left).map(|(took, &left)| *took * left as u32).sum();
        match self.plan.most_time {
            Some(most) => runs.min(most.saturating_sub(self.start.elapsed())),
            None => runs,
        }
    }

    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_follows_what_runs_took() {
        let mut progress = Progress::new(2, 3, Plan { rounds: 2, ..Plan::default() });
        assert_eq!(progress.left(), GUESS * 12);
        progress.end(0, Duration::from_millis(100));
        assert_eq!(progress.left(), Duration::from_millis(500) + GUESS * 6);
    }

    #[test]
    fn the_time_left_is_never_more_than_the_plan_allows() {
        let progress =
            Progress::new(2, 3, Plan { rounds: 2, most_time: Some(Duration::from_secs(1)), ..Plan::default() });
        assert!(progress.left() <= Duration::from_secs(1));
    }
}
