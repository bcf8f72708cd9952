//! What `snug compare` prints: the table, and a word on runs that failed.

use std::collections::BTreeMap;
use std::fmt::Write;

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, Table};

use super::{Runs, LINES_SHOWN};
use crate::bench::stats;
use crate::process::Sample;

/// Below this median, times are shown in milliseconds.
const SHORT_SECONDS: f64 = 1.0;

const EXPLANATION: &str = "\
Medians; in brackets the shortest and the longest. ratio = snug / system: below 1, snug needs less.
Peak memory is that of the largest single process of the command, not their sum.";

/// One measured quantity: its heading, and how it is taken from a run and shown.
struct Column {
    heading: &'static str,
    value: fn(&Sample) -> f64,
    show: fn(f64) -> String,
}

const COLUMNS: [Column; 4] = [
    Column { heading: "user+sys", value: |run| run.cpu, show: time },
    Column { heading: "peak memory", value: |run| run.peak_kib as f64, show: memory },
    Column { heading: "minor faults", value: |run| run.minor_faults as f64, show: count },
    Column { heading: "major faults", value: |run| run.major_faults as f64, show: count },
];

pub fn table(system: &[Sample], snug: &[Sample]) -> String {
    let mut table = Table::new();
    table.load_preset(UTF8_FULL_CONDENSED);
    let headings = COLUMNS.iter().map(|column| column.heading);
    table.set_header(["", "time"].into_iter().chain(headings));
    for (name, runs) in [("system", system), ("snug", snug)] {
        let others = COLUMNS.iter().map(|column| (column.show)(median_of(runs, column.value)));
        table.add_row([name.to_string(), time_with_range(runs)].into_iter().chain(others));
    }
    let ratio_of = |value: fn(&Sample) -> f64| ratio(median_of(snug, value), median_of(system, value));
    let others = COLUMNS.iter().map(|column| ratio_of(column.value));
    table.add_row(["ratio".to_string(), ratio_of(wall)].into_iter().chain(others));
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    format!("{table}\nMeasured runs on each: {}, in turn, after one to warm up.\n{EXPLANATION}", system.len())
}

/// Empty if every run ended with status 0. Otherwise how the runs ended, and what the command said.
pub fn failures(contenders: &[(&str, &Runs)]) -> String {
    let mut text = String::new();
    for (name, runs) in contenders {
        let mut endings = BTreeMap::new();
        for run in runs.samples.iter().filter(|run| !run.status.success()) {
            *endings.entry(run.status.to_string()).or_insert(0) += 1;
        }
        for (ending, times) in &endings {
            let _ = writeln!(text, "\nFAILED on {name}: {ending}, in {times} of {} runs", runs.samples.len());
        }
        if !endings.is_empty() {
            let lines: Vec<&str> = runs.said.lines().collect();
            for line in &lines[lines.len().saturating_sub(LINES_SHOWN)..] {
                let _ = writeln!(text, "    {line}");
            }
        }
    }
    text
}

fn wall(run: &Sample) -> f64 {
    run.wall
}

fn median_of(runs: &[Sample], value: fn(&Sample) -> f64) -> f64 {
    stats::median(&runs.iter().map(value).collect::<Vec<_>>())
}

fn ratio(snug: f64, system: f64) -> String {
    if system == 0.0 {
        return if snug == 0.0 { "1.00" } else { "-" }.to_string();
    }
    format!("{:.2}", snug / system)
}

fn time(seconds: f64) -> String {
    if seconds < SHORT_SECONDS {
        format!("{:.1} ms", seconds * 1e3)
    } else {
        format!("{seconds:.2} s")
    }
}

fn time_with_range(runs: &[Sample]) -> String {
    let walls: Vec<f64> = runs.iter().map(wall).collect();
    let (median, least, most) = (stats::median(&walls), stats::min(&walls), stats::max(&walls));
    if median < SHORT_SECONDS {
        format!("{} ({:.1}..{:.1})", time(median), least * 1e3, most * 1e3)
    } else {
        format!("{} ({least:.2}..{most:.2})", time(median))
    }
}

pub fn memory(kib: f64) -> String {
    format!("{:.1} MiB", kib / 1024.0)
}

fn count(number: f64) -> String {
    format!("{number:.0}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    fn sample(wall: f64, status: i32) -> Sample {
        let status = ExitStatus::from_raw(status);
        Sample { wall, cpu: wall / 2.0, peak_kib: 2048, minor_faults: 100, major_faults: 0, status }
    }

    #[test]
    fn medians_range_and_ratio() {
        let system: Vec<Sample> = [2.0, 4.0, 3.0].map(|wall| sample(wall, 0)).to_vec();
        let snug: Vec<Sample> = [1.5, 1.0, 9.0].map(|wall| sample(wall, 0)).to_vec();
        let text = table(&system, &snug);
        for part in ["3.00 s (2.00..4.00)", "1.50 s (1.00..9.00)", "0.50", "750.0 ms", "2.0 MiB", "on each: 3,"] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
        assert_eq!(time_with_range(&[sample(0.25, 0)]), "250.0 ms (250.0..250.0)");
    }

    #[test]
    fn a_ratio_to_nothing() {
        assert_eq!((ratio(0.0, 0.0), ratio(1.0, 0.0), ratio(1.0, 4.0)), ("1.00".into(), "-".into(), "0.25".into()));
    }

    #[test]
    fn failures_are_counted_and_quoted() {
        let good = Runs { samples: vec![sample(1.0, 0)], said: "not shown".into() };
        let bad = Runs { samples: vec![sample(1.0, 3 << 8), sample(1.0, 0), sample(1.0, 11)], said: "a\nb\n".into() };
        assert_eq!(failures(&[("system", &good)]), "");
        let text = failures(&[("system", &good), ("snug", &bad)]);
        assert!(text.contains("FAILED on snug: exit status: 3, in 1 of 3 runs"), "{text}");
        assert!(text.contains("FAILED on snug: signal: 11 (SIGSEGV), in 1 of 3 runs"), "{text}");
        assert!(text.ends_with("    a\n    b\n") && !text.contains("not shown"), "{text}");
    }
}
