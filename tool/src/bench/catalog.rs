//! Rows: how they are chosen, and what is run for them. The rows themselves are in `workloads` and `programs`.

use std::fmt::Write;
use std::path::Path;

use anyhow::{ensure, Result};
use glob::Pattern;

use super::child::Job;
use super::programs::{self, Program, Workshop};
use super::results::Row;
use super::workloads;
use crate::output;
use crate::refusal::Refusal;

/// A row before it is known whether what it needs is here.
#[derive(Debug, Clone)]
pub struct Entry {
    pub row: Row,
    pub source: Source,
}

#[derive(Debug, Clone)]
pub enum Source {
    Workload {
        program: &'static str,
        args: Vec<String>,
        /// The arguments for twice the operations; empty for rows that instructions cannot be counted of.
        doubled: Vec<String>,
    },
    Program(&'static Program),
}

/// All rows, in the order in which they run.
pub fn rows(quick: bool, threads: &[u32]) -> Vec<Entry> {
    let programs = programs::rows(quick).into_iter();
    let programs = programs.map(|(row, program)| Entry { row, source: Source::Program(program) });
    workloads::rows(quick, threads).into_iter().chain(programs).collect()
}

/// The rows that one of the patterns names: a row, a family, or a pattern with `*`. All, without patterns.
pub fn choose(rows: Vec<Entry>, only: &[String]) -> Result<Vec<Entry>> {
    let mut patterns = Vec::new();
    for word in only {
        let pattern =
            Pattern::new(word).map_err(|error| Refusal::misuse(format!("--only {word} is no pattern: {error}")))?;
        let known = rows.iter().any(|entry| is_meant(&pattern, &entry.row));
        let unknown = || {
            Refusal::misuse(format!("--only: there is no row {word}; the families are: {}", families(&rows).join(", ")))
        };
        ensure!(known, unknown());
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

/// The least columns that what a row imitates is told in.
const LEAST: usize = 24;

/// What --list prints.
pub fn list(rows: &[Entry]) -> String {
    let width = rows.iter().map(|entry| entry.row.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for Entry { row, .. } in rows {
        // Under the column of what it imitates, where there is a terminal and it is not wide enough.
        let room = output::terminal_width().unwrap_or(usize::MAX).saturating_sub(width + 2).max(LEAST);
        for (number, line) in output::filled(&row.about, room).lines().enumerate() {
            let _ = writeln!(text, "{:width$}  {line}", if number == 0 { &row.name } else { "" });
        }
    }
    text
}

/// The rows as jobs, with the workloads in this folder and the programs' input in the workshop; and why those that
/// cannot be run here are left out.
pub fn jobs(rows: &[Entry], folder: &Path, workshop: &Workshop) -> (Vec<Job>, Vec<String>) {
    let mut jobs = Vec::new();
    let mut missing = Vec::new();
    for Entry { row, source } in rows {
        let job = match source {
            Source::Workload { program, args, doubled } => workload(row, &folder.join(program), args, doubled),
            Source::Program(program) => workshop.job(row, program),
        };
        match job {
            Ok(job) => jobs.push(job),
            Err(why) => missing.push(format!("{why:#}")),
        }
    }
    missing.dedup();
    (jobs, missing)
}

fn workload(row: &Row, program: &Path, args: &[String], doubled: &[String]) -> Result<Job> {
    let shown = program.display();
    ensure!(program.is_file(), "there is no workload {shown}: build it with ./dev build, or give --workloads");
    let words = |args: &[String]| std::iter::once(program.into()).chain(args.iter().map(Into::into)).collect();
    let doubled = (!doubled.is_empty()).then(|| words(doubled));
    Ok(Job { row: row.clone(), words: words(args), folder: None, variables: Vec::new(), doubled })
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

    #[test]
    fn a_workload_that_is_not_built_is_named() {
        let rows = choose(rows(true, &[]), &["pairs".into()]).unwrap();
        let (jobs, missing) = jobs(&rows, Path::new("/no/such"), &Workshop::new(true).unwrap());
        assert!(jobs.is_empty() && missing.len() == 1 && missing[0].contains("/no/such/pairs"), "{missing:?}");
    }
}
