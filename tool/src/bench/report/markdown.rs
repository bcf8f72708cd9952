//! A report as Markdown, to be kept beside the sources.

use std::fmt::Write;

use super::tables::{self, Cell, Table};
use super::{terminal, verdict, words};
use crate::bench::results::Lab;

pub fn render(lab: &Lab) -> String {
    let mut text = format!("# Benchmarks\n\nWritten by `{} --markdown`; not to be changed by hand.\n\n", lab.title);
    if let Some(verdict) = verdict::of_lab(lab) {
        let _ = writeln!(text, "{verdict}\n");
    }
    for line in words::circumstances(lab) {
        let _ = writeln!(text, "{line}\n");
    }
    let _ = writeln!(text, "Allocators: {}.\n", words::allocators(lab));
    for failure in terminal::failures(lab) {
        let _ = writeln!(text, "- Failed: {}", escape(&failure));
    }
    for missing in &lab.missing {
        let _ = writeln!(text, "- Not here: {}", escape(missing));
    }
    let behind = tables::behind(lab);
    if behind.lines.is_empty() {
        text.push_str("\nIn no row is another allocator ahead of snug beyond chance.\n");
    } else {
        render_table(&mut text, &behind);
    }
    let all_rows = Some(tables::all_rows(lab)).filter(|table| !table.lines.is_empty() && !lab.settings.paced);
    for table in all_rows.into_iter().chain(tables::all(lab)) {
        render_table(&mut text, &table);
    }
    text.push_str("\n## The rows\n\n");
    for result in &lab.rows {
        let _ = writeln!(text, "- `{}`: {}", result.row.name, escape(&result.row.about));
    }
    text
}

pub fn render_table(text: &mut String, table: &Table) {
    let _ = writeln!(text, "\n## {}\n\n{}\n", table.title, escape(&table.note));
    let _ = writeln!(text, "| row | {} |", table.columns.join(" | "));
    let _ = writeln!(text, "| --- |{}", " ---: |".repeat(table.columns.len()));
    for line in &table.lines {
        let cells: Vec<String> = line.cells.iter().map(cell).collect();
        let _ = writeln!(text, "| {} | {} |", escape(&line.name), cells.join(" | "));
    }
}

fn cell(cell: &Cell) -> String {
    match cell.best {
        true => format!("**{}**", escape(&cell.text)),
        false => escape(&cell.text),
    }
}

/// Without what would end a cell, begin emphasis or be taken for a tag.
pub fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for letter in text.chars() {
        if matches!(letter, '|' | '*' | '<' | '_' | '`') {
            escaped.push('\\');
        }
        escaped.push(letter);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::super::samples::lab;
    use super::*;

    #[test]
    fn every_line_of_a_table_has_as_many_cells() {
        let text = render(&lab());
        let lines: Vec<&str> =
            text.lines().filter(|line| line.starts_with("| pairs/lifo") || line.starts_with("| row")).collect();
        assert!(lines.len() > 5 && lines.iter().all(|line| line.matches(" |").count() >= 4), "{text}");
        assert!(text.contains("| pairs/lifo | 2.00 ±0.00 | **1.00** | **1.00 ±0.42** |"), "{text}");
    }

    #[test]
    fn circumstances_and_rows_are_told() {
        let text = render(&lab());
        for part in [
            "2026-01-02T03:04:05Z",
            "a processor",
            "system 1.0, snug 1.0",
            "- Failed: larson/2",
            "`larson/2`: imitates \\<",
        ] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
    }
}
