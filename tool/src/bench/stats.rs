//! The few statistics that comparisons are made of. All take at least one value, none of them NaN.

pub fn min(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

pub fn max(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

/// The middle value, or the mean of the middle two.
pub fn median(values: &[f64]) -> f64 {
    assert!(!values.is_empty(), "the median of nothing");
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        sorted[middle]
    } else {
        (sorted[middle - 1] + sorted[middle]) / 2.0
    }
}

/// The median of `theirs[i] / ours[i]`. What slows the machine down for a while hits both of a pair, so this moves far
/// less from run to run than the ratio of two medians.
pub fn median_ratio(theirs: &[f64], ours: &[f64]) -> f64 {
    assert_eq!(theirs.len(), ours.len(), "values that are no pairs");
    let ratios: Vec<f64> = theirs.iter().zip(ours).map(|(their, our)| their / our).collect();
    median(&ratios)
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
    fn pairs_cancel_what_hits_both() {
        // Every round twice as slow as the one before, ours always half of theirs: the ratio is exactly 2.
        let ours = [1.0, 2.0, 4.0, 8.0, 16.0];
        let theirs = ours.map(|value| value * 2.0);
        assert_eq!(median_ratio(&theirs, &ours), 2.0);
        // One disturbed round does not move it.
        assert_eq!(median_ratio(&[3.0, 3.0, 90.0], &[2.0, 2.0, 2.0]), 1.5);
    }

    #[test]
    #[should_panic(expected = "no pairs")]
    fn unequal_lengths_are_refused() {
        median_ratio(&[1.0], &[1.0, 2.0]);
    }
}
