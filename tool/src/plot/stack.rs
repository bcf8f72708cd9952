//! The resident memory of all processes, one upon the other, at the same moments.

use plotters::style::RGBColor;

use crate::watch::Process;

/// So many processes have a colour and a name; the rest are one layer.
const NAMED: usize = 7;
const COLORS: [RGBColor; NAMED + 1] = [
    RGBColor(31, 119, 180),
    RGBColor(255, 127, 14),
    RGBColor(44, 160, 44),
    RGBColor(214, 39, 40),
    RGBColor(148, 103, 189),
    RGBColor(140, 86, 75),
    RGBColor(227, 119, 194),
    RGBColor(150, 150, 150),
];
const COLUMNS: usize = 400;
const NAME_MOST: usize = 24;

/// A process, or the rest of them.
pub struct Layer {
    pub name: String,
    pub color: RGBColor,
    /// Time in seconds, and the bytes of this layer and those below it.
    pub top: Vec<(f64, f64)>,
}

/// From the bottom up; the largest is at the bottom.
pub fn layers(processes: &[Process]) -> Vec<Layer> {
    let end =
        processes.iter().filter_map(|process| process.points.last()).map(|point| point.seconds).fold(0.0, f64::max);
    let times: Vec<f64> = (0..=COLUMNS).map(|column| end * column as f64 / COLUMNS as f64).collect();
    let mut sorted: Vec<&Process> = processes.iter().filter(|process| !process.points.is_empty()).collect();
    sorted.sort_by_key(|process| std::cmp::Reverse(process.peak));
    let (named, rest) = sorted.split_at(sorted.len().min(NAMED));
    let mut below = vec![0.0; times.len()];
    let mut layers = Vec::new();
    let mut add = |name: String, members: &[&Process]| {
        for (column, &time) in times.iter().enumerate() {
            below[column] += members.iter().map(|process| held(process, time, end / COLUMNS as f64)).sum::<f64>();
        }
        let top = times.iter().copied().zip(below.iter().copied()).collect();
        layers.push(Layer { name, color: COLORS[layers.len()], top });
    };
    for process in named {
        let name = format!("{} ({})", process.name, process.pid);
        add(name.chars().take(NAME_MOST).collect(), &[process]);
    }
    if !rest.is_empty() {
        add(format!("{} others", rest.len()), rest);
    }
    layers
}

/// The most that a process held in the column that begins at `time`: what was there for a moment is not lost.
fn held(process: &Process, time: f64, width: f64) -> f64 {
    let points = &process.points;
    let (first, last) = (points[0].seconds, points[points.len() - 1].seconds);
    if time + width <= first || time > last {
        return 0.0;
    }
    let after = points.partition_point(|point| point.seconds <= time);
    let within = points[after..].iter().take_while(|point| point.seconds < time + width);
    within.chain(points[..after].last()).map(|point| point.resident).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::Point;
    use std::time::Duration;

    fn process(pid: i32, points: &[(f64, f64)]) -> Process {
        let mut process = Process::new(pid, 0, Duration::ZERO);
        let point = |&(seconds, resident): &(f64, f64)| Point { seconds, resident, heap: None };
        process.points = points.iter().map(point).collect();
        process.peak = process.points.iter().map(|point| point.resident as u64).max().unwrap_or(0);
        process
    }

    #[test]
    fn layers_add_up_at_each_moment() {
        let all = [process(1, &[(0.0, 10.0), (4.0, 10.0)]), process(2, &[(1.0, 50.0), (2.0, 30.0), (3.0, 30.0)])];
        let layers = layers(&all);
        assert!(layers[0].name.ends_with("(2)") && layers[1].name.ends_with("(1)"));
        let at = |layer: usize, seconds: f64| layers[layer].top[(seconds * 100.0) as usize].1;
        assert_eq!((at(0, 0.5), at(1, 0.5)), (0.0, 10.0));
        assert_eq!((at(0, 1.5), at(1, 1.5)), (50.0, 60.0));
        assert_eq!((at(0, 2.5), at(1, 2.5)), (30.0, 40.0));
        assert_eq!((at(0, 3.5), at(1, 3.5)), (0.0, 10.0));
    }

    #[test]
    fn beyond_some_the_rest_is_one() {
        let all: Vec<Process> = (1..20).map(|pid| process(pid, &[(0.0, f64::from(pid)), (1.0, 1.0)])).collect();
        let layers = layers(&all);
        assert_eq!((layers.len(), layers[7].name.as_str()), (8, "12 others"));
        assert_eq!(layers[7].top[0].1, (1..20).sum::<i32>() as f64);
    }
}
