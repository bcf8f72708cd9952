//! What a comparison found, in a sentence: faster or slower by how much and how sure, and the peak.

use super::frontier::{self, Means};
use crate::bench::allocators::{SNUG, SYSTEM as SYSTEM_NAME};
use crate::bench::results::Lab;
use crate::bench::results::RowResult;
use crate::bench::stats::Estimate;
use crate::output::counted;

/// A smaller difference of peaks is not worth a word: a page more or less is chance, too.
const SAME_PEAK: f64 = 0.01;

const SYSTEM: &str = "the system's malloc";

/// Of snug in all rows of a lab that has the system's malloc, too.
pub fn of_lab(lab: &Lab) -> Option<String> {
    let (system, snug) = (lab.place_of(SYSTEM_NAME)?, lab.place_of(SNUG)?);
    match lab.rows.as_slice() {
        [row] if system == 0 && lab.settings.paced => paced(row, snug),
        [row] if system == 0 => sentence(row, snug, SNUG),
        _ => frontier::means(lab)[snug].map(|means| of_means(&means, lab.settings.paced)),
    }
}

const PACED: &str = "At the recorded pace only memory is measured";

fn paced(row: &RowResult, place: usize) -> Option<String> {
    let peak = row.series.get(place)?.peak_ratio(row.series.first()?)?;
    Some(format!("{PACED}. {SNUG} beside {SYSTEM}: {}.", of_peak(&peak)))
}

fn of_means(means: &Means, is_paced: bool) -> String {
    let Means { speed, peak, rows } = *means;
    let factor = if speed >= 1.0 { speed } else { 1.0 / speed };
    let word = if speed >= 1.0 { "faster" } else { "slower" };
    let peak = of_peak(&Estimate { median: peak, interval: None });
    let rows = counted(rows, "row");
    if is_paced {
        return format!("{PACED}. {SNUG} beside {SYSTEM}, over {rows}: {peak} (geometric means).");
    }
    format!("Over {rows} {SNUG} is {factor:.2}x {word} than {SYSTEM}, and {peak} (geometric means).")
}

/// Of the allocator at this place, beside the system's malloc, which is the first.
pub fn sentence(row: &RowResult, place: usize, name: &str) -> Option<String> {
    let (system, ours) = (row.series.first()?, row.series.get(place)?);
    // How many times as fast: the system's time over ours.
    let time = system.time_ratio(ours)?;
    let peak = ours.peak_ratio(system)?;
    Some(format!("{}, and {}.", of_time(&time, name), of_peak(&peak)))
}

fn of_time(speed: &Estimate, name: &str) -> String {
    let factor = |value: f64| if value >= 1.0 { value } else { 1.0 / value };
    let word = |value: f64| if value >= 1.0 { "faster" } else { "slower" };
    let Some(interval) = speed.interval else {
        let (times, word) = (factor(speed.median), word(speed.median));
        return format!("{name} seems {times:.2}x {word} than {SYSTEM} (too few runs to be sure)");
    };
    if !speed.is_above(1.0) && !speed.is_below(1.0) {
        let [low, high] = [interval.low, interval.high].map(|value| format!("{:.2}x {}", factor(value), word(value)));
        return format!("No difference in time between {name} and {SYSTEM} seen ({low} to {high})");
    }
    let (one, other) = (factor(interval.low), factor(interval.high));
    let (low, high) = (one.min(other), one.max(other));
    format!("{name} is {:.2}x {} than {SYSTEM} ({low:.2} to {high:.2})", factor(speed.median), word(speed.median))
}

fn of_peak(peak: &Estimate) -> String {
    let is_chance = peak.interval.is_some_and(|interval| interval.low <= 1.0 && interval.high >= 1.0);
    let change = peak.median - 1.0;
    match () {
        () if change.abs() < SAME_PEAK => "its peak is the same within 1 %".to_string(),
        () if is_chance => "no difference in peak seen".to_string(),
        () => format!("its peak is {:.0} % {}", change.abs() * 100.0, if change > 0.0 { "higher" } else { "lower" }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tables;
    use super::*;
    use crate::bench::stats::Interval;

    fn estimate(median: f64, low: f64, high: f64) -> Estimate {
        Estimate { median, interval: Some(Interval { low, high }) }
    }

    #[test]
    fn faster_slower_and_neither() {
        let said = |median, low, high| of_time(&estimate(median, low, high), "snug");
        assert_eq!(said(1.11, 1.06, 1.16), "snug is 1.11x faster than the system's malloc (1.06 to 1.16)");
        assert_eq!(said(0.8, 0.5, 0.9), "snug is 1.25x slower than the system's malloc (1.11 to 2.00)");
        assert_eq!(
            said(1.01, 0.8, 1.2),
            "No difference in time between snug and the system's malloc seen (1.25x slower to 1.20x faster)"
        );
        let few = of_time(&Estimate { median: 1.2, interval: None }, "snug");
        assert_eq!(few, "snug seems 1.20x faster than the system's malloc (too few runs to be sure)");
    }

    #[test]
    fn of_a_lab() {
        let mut lab = super::super::samples::lab();
        let said = of_lab(&lab).unwrap();
        assert!(said.starts_with("Over 2 rows snug is 1.00x ") && said.contains("its peak is 41 % higher"), "{said}");
        lab.rows.truncate(1);
        let said = of_lab(&lab).unwrap();
        assert!(said.starts_with("snug "), "{said}");
        lab.settings.paced = true;
        let said = of_lab(&lab).unwrap();
        assert_eq!(said, "At the recorded pace only memory is measured. snug beside the system's malloc: its peak is the same within 1 %.");
        let titles: Vec<String> = tables::all(&lab).into_iter().map(|table| table.title).collect();
        assert!(!titles.iter().any(|title| title.starts_with("Time")) && titles.len() > 2, "{titles:?}");
        lab.allocators[0].name = "other".into();
        assert_eq!(of_lab(&lab), None);
    }

    #[test]
    fn peaks() {
        assert_eq!(of_peak(&estimate(1.16, 1.15, 1.17)), "its peak is 16 % higher");
        assert_eq!(of_peak(&estimate(0.7, 0.6, 0.75)), "its peak is 30 % lower");
        assert_eq!(of_peak(&estimate(1.004, 1.003, 1.005)), "its peak is the same within 1 %");
        assert_eq!(of_peak(&estimate(1.2, 0.9, 1.3)), "no difference in peak seen");
    }
}
