//! Layers, one upon the other: the resident memory of all processes at the same moments, and what the sites of one hold.

use std::collections::HashMap;

use plotters::style::RGBColor;

use super::SiteNames;
use crate::watch::{Held, Process};

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
/// The names of sites have more room: no number follows.
const SITE_NAME_MOST: usize = 28;

/// A process, a site, or the rest of them.
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

/// What the largest sites of a process held, and the rest, at the looks that saw a profile; the largest is at the bottom.
/// None if there was no profile, or it was gone before the process ended.
pub fn sites(process: &Process, names: SiteNames) -> Vec<Layer> {
    let Some(raw) = process.profile.as_ref().filter(|_| !process.held.is_empty()) else { return Vec::new() };
    let stacks = largest(&process.held);
    let names = names(raw, &stacks);
    let mut layers = site_layers(&process.held, &stacks);
    for (layer, stack) in layers.iter_mut().zip(&stacks) {
        layer.name = names.get(stack).map_or_else(String::new, |calls| shortened(calls));
    }
    layers
}

/// As much of the innermost calls as there is room for.
fn shortened(calls: &[String]) -> String {
    calls.join(" < ").chars().take(SITE_NAME_MOST).collect()
}

/// By the most that each ever had.
fn largest(held: &[Held]) -> Vec<u64> {
    let mut most: HashMap<u64, f64> = HashMap::new();
    for &(stack, bytes) in held.iter().flat_map(|look| &look.sites) {
        let known = most.entry(stack).or_default();
        *known = known.max(bytes);
    }
    let mut sorted: Vec<(u64, f64)> = most.into_iter().filter(|site| site.1 > 0.0).collect();
    sorted.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    sorted.iter().take(NAMED).map(|site| site.0).collect()
}

/// The last one is all that has no other.
fn site_layers(held: &[Held], stacks: &[u64]) -> Vec<Layer> {
    let mut below = vec![0.0; held.len()];
    let mut layers = Vec::new();
    for at in 0..=stacks.len() {
        for (sum, look) in below.iter_mut().zip(held) {
            let is_here = |stack: &u64| stacks.get(at).map_or(!stacks.contains(stack), |here| here == stack);
            let own: f64 = look.sites.iter().filter(|site| is_here(&site.0)).map(|site| site.1).sum();
            *sum += own + if at == stacks.len() { look.rest } else { 0.0 };
        }
        let top = held.iter().map(|look| look.seconds).zip(below.iter().copied()).collect();
        let color = COLORS[if at == stacks.len() { NAMED } else { at }];
        layers.push(Layer { name: "other sites".to_string(), color, top });
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
    fn sites_add_up_at_each_look() {
        let look = |seconds, sites: &[(u64, f64)], rest| Held { seconds, sites: sites.to_vec(), rest };
        let many: Vec<(u64, f64)> = (10..20).map(|stack| (stack, 100.0 - stack as f64)).collect();
        let held = [look(0.0, &[(1, 10.0)], 3.0), look(1.0, &[(2, 500.0), (1, 200.0)], 0.0), look(2.0, &many, 1.0)];
        let stacks = largest(&held);
        assert_eq!(stacks, [2, 1, 10, 11, 12, 13, 14]);
        let layers = site_layers(&held, &stacks);
        let tops = |layer: usize| layers[layer].top.iter().map(|point| point.1).collect::<Vec<f64>>();
        assert_eq!(layers.len(), NAMED + 1);
        assert_eq!((tops(0), tops(1)), (vec![0.0, 500.0, 0.0], vec![10.0, 700.0, 0.0]));
        let all: f64 = many.iter().map(|site| site.1).sum();
        assert_eq!(tops(NAMED), [13.0, 700.0, all + 1.0]);
        assert!(sites(&process(1, &[(0.0, 1.0)]), |_, _| HashMap::new()).is_empty());
    }

    #[test]
    fn beyond_some_the_rest_is_one() {
        let all: Vec<Process> = (1..20).map(|pid| process(pid, &[(0.0, f64::from(pid)), (1.0, 1.0)])).collect();
        let layers = layers(&all);
        assert_eq!((layers.len(), layers[7].name.as_str()), (8, "12 others"));
        assert_eq!(layers[7].top[0].1, (1..20).sum::<i32>() as f64);
    }
}
