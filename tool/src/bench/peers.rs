//! The allocators that snug is measured beside: the system's, and those whose libraries are found.

use std::env::consts::ARCH;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{ensure, Context, Result};
use serde::Serialize;

use super::build_folder;
use crate::cache;

#[derive(Debug, Clone, Serialize)]
pub struct Allocator {
    pub name: String,
    /// What is preloaded; nothing for the system's malloc.
    pub library: Option<PathBuf>,
}

pub const SYSTEM: &str = "system";
pub const SNUG: &str = "snug";

/// A packaged allocator: the start of its library's file name, and the command that installs it.
struct Known {
    name: &'static str,
    file: &'static str,
    install: &'static str,
}

const KNOWN: [Known; 5] = [
    Known { name: "jemalloc", file: "libjemalloc.so.2", install: "apt-get install libjemalloc2" },
    Known { name: "mimalloc 2", file: "libmimalloc.so.2", install: "apt-get install libmimalloc2.0" },
    Known { name: "mimalloc 3", file: "libmimalloc.so.3", install: "./dev bench --install-peers" },
    Known { name: "tcmalloc", file: "libtcmalloc_minimal.so.4", install: "apt-get install libtcmalloc-minimal4" },
    Known { name: "tbbmalloc", file: "libtbbmalloc_proxy.so.2", install: "apt-get install libtbbmalloc2" },
];

pub struct Found {
    /// The system's malloc first, snug second, then the others.
    pub allocators: Vec<Allocator>,
    /// One line for each that is known and not here.
    pub missing: Vec<String>,
}

/// `named` are the user's own, as NAME=PATH.
pub fn find(named: &[String]) -> Result<Found> {
    let files = library_files()?;
    let mut allocators = vec![
        Allocator { name: SYSTEM.into(), library: None },
        Allocator { name: SNUG.into(), library: Some(cache::library()?) },
    ];
    let mut missing = Vec::new();
    for known in &KNOWN {
        match files.iter().find(|file| is_version_of(file, known.file)) {
            Some(file) => allocators.push(Allocator { name: known.name.into(), library: Some(file.clone()) }),
            None => missing.push(format!("{} ({})", known.name, known.install)),
        }
    }
    for word in named {
        allocators.push(parse_named(word)?);
    }
    Ok(Found { allocators, missing })
}

fn parse_named(word: &str) -> Result<Allocator> {
    let (name, path) = word.split_once('=').with_context(|| format!("--peer {word} is not NAME=PATH"))?;
    ensure!(!name.is_empty() && name != SYSTEM && name != SNUG, "--peer {word} needs a name of its own");
    let path = fs::canonicalize(path).with_context(|| format!("--peer {name}: cannot find {path}"))?;
    Ok(Allocator { name: name.into(), library: Some(path) })
}

/// `libx.so.2` and `libx.so.2.0` are versions of `libx.so.2`; `libx.so.20` is not.
fn is_version_of(file: &Path, start: &str) -> bool {
    let rest = file.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_prefix(start));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// All files in the folders where libraries of distributions are, and anywhere in build/peers.
fn library_files() -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for folder in
        ["/usr/local/lib", "/usr/local/lib64", &format!("/usr/lib/{ARCH}-linux-gnu"), "/usr/lib64", "/usr/lib"]
    {
        files.extend(entries(Path::new(folder)));
    }
    let mut folders = vec![build_folder()?.join("peers")];
    while let Some(folder) = folders.pop() {
        let (inner, other) = entries(&folder).into_iter().partition(|entry| entry.is_dir() && !entry.is_symlink());
        let inner: Vec<PathBuf> = inner;
        folders.extend(inner);
        let other: Vec<PathBuf> = other;
        files.extend(other);
    }
    Ok(files)
}

/// What is in a folder, in order; nothing if it cannot be read.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let read = fs::read_dir(folder).into_iter().flatten();
    let mut paths: Vec<PathBuf> = read.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    paths
}

/// The loader only warns about a library that it cannot preload, and goes on with the system's malloc: then the figures
/// would not be those of the allocator they are shown for. So it is asked beforehand what it loads.
pub fn ensure_loads(allocator: &Allocator, workload: &Path) -> Result<()> {
    let Some(library) = &allocator.library else { return Ok(()) };
    let mut command = Command::new(workload);
    let output = command.env("LD_PRELOAD", library).env("LD_TRACE_LOADED_OBJECTS", "1").output()?;
    let (loaded, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let path = library.display().to_string();
    let is_there = loaded.lines().any(|line| line.trim_start().starts_with(&path));
    ensure!(is_there && said.is_empty(), "{} cannot be preloaded: {}", allocator.name, said.trim());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_a_library() {
        for (file, expected) in [("/l/libx.so.2", true), ("/l/libx.so.2.0", true), ("/l/libx.so.20", false)] {
            assert_eq!(is_version_of(Path::new(file), "libx.so.2"), expected, "{file}");
        }
        assert!(!is_version_of(Path::new("/l/liby.so.2"), "libx.so.2"));
    }

    #[test]
    fn named_peers() {
        let peer = parse_named("mine=/bin/sh").unwrap();
        assert_eq!(peer.name, "mine");
        for wrong in ["mine", "=/bin/sh", "snug=/bin/sh", "mine=/no/such/file"] {
            assert!(parse_named(wrong).is_err(), "{wrong}");
        }
    }
}
