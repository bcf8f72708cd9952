//! All rows in two numbers for each allocator: speed and peak memory beside those of the system's malloc.

use crate::bench::allocators::SYSTEM;
use crate::bench::results::Lab;

/// Geometric means over the rows that have both figures.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Means {
    pub speed: f64,
    pub peak: f64,
    pub rows: usize,
}

/// For each allocator, in their order; nothing for one without figures, or where the system's malloc has none.
pub fn means(lab: &Lab) -> Vec<Option<Means>> {
    (0..lab.allocators.len()).map(|place| means_of(lab, place)).collect()
}

fn means_of(lab: &Lab, place: usize) -> Option<Means> {
    let system = lab.place_of(SYSTEM)?;
    let ratios = lab.rows.iter().filter_map(|result| {
        let (series, base) = (&result.series[place], &result.series[system]);
        Some((series.time_ratio(base)?.median, series.peak_ratio(base)?.median))
    });
    let (times, peaks): (Vec<f64>, Vec<f64>) = ratios.unzip();
    let mean = |ratios: &[f64]| (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp();
    (!times.is_empty()).then(|| Means { speed: 1.0 / mean(&times), peak: mean(&peaks), rows: times.len() })
}

#[cfg(test)]
mod tests {
    use super::super::samples::lab;
    use super::*;

    #[test]
    fn means_are_geometric_and_of_the_rows_that_are_there() {
        let found = means(&lab());
        assert_eq!(found[0], Some(Means { speed: 1.0, peak: 1.0, rows: 2 }));
        let snug = found[1].unwrap(); // twice as fast and as large in one row, half as fast and twice as large in the other
        assert!(
            (snug.speed - 1.0).abs() < 1e-9 && (snug.peak - 2f64.sqrt()).abs() < 1e-9 && snug.rows == 2,
            "{snug:?}"
        );
        assert_eq!(found[2].unwrap().rows, 1, "it failed in the other");
    }

    #[test]
    fn nothing_stands_beside_nothing() {
        let mut lab = lab();
        lab.allocators[0].name = "other".into();
        assert_eq!(means(&lab), [None, None, None]);
    }
}
