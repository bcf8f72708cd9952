//! What docs/running.md shows is what the tool prints: each command there is run, and all but numbers is compared.
//!
//! A block begins with `<!-- shown: WORDS -->` and goes on with indented lines; PID stands for a program of common/running.rs.
//! With SNUG_DOCS_WRITE=1 the blocks are written instead.

mod common;

use std::fs;
use std::path::Path;

use common::running::{Running, HOLDER};
use common::{stdout, Place};

const MARK: &str = "<!-- shown: ";

fn page() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/running.md")
}

/// What a command prints, as it stands in the page.
fn shown(place: &Place, words: &str, pid: &str) -> Vec<String> {
    let arguments: Vec<&str> = words.split(' ').map(|word| if word == "PID" { pid } else { word }).collect();
    let said = stdout(&place.output(&arguments));
    // Of all programs on snug only this one, and of its control group nothing: it is the machine's.
    let is_other = |line: &str| {
        let first = line.split_whitespace().next().unwrap_or_default();
        words == "top --once" && first != pid && first.parse::<u32>().is_ok()
    };
    let lines = said.lines().filter(|line| !is_other(line) && !line.starts_with("its group"));
    [format!("    $ snug {words}")].into_iter().chain(lines.map(|line| format!("    {line}"))).collect()
}

/// Words and their order: numbers, and how long bars and gaps are, do not count.
fn bare(line: &str) -> String {
    let mut bare = String::new();
    for letter in line.chars() {
        let letter = match letter {
            '0'..='9' => '0',
            ' ' | '.' | ',' => ' ',
            letter => letter,
        };
        let repeats = bare.ends_with(letter) && matches!(letter, '0' | ' ' | '█');
        if !repeats {
            bare.push(letter);
        }
    }
    let bare = bare.trim_end().replace("0 0", "0");
    ["KiB", "MiB", "GiB"].iter().fold(bare, |bare, unit| bare.replace(unit, "B"))
}

/// A page with all its blocks as they are now.
fn rewritten(page: &str, place: &Place, pid: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut is_old = false;
    for line in page.lines() {
        is_old = is_old && line.starts_with("    ");
        if !is_old {
            lines.push(line.to_string());
        }
        if let Some(words) = line.strip_prefix(MARK).and_then(|rest| rest.strip_suffix(" -->")) {
            lines.extend(shown(place, words, pid));
            is_old = true;
        }
    }
    lines.join("\n") + "\n"
}

#[test]
fn the_page_shows_what_the_tool_prints() {
    let place = Place::new();
    place.compile("holder", HOLDER, &["-O1", "-w", "-fno-builtin"]);
    let program = Running::start(place.snug(&["run", "./holder"]));
    let old = fs::read_to_string(page()).unwrap();
    let new = rewritten(&old, &place, &program.pid());
    if std::env::var_os("SNUG_DOCS_WRITE").is_some() {
        fs::write(page(), new).unwrap();
        return;
    }
    assert_eq!(old.matches(MARK).count(), 4);
    let bare_lines = |text: &str| text.lines().map(bare).collect::<Vec<_>>();
    assert_eq!(bare_lines(&old), bare_lines(&new), "SNUG_DOCS_WRITE=1 cargo test --test shown writes the page");
    // And it would be noticed.
    let planted = old.replace("gave back", "took");
    assert_ne!(bare_lines(&planted), bare_lines(&rewritten(&planted, &place, &program.pid())));
}

#[test]
fn words_count_and_numbers_do_not() {
    assert_eq!(bare("in use   12.5 MiB  ███"), bare("in use 1,023 KiB ██████"));
    assert_ne!(bare("in use 1 B"), bare("free 1 B"));
}
