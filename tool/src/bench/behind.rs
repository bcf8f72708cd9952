//! The rows in which another allocator is ahead of snug: what a lab is for.

use super::allocators::SNUG;
use super::report::tables::show_time;
use super::results::{Figures, Lab, RowResult, Series};
use super::stats::Estimate;

/// Memory hardly varies from run to run, but a page or two is nothing to speak of.
pub const MEMORY_LIMIT: f64 = 0.98;

pub struct Gap {
    pub row: String,
    pub what: &'static str,
    pub ours: String,
    /// The allocator that is ahead of all.
    pub best: String,
    pub theirs: String,
    /// Theirs over ours.
    pub ratio: Estimate,
}

/// Nothing if snug was not measured. Presets of snug are not its rivals.
pub fn find(lab: &Lab) -> Vec<Gap> {
    let Some(ours) = lab.place_of(SNUG) else { return Vec::new() };
    let mut gaps = Vec::new();
    for result in &lab.rows {
        gaps.extend(in_time(lab, result, ours).filter(|_| !lab.settings.paced));
        let peak = |figures: &Figures| Some(figures.peak_bytes as f64);
        let show_peak = |bytes: f64| format!("{:.1} MiB", bytes / 1048576.0);
        gaps.extend(in_memory(lab, result, ours, "peak", &peak, &show_peak));
        let overhead = |figures: &Figures| figures.overhead;
        gaps.extend(in_memory(lab, result, ours, "overhead", &overhead, &|ratio| format!("{ratio:.2}")));
    }
    gaps
}

/// The rival with the least ratio to ours.
fn best_rival(
    lab: &Lab,
    result: &RowResult,
    ours: usize,
    value: &dyn Fn(&Figures) -> Option<f64>,
) -> Option<(usize, Estimate)> {
    let rivals = (0..lab.allocators.len()).filter(|&place| !lab.allocators[place].name.starts_with(SNUG));
    let ratio = |place: usize| Some((place, result.series[place].ratio_to(&result.series[ours], value)?));
    rivals.filter_map(ratio).min_by(|a, b| a.1.median.total_cmp(&b.1.median))
}

fn in_time(lab: &Lab, result: &RowResult, ours: usize) -> Option<Gap> {
    let (best, ratio) = best_rival(lab, result, ours, &|figures| Some(figures.time))?;
    let shown = |series: &Series| series.time().map(|time| show_time(time, result.row.unit));
    ratio.is_below(1.0).then_some(())?;
    Some(Gap {
        row: result.row.name.clone(),
        what: "time",
        ours: shown(&result.series[ours])?,
        best: lab.allocators[best].name.clone(),
        theirs: shown(&result.series[best])?,
        ratio,
    })
}

fn in_memory(
    lab: &Lab,
    result: &RowResult,
    ours: usize,
    what: &'static str,
    value: &dyn Fn(&Figures) -> Option<f64>,
    show: &dyn Fn(f64) -> String,
) -> Option<Gap> {
    let (best, ratio) = best_rival(lab, result, ours, value)?;
    (ratio.median < MEMORY_LIMIT).then_some(())?;
    Some(Gap {
        row: result.row.name.clone(),
        what,
        ours: show(result.series[ours].median_of(value)?),
        best: lab.allocators[best].name.clone(),
        theirs: show(result.series[best].median_of(value)?),
        ratio,
    })
}

#[cfg(test)]
mod tests {
    use super::super::report::samples::lab;
    use super::*;

    #[test]
    fn only_what_is_beyond_chance() {
        let gaps = find(&lab());
        let found: Vec<(&str, &str, &str)> =
            gaps.iter().map(|gap| (gap.row.as_str(), gap.what, gap.best.as_str())).collect();
        assert_eq!(found, [("larson/2", "time", "system"), ("larson/2", "peak", "system")]);
        assert_eq!((gaps[0].ours.as_str(), gaps[0].theirs.as_str(), gaps[0].ratio.median), ("20.0 ns", "10.0 ns", 0.5));
    }

    #[test]
    fn nothing_without_snug() {
        let mut lab = lab();
        lab.allocators[1].name = "other".into();
        assert!(find(&lab).is_empty());
    }
}
