//! docs/profile-cases.md: its programs are compiled as they stand there, its commands run, and the lines about their code are
//! those that the page shows. With SNUG_DOCS_WRITE=1 the page is written instead.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{stderr, text, Place};

const FILE: &str = "<!-- file: ";
const PROFILED: &str = "<!-- profiled: ";

fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/profile-cases.md")
}

fn marked<'a>(line: &'a str, mark: &str) -> Option<&'a str> {
    line.strip_prefix(mark)?.strip_suffix(" -->")
}

/// The indented lines below a mark.
fn block<'a>(lines: &[&'a str], at: usize) -> Vec<&'a str> {
    let block = lines[at + 1..].iter().take_while(|line| line.starts_with("    ") || line.is_empty());
    block.map(|line| line.strip_prefix("    ").unwrap_or(line)).collect()
}

/// By the command that the page gives.
fn compile(place: &Place, page: &str, name: &str, source: &str) {
    place.write(name, source, 0o644);
    let (program, ending) = name.split_once('.').unwrap();
    let (compiler, flags) = if ending == "rs" { ("rustc", "-O") } else { ("c++", "-O1") };
    let words = [flags, "-g", "-o", program, name];
    let command = format!("\n    $ {compiler} {}\n", words.join(" "));
    assert!(page.contains(&command), "the page has no{command}");
    let done = Command::new(compiler).args(words).current_dir(place.dir.path()).output().unwrap();
    assert!(done.status.success(), "{}", stderr(&done));
}

fn shown(place: &Place, words: &str) -> Vec<String> {
    let words: Vec<&str> = words.split(' ').collect();
    let said = stderr(&place.output(&[&["profile"], words.as_slice()].concat()));
    let said = said.replace(&format!("{}/", text(place.dir.path())), "");
    let command = format!("    $ build/bin/snug profile {}", words.join(" "));
    let lines = said.lines().map(|line| format!("    {line}").trim_end().to_string());
    std::iter::once(command).chain(lines).collect()
}

/// Those about the programs' own code.
fn about_code(lines: &[String]) -> Vec<&str> {
    let is_own = |line: &&str| ["  server.cc:", "  words.rs:"].iter().any(|own| line.contains(own));
    lines.iter().map(|line| line.trim()).filter(is_own).collect()
}

#[test]
fn the_page_shows_what_the_tool_finds() {
    let place = Place::new();
    let old = fs::read_to_string(page()).unwrap();
    let lines: Vec<&str> = old.lines().collect();
    let mut new: Vec<String> = Vec::new();
    let (mut is_old, mut blocks) = (false, 0);
    for (at, &line) in lines.iter().enumerate() {
        is_old = is_old && (line.starts_with("    ") || line.is_empty());
        if !is_old {
            new.push(line.to_string());
        }
        if let Some(name) = marked(line, FILE) {
            compile(&place, &old, name, &block(&lines, at).join("\n"));
        }
        if let Some(words) = marked(line, PROFILED) {
            let now = shown(&place, words);
            let before: Vec<String> = block(&lines, at).iter().map(|line| line.to_string()).collect();
            if std::env::var_os("SNUG_DOCS_WRITE").is_none() {
                assert!(!about_code(&now).is_empty(), "{now:?}");
                assert_eq!(about_code(&before), about_code(&now), "{now:?}");
            }
            new.extend(now);
            new.push(String::new());
            (is_old, blocks) = (true, blocks + 1);
        }
    }
    assert_eq!(blocks, 2);
    if std::env::var_os("SNUG_DOCS_WRITE").is_some() {
        fs::write(page(), new.join("\n") + "\n").unwrap();
    }
}
