//! The statistics that comparisons are made of. All take at least one value, none of them NaN.
//!
//! What is compared are pairs: the times of two allocators in one round. What slows the machine down for a while hits
//! both of a pair, so the median of their ratios moves far less from run to run than the ratio of two medians. How far
//! it may be off is told by the bootstrap (Efron 1979): the rounds are drawn anew, with replacement, many times; the
//! middle 95 % of the medians of those draws are the interval.

use serde::{Deserialize, Serialize};

/// Draws of the bootstrap. More would move the ends of an interval by less than the third digit.
const DRAWS: usize = 2000;
/// With fewer values an interval would claim what they cannot tell.
pub const LEAST_FOR_INTERVAL: usize = 3;
const CONFIDENCE: f64 = 0.95;
/// The draws are the same in each run, so a report made twice of the same figures says the same.
const SEED: u64 = 0x9e37_79b9_7f4a_7c15;

/// Where a value lies with 95 % confidence.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    pub low: f64,
    pub high: f64,
}

/// A median and how sure it is; no interval if there were fewer than three values.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    pub median: f64,
    pub interval: Option<Interval>,
}

impl Estimate {
    /// Is it above `limit`, beyond what chance explains? Without an interval nothing is.
    pub fn is_above(&self, limit: f64) -> bool {
        self.interval.is_some_and(|interval| interval.low > limit)
    }

    /// Of the ratio the other way around.
    pub fn inverse(&self) -> Estimate {
        let interval = self.interval.map(|Interval { low, high }| Interval { low: 1.0 / high, high: 1.0 / low });
        Estimate { median: 1.0 / self.median, interval }
    }

    /// Is it below `limit`, beyond what chance explains?
    pub fn is_below(&self, limit: f64) -> bool {
        self.interval.is_some_and(|interval| interval.high < limit)
    }
}

pub fn min(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

pub fn max(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

/// The middle value, or the mean of the middle two.
pub fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// The value below which a part `part` (0..=1) of the sample lies, between neighbours by their distance.
pub fn quantile(values: &[f64], part: f64) -> f64 {
    assert!(!values.is_empty(), "a quantile of nothing");
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = part * (sorted.len() - 1) as f64;
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    below + (above - below) * place.fract()
}

/// The distance from the first to the third quartile, as a part of the median: half of all values lie within it.
pub fn spread(values: &[f64]) -> f64 {
    let middle = median(values);
    if middle == 0.0 {
        return 0.0;
    }
    (quantile(values, 0.75) - quantile(values, 0.25)) / middle
}

/// `theirs[i] / ours[i]` for each i.
pub fn ratios(theirs: &[f64], ours: &[f64]) -> Vec<f64> {
    assert_eq!(theirs.len(), ours.len(), "values that are no pairs");
    theirs.iter().zip(ours).map(|(their, our)| their / our).collect()
}

/// The median with its interval.
pub fn estimate(values: &[f64]) -> Estimate {
    let interval = (values.len() >= LEAST_FOR_INTERVAL).then(|| {
        let mut random = fastrand::Rng::with_seed(SEED);
        middle_of((0..DRAWS).map(|_| median(&draw(values, &mut random))).collect())
    });
    Estimate { median: median(values), interval }
}

/// The ratio of the medians of two samples that are no pairs, for instance of two runs on different days.
pub fn estimate_quotient(theirs: &[f64], ours: &[f64]) -> Estimate {
    let interval = (theirs.len() >= LEAST_FOR_INTERVAL && ours.len() >= LEAST_FOR_INTERVAL).then(|| {
        let mut random = fastrand::Rng::with_seed(SEED);
        let mut quotient = || median(&draw(theirs, &mut random)) / median(&draw(ours, &mut random));
        middle_of((0..DRAWS).map(|_| quotient()).collect())
    });
    Estimate { median: median(theirs) / median(ours), interval }
}

fn draw(values: &[f64], random: &mut fastrand::Rng) -> Vec<f64> {
    (0..values.len()).map(|_| values[random.usize(..values.len())]).collect()
}

fn middle_of(values: Vec<f64>) -> Interval {
    let tail = (1.0 - CONFIDENCE) / 2.0;
    Interval { low: quantile(&values, tail), high: quantile(&values, 1.0 - tail) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extremes() {
        assert_eq!((min(&[3.0, 1.0, 2.0]), max(&[3.0, 1.0, 2.0])), (1.0, 3.0));
        assert_eq!((min(&[5.0]), max(&[5.0])), (5.0, 5.0));
    }

    #[test]
    fn medians_of_known_samples() {
        assert_eq!(median(&[7.0]), 7.0);
        assert_eq!(median(&[9.0, 1.0]), 5.0);
        assert_eq!(median(&[100.0, 1.0, 3.0]), 3.0);
        assert_eq!(median(&[4.0, 1.0, 1000.0, 2.0]), 3.0);
        assert_eq!(median(&[2.0, 2.0, 2.0, 9.0, 0.0]), 2.0);
    }

    #[test]
    fn quantiles_of_known_samples() {
        // The same as numpy.quantile of 1..=5 and of [1, 2, 3, 4].
        let five = [5.0, 3.0, 1.0, 2.0, 4.0];
        assert_eq!([0.0, 0.25, 0.5, 0.75, 1.0].map(|part| quantile(&five, part)), [1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(quantile(&[1.0, 2.0, 3.0, 4.0], 0.25), 1.75);
        assert_eq!(quantile(&[1.0, 2.0, 3.0, 4.0], 0.9), 3.7);
    }

    #[test]
    fn spreads() {
        assert_eq!(spread(&[4.0, 4.0, 4.0]), 0.0);
        assert_eq!(spread(&[5.0, 3.0, 1.0, 2.0, 4.0]), 2.0 / 3.0);
        assert_eq!(spread(&[0.0, 0.0]), 0.0);
    }

    #[test]
    fn pairs_cancel_what_hits_both() {
        // Every round twice as slow as the one before, ours always half of theirs: the ratio is exactly 2, and sure.
        let ours = [1.0, 2.0, 4.0, 8.0, 16.0];
        let theirs = ours.map(|value| value * 2.0);
        let found = estimate(&ratios(&theirs, &ours));
        assert_eq!(found, Estimate { median: 2.0, interval: Some(Interval { low: 2.0, high: 2.0 }) });
        // One disturbed round does not move it.
        assert_eq!(estimate(&ratios(&[3.0, 3.0, 90.0], &[2.0, 2.0, 2.0])).median, 1.5);
    }

    #[test]
    fn few_values_have_no_interval() {
        assert_eq!(estimate(&[1.0, 2.0]), Estimate { median: 1.5, interval: None });
        assert!(!estimate(&[9.0, 9.0]).is_above(1.0));
        assert!(estimate_quotient(&[1.0; 3], &[1.0; 2]).interval.is_none());
    }

    #[test]
    fn an_interval_holds_the_truth_as_often_as_it_says() {
        // Samples of 15 from a uniform distribution whose median is 10: 95 % of the intervals should hold 10. Of 300,
        // fewer than 265 (88 %) or all of them would be very improbable.
        let mut random = fastrand::Rng::with_seed(42);
        let mut held = 0;
        for _ in 0..300 {
            let sample: Vec<f64> = (0..15).map(|_| 9.0 + 2.0 * random.f64()).collect();
            let interval = estimate(&sample).interval.unwrap();
            held += u32::from(interval.low <= 10.0 && 10.0 <= interval.high);
        }
        assert!((265..300).contains(&held), "{held} of 300");
    }

    #[test]
    fn differences_beyond_chance() {
        let slower = estimate(&[1.21, 1.19, 1.20, 1.22, 1.18]);
        assert!(slower.is_above(1.1) && !slower.is_above(1.2) && !slower.is_below(1.2));
        let noise = estimate(&[0.8, 1.3, 1.0, 0.9, 1.2]);
        assert!(!noise.is_above(1.0) && !noise.is_below(1.0));
    }

    #[test]
    fn quotients_of_samples_that_are_no_pairs() {
        let found = estimate_quotient(&[2.0, 2.2, 2.1, 1.9], &[1.0, 1.1, 1.05, 0.95, 1.0]);
        assert_eq!(found.median, 2.05);
        assert!(found.is_above(1.5) && found.is_below(2.5));
    }

    #[test]
    #[should_panic(expected = "no pairs")]
    fn unequal_lengths_are_refused() {
        ratios(&[1.0], &[1.0, 2.0]);
    }
}
