//! Which plots a lab has: speed against memory, throughput by threads, memory over time.

use super::frontier;
use super::plots::{Line, Plot, COLOURS};
use crate::bench::allocators::{Allocator, SNUG, SYSTEM};
use crate::bench::results::{Lab, RowResult, Series};

/// The families that are plotted as overhead against speed, a point for each number of threads.
const OVERHEAD_AGAINST_SPEED: [&str; 2] = ["same-thread", "separate-thread"];
/// Those that are plotted as speed by threads.
const SPEED_BY_THREADS: [&str; 1] = ["larson"];
/// The family whose memory over time comes before the rest.
const OVER_TIME: &str = "peak-idle";

/// Colours: snug 0, the system's 1, the others in their order.
pub fn colour_of(allocators: &[Allocator], place: usize) -> usize {
    let name = |place: usize| allocators[place].name.as_str();
    let others = |place: &usize| name(*place) != SNUG && name(*place) != SYSTEM;
    match name(place) {
        SNUG => 0,
        SYSTEM => 1,
        _ => (2 + (0..place).filter(others).count()).min(LIVE_COLOUR - 1),
    }
}

/// What the program had asked for, beside what its process holds.
pub const LIVE_COLOUR: usize = COLOURS - 1;

/// The plots that a reader looks at first.
pub fn main(lab: &Lab) -> Vec<Plot> {
    let mut plots: Vec<Plot> = overall(lab).into_iter().collect();
    for family in OVERHEAD_AGAINST_SPEED {
        let variants = variants_of(lab, family);
        plots.extend(variants.iter().filter_map(|variant| overhead_against_speed(lab, variant)));
    }
    for family in SPEED_BY_THREADS {
        plots.extend(speed_by_threads(lab, family));
    }
    plots.extend(rows_of(lab, OVER_TIME).filter_map(|row| memory_over_time(lab, row)));
    plots
}

/// Memory over time in every other row.
pub fn curves(lab: &Lab) -> Vec<Plot> {
    lab.rows.iter().filter(|row| row.row.family != OVER_TIME).filter_map(|row| memory_over_time(lab, row)).collect()
}

fn rows_of<'a>(lab: &'a Lab, family: &'a str) -> impl Iterator<Item = &'a RowResult> {
    lab.rows.iter().filter(move |result| result.row.family == family)
}

/// The names of a family's rows without their last part, the number of threads.
fn variants_of(lab: &Lab, family: &str) -> Vec<String> {
    let without_threads = |row: &RowResult| Some(row.row.name.rsplit_once('/')?.0.to_string());
    let mut variants: Vec<String> = rows_of(lab, family).filter_map(without_threads).collect();
    variants.dedup();
    variants
}

/// The rows of a variant in the order of their threads.
fn by_threads<'a>(lab: &'a Lab, variant: &str) -> Vec<&'a RowResult> {
    let is_of = |name: &str| name.rsplit_once('/').is_some_and(|(start, _)| start == variant);
    let mut rows: Vec<&RowResult> = lab.rows.iter().filter(|row| is_of(&row.row.name)).collect();
    rows.sort_by_key(|row| row.row.threads);
    rows
}

/// Millions of operations per second.
fn speed(series: &Series) -> Option<f64> {
    Some(1e3 / series.time()?)
}

fn line(lab: &Lab, place: usize, points: Vec<(f64, f64)>) -> Line {
    let thick = lab.allocators[place].name == SNUG;
    Line { colour: colour_of(&lab.allocators, place), points, labels: Vec::new(), marks: true, thick, faint: false }
}

/// snug last, so that it is drawn over the others.
fn places(lab: &Lab) -> Vec<usize> {
    let mut places: Vec<usize> = (0..lab.allocators.len()).collect();
    places.sort_by_key(|&place| lab.allocators[place].name == SNUG);
    places
}

fn overhead_against_speed(lab: &Lab, variant: &str) -> Option<Plot> {
    let rows = by_threads(lab, variant);
    let of_place = |place: usize| {
        let point = |row: &&RowResult| {
            let series = &row.series[place];
            Some((row.row.threads, (series.overhead()?, speed(series)?)))
        };
        let found: Vec<(u32, (f64, f64))> = rows.iter().filter_map(point).collect();
        let label = |(place, (threads, _)): (usize, &(u32, (f64, f64)))| (place, threads.to_string());
        let labels = match found.len() {
            0 | 1 => Vec::new(),
            count => {
                found.iter().enumerate().filter(|(place, _)| *place == 0 || *place == count - 1).map(label).collect()
            }
        };
        let points = found.into_iter().map(|(_, point)| point).collect();
        Line { labels, faint: true, ..line(lab, place, points) }
    };
    let lines: Vec<Line> = places(lab).into_iter().map(of_place).filter(|line| !line.points.is_empty()).collect();
    (!lines.is_empty()).then(|| Plot {
        title: format!("{variant} B: speed against memory, by threads"),
        x: "memory overhead (resident / requested)".into(),
        y: "million operations / s".into(),
        hold: vec![(1.0, 0.0)],
        lines,
    })
}

fn speed_by_threads(lab: &Lab, family: &str) -> Option<Plot> {
    let rows = by_threads(lab, family);
    let of_place = |place: usize| {
        let point = |row: &&RowResult| Some((f64::from(row.row.threads), speed(&row.series[place])?));
        line(lab, place, rows.iter().filter_map(point).collect())
    };
    let lines: Vec<Line> = places(lab).into_iter().map(of_place).filter(|line| !line.points.is_empty()).collect();
    (!lines.is_empty()).then(|| Plot {
        title: format!("{family}: speed by threads"),
        x: "threads".into(),
        y: "million operations / s".into(),
        hold: vec![],
        lines,
    })
}

/// Nothing for a program, of which it is not known what it asked for.
fn memory_over_time(lab: &Lab, result: &RowResult) -> Option<Plot> {
    let curves = || result.series.iter().flat_map(|series| &series.curve);
    curves().any(|point| point.live_bytes > 0).then_some(())?;
    let mib = |bytes: u64| bytes as f64 / 1048576.0;
    let of_place = |place: usize| {
        let points = result.series[place].curve.iter().map(|point| (point.ms, mib(point.resident_bytes)));
        Line { marks: false, ..line(lab, place, points.collect()) }
    };
    let mut lines: Vec<Line> = places(lab).into_iter().map(of_place).filter(|line| !line.points.is_empty()).collect();
    // What was live is the same for all but for their speed: that of snug, or of the first.
    let series = lab.reference();
    let live = result.series[series].curve.iter().map(|point| (point.ms, mib(point.live_bytes))).collect();
    lines.push(Line { colour: LIVE_COLOUR, points: live, labels: Vec::new(), marks: false, thick: true, faint: false });
    Some(Plot {
        title: format!("{}: memory over time", result.row.name),
        x: "ms".into(),
        y: "resident MiB".into(),
        hold: vec![(0.0, 0.0)],
        lines,
    })
}

/// A point for each allocator: the means over all rows. Nothing unless there are two.
pub fn overall(lab: &Lab) -> Option<Plot> {
    let means = Some(frontier::means(lab)).filter(|_| !lab.settings.paced)?;
    let of_place = |place: usize| {
        let point = means[place].map(|means| (means.peak, means.speed));
        let labels = vec![(0, lab.allocators[place].name.clone())];
        Line { labels, ..line(lab, place, point.into_iter().collect()) }
    };
    let lines: Vec<Line> = places(lab).into_iter().map(of_place).filter(|line| !line.points.is_empty()).collect();
    (lines.len() > 1).then(|| Plot {
        title: format!("{} rows: speed against memory", lab.rows.len()),
        x: "peak memory, times that of the system's malloc".into(),
        y: "speed, times that of the system's malloc".into(),
        hold: vec![(1.0, 0.0)],
        lines,
    })
}

#[cfg(test)]
mod tests {
    use super::super::samples::lab;
    use super::*;

    #[test]
    fn colours_are_of_names() {
        let lab = lab();
        assert_eq!((0..3).map(|place| colour_of(&lab.allocators, place)).collect::<Vec<_>>(), [1, 0, 2]);
    }

    #[test]
    fn speed_by_threads_has_a_line_for_each_allocator_that_did_not_fail() {
        let plots = main(&lab());
        let larson = plots.iter().find(|plot| plot.title.starts_with("larson")).unwrap();
        assert_eq!(larson.lines.len(), 2);
        assert_eq!(larson.lines[1].points, [(2.0, 1e3 / 20.0)], "snug is drawn last");
    }

    #[test]
    fn overhead_against_speed_has_a_point_for_each_number_of_threads() {
        let mut lab = lab();
        for (result, threads) in lab.rows.iter_mut().zip([1, 2]) {
            result.row.family = "same-thread".into();
            result.row.name = format!("same-thread/500/{threads}");
        }
        let plots = main(&lab);
        let plot = plots.iter().find(|plot| plot.title.starts_with("same-thread/500")).unwrap();
        assert_eq!(plot.lines[0].points, [(1.5, 1e3 / 6.0), (1.5, 1e3 / 10.0)]);
        assert_eq!(plot.lines[0].labels, [(0, "1".to_string()), (1, "2".to_string())]);
    }

    #[test]
    fn memory_over_time_has_what_was_live_too() {
        let plots = curves(&lab());
        assert_eq!(plots.len(), 2);
        let live = plots[0].lines.last().unwrap();
        assert_eq!((live.colour, live.points[0]), (LIVE_COLOUR, (1.0, 2.0)));
    }

    #[test]
    fn the_system_is_one_of_itself() {
        let plot = overall(&lab()).unwrap();
        let system = plot.lines.iter().find(|line| line.colour == 1).unwrap();
        assert_eq!(system.points, [(1.0, 1.0)]);
    }
}
