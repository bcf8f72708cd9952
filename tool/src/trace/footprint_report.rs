//! What `snug replay --footprint` found: a table, the curves behind it as plots, and files for other programs.

use std::io::Write;

use anyhow::Result;
use maud::html;

use super::footprint::{Footprint, Footprints, OfTrace};
use crate::bench::report::figures::{colour_of, LIVE_COLOUR};
use crate::bench::report::plots::{Line as Curve, Plot};
use crate::bench::report::tables::{mark_best, Cell, Line, Table};
use crate::bench::report::{html, markdown, terminal, write_json, write_to, ReportArgs};
use crate::output;

const TITLE: &str = "snug replay: footprints of recorded programs";
const NOTE: &str = "\
KiB of resident memory without the replayer's own and without files; overhead is that over requested bytes, each added \
up over the samples. One thread, in the recorded order: it is the same each time. * is the least.";

pub fn publish(found: &Footprints, files: &ReportArgs) -> Result<()> {
    let table = table(found);
    let mut text = String::new();
    terminal::render_table(&mut text, &table);
    output::last_error([
        if files.to_output() { Ok(()) } else { output::print(text.as_bytes()) },
        write_json(found, files.json.as_deref()),
        write_to(files.csv.as_deref(), |file| write_csv(found, file)),
        write_to(files.markdown.as_deref(), |file| {
            let mut text = format!("# {TITLE}\n");
            markdown::render_table(&mut text, &table);
            Ok(file.write_all(text.as_bytes())?)
        }),
        write_to(files.html.as_deref(), |file| Ok(file.write_all(page(found, &table)?.as_bytes())?)),
    ])
}

/// Three lines for each trace, a column for each allocator.
fn table(found: &Footprints) -> Table {
    let mut lines = Vec::new();
    for of_trace in &found.traces {
        let requested = format!("{} KiB requested", of_trace.requested_peak_bytes / 1024);
        let mut add = |what: &str, value: fn(&Footprint) -> f64, digits: usize| {
            let cell =
                |footprint: &Footprint| Cell { text: format!("{:.digits$}", value(footprint)), ..Cell::default() };
            let values = of_trace.footprints.iter().map(|footprint| Some(value(footprint)));
            let cells = mark_best(of_trace.footprints.iter().map(cell), values);
            lines.push(Line { name: format!("{}: {what}", of_trace.trace), about: requested.clone(), cells });
        };
        add(&format!("peak, of {requested}"), |footprint| footprint.peak_kib as f64, 0);
        add("at the end", |footprint| footprint.end_kib as f64, 0);
        add("overhead", |footprint| footprint.overhead, 3);
    }
    let columns = found.allocators.iter().map(|allocator| allocator.name.clone()).collect();
    Table { title: "Footprint".into(), note: NOTE.into(), columns, lines }
}

/// A line for each sample.
fn write_csv(found: &Footprints, out: &mut dyn Write) -> Result<()> {
    let mut csv = csv::Writer::from_writer(out);
    csv.write_record(["trace", "allocator", "operations", "live_bytes", "resident_kib"])?;
    for of_trace in &found.traces {
        for (footprint, allocator) in of_trace.footprints.iter().zip(&found.allocators) {
            for sample in &footprint.samples {
                let numbers = [sample.operations, sample.live_bytes, sample.resident_kib].map(|n| n.to_string());
                csv.write_record([&of_trace.trace, &allocator.name].into_iter().chain(&numbers))?;
            }
        }
    }
    Ok(csv.flush()?)
}

fn page(found: &Footprints, table: &Table) -> Result<String> {
    let body = html! {
        (html::legend(&found.allocators))
        div.plots { @for of_trace in &found.traces { (html::figure(&plot(found, of_trace))?) } }
        (html::table(table))
    };
    Ok(html::page(TITLE, &body))
}

/// Resident memory by operations, and what was requested.
fn plot(found: &Footprints, of_trace: &OfTrace) -> Plot {
    let curve = |colour: usize, thick: bool, points: Vec<(f64, f64)>| Curve {
        colour,
        points,
        labels: Vec::new(),
        marks: false,
        thick,
        faint: false,
    };
    let of_place = |(place, footprint): (usize, &Footprint)| {
        let colour = colour_of(&found.allocators, place);
        let points = footprint.samples.iter();
        let points = points.map(|sample| (sample.operations as f64 / 1e3, sample.resident_kib as f64 / 1024.0));
        curve(colour, colour == 0, points.collect())
    };
    let mut lines: Vec<Curve> = of_trace.footprints.iter().enumerate().map(of_place).collect();
    lines.sort_by_key(|line| line.thick); // snug over the others
    if let Some(footprint) = of_trace.footprints.first() {
        let live = footprint.samples.iter();
        let live = live.map(|sample| (sample.operations as f64 / 1e3, sample.live_bytes as f64 / 1048576.0));
        lines.push(curve(LIVE_COLOUR, true, live.collect()));
    }
    Plot {
        title: format!("{}: resident memory by operations", of_trace.trace),
        x: "thousand operations".into(),
        y: "resident MiB".into(),
        hold: vec![(0.0, 0.0)],
        lines,
    }
}

#[cfg(test)]
mod tests {
    use super::super::footprint::Sample;
    use super::*;
    use crate::bench::allocators::Allocator;

    fn found() -> Footprints {
        let footprint = |peak_kib: i64| Footprint {
            peak_kib,
            end_kib: 4,
            overhead: peak_kib as f64 / 100.0,
            samples: vec![Sample { operations: 10, live_bytes: 1024, resident_kib: peak_kib }],
        };
        let allocator = |name: &str| Allocator { name: name.into(), ..Allocator::default() };
        let footprints = vec![footprint(200), footprint(150)];
        let of_trace = OfTrace { trace: "cc1".into(), requested_peak_bytes: 102_400, footprints };
        Footprints { allocators: ["system", "snug"].map(allocator).to_vec(), traces: vec![of_trace] }
    }

    #[test]
    fn a_table_of_footprints() {
        let table = table(&found());
        let names: Vec<&str> = table.lines.iter().map(|line| line.name.as_str()).collect();
        assert_eq!(names, ["cc1: peak, of 100 KiB requested", "cc1: at the end", "cc1: overhead"]);
        assert_eq!(table.lines[0].cells[1], Cell { text: "150".into(), best: true, ..Cell::default() });
        assert!(!table.lines[1].cells.iter().any(|cell| cell.best), "both are the same");
    }

    #[test]
    fn files_have_every_sample() {
        let mut bytes = Vec::new();
        write_csv(&found(), &mut bytes).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        assert_eq!(text.lines().nth(2), Some("cc1,snug,10,1024,150"), "{text}");
        let page = page(&found(), &table(&found())).unwrap();
        assert!(page.contains("cc1: resident memory by operations") && page.contains("<svg"));
        let json = serde_json::to_value(found()).unwrap();
        assert_eq!(json["traces"][0]["footprints"][1]["samples"][0]["resident_kib"], 150);
    }
}
