//! What `snug bench` prints.

use std::fmt::Write;

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, Table};

use super::peers::SNUG;
use super::runner::{Lab, Series};
use super::stats;

const EXPLANATION: &str = "\
ns/op: the least time of a malloc and its free. Peak memory: of the whole process, the median.
x snug: the median, over the rounds, of this time / snug's in the same round; above 1, snug is faster.";

pub fn render(lab: &Lab) -> String {
    let mut table = Table::new();
    table.load_preset(UTF8_FULL_CONDENSED);
    table.set_header(["row", "allocator", "ns/op", "x snug", "peak memory"]);
    let mut failures = String::new();
    let snug = lab.allocators.iter().position(|allocator| allocator.name == SNUG);
    for (row, of_row) in lab.rows.iter().zip(&lab.series) {
        let ours = snug.map(|place| &of_row[place]);
        for (place, series) in of_row.iter().enumerate() {
            let shown_row = if place == 0 { row } else { "" };
            let name = &lab.allocators[place].name;
            let [time, ratio, memory] = cells(series, ours);
            table.add_row([shown_row, name, &time, &ratio, &memory]);
            if let Some(why) = &series.failure {
                let _ = writeln!(failures, "FAILED: {row} on {name}: {why}");
            }
        }
    }
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    format!("{table}\nRounds: {}, interleaved.\n{EXPLANATION}\n{failures}", lab.rounds)
}

fn cells(series: &Series, ours: Option<&Series>) -> [String; 3] {
    if series.failure.is_some() {
        return ["failed", "-", "-"].map(str::to_string);
    }
    let times = least_times(series);
    let ratio = match ours {
        Some(ours) if ours.failure.is_none() => format!("{:.2}", stats::median_ratio(&times, &least_times(ours))),
        _ => "-".to_string(),
    };
    let peaks: Vec<f64> = series.figures.iter().map(|figures| figures.peak_rss_kib as f64).collect();
    let memory = format!("{:.1} MiB", stats::median(&peaks) / 1024.0);
    [format!("{:.2}", stats::min(&times)), ratio, memory]
}

fn least_times(series: &Series) -> Vec<f64> {
    series.figures.iter().map(|figures| figures.ns_per_op_min).collect()
}

#[cfg(test)]
mod tests {
    use super::super::peers::Allocator;
    use super::super::runner::Figures;
    use super::*;

    fn series(times: &[f64]) -> Series {
        let figures = times.iter().map(|&time| Figures {
            ops: 1,
            ns_per_op_min: time,
            ns_per_op_median: time,
            peak_rss_kib: 3072,
        });
        Series { figures: figures.collect(), failure: None }
    }

    fn lab(series: Vec<Series>) -> Lab {
        let allocator = |name: &str| Allocator { name: name.into(), library: None };
        Lab {
            workload: "pairs".into(),
            rounds: 3,
            rows: vec!["lifo".into()],
            allocators: ["system", "snug"].map(allocator).to_vec(),
            series: vec![series],
        }
    }

    #[test]
    fn a_line_for_each_allocator() {
        let text = render(&lab(vec![series(&[4.0, 12.5, 6.0]), series(&[2.0, 5.0, 3.0])]));
        let line = |name: &str| text.lines().find(|line| line.contains(name)).unwrap().to_string();
        for part in ["lifo", "4.00", "2.00", "3.0 MiB"] {
            assert!(line("system").contains(part), "{part} is not in\n{text}");
        }
        assert!(line("┆ snug").contains("1.00"), "{text}");
    }

    #[test]
    fn failures_are_shown() {
        let failed = Series { figures: Vec::new(), failure: Some("signal: 6".into()) };
        let text = render(&lab(vec![failed, series(&[2.0])]));
        assert!(text.contains("failed") && text.contains("FAILED: lifo on system: signal: 6"), "{text}");
        let failed = Series { figures: Vec::new(), failure: Some("signal: 6".into()) };
        assert!(render(&lab(vec![series(&[2.0]), failed])).contains("FAILED: lifo on snug"));
    }
}
