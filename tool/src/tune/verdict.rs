//! Which candidate is best, by how much, and how sure that is.
//!
//! A candidate is compared with the default by the ratios of their figures in the same round, see bench::stats. Which
//! ones are promising is found out in a first part; how good they are, in a second with new runs: the best of many
//! looks better than it is in the runs that chose it.

use super::candidates::Candidate;
use crate::bench::results::{Figures, RowResult};
use crate::bench::stats::Estimate;

/// A smaller difference than this part is none.
const WORTH_A_WORD: f64 = 0.01;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Goal {
    Time,
    Memory,
}

pub const GOALS: [Goal; 2] = [Goal::Time, Goal::Memory];

impl Goal {
    fn value(self, figures: &Figures) -> Option<f64> {
        match self {
            Goal::Time => Some(figures.time),
            Goal::Memory => Some(figures.peak_bytes as f64),
        }
    }

    pub fn other(self) -> Goal {
        match self {
            Goal::Time => Goal::Memory,
            Goal::Memory => Goal::Time,
        }
    }
}

/// A candidate's figure over the default's; `row` has a series for each candidate, that of the default first.
pub fn ratio(row: &RowResult, place: usize, goal: Goal) -> Option<Estimate> {
    let (candidate, default) = (row.series.get(place)?, row.series.first()?);
    if candidate.failure.is_some() || default.failure.is_some() {
        return None;
    }
    candidate.ratio_to(default, |figures| goal.value(figures))
}

/// Those that are better than the default beyond chance, and by more than what is worth a word; best first.
pub fn promising(row: &RowResult, goal: Goal) -> Vec<(usize, Estimate)> {
    let ratios = (1..row.series.len()).filter_map(|place| Some((place, ratio(row, place, goal)?)));
    let is_better = |estimate: &Estimate| estimate.is_below(1.0) && estimate.median <= 1.0 - WORTH_A_WORD;
    let mut found: Vec<(usize, Estimate)> = ratios.filter(|(_, estimate)| is_better(estimate)).collect();
    found.sort_by(|(_, a), (_, b)| a.median.total_cmp(&b.median));
    found
}

/// What goes into the second part: the default, the best for each goal, and all that helped a goal together.
pub fn finalists(row: &RowResult, candidates: &[Candidate], most: usize) -> Vec<Candidate> {
    let mut chosen = vec![Candidate::default()];
    let mut add = |candidate: Candidate| {
        if !chosen.contains(&candidate) {
            chosen.push(candidate);
        }
    };
    for goal in GOALS {
        let better: Vec<&Candidate> = promising(row, goal).into_iter().map(|(place, _)| &candidates[place]).collect();
        better.iter().take(most).for_each(|&candidate| add(candidate.clone()));
        add(Candidate::together(better));
    }
    chosen
}

/// The best for a goal, and what it means for both goals.
#[derive(Debug, PartialEq)]
pub struct Best {
    pub place: usize,
    pub gain: Estimate,
    pub elsewhere: Option<Estimate>,
}

/// Whether the gain is no less than the range in which it may lie. Of many candidates some are better in each of few rounds by
/// chance, but then they are so by now this, now that; of many rounds the range is narrow, and a small gain is seen.
fn is_steady(estimate: &Estimate) -> bool {
    estimate.interval.is_some_and(|interval| 1.0 - estimate.median >= interval.high - interval.low)
}

/// Of those that are about as good as the very best, the one with the fewest options.
pub fn best(row: &RowResult, candidates: &[Candidate], goal: Goal) -> Option<Best> {
    let better: Vec<_> = promising(row, goal).into_iter().filter(|(_, estimate)| is_steady(estimate)).collect();
    let limit = better.first()?.1.median + WORTH_A_WORD;
    let as_good = better.into_iter().filter(|(_, estimate)| estimate.median <= limit);
    let (place, gain) = as_good.min_by_key(|&(place, _)| candidates[place].0.len())?;
    Some(Best { place, gain, elsewhere: ratio(row, place, goal.other()) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::results::{Row, Series, Unit};
    use std::collections::BTreeMap;

    fn series(times: &[f64], peak: u64) -> Series {
        let figures = times.iter().enumerate().map(|(round, &time)| Figures {
            round: round as u32,
            time,
            cpu_seconds: 0.0,
            peak_bytes: peak,
            page_faults: 0,
            overhead: None,
            further: BTreeMap::new(),
        });
        Series { figures: figures.collect(), ..Series::default() }
    }

    fn row(series: Vec<Series>) -> RowResult {
        let (name, family, about) = ("x".to_string(), "x".to_string(), String::new());
        RowResult { row: Row { name, family, about, threads: 1, unit: Unit::Seconds }, series }
    }

    fn candidate(name: &str) -> Candidate {
        Candidate(BTreeMap::from([(name.to_string(), "1".to_string())]))
    }

    const DEFAULT: [f64; 5] = [1.00, 1.05, 0.98, 1.02, 1.01];

    fn times(factor: f64) -> Series {
        series(&DEFAULT.map(|time| time * factor), 100)
    }

    fn candidates() -> Vec<Candidate> {
        [
            vec![Candidate::default()],
            ["SNUG_ARENAS", "SNUG_DEPOT", "SNUG_DIRTY", "SNUG_PREFAULT"].map(candidate).to_vec(),
        ]
        .concat()
    }

    #[test]
    fn the_faster_one_is_found_with_its_price() {
        let mut fast = times(0.8);
        fast.figures.iter_mut().for_each(|figures| figures.peak_bytes = 150);
        let row = row(vec![times(1.0), times(0.9), fast, times(1.2)]);
        let best = best(&row, &candidates(), Goal::Time).unwrap();
        assert_eq!((best.place, best.elsewhere.unwrap().median), (2, 1.5));
        assert!((best.gain.median - 0.8).abs() < 1e-9);
        assert_eq!(super::best(&row, &candidates(), Goal::Memory), None);
    }

    #[test]
    fn noise_and_worse_candidates_win_nothing() {
        let noise = series(&[1.3, 0.8, 1.1, 0.9, 1.05], 100);
        let row = row(vec![times(1.0), noise, times(1.1)]);
        assert_eq!(best(&row, &candidates(), Goal::Time), None);
        assert_eq!(best(&row, &candidates(), Goal::Memory), None);
    }

    #[test]
    fn what_is_better_in_each_of_few_rounds_by_chance_wins_nothing() {
        let scattered = |ratios: [f64; 5]| {
            let found: Vec<f64> = DEFAULT.iter().zip(ratios).map(|(time, ratio)| time * ratio).collect();
            row(vec![times(1.0), series(&found, 100)])
        };
        let chance = scattered([0.99, 0.91, 0.97, 0.94, 0.985]);
        assert_eq!(promising(&chance, Goal::Time).len(), 1, "it is worth new runs");
        assert_eq!(best(&chance, &candidates(), Goal::Time), None);
        assert!(best(&scattered([0.92, 0.91, 0.94, 0.93, 0.92]), &candidates(), Goal::Time).is_some());
    }

    #[test]
    fn a_candidate_that_fails_wins_nothing() {
        let broken = Series { failure: Some("signal: 6".into()), ..times(0.1) };
        assert_eq!(best(&row(vec![times(1.0), broken]), &candidates(), Goal::Time), None);
    }

    #[test]
    fn of_two_that_are_as_good_the_simpler_one_counts() {
        let candidates = [Candidate::default(), Candidate::together(&candidates()[1..3]), candidate("SNUG_DIRTY")];
        let found = row(vec![times(1.0), times(0.800), times(0.805)]);
        assert_eq!(best(&found, &candidates, Goal::Time).unwrap().place, 2);
        let found = row(vec![times(1.0), times(0.70), times(0.80)]);
        assert_eq!(best(&found, &candidates, Goal::Time).unwrap().place, 1);
        assert_eq!(best(&row(vec![times(1.0), times(0.995)]), &candidates, Goal::Time), None);
    }

    #[test]
    fn finalists_are_the_best_and_what_helped_together() {
        let small = series(&DEFAULT, 50);
        let found = row(vec![times(1.0), times(0.9), times(0.8), small, times(1.1)]);
        let candidates = candidates();
        let names: Vec<String> = finalists(&found, &candidates, 1).iter().map(Candidate::name).collect();
        assert_eq!(names, ["snug", "SNUG_DEPOT=1", "SNUG_ARENAS=1 SNUG_DEPOT=1", "SNUG_DIRTY=1"]);
        // Nothing helped: only the default is left, and there is nothing to find out.
        assert_eq!(finalists(&row(vec![times(1.0), times(1.0)]), &candidates[..2], 1), [Candidate::default()]);
    }
}
