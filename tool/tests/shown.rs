//! What README.md and docs/ show is what the tool prints: each command there is run, and all but numbers is compared.
//!
//! A block begins with `<!-- shown: WORDS -->` and goes on with indented lines, the first of which is the command. PID stands
//! for a program of common/running.rs that runs, ./holder for the same program. A line that looks like a command with its
//! output, but has no such mark, is a fault. With SNUG_DOCS_WRITE=1 the blocks are written instead.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::running::{Running, HOLDER};
use crate::common::{nobody_lies, stderr, stdout, text, Place};

const MARK: &str = "<!-- shown: ";
const COMMAND: &str = "    $ snug ";

/// README.md and the pages of docs/ that people write; other pages are made by tests and programs of their own.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let is_page = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "md");
    let mut pages: Vec<PathBuf> = fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path()).collect();
    pages.retain(is_page);
    pages.push(root.join("README.md"));
    pages.sort();
    pages
}

/// What a command prints, as it stands in the page.
fn shown(place: &Place, words: &str, pid: &str) -> Vec<String> {
    let arguments: Vec<&str> = words.split(' ').map(|word| if word == "PID" { pid } else { word }).collect();
    // Other programs on snug have longer names and numbers: the table has room for them, too.
    let columns = if words == "top --once" { "200" } else { "80" };
    let output = place.snug(&arguments).env("COLUMNS", columns).output().unwrap();
    // What the program says itself is none of the page's business.
    let said = stdout(&output).replace("ready\n", "") + &stderr(&output);
    let said = said.replace(text(place.dir.path()), "/home/you");
    // Whether a thread may be within snug is told by its stack, and what an old call left there by the libc.
    let stays = " stay in magazines of threads that work, or may be within snug";
    let lines: Vec<_> = said.split('\n').map(|line| line.split_once(stays).map_or(line, |(_, rest)| rest)).collect();
    let said = lines.join("\n").replace("\n (the words", " (the words");
    // Of all programs on snug only this one, and of its control group nothing: it is the machine's.
    let is_other = |line: &str| {
        let first = line.split_whitespace().next().unwrap_or_default();
        words == "top --once" && first != pid && first.parse::<u32>().is_ok()
    };
    let lines = said.lines().filter(|line| !is_other(line) && !line.starts_with("its group"));
    let indented = lines.map(|line| format!("    {line}").trim_end().to_string());
    [format!("    $ snug {words}")].into_iter().chain(indented).collect()
}

/// Words and their order: numbers, and how long bars and gaps are, do not count; nor does which of two is faster.
fn bare(line: &str) -> String {
    if line.trim_start().starts_with('[') {
        return "    [a bar]".to_string();
    }
    let mut bare = String::new();
    for letter in line.chars() {
        let letter = match letter {
            '0'..='9' => '0',
            ' ' | '.' | ',' => ' ',
            letter => letter,
        };
        let repeats = bare.ends_with(letter) && matches!(letter, '0' | ' ' | '█' | '#' | '─');
        if !repeats {
            bare.push(letter);
        }
    }
    let bare = bare.trim_end().replace("0 0", "0").replace("0 0", "0");
    ["KiB", "MiB", "GiB"].iter().fold(bare, |bare, unit| bare.replace(unit, "B"))
}

/// What of a page counts: its words, as where lines end depends on how long numbers are. Of a comparison the sentences
/// before the tables are left out, which tell who was faster.
fn bare_words(page: &str) -> Vec<String> {
    let mut is_verdict = false;
    let mut words = Vec::new();
    for line in page.lines() {
        is_verdict = is_verdict && !line.trim().is_empty();
        if !is_verdict {
            words.extend(bare(line).split_whitespace().map(str::to_string));
        }
        is_verdict |= line.starts_with("    $ snug compare");
    }
    words
}

/// A page with all its blocks as they are now.
fn rewritten(page: &str, place: &Place, pid: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut is_old = false;
    for line in page.lines() {
        is_old = is_old && (line.starts_with("    ") || line.is_empty());
        if is_old && line.is_empty() {
            // It may be a part of the block, or what ends it: the next line tells.
            lines.push(String::new());
            continue;
        }
        if is_old {
            while lines.last().is_some_and(String::is_empty) {
                lines.pop();
            }
            continue;
        }
        lines.push(line.to_string());
        if let Some(words) = line.strip_prefix(MARK).and_then(|rest| rest.strip_suffix(" -->")) {
            lines.extend(shown(place, words, pid));
            is_old = true;
        }
    }
    lines.join("\n") + "\n"
}

/// Commands with output that no run stands behind.
fn unmarked(page: &str) -> Vec<&str> {
    let lines: Vec<&str> = page.lines().collect();
    let is_command = |line: &str| line.starts_with(COMMAND);
    let pairs = lines.windows(2).filter(|pair| is_command(pair[1]) && !pair[0].starts_with(MARK));
    pairs.map(|pair| pair[1]).collect()
}

#[test]
fn pages_show_what_the_tool_prints() {
    let _truth = nobody_lies();
    let place = Place::new();
    place.compile("holder", HOLDER, &["-O1", "-w", "-fno-builtin"]);
    let program = Running::start(place.snug(&["run", "./holder"]));
    let mut blocks = 0;
    for page in pages() {
        let old = fs::read_to_string(&page).unwrap();
        assert_eq!(unmarked(&old), [] as [&str; 0], "{}: no run stands behind these", page.display());
        if !old.contains(MARK) {
            continue;
        }
        blocks += old.matches(MARK).count();
        let new = rewritten(&old, &place, &program.pid());
        if std::env::var_os("SNUG_DOCS_WRITE").is_some() {
            fs::write(&page, new).unwrap();
            continue;
        }
        let (old, new) = (bare_words(&old), bare_words(&new));
        let place = old.iter().zip(&new).position(|(old, new)| old != new).unwrap_or(old.len().min(new.len()));
        let near = |words: &[String]| {
            words.iter().skip(place.saturating_sub(8)).take(16).cloned().collect::<Vec<_>>().join(" ")
        };
        let advice = "SNUG_DOCS_WRITE=1 cargo test shown:: writes the page";
        assert!(old == new, "{}: it shows\n{}\nand now it is\n{}\n{advice}", page.display(), near(&old), near(&new));
    }
    assert!(blocks >= 8, "{blocks}");
}

#[test]
fn a_page_that_is_wrong_is_noticed() {
    let place = Place::new();
    let page = "text\n<!-- shown: --version -->\n    $ snug --version\n    snug 0.1.0\n    something else\n\nmore\n";
    let new = rewritten(page, &place, "1");
    assert_ne!(bare_words(page), bare_words(&new));
    assert!(new.ends_with("\n\nmore\n") && !new.contains("something else"), "{new}");
    assert_eq!(rewritten(&new, &place, "1"), new);
    assert_eq!(unmarked("\n    $ snug top\n"), ["    $ snug top"]);
}

#[test]
fn words_count_and_numbers_do_not() {
    assert_eq!(bare("in use   12.5 MiB  ███"), bare("in use 1,023 KiB ██████"));
    assert_ne!(bare("in use 1 B"), bare("free 1 B"));
    let compared = |verdict: &str| bare_words(&format!("    $ snug compare x\n    {verdict}\n\n    a table\n"));
    assert_eq!(compared("it is faster"), compared("it is slower"));
    assert_ne!(compared("it"), bare_words("    $ snug compare x\n    it\n\n    no table\n"));
}
