//! Runs the rows of a workload on every allocator, interleaved.
//!
//! In each round every row runs once on each allocator, one straight after the other, and the one that begins moves on
//! by one from round to round. So what slows the machine down for a while hits all of them, and none is always first.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;
use std::str::FromStr;

use anyhow::{bail, ensure, Context, Result};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use super::peers::Allocator;
use crate::launch;

/// How often a workload repeats its row within one process; it reports the best and the median of these.
const REPEATS: u32 = 3;

/// What one process reported.
#[derive(Debug, Clone, Serialize, PartialEq)]
pub struct Figures {
    pub ops: u64,
    pub ns_per_op_min: f64,
    pub ns_per_op_median: f64,
    pub peak_rss_kib: u64,
}

/// One row on one allocator: figures by round, or why there are none.
#[derive(Debug, Default, Serialize)]
pub struct Series {
    pub figures: Vec<Figures>,
    pub failure: Option<String>,
}

/// All that was measured: `series[row][allocator]`.
#[derive(Debug, Serialize)]
pub struct Lab {
    pub workload: String,
    pub rounds: u32,
    pub rows: Vec<String>,
    pub allocators: Vec<Allocator>,
    pub series: Vec<Vec<Series>>,
}

impl Lab {
    pub fn has_failures(&self) -> bool {
        self.series.iter().flatten().any(|series| series.failure.is_some())
    }
}

/// The rows that a workload offers.
pub fn list_rows(workload: &Path) -> Result<Vec<String>> {
    let mut command = Command::new(workload);
    let text = output_of(command.arg("--list").env_remove("LD_PRELOAD"))?;
    let rows: Vec<String> = text.lines().map(str::to_string).collect();
    ensure!(!rows.is_empty(), "{} --list names no rows", workload.display());
    Ok(rows)
}

pub fn measure(workload: &Path, rows: Vec<String>, allocators: Vec<Allocator>, rounds: u32) -> Result<Lab> {
    let steps = u64::from(rounds) * rows.len() as u64 * allocators.len() as u64;
    let style = ProgressStyle::with_template("{wide_bar} {percent}%, {eta} left: {msg}")?;
    let progress = ProgressBar::new(steps).with_style(style);
    let mut series: Vec<Vec<Series>> = Vec::new();
    series.resize_with(rows.len(), || allocators.iter().map(|_| Series::default()).collect());

    for round in 0..rounds {
        for (row, of_row) in rows.iter().zip(&mut series) {
            for place in turns(round, allocators.len()) {
                progress.set_message(format!("{row} on {}", allocators[place].name));
                run_into(&mut of_row[place], workload, row, &allocators[place]);
                progress.inc(1);
            }
        }
    }
    progress.finish_and_clear();
    let workload = workload.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Lab { workload, rounds, rows, allocators, series })
}

/// The order of `count` contenders in a round.
fn turns(round: u32, count: usize) -> impl Iterator<Item = usize> {
    (0..count).map(move |turn| (turn + round as usize) % count)
}

/// A failed series is not continued: it has no values to pair with those of others.
fn run_into(series: &mut Series, workload: &Path, row: &str, allocator: &Allocator) {
    if series.failure.is_some() {
        return;
    }
    match run_once(workload, row, allocator) {
        Ok(figures) => series.figures.push(figures),
        Err(error) => series.failure = Some(format!("{error:#}")),
    }
}

fn run_once(workload: &Path, row: &str, allocator: &Allocator) -> Result<Figures> {
    let mut command = launch::command_for(&[workload.into(), row.into(), REPEATS.to_string().into()])?;
    match &allocator.library {
        None => command.env_remove("LD_PRELOAD"),
        Some(library) => command.env("LD_PRELOAD", library),
    };
    parse(&output_of(&mut command)?, row)
}

fn output_of(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("cannot run {program}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}; {}", output.status, said.trim());
    Ok(String::from_utf8(output.stdout)?)
}

/// Reads `row=NAME ops=N ns_per_op_min=F ns_per_op_median=F peak_rss_kib=N`; more fields may follow.
fn parse(text: &str, row: &str) -> Result<Figures> {
    let fields: HashMap<&str, &str> = text.split_whitespace().filter_map(|field| field.split_once('=')).collect();
    ensure!(fields.get("row") == Some(&row), "no figures for {row} in what it printed: {}", text.trim());
    let figures = Figures {
        ops: number(&fields, "ops")?,
        ns_per_op_min: number(&fields, "ns_per_op_min")?,
        ns_per_op_median: number(&fields, "ns_per_op_median")?,
        peak_rss_kib: number(&fields, "peak_rss_kib")?,
    };
    let sound = |time: f64| time.is_finite() && time > 0.0;
    if !sound(figures.ns_per_op_min) || !sound(figures.ns_per_op_median) {
        bail!("a time that cannot be: {}", text.trim());
    }
    Ok(figures)
}

fn number<T: FromStr>(fields: &HashMap<&str, &str>, name: &str) -> Result<T> {
    let text = fields.get(name).with_context(|| format!("it did not print {name}="))?;
    text.parse().ok().with_context(|| format!("{name}={text} is not a number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "row=lifo ops=1000 ns_per_op_min=5.25 ns_per_op_median=6.5 peak_rss_kib=2048\n";

    #[test]
    fn figures_are_read() {
        let expected = Figures { ops: 1000, ns_per_op_min: 5.25, ns_per_op_median: 6.5, peak_rss_kib: 2048 };
        assert_eq!(parse(LINE, "lifo").unwrap(), expected);
    }

    #[test]
    fn figures_that_are_not_are_refused() {
        assert!(parse(LINE, "fifo").is_err());
        assert!(parse("", "lifo").is_err());
        for (from, to) in [("5.25", "x"), ("5.25", "NaN"), ("6.5", "0"), ("peak_rss_kib", "peak"), ("1000", "-1")] {
            assert!(parse(&LINE.replace(from, to), "lifo").is_err(), "{from} -> {to}");
        }
    }

    #[test]
    fn everyone_is_first_in_turn() {
        let order = |round| turns(round, 3).collect::<Vec<_>>();
        assert_eq!([order(0), order(1), order(2), order(3)], [[0, 1, 2], [1, 2, 0], [2, 0, 1], [0, 1, 2]]);
    }
}
