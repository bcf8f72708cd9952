//! The workloads: programs of bench/, each with the arguments that make a row of it.
//!
//! A row's name is `family/variant`. What a workload imitates stands in the head of its source; here it is one line.

use std::fmt::Write;
use std::path::Path;

use anyhow::{ensure, Context, Result};
use glob::Pattern;

use super::child::Job;
use super::results::{Row, Unit};

/// A row before it is known where its program is.
#[derive(Debug, Clone)]
pub struct Entry {
    pub row: Row,
    pub program: &'static str,
    pub args: Vec<String>,
    /// The arguments for twice the operations; empty for rows that instructions cannot be counted of.
    pub doubled: Vec<String>,
}

/// What of a workload is chosen for quick runs and for long ones.
struct Scale<'a> {
    quick: bool,
    threads: &'a [u32],
}

impl Scale<'_> {
    fn pick<T>(&self, quick: T, full: T) -> T {
        if self.quick {
            quick
        } else {
            full
        }
    }

    /// The numbers of threads of a workload that has a choice.
    fn threads(&self, quick: &[u32], full: &[u32]) -> Vec<u32> {
        match self.threads {
            [] => self.pick(quick, full).to_vec(),
            chosen => chosen.to_vec(),
        }
    }
}

/// All rows, in the order in which they run.
pub fn rows(quick: bool, threads: &[u32]) -> Vec<Entry> {
    let scale = Scale { quick, threads };
    [pairs(&scale), many_threads(&scale)].concat()
}

/// A row of a workload: its name, what it imitates, its threads, its program and arguments.
fn entry(name: &str, about: &str, threads: u32, program: &'static str, args: &[String]) -> Entry {
    let family = name.split('/').next().unwrap_or(name).to_string();
    let row = Row { name: name.into(), family, about: about.into(), threads, unit: Unit::NsPerOperation };
    Entry { row, program, args: args.to_vec(), doubled: Vec::new() }
}

/// How often a row of `pairs` is repeated within a process; the least time of these counts.
const PAIRS_REPEATS: u32 = 3;

fn pairs(scale: &Scale) -> Vec<Entry> {
    const ROWS: [(&str, u32, &str); 8] = [
        ("freed-at-once", 1, "64 B, freed before the next: a temporary in a loop"),
        ("reverse-100", 1, "100 blocks of 64 B, freed last first: a call that unwinds"),
        ("in-order-10000", 1, "10,000 blocks of 64 B, freed first first: a list that is torn down"),
        ("random-16-1024", 1, "10,000 live blocks of 16..1,024 B, any replaced by another"),
        ("random-16-256", 1, "200,000 live blocks of 16..256 B: a heap larger than the caches of the processor"),
        ("random-1-30000", 1, "1,000 live blocks of 1..30,000 B: buffers"),
        ("producer-consumer", 2, "64 B, taken by one thread and freed by the other"),
        ("fill-250MB-two-threads", 2, "two threads fill 250 MB each, then free: a large data set"),
    ];
    let wanted = ROWS.iter().filter(|(name, ..)| !scale.quick || *name != "fill-250MB-two-threads");
    let make = |&(name, threads, about): &(&str, u32, &str)| {
        let args = |repeats: u32| vec![name.to_string(), repeats.to_string()];
        let mut made = entry(&format!("pairs/{name}"), about, threads, "pairs", &args(PAIRS_REPEATS));
        if threads == 1 {
            made.doubled = args(2 * PAIRS_REPEATS);
        }
        made
    };
    wanted.map(make).collect()
}

fn many_threads(scale: &Scale) -> Vec<Entry> {
    let make = |threads: u32| {
        let about =
            "threads that each take 20 blocks of 16..512 B and wait: a server with a thread for each connection";
        entry(&format!("many-threads/{threads}"), about, threads, "many_threads", &[threads.to_string()])
    };
    scale.threads(&[200], &[1000]).into_iter().map(make).collect()
}

/// The rows that one of the patterns names: a row, a family, or a pattern with `*`. All, without patterns.
pub fn choose(rows: Vec<Entry>, only: &[String]) -> Result<Vec<Entry>> {
    let mut patterns = Vec::new();
    for word in only {
        let pattern = Pattern::new(word).with_context(|| format!("--only {word} is no pattern"))?;
        let known = rows.iter().any(|entry| is_meant(&pattern, &entry.row));
        ensure!(known, "--only: there is no row {word}; the families are: {}", families(&rows).join(", "));
        patterns.push(pattern);
    }
    let wanted = |entry: &Entry| patterns.is_empty() || patterns.iter().any(|word| is_meant(word, &entry.row));
    Ok(rows.into_iter().filter(wanted).collect())
}

fn is_meant(pattern: &Pattern, row: &Row) -> bool {
    pattern.matches(&row.name) || pattern.matches(&row.family)
}

fn families(rows: &[Entry]) -> Vec<&str> {
    let mut families: Vec<&str> = rows.iter().map(|entry| entry.row.family.as_str()).collect();
    families.dedup();
    families
}

/// What --list prints.
pub fn list(rows: &[Entry]) -> String {
    let width = rows.iter().map(|entry| entry.row.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for Entry { row, .. } in rows {
        let _ = writeln!(text, "{:width$}  {}", row.name, row.about);
    }
    text
}

/// The rows as jobs, with the programs in this folder.
pub fn jobs(rows: &[Entry], folder: &Path) -> Result<Vec<Job>> {
    let job = |entry: &Entry| {
        let path = folder.join(entry.program);
        let shown = path.display();
        ensure!(path.is_file(), "there is no workload {shown}: build it with ./dev build, or give --workloads");
        let words = |args: &[String]| std::iter::once(path.clone().into()).chain(args.iter().map(Into::into)).collect();
        let doubled = (!entry.doubled.is_empty()).then(|| words(&entry.doubled));
        Ok(Job { row: entry.row.clone(), words: words(&entry.args), folder: None, variables: Vec::new(), doubled })
    };
    rows.iter().map(job).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(only: &[&str]) -> Result<Vec<String>> {
        let only: Vec<String> = only.iter().map(|word| word.to_string()).collect();
        Ok(choose(rows(true, &[]), &only)?.into_iter().map(|entry| entry.row.name).collect())
    }

    #[test]
    fn rows_are_chosen_by_name_family_or_pattern() {
        assert_eq!(chosen(&["pairs/reverse-100"]).unwrap(), ["pairs/reverse-100"]);
        assert!(chosen(&["pairs"]).unwrap().len() > 5);
        assert_eq!(chosen(&["pairs/random-*"]).unwrap().len(), 3);
        let error = chosen(&["fairs"]).unwrap_err().to_string();
        assert!(error.contains("no row fairs") && error.contains("pairs, "), "{error}");
    }

    #[test]
    fn names_are_unique_and_speak() {
        for (quick, threads) in [(true, vec![]), (false, vec![]), (true, vec![1, 3])] {
            let rows = rows(quick, &threads);
            let mut names: Vec<&str> = rows.iter().map(|entry| entry.row.name.as_str()).collect();
            names.sort();
            let count = names.len();
            names.dedup();
            assert_eq!(names.len(), count, "two rows have one name");
            assert!(rows.iter().all(|entry| !entry.row.about.is_empty() && entry.row.threads > 0));
        }
    }
}
