//! The programs that run on snug, as far as they can be seen.

use std::fs;
use std::path::Path;

use super::{thread_with_memory, Program};
use crate::output::shown;
use crate::proc;

/// With the numbers of their processes, in their order. What must not be looked into, or is of another build of snug, is
/// not among them.
pub fn programs() -> Vec<(i32, Program)> {
    let own = std::process::id() as i32;
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut processes: Vec<i32> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    processes.retain(|&process| process != own);
    processes.sort_unstable();
    processes.into_iter().filter_map(|process| Some((process, Program::find(process).ok()?))).collect()
}

/// The name of the program that a process runs: the kernel's, which of a script is the script's, and is cut off at 15
/// letters; then the whole one of the file, if it is that. As it may be shown: a program chooses its name.
pub fn name_of(process: i32) -> Option<String> {
    let short = proc::text(format!("/proc/{process}/comm")).ok()?.trim_end_matches('\n').to_string();
    let file = fs::read_link(format!("/proc/{}/exe", thread_with_memory(process))).ok();
    let whole = file.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    Some(shown(&whole.filter(|whole| short.len() == 15 && whole.starts_with(&short)).unwrap_or(short)))
}

/// Which process started it.
pub fn parent_of(process: i32) -> Option<i32> {
    let status = proc::text(format!("/proc/{process}/status")).ok()?;
    proc::field(&status, "PPid:")?.parse().ok()
}
