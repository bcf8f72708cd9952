//! The tables of a report, the same for the terminal, Markdown and HTML: a line for each row of the lab, a column for
//! each allocator.

use std::collections::BTreeSet;

use super::frontier;
use crate::bench::behind;
use crate::bench::results::{Figures, Lab, Row, RowResult, Series, Unit};
use crate::bench::stats::{self, Estimate};
use crate::output::grouped;

pub struct Table {
    pub title: String,
    /// How its figures are to be read, in a sentence or two.
    pub note: String,
    pub columns: Vec<String>,
    pub lines: Vec<Line>,
}

pub struct Line {
    pub name: String,
    /// What the row imitates.
    pub about: String,
    pub cells: Vec<Cell>,
}

#[derive(Debug, Default, Clone, PartialEq)]
pub struct Cell {
    pub text: String,
    /// All that is known: spread, interval, rounds.
    pub detail: String,
    /// The least of its line.
    pub best: bool,
}

const NOTHING: &str = "-";

/// All tables that have something to show.
pub fn all(lab: &Lab) -> Vec<Table> {
    let times = if lab.settings.paced { Vec::new() } else { vec![time(lab), time_ratios(lab)] };
    let others = [peak(lab), overhead(lab), page_faults(lab), system_calls(lab), instructions(lab), further(lab)];
    times.into_iter().chain(others).filter(|table| !table.lines.is_empty()).collect()
}

/// The rows where another allocator is ahead of snug.
pub fn behind(lab: &Lab) -> Table {
    let found = behind::find(lab);
    let line = |gap: &behind::Gap| {
        let ratio = with_interval(&gap.ratio);
        let cell = |text: String| Cell { text, ..Cell::default() };
        Line {
            name: gap.row.clone(),
            about: String::new(),
            cells: vec![
                cell(gap.what.into()),
                cell(gap.ours.clone()),
                cell(gap.best.clone()),
                cell(gap.theirs.clone()),
                cell(ratio),
            ],
        }
    };
    Table {
        title: "Where snug is behind".into(),
        note: format!(
            "Every row in which the best other allocator is faster than snug beyond chance, or its peak or overhead at \
             least {:.0} % smaller. The ratio is theirs over snug's: the median over the rounds, with its 95 % interval.",
            (1.0 - behind::MEMORY_LIMIT) * 100.0
        ),
        columns: ["in", "snug", "best", "has", "ratio"].map(str::to_string).to_vec(),
        lines: found.iter().map(line).collect(),
    }
}

/// What the plot of all rows shows; nothing for a single row.
pub fn all_rows(lab: &Lab) -> Table {
    let means = frontier::means(lab);
    let of = |name: &str, value: fn(&frontier::Means) -> f64, digits: usize, best: fn(f64) -> f64| {
        let cell = |means: &Option<frontier::Means>| Cell {
            text: means.map_or(NOTHING.into(), |means| format!("{:.digits$}", value(&means))),
            ..Cell::default()
        };
        let values = means.iter().map(|means| Some(best(value(&(*means)?))));
        Line { name: name.into(), about: String::new(), cells: mark_best(means.iter().map(cell), values) }
    };
    let lines = vec![
        of("speed", |means| means.speed, 2, |speed| -speed),
        of("peak memory", |means| means.peak, 2, |peak| peak),
        of("rows", |means| means.rows as f64, 0, |_| 0.0),
    ];
    Table {
        title: "All rows".into(),
        note:
            "Geometric means over the rows that an allocator did not fail in, beside the system's malloc: a speed of \
               2 is half the time. * is the best."
                .into(),
        columns: names(lab),
        lines: if lab.rows.len() > 1 && means.iter().flatten().count() > 1 { lines } else { Vec::new() },
    }
}

/// In one unit for all columns of a line.
fn time(lab: &Lab) -> Table {
    let lines = lab.rows.iter().filter(was_run).map(|result| {
        let shown = Shown::of(result, lab.reference());
        let cell = |series: &Series| time_cell(series, shown, result.row.unit);
        let cells = mark_best(result.series.iter().map(cell), result.series.iter().map(Series::time));
        Line { name: format!("{}, {}", result.row.name, shown.unit), ..line(&result.row, cells) }
    });
    Table {
        title: "Time".into(),
        note: format!(
            "For each operation, or of a whole program where it is in {}: the median. ± is half of the 95 % interval of \
             what stands before it. * is the least.",
            SECONDS.unit
        ),
        columns: names(lab),
        lines: lines.collect(),
    }
}

/// The same beside the reference, without a unit. Nothing if no other was measured.
fn time_ratios(lab: &Lab) -> Table {
    let reference = lab.reference();
    let ours = &lab.allocators[reference].name;
    let is_alone = lab.allocators.len() == 1;
    let lines = lab.rows.iter().filter(|result| was_run(result) && !is_alone).map(|result| {
        let our = &result.series[reference];
        // By the figure that is shown: two medians may have another order than the median of the pairs.
        let value = |series: &Series| series.time_ratio(our).map(|ratio| ratio.median);
        let cells = result.series.iter().enumerate().map(|(place, series)| match series.time_ratio(our) {
            Some(_) if place == reference => Cell { text: "1.00".into(), ..Cell::default() },
            Some(ratio) => Cell { text: with_half_width(&ratio), detail: with_interval(&ratio), best: false },
            None => without_figures(series),
        });
        line(&result.row, mark_best(cells, result.series.iter().map(value)))
    });
    Table {
        title: format!("Time beside {ours}"),
        note: format!(
            "How many times {ours}'s time each took in the same round, the median over the rounds: above 1, {ours} is \
             faster. ± is half of the 95 % interval of what stands before it. * is the least."
        ),
        columns: names(lab),
        lines: lines.collect(),
    }
}

fn was_run(result: &&RowResult) -> bool {
    result.series.iter().any(|series| !series.figures.is_empty() || series.failure.is_some())
}

fn time_cell(series: &Series, shown: Shown, unit: Unit) -> Cell {
    let Some(time) = series.time() else { return without_figures(series) };
    let times = series.times();
    let detail = format!(
        "{}, {} to {} in {} rounds, spread {:.1} %",
        show_time(time, unit),
        show_time(stats::min(&times), unit),
        show_time(stats::max(&times), unit),
        times.len(),
        stats::spread(&times) * 100.0
    );
    let half = half_width(&stats::estimate(&times));
    let half = half.map_or(String::new(), |half| format!(" ±{}", shown.number(half)));
    Cell { text: shown.number(time) + &half, detail, best: false }
}

fn peak(lab: &Lab) -> Table {
    of_medians(
        lab,
        "Peak memory, MiB",
        "Resident memory of the process (of the largest one, for programs) at its peak: the median. * is the least.",
        |series| series.peak_bytes(),
        |bytes| format!("{:.1}", bytes / 1048576.0),
    )
}

fn overhead(lab: &Lab) -> Table {
    of_medians(
        lab,
        "Memory overhead",
        "Resident bytes over the bytes that the program had asked for, sampled through the run and averaged over the \
         time in which at least 1 MiB was live; the program's own tables are left out. Below 1 where pages were asked \
         for and never written. * is the least.",
        |series| series.overhead(),
        |ratio| format!("{ratio:.2}"),
    )
}

fn page_faults(lab: &Lab) -> Table {
    let value = |series: &Series| series.page_faults();
    of_medians(lab, "Page faults", "Of the whole process and its children: the median.", value, show_count)
}

fn system_calls(lab: &Lab) -> Table {
    let value = |series: &Series| series.system_call_count().map(|count| count as f64);
    let note = "mmap, munmap, mremap, madvise, mprotect and brk of the whole process and its children, start \
                included, counted by strace in one more run that is not timed.";
    of_medians(lab, "System calls for memory", note, value, show_count)
}

fn instructions(lab: &Lab) -> Table {
    let note = "Executed for each operation, the workload's own included, counted by callgrind: the difference of two \
                runs of which one has twice the operations. They repeat exactly, unlike times.";
    of_medians(lab, "Instructions per operation", note, |series| series.instructions, |count| format!("{count:.1}"))
}

/// What workloads measured besides, a line for each row and figure.
fn further(lab: &Lab) -> Table {
    let mut lines = Vec::new();
    for result in &lab.rows {
        let figures = result.series.iter().flat_map(|series| &series.figures);
        let names: BTreeSet<&String> = figures.flat_map(|figures| figures.further.keys()).collect();
        for (name, (title, divisor)) in names.into_iter().filter_map(|name| Some((name, title_of(name)?))) {
            let value = |series: &Series| series.median_of(|figures: &Figures| figures.further.get(name).copied());
            let cell = |series: &Series| match value(series) {
                Some(number) => Cell { text: show_number(number / divisor), ..Cell::default() },
                None => without_figures(series),
            };
            let cells = mark_best(result.series.iter().map(cell), result.series.iter().map(value));
            lines.push(Line { name: format!("{}: {title}", result.row.name), ..line(&result.row, cells) });
        }
    }
    Table {
        title: "Further figures".into(),
        note: "Measured by the workloads themselves: the median over the rounds. * is the least.".into(),
        columns: names(lab),
        lines,
    }
}

/// How a workload's figure is shown, and what it is divided by. Its ending tells what it is in; others are not shown.
fn title_of(name: &str) -> Option<(String, f64)> {
    let (what, unit) = name.rsplit_once('_')?;
    let what = what.replace('_', " ");
    match unit {
        "ns" | "us" => Some((format!("{what}, {unit}"), 1.0)),
        "kib" => Some((format!("{what}, MiB"), 1024.0)),
        "ratio" => Some((what, 1.0)),
        _ => None,
    }
}

fn of_medians(
    lab: &Lab,
    title: &str,
    note: &str,
    value: impl Fn(&Series) -> Option<f64>,
    show: impl Fn(f64) -> String,
) -> Table {
    let with_any = lab.rows.iter().filter(|result| result.series.iter().any(|series| value(series).is_some()));
    let lines = with_any.map(|result| {
        let cell = |series: &Series| match value(series) {
            Some(number) => Cell { text: show(number), ..Cell::default() },
            None => without_figures(series),
        };
        line(&result.row, mark_best(result.series.iter().map(cell), result.series.iter().map(&value)))
    });
    Table { title: title.into(), note: note.into(), columns: names(lab), lines: lines.collect() }
}

fn names(lab: &Lab) -> Vec<String> {
    lab.allocators.iter().map(|allocator| allocator.name.clone()).collect()
}

fn line(row: &Row, cells: Vec<Cell>) -> Line {
    Line { name: row.name.clone(), about: row.about.clone(), cells }
}

fn without_figures(series: &Series) -> Cell {
    match &series.failure {
        Some(why) => Cell { text: "failed".into(), detail: why.clone(), best: false },
        None => Cell { text: NOTHING.into(), ..Cell::default() },
    }
}

fn half_width(estimate: &Estimate) -> Option<f64> {
    estimate.interval.map(|interval| (interval.high - interval.low) / 2.0)
}

/// Marks the cells with the least value, if not all have it.
pub fn mark_best(cells: impl Iterator<Item = Cell>, values: impl Iterator<Item = Option<f64>>) -> Vec<Cell> {
    let mut cells: Vec<Cell> = cells.collect();
    let values: Vec<Option<f64>> = values.collect();
    let known: Vec<f64> = values.iter().flatten().copied().collect();
    let least = stats::min(&known);
    if least < stats::max(&known) {
        for (cell, value) in cells.iter_mut().zip(&values) {
            cell.best = *value == Some(least);
        }
    }
    cells
}

/// The unit that times are shown in, and what they are divided by.
#[derive(Debug, Clone, Copy)]
struct Shown {
    unit: &'static str,
    divisor: f64,
    decimals: Option<usize>,
}

const SECONDS: Shown = Shown { unit: "s", divisor: 1.0, decimals: Some(3) };
/// Of ns: each unit goes so far that its numbers have four digits or fewer.
const UNITS: [Shown; 3] = [
    Shown { unit: "ns", divisor: 1.0, decimals: None },
    Shown { unit: "µs", divisor: 1e3, decimals: None },
    Shown { unit: "ms", divisor: 1e6, decimals: None },
];
const SHOWN_MOST: f64 = 9999.5;

impl Shown {
    fn of_time(time: f64, unit: Unit) -> Shown {
        let fits = |shown: &&Shown| time / shown.divisor < SHOWN_MOST;
        match unit {
            Unit::Seconds => SECONDS,
            Unit::NsPerOperation => *UNITS.iter().find(fits).unwrap_or(&UNITS[UNITS.len() - 1]),
        }
    }

    /// That of the reference, or of the first that has a time.
    fn of(result: &RowResult, reference: usize) -> Shown {
        let time = result.series[reference].time().or_else(|| result.series.iter().find_map(Series::time));
        Shown::of_time(time.unwrap_or(0.0), result.row.unit)
    }

    fn number(self, time: f64) -> String {
        let number = time / self.divisor;
        self.decimals.map_or_else(|| show_number(number), |decimals| format!("{number:.decimals$}"))
    }
}

pub fn show_time(time: f64, unit: Unit) -> String {
    let shown = Shown::of_time(time, unit);
    format!("{} {}", shown.number(time), shown.unit)
}

/// Three digits or more.
fn show_number(number: f64) -> String {
    match number {
        number if number < 10.0 => format!("{number:.2}"),
        number if number < 100.0 => format!("{number:.1}"),
        number => format!("{number:.0}"),
    }
}

fn show_count(number: f64) -> String {
    grouped(number, 0)
}

fn with_half_width(ratio: &Estimate) -> String {
    match ratio.interval {
        Some(_) => format!("{:.2} ±{:.2}", ratio.median, half_width(ratio).unwrap_or_default()),
        None => format!("{:.2}", ratio.median),
    }
}

pub fn with_interval(ratio: &Estimate) -> String {
    match ratio.interval {
        Some(interval) => format!("{:.2} ({:.2} to {:.2})", ratio.median, interval.low, interval.high),
        None => format!("{:.2}", ratio.median),
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::lab;
    use super::*;

    #[test]
    fn times_are_in_one_unit_and_beside_snug_in_a_table_of_their_own() {
        let (times, ratios) = (time(&lab()), time_ratios(&lab()));
        assert_eq!((times.lines[0].name.as_str(), ratios.lines[0].name.as_str()), ("pairs/lifo, ns", "pairs/lifo"));
        let cells = &times.lines[0].cells;
        assert!(cells[1].text.starts_with("3.00 ±") && cells[0].text.starts_with("6.00 ±"), "{cells:?}");
        assert!(cells[0].detail.starts_with("6.00 ns, ") && cells[1].best && !cells[0].best, "{cells:?}");
        let cells = &ratios.lines[0].cells;
        assert_eq!((cells[0].text.as_str(), cells[1].text.as_str()), ("2.00 ±0.00", "1.00"));
        assert_eq!((cells[0].detail.as_str(), cells[1].best), ("2.00 (2.00 to 2.00)", true));
        let mut alone = lab();
        alone.allocators.truncate(1);
        assert!(time_ratios(&alone).lines.is_empty());
    }

    #[test]
    fn what_failed_is_shown_and_never_best() {
        for table in [time(&lab()), time_ratios(&lab())] {
            let cell = &table.lines[1].cells[2];
            assert_eq!((cell.text.as_str(), cell.detail.as_str(), cell.best), ("failed", "signal: 6", false));
        }
    }

    #[test]
    fn only_tables_with_something_to_show() {
        let titles: Vec<String> = all(&lab()).into_iter().map(|table| table.title).collect();
        assert_eq!(
            titles,
            ["Time", "Time beside snug", "Peak memory, MiB", "Memory overhead", "Page faults", "Further figures"]
        );
    }

    #[test]
    fn the_fastest_and_the_smallest_of_all_rows_are_best() {
        let table = all_rows(&lab());
        let best = |line: usize| table.lines[line].cells.iter().map(|cell| cell.best).collect::<Vec<_>>();
        assert_eq!((best(0), best(1), best(2)), (vec![false, false, true], vec![true, false, true], vec![false; 3]));
        assert_eq!(table.lines[2].cells[2].text, "1");
    }

    #[test]
    fn instructions_alone_are_one_table() {
        let mut lab = lab();
        for series in lab.rows.iter_mut().flat_map(|row| &mut row.series) {
            *series = Series { instructions: Some(51.04), ..Series::default() };
        }
        let tables = all(&lab);
        assert_eq!(tables.len(), 1);
        assert_eq!(
            (tables[0].title.as_str(), tables[0].lines[0].cells[1].text.as_str()),
            ("Instructions per operation", "51.0")
        );
    }

    #[test]
    fn numbers() {
        assert_eq!([1.234, 12.34, 123.4].map(show_number), ["1.23", "12.3", "123"]);
        assert_eq!(show_time(1.5, Unit::Seconds), "1.500 s");
        assert_eq!(show_time(1.5, Unit::NsPerOperation), "1.50 ns");
        assert_eq!(
            [9999.4, 9999.6, 8_663_488.0, 8_663_488_000.0].map(|time| show_time(time, Unit::NsPerOperation)),
            ["9999 ns", "10.00 µs", "8663 µs", "8663 ms"]
        );
        assert_eq!(show_count(12345.0), "12,345");
    }
}
