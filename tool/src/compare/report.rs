//! What `snug compare` prints: the verdict first, a table in one unit for each column, one of ratios, and a word on runs
//! that failed. In a wide terminal the table has more columns; nothing is wrapped inside a cell.

use std::fmt::Write;

use comfy_table::{CellAlignment, Table};

use crate::bench::report::terminal::SURE_FROM;
use crate::bench::report::verdict;
use crate::bench::results::{Figures, Lab, RowResult, Series};
use crate::bench::stats::{self, Estimate};
use crate::output::{counted, filled, grouped, terminal_width, WIDTH};

/// How much of what a failing command said is shown.
const LINES_SHOWN: usize = 10;

const WIDTH_LEAST: usize = 40;
/// From here on there is room for all columns.
const WIDE: usize = 110;
/// Below this median, times are shown in milliseconds.
const SHORT_SECONDS: f64 = 1.0;
const MIB: f64 = 1_048_576.0;

/// For comfy_table: nothing but a line under the headings, so that most of the width is for figures.
const LINE_UNDER_HEADINGS: &str = "     ──            ";

/// A column: its heading, and a number of a series.
struct Column {
    heading: String,
    of: Box<dyn Fn(&Series) -> f64>,
    decimals: usize,
    /// Only where there is room.
    wide: bool,
}

pub fn write(text: &mut String, lab: &Lab, place: usize, said: &[String], warmup: u32) {
    let row = &lab.rows[place];
    let width = terminal_width().map_or(WIDTH, |columns| columns.max(WIDTH_LEAST));
    let names = names(lab);
    for sentence in verdicts(row, &names) {
        let _ = writeln!(text, "{}", filled(&sentence, width));
    }
    let wide = width >= WIDE;
    let _ = writeln!(text, "\n{}\n{}", lines(&figures(row, &names, wide)), lines(&ratios(row, &names, wide)));
    let _ = writeln!(text, "{}", filled(&note(row, warmup), width));
    if let Some(why) = &lab.ended_early {
        let _ = writeln!(text, "NOT COMPLETE: {why}.");
    }
    failures(text, row, &names, said);
}

pub fn names(lab: &Lab) -> Vec<&str> {
    lab.allocators.iter().map(|allocator| allocator.name.as_str()).collect()
}

/// What came out, a sentence for each allocator; before them, that runs failed.
pub fn verdicts(row: &RowResult, names: &[&str]) -> Vec<String> {
    let mut sentences: Vec<String> = failed(row, names).into_iter().collect();
    for (place, name) in names.iter().enumerate().skip(1) {
        let is_sound = [0, place].iter().all(|&at| row.series[at].failure.is_none());
        sentences.extend(verdict::sentence(row, place, name).filter(|_| is_sound));
    }
    sentences
}

/// How the figures are to be read.
pub fn note(row: &RowResult, warmup: u32) -> String {
    let count = row.series[0].figures.len();
    let rounds = counted(count, "run");
    let warm = if warmup == 0 { "".to_string() } else { format!(", after {warmup} to warm up") };
    let few = if count < SURE_FROM { FEW } else { "" };
    format!("{rounds} on each, in turn{warm}. {EXPLANATION}{few}")
}

/// Without the blanks that the last cells end with.
fn lines(table: &Table) -> String {
    table.lines().map(|line| line.trim_end().to_string() + "\n").collect()
}

const FEW: &str = " Of so few runs the ranges hold the truth less often than that.";

const EXPLANATION: &str =
    "Figures are medians; cpu is user and system time together. Ratios are of runs of the same round, with where \
                           their median lies by 95 % confidence; below 1 is less than the system's malloc needs. Peak \
                           memory is that of the largest single process of the command, not their sum.";

fn columns(row: &RowResult) -> Vec<Column> {
    let longest = row.series.iter().filter_map(Series::time).fold(0.0, f64::max);
    let (unit, scale) = if longest < SHORT_SECONDS { ("ms", 1e3) } else { ("s", 1.0) };
    let largest = row.series.iter().filter_map(Series::peak_bytes).fold(0.0, f64::max);
    let places = |value: f64| if value < 10.0 { 2 } else { 1 };
    let (time_places, peak_places) = (places(longest * scale), places(largest / MIB));
    let column = |heading: String, decimals, wide, pick: fn(&[f64]) -> f64, value: fn(&Figures) -> f64, scale: f64| {
        let of = move |series: &Series| {
            let values: Vec<f64> = series.figures.iter().map(value).collect();
            if values.is_empty() {
                f64::NAN
            } else {
                pick(&values) * scale
            }
        };
        Column { heading, of: Box::new(of), decimals, wide }
    };
    let time: fn(&Figures) -> f64 = |run| run.time;
    let peak: fn(&Figures) -> f64 = |run| run.peak_bytes as f64;
    vec![
        column(format!("time ({unit})"), time_places, false, stats::median, time, scale),
        column("fastest".into(), time_places, false, stats::min, time, scale),
        column("slowest".into(), time_places, false, stats::max, time, scale),
        column(format!("cpu ({unit})"), time_places, false, stats::median, |run| run.cpu_seconds, scale),
        column("peak (MiB)".into(), peak_places, false, stats::median, peak, 1.0 / MIB),
        column("least peak".into(), peak_places, true, stats::min, peak, 1.0 / MIB),
        column("most peak".into(), peak_places, true, stats::max, peak, 1.0 / MIB),
        column("faults".into(), 0, false, stats::median, |run| run.page_faults as f64, 1.0),
    ]
}

pub fn figures(row: &RowResult, names: &[&str], wide: bool) -> Table {
    let columns: Vec<Column> = columns(row).into_iter().filter(|column| wide || !column.wide).collect();
    let mut table = new_table(std::iter::once("").chain(columns.iter().map(|column| column.heading.as_str())));
    for (series, name) in row.series.iter().zip(names) {
        let cell = |column: &Column| match (column.of)(series) {
            value if value.is_nan() => "-".to_string(),
            value => grouped(value, column.decimals),
        };
        table.add_row(std::iter::once(name.to_string()).chain(columns.iter().map(cell)));
    }
    align(&mut table);
    table
}

pub fn ratios(row: &RowResult, names: &[&str], wide: bool) -> Table {
    let mut headings = vec!["over system", "time", "peak"];
    headings.extend(wide.then_some(["cpu", "faults"]).into_iter().flatten());
    let mut table = new_table(headings);
    let system = &row.series[0];
    for (series, name) in row.series.iter().zip(names).skip(1) {
        let of = |value: fn(&Figures) -> f64| series.ratio_to(system, |run| Some(value(run)));
        // The sentence above has the same number the other way around; of two runs, the mean of ratios would differ.
        let time = system.time_ratio(series).map(|faster| faster.inverse());
        let mut all = vec![time, of(|run| run.peak_bytes as f64)];
        if wide {
            all.extend([of(|run| run.cpu_seconds), of(|run| run.page_faults as f64)]);
        }
        table.add_row(std::iter::once(name.to_string()).chain(all.into_iter().map(ratio)));
    }
    align(&mut table);
    table
}

fn new_table<'a>(headings: impl IntoIterator<Item = &'a str>) -> Table {
    let mut table = Table::new();
    table.load_preset(LINE_UNDER_HEADINGS).set_header(headings);
    table
}

fn align(table: &mut Table) {
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
}

fn ratio(found: Option<Estimate>) -> String {
    match found {
        None => "-".to_string(),
        Some(Estimate { median, interval: None }) => format!("{median:.2}"),
        Some(Estimate { median, interval: Some(interval) }) => {
            format!("{median:.2} ({:.2} to {:.2})", interval.low, interval.high)
        }
    }
}

/// That runs failed, which goes before all figures: a command that fails is often done sooner.
fn failed(row: &RowResult, names: &[&str]) -> Option<String> {
    let failing = row.series.iter().zip(names).filter(|(series, _)| series.failure.is_some());
    let names: Vec<&str> = failing.map(|(_, name)| spoken(name)).collect();
    let tail = "so the figures may say nothing; what it said stands at the end.";
    (!names.is_empty()).then(|| format!("The command FAILED on {}, {tail}", names.join(" and on ")))
}

fn spoken(name: &str) -> &str {
    if name == "system" {
        "the system's malloc"
    } else {
        name
    }
}

/// How the runs ended that did not end well, and what the command said.
fn failures(text: &mut String, row: &RowResult, names: &[&str], said: &[String]) {
    for ((series, name), said) in row.series.iter().zip(names).zip(said) {
        let Some(why) = &series.failure else { continue };
        let _ = writeln!(text, "\nFAILED on {}: {why}", spoken(name));
        let lines: Vec<&str> = said.lines().collect();
        for line in &lines[lines.len().saturating_sub(LINES_SHOWN)..] {
            let _ = writeln!(text, "    {line}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::results::{Row, Unit};
    use std::collections::BTreeMap;

    fn series(times: &[f64], mebibytes: u64) -> Series {
        let run = |(round, &time): (usize, &f64)| Figures {
            round: round as u32,
            time,
            cpu_seconds: time / 2.0,
            peak_bytes: mebibytes << 20,
            page_faults: 12345,
            overhead: None,
            further: BTreeMap::new(),
        };
        Series { figures: times.iter().enumerate().map(run).collect(), ..Series::default() }
    }

    fn row() -> RowResult {
        let (name, family, about) = ("x".to_string(), "x".to_string(), String::new());
        let series = vec![series(&[2.0, 4.0, 3.0], 100), series(&[0.5, 1.0, 0.75], 116)];
        RowResult { row: Row { name, family, about, threads: 1, unit: Unit::Seconds }, series }
    }

    #[test]
    fn a_column_has_one_unit_and_nothing_is_wrapped() {
        for (wide, most) in [(false, 80), (true, 120)] {
            let text = figures(&row(), &["system", "snug"], wide).to_string();
            assert!(text.lines().all(|line| line.chars().count() <= most), "{text}");
            assert!(text.contains("time (s)") && text.contains("3.00") && text.contains("0.75"), "{text}");
            assert!(text.contains("12,345") && text.contains("116.0"), "{text}");
            assert_eq!(text.contains("most peak"), wide);
            let text = ratios(&row(), &["system", "snug"], wide).to_string();
            assert!(text.lines().all(|line| line.chars().count() <= most), "{text}");
            assert!(text.contains("0.25 (0.25 to 0.25)") && text.contains("1.16 (1.16 to 1.16)"), "{text}");
        }
    }

    #[test]
    fn failures_are_counted_and_quoted() {
        let mut row = row();
        row.series[1].failure = Some("exit status: 3, in 1 of 3 runs".into());
        let mut text = String::new();
        failures(&mut text, &row, &["system", "snug"], &["not shown".into(), "a\nb\n".into()]);
        assert_eq!(text, "\nFAILED on snug: exit status: 3, in 1 of 3 runs\n    a\n    b\n");
    }

    #[test]
    fn the_table_and_the_sentence_have_the_same_number() {
        let (name, family, about) = ("x".to_string(), "x".to_string(), String::new());
        let series = vec![series(&[7.02, 9.45], 100), series(&[5.71, 1.84], 100)];
        let row = RowResult { row: Row { name, family, about, threads: 1, unit: Unit::Seconds }, series };
        let sentence = verdict::sentence(&row, 1, "snug").unwrap();
        assert!(sentence.starts_with("snug seems 3.18x faster"), "{sentence}");
        let table = ratios(&row, &["system", "snug"], false).to_string();
        assert!(table.contains("0.31"), "{table}"); // 1 / 3.18
    }

    #[test]
    fn failures_are_told_first() {
        let mut row = row();
        assert_eq!(failed(&row, &["system", "snug"]), None);
        assert!(
            note(&row, 1).starts_with("3 runs on each, in turn, after 1 to warm up.") && note(&row, 1).ends_with(FEW)
        );
        row.series
            .iter_mut()
            .for_each(|series| series.figures = [series.figures.clone(), series.figures.clone()].concat());
        assert!(note(&row, 0).starts_with("6 runs on each, in turn. Figures") && !note(&row, 0).contains(FEW));
        row.series[1].failure = Some("exit status: 3".into());
        let said = failed(&row, &["system", "snug"]).unwrap();
        assert!(said.starts_with("The command FAILED on snug, so the figures"), "{said}");
    }
}
