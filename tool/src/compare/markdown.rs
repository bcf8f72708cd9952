//! What `snug compare --markdown` writes: what the terminal shows, with the same figures and the ratios in the same
//! direction, and where and when they were made.

use std::fmt::Write;

use comfy_table::{Row, Table};

use super::report;
use crate::bench::report::{markdown::escape, terminal, words};
use crate::bench::results::Lab;

pub fn render(lab: &Lab, warmup: u32) -> String {
    let names = report::names(lab);
    let mut text = format!("# Comparison\n\nWritten by `{} --markdown`.\n", lab.title);
    for row in &lab.rows {
        let _ = writeln!(text, "\n## `{}`\n", row.row.about.replace('`', "'"));
        for sentence in report::verdicts(row, &names) {
            let _ = writeln!(text, "{sentence}\n");
        }
        text.push_str(&table(&report::figures(row, &names, true)));
        let _ = writeln!(text, "\nTimes that of the system's malloc; below 1 is less:\n");
        text.push_str(&table(&report::ratios(row, &names, true)));
        let _ = writeln!(text, "\n{}", report::note(row, warmup));
    }
    text.push_str("\n## How it was measured\n\n");
    for line in words::circumstances(lab) {
        let _ = writeln!(text, "{line}\n");
    }
    let _ = writeln!(text, "Allocators: {}.", words::allocators(lab));
    for failure in terminal::failures(lab) {
        let _ = writeln!(text, "\nFailed: {}", escape(&failure));
    }
    text
}

/// Names to the left, numbers to the right.
fn table(table: &Table) -> String {
    let Some(head) = table.header() else { return String::new() };
    let columns = head.cell_count().saturating_sub(1);
    let mut text = format!("{}| --- |{}\n", line(head), " ---: |".repeat(columns));
    table.row_iter().for_each(|row| text.push_str(&line(row)));
    text
}

fn line(row: &Row) -> String {
    let cells: Vec<String> = row.cell_iter().map(|cell| escape(&cell.content())).collect();
    format!("| {} |\n", cells.join(" | "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::report::samples::lab;

    #[test]
    fn as_in_the_terminal() {
        let mut lab = lab();
        lab.rows.truncate(1);
        let text = render(&lab, 1);
        for part in
            ["\n| over system | time | peak | cpu | faults |\n| --- | ---: |", "below 1 is less:", "\n| system | "]
        {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
        let (ratios, names) = (report::ratios(&lab.rows[0], &report::names(&lab), true), report::names(&lab));
        for row in ratios.row_iter() {
            let cells: Vec<String> = row.cell_iter().map(|cell| cell.content()).collect();
            assert!(
                names.contains(&cells[0].as_str()) && text.contains(&format!("| {} |", cells.join(" | "))),
                "{text}"
            );
        }
        assert!(text.contains("a processor") && text.contains("Allocators: system 1.0, snug 1.0"), "{text}");
    }
}
