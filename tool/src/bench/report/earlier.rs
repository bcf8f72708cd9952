//! Which files a report may be written over. The FILE of `--json` and the like may be left out, and then the word that
//! follows is taken for it: a trace, or the command that is to be measured.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use anyhow::{ensure, Context, Result};

use crate::bench::stored::ZSTD;
use crate::output;
use crate::refusal::Refusal;

/// All that tells a report stands within these bytes.
const LOOKED_AT: u64 = 4096;

/// What tells reports, blanks left out: how one begins, and what follows in this order. The beginning alone is that of
/// many a page, picture or list that others have written.
const MARKS: [&[&str]; 12] = [
    &[r#"{"format":"#, r#","title":"snug"#, r#","version":""#, r#","date":""#, r#","machine":{"#],
    // snug replay --footprint.
    &[r#"{"allocators":[{"name":""#, r#","library":"#, r#","version":"#, r#","settings":["#],
    // snug stats and snug options, as JSON and as CSV.
    &[r#"{"schema":"snug"#],
    &[r#"[{"name":"SNUG_"#],
    &["milliseconds,pid,reason,"],
    &["row,allocator,round,time,unit,cpu_seconds,peak_bytes,"],
    &["trace,allocator,operations,live_bytes,resident_kib"],
    &["#BenchmarksWrittenby`snug", "--markdown`"],
    &["#ComparisonWrittenby`snug", "--markdown`"],
    &["#snugreplay:footprintsofrecordedprograms"],
    &[r#"<!DOCTYPEhtml><htmllang="en">"#, "<title>snug", COLOURS],
    &["<svgviewBox=", COLOURS],
];

/// How colours.css begins.
const COLOURS: &str = "<style>:root{--page:#ffffff;--ink:#1f2328;";

/// A file that is there must be one that was made for this.
pub fn ensure_replaceable(path: &Path) -> Result<()> {
    if !fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() > 0) {
        return Ok(());
    }
    let start = start_of(path).with_context(|| output::cannot_read(path))?;
    let is_report = MARKS.iter().any(|marks| has_marks(&start, marks));
    let shown = path.display();
    let message = || format!("{shown} is there and is no report of snug; without a FILE write -, as in --json=-");
    ensure!(is_report, Refusal::misuse(message()));
    Ok(())
}

fn has_marks<'a>(start: &'a str, marks: &[&str]) -> bool {
    let behind = |rest: &'a str, mark: &&str| rest.split_once(mark).map(|(_, behind)| behind);
    start.starts_with(marks[0]) && marks.iter().try_fold(start, behind).is_some()
}

/// Without blanks.
fn start_of(path: &Path) -> std::io::Result<String> {
    let mut start = Vec::new();
    File::open(path)?.take(LOOKED_AT).read_to_end(&mut start)?;
    if start.starts_with(&ZSTD) {
        let mut plain = Vec::new();
        // It is cut short, so an error comes after what could be read.
        let _ = zstd::Decoder::new(start.as_slice())?.take(LOOKED_AT).read_to_end(&mut plain);
        start = plain;
    }
    start.retain(|byte| !byte.is_ascii_whitespace());
    Ok(String::from_utf8_lossy(&start).into_owned())
}

#[cfg(test)]
mod tests {
    use super::super::{csv_file, html, markdown, samples::lab, write_json};
    use super::*;

    #[test]
    fn reports_may_be_written_over_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        write_json(&lab(), Some(&at("a.json"))).unwrap();
        write_json(&lab(), Some(&at("a.json.zst"))).unwrap();
        let mut csv = Vec::new();
        csv_file::write(&lab(), &mut csv).unwrap();
        fs::write(at("a.csv"), csv).unwrap();
        fs::write(at("a.md"), markdown::render(&lab())).unwrap();
        fs::write(at("a.html"), html::render(&lab()).unwrap()).unwrap();
        fs::write(at("a.svg"), include_bytes!("../../../../docs/frontier.svg")).unwrap();
        fs::write(at("empty"), "").unwrap();
        for name in ["a.json", "a.json.zst", "a.csv", "a.md", "a.html", "a.svg", "empty", "none"] {
            ensure_replaceable(&at(name)).unwrap();
        }
        fs::write(at("earlier.md"), include_bytes!("../../../../docs/benchmarks.md")).unwrap();
        ensure_replaceable(&at("earlier.md")).unwrap();
        let others = [
            ("a.trace", &b"SNUGTRC\n"[..]),
            ("prog", b"#!/bin/sh\n"),
            ("z", &ZSTD),
            (
                "own.html",
                b"<!DOCTYPE html>\n<html lang=\"en\"><head><title>snug flats</title><style>:root { --page: 1 }",
            ),
            ("own.svg", b"<svg viewBox=\"0 0 440 300\" xmlns=\"http://www.w3.org/2000/svg\"><style>:root { --a: 1; }"),
            ("own.md", b"# Benchmarks of my own\n\nWritten by hand\n"),
            ("own.json", b"{\"format\": \"mine\", \"title\": \"snug flats\", \"version\": \"1\"}"),
            ("allocators.json", b"{\"allocators\": [\"jemalloc\"]}"),
            ("own.csv", b"row,allocator,round,mine\n"),
        ];
        for (name, bytes) in others {
            fs::write(at(name), bytes).unwrap();
            assert!(ensure_replaceable(&at(name)).is_err(), "{name}");
        }
    }
}
