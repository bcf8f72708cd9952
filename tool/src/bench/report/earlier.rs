//! Which files a report may be written over. The FILE of `--json` and the like may be left out, and then the word that
//! follows is taken for it: a trace, or the command that is to be measured.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use anyhow::{ensure, Context, Result};

use crate::bench::stored::ZSTD;
use crate::output;
use crate::refusal::Refusal;

/// More than any of the beginnings has.
const LOOKED_AT: u64 = 4096;

/// How reports begin, blanks left out: JSON, CSV, Markdown, HTML, SVG; of `snug replay --footprint`, `snug stats` and
/// `snug options` where they differ.
const BEGINNINGS: [&str; 12] = [
    r#"{"format":"#,
    r#"{"allocators":["#,
    r#"{"schema":"snug"#,
    r#"[{"name":"SNUG_"#,
    "row,allocator,round,",
    "trace,allocator,operations,",
    "milliseconds,pid,",
    "#Benchmarks",
    "#Comparison",
    "#snugreplay:",
    "<!DOCTYPEhtml><htmllang=",
    "<svgviewBox=",
];

/// A file that is there must be one that was made for this.
pub fn ensure_replaceable(path: &Path) -> Result<()> {
    if !fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() > 0) {
        return Ok(());
    }
    let start = start_of(path).with_context(|| output::cannot_read(path))?;
    let is_report = BEGINNINGS.iter().any(|beginning| start.starts_with(beginning.as_bytes()));
    let shown = path.display();
    let message = || format!("{shown} is there and is no report of snug; without a FILE write -, as in --json=-");
    ensure!(is_report, Refusal::misuse(message()));
    Ok(())
}

/// Without blanks.
fn start_of(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut start = Vec::new();
    File::open(path)?.take(LOOKED_AT).read_to_end(&mut start)?;
    if start.starts_with(&ZSTD) {
        let mut plain = Vec::new();
        // It is cut short, so an error comes after what could be read.
        let _ = zstd::Decoder::new(start.as_slice())?.take(LOOKED_AT).read_to_end(&mut plain);
        start = plain;
    }
    start.retain(|byte| !byte.is_ascii_whitespace());
    Ok(start)
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
        for (name, bytes) in [("a.trace", &b"SNUGTRC\n"[..]), ("prog", b"#!/bin/sh\n"), ("z", &ZSTD)] {
            fs::write(at(name), bytes).unwrap();
            assert!(ensure_replaceable(&at(name)).is_err(), "{name}");
        }
    }
}
