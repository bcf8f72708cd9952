//! `snug bench`: allocators beside each other, on workloads that live in programs of their own (bench/ in the
//! repository), with each allocator preloaded in turn.
//!
//!     peers   which allocators there are, and that they really load
//!     runner  runs a workload once and reads its figures; the interleaving
//!     stats   medians and paired ratios
//!     table   what is printed, and the JSON file

mod peers;
mod runner;
pub mod stats;
mod table;

use std::env;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{bail, ensure, Context, Result};

use crate::cli::{Bench, BenchArgs, PairsArgs};

pub fn run(args: &BenchArgs) -> Result<ExitCode> {
    match &args.bench {
        Bench::Pairs(args) => pairs(args),
    }
}

fn pairs(args: &PairsArgs) -> Result<ExitCode> {
    let workload = workload("pairs", args.workloads.as_deref())?;
    let rows = choose_rows(runner::list_rows(&workload)?, &args.only)?;
    let found = peers::find(&args.peers)?;
    for allocator in &found.allocators {
        peers::ensure_loads(allocator, &workload)?;
    }

    let lab = runner::measure(&workload, rows, found.allocators, args.rounds)?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", table::render(&lab))?;
    for missing in &found.missing {
        writeln!(out, "Not here: {missing}")?;
    }
    if let Some(path) = &args.json {
        let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
        let mut file = BufWriter::new(file);
        serde_json::to_writer_pretty(&mut file, &lab)?;
        file.flush()?;
    }
    Ok(if lab.has_failures() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The workload program `name`: in the folder that was asked for, else where `./dev build` leaves it.
fn workload(name: &str, folder: Option<&Path>) -> Result<PathBuf> {
    let folder = match folder {
        Some(folder) => folder.to_path_buf(),
        None => build_folder()?.join("bench"),
    };
    let path = folder.join(name);
    let shown = path.display();
    ensure!(path.is_file(), "there is no workload {shown}: build it with ./dev build, or say where with --workloads");
    Ok(std::path::absolute(&path)?)
}

/// The folder above the one that holds this program.
fn build_folder() -> Result<PathBuf> {
    let own = env::current_exe().context("cannot tell where this program is")?;
    let folder = own.parent().and_then(Path::parent).context("this program is in no folder")?;
    Ok(folder.to_path_buf())
}

fn choose_rows(all: Vec<String>, only: &[String]) -> Result<Vec<String>> {
    if let Some(unknown) = only.iter().find(|row| !all.contains(row)) {
        bail!("there is no row {unknown}; the rows are: {}", all.join(", "));
    }
    Ok(all.into_iter().filter(|row| only.is_empty() || only.contains(row)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_chosen_by_name() {
        let all = || vec!["a".to_string(), "b".to_string()];
        assert_eq!(choose_rows(all(), &[]).unwrap(), ["a", "b"]);
        assert_eq!(choose_rows(all(), &["b".into()]).unwrap(), ["b"]);
        assert!(choose_rows(all(), &["c".into()]).unwrap_err().to_string().contains("a, b"));
    }
}
