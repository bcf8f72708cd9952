//! A report for the terminal.

use std::fmt::Write;
use std::ops::Range;

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::CellAlignment;

use super::tables::{self, Table};
use super::verdict;
use crate::bench::results::Lab;
use crate::output;

const BEST: &str = "*";
/// The least and the most of n values hold the median between them with a probability of 1 - 2 / 2^n; of fewer values
/// than these, nothing can be said with 95 %.
pub const SURE_FROM: usize = 6;

pub fn render(lab: &Lab) -> String {
    let mut text = String::new();
    if let Some(verdict) = verdict::of_lab(lab) {
        let _ = writeln!(text, "{}\n", output::filled(&verdict, output::terminal_width().unwrap_or(output::WIDTH)));
    }
    for table in tables::all(lab) {
        render_table(&mut text, &table);
    }
    let behind = tables::behind(lab);
    if !behind.lines.is_empty() {
        render_table(&mut text, &behind);
    }
    let _ = writeln!(text, "{}", output::filled(&summary(lab), output::terminal_width().unwrap_or(output::WIDTH)));
    for failure in failures(lab) {
        let _ = writeln!(text, "FAILED: {failure}");
    }
    for missing in &lab.missing {
        let _ = writeln!(text, "Not here: {missing}");
    }
    text
}

pub fn render_table(text: &mut String, table: &Table) {
    let width = output::terminal_width().unwrap_or(output::WIDTH);
    let _ = writeln!(text, "{}", table.title);
    for columns in pieces(table, width) {
        let _ = writeln!(text, "{}", grid(table, columns));
    }
    let _ = writeln!(text, "{}\n", output::filled(&table.note, width));
}

/// The columns in so many pieces that each is a table that fits the terminal; one column always does.
fn pieces(table: &Table, width: usize) -> Vec<Range<usize>> {
    let mut pieces = Vec::new();
    let mut begin = 0;
    for end in 1..=table.columns.len() {
        let is_wide = grid(table, begin..end).lines().next().map_or(0, |line| line.chars().count()) > width;
        if is_wide && end - begin > 1 {
            pieces.push(begin..end - 1);
            begin = end - 1;
        }
    }
    pieces.push(begin..table.columns.len());
    pieces
}

fn grid(table: &Table, columns: Range<usize>) -> String {
    let mut grid = comfy_table::Table::new();
    grid.load_preset(UTF8_FULL_CONDENSED);
    grid.set_header(std::iter::once("row").chain(table.columns[columns.clone()].iter().map(String::as_str)));
    for line in &table.lines {
        let cells = line.cells.iter().take(columns.end).skip(columns.start);
        let cells = cells.map(|cell| format!("{}{}", cell.text, if cell.best { BEST } else { "" }));
        grid.add_row(std::iter::once(line.name.clone()).chain(cells));
    }
    for column in grid.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    grid.to_string()
}

/// The rounds, and whether they are all.
pub fn summary(lab: &Lab) -> String {
    let rounds = rounds(lab);
    match &lab.ended_early {
        Some(why) => format!("{rounds} NOT COMPLETE: {why}."),
        None => rounds,
    }
}

/// How many rounds there were, and whether intervals of so few can be relied on.
pub fn rounds(lab: &Lab) -> String {
    let (least, most) = lab.rounds_of_rows();
    let shown = match least == most {
        true => format!("Rounds: {most}, interleaved."),
        false => format!("Rounds: {least} to {most}, by row, interleaved."),
    };
    match least < SURE_FROM {
        true => format!("{shown} Intervals of so few rounds hold the truth less often than 95 %."),
        false => shown,
    }
}

/// A line for each row and allocator that failed.
pub fn failures(lab: &Lab) -> Vec<String> {
    let of_row = |result: &crate::bench::results::RowResult| {
        let failed = result.series.iter().zip(&lab.allocators).filter_map(|(series, allocator)| {
            Some(format!("{} on {}: {}", result.row.name, allocator.name, series.failure.as_ref()?))
        });
        failed.collect::<Vec<_>>()
    };
    lab.rows.iter().flat_map(of_row).collect()
}

#[cfg(test)]
mod tests {
    use super::super::samples::lab;
    use super::*;

    #[test]
    fn a_line_for_each_row() {
        let text = render(&lab());
        let line = text.lines().find(|line| line.contains("pairs/lifo")).unwrap();
        assert!(line.contains("pairs/lifo, ns") && line.contains("3.00 ±1.00*"), "{text}");
        assert!(text.contains("Time beside snug") && text.contains(" 2.00 ±0.00 "), "{text}");
        assert!(text.contains("FAILED: larson/2 on mine: signal: 6") && text.contains("Not here: other (get it)"));
        assert!(text.contains("Where snug is behind") && text.contains("Rounds: 3, interleaved. Intervals of so few"));
    }

    #[test]
    fn a_table_that_is_too_wide_comes_in_pieces() {
        let lab = lab();
        let time = &tables::all(&lab)[0];
        assert_eq!(pieces(time, usize::MAX).len(), 1);
        assert_eq!(pieces(time, 30), [0..1, 1..2, 2..3]);
        let widest = |width| {
            let lines = |piece| grid(time, piece).lines().map(|line| line.chars().count()).max().unwrap();
            pieces(time, width).into_iter().map(lines).max().unwrap()
        };
        assert!(widest(50) <= 50 && pieces(time, 50).len() == 2, "{}", widest(50));
    }

    #[test]
    fn rows_with_more_rounds_are_said() {
        let mut lab = lab();
        let figures = &mut lab.rows[0].series[1].figures;
        figures.push(figures[0].clone());
        assert!(summary(&lab).starts_with("Rounds: 3 to 4, by row, interleaved. Intervals"), "{}", summary(&lab));
    }

    #[test]
    fn an_early_end_is_said() {
        let mut lab = lab();
        lab.ended_early = Some("stopped in round 2, at x".into());
        assert!(render(&lab).contains("NOT COMPLETE: stopped in round 2, at x."));
    }
}
