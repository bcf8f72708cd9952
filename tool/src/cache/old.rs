//! Copies that other versions of the tool left: each is as large as the library, and nothing else removes them.
//!
//! A program that was started on one may start others by its path as long as it lives. So a copy goes only when nobody
//! has used it for a day (its time of change is moved on by each use) and no process that can be seen has it mapped.
//! What a writer left unfinished goes after a day, too.

use std::collections::HashSet;
use std::fs::{self, File, FileTimes, Metadata};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::place::{self, user_id};
use crate::carried;
use crate::proc;

const DAY: Duration = Duration::from_secs(24 * 3600);

/// The time of change is moved on no more often than this: most runs leave the file as it is.
const NOTED_EVERY: Duration = Duration::from_secs(3600);

/// `file` has just been used.
pub fn note_use(file: &File, found: &Metadata) {
    let now = SystemTime::now();
    if age(found, now).is_some_and(|age| age > NOTED_EVERY) {
        let _ = file.set_times(FileTimes::new().set_modified(now)); // then it may go a day early, and is written again
    }
}

/// Removes what nobody needs from the folders that are the user's own; `used` stays. What cannot be removed stays.
pub fn remove(folders: &[PathBuf], used: &Path) {
    let old: Vec<(File, PathBuf)> = folders.iter().flat_map(|folder| find(folder, used)).collect();
    if old.is_empty() {
        return;
    }
    let mapped = mapped_files();
    for (folder, name) in old {
        // By the folder's descriptor: it stays the one that was looked at.
        let path = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd())).join(name);
        let is_mapped = fs::symlink_metadata(&path).is_ok_and(|found| mapped.contains(&found.ino()));
        if !is_mapped {
            let _ = fs::remove_file(path);
        }
    }
}

/// Names of old copies in a folder.
fn find(folder: &Path, used: &Path) -> Vec<(File, PathBuf)> {
    let Ok(opened) = place::open_own(folder) else { return Vec::new() };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_old = |entry: &fs::DirEntry| {
        entry.path() != used
            && is_copy(entry.file_name().as_bytes())
            && entry.metadata().is_ok_and(|found| {
                found.is_file()
                    && found.uid() == user_id()
                    && age(&found, SystemTime::now()).is_some_and(|age| age > DAY)
            })
    };
    let names = entries.filter(is_old).filter_map(|entry| Some((opened.try_clone().ok()?, entry.file_name().into())));
    names.collect()
}

fn age(found: &Metadata, now: SystemTime) -> Option<Duration> {
    now.duration_since(found.modified().ok()?).ok()
}

/// `libsnug-ID.so` and the others, and `.libsnug-XXXXXX` that was not finished.
fn is_copy(name: &[u8]) -> bool {
    let name = name.strip_prefix(b".").unwrap_or(name);
    [carried::LIBRARY, carried::RECORDER, carried::REPLAYER]
        .iter()
        .any(|carried| name.strip_prefix(carried.stem.as_bytes()).is_some_and(|rest| rest.starts_with(b"-")))
}

/// The inodes of all files of this name that some process has mapped, as far as they can be seen. An inode of another
/// file system that happens to have the number only lets a copy stay.
fn mapped_files() -> HashSet<u64> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut inodes = HashSet::new();
    for process in processes {
        let Ok(maps) = proc::text(process.path().join("maps")) else { continue };
        let lines = maps.lines().filter(|line| line.contains("snug"));
        inodes.extend(lines.filter_map(|line| line.split_ascii_whitespace().nth(4)?.parse::<u64>().ok()));
    }
    inodes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_copies() {
        for name in ["libsnug-0123.so", ".libsnug-Ab3x", "snugreplay-12", "libsnugrecord-12.so"] {
            assert!(is_copy(name.as_bytes()), "{name}");
        }
        for name in ["libsnug.so", "notes-libsnug-1.so", "snug-1", ".."] {
            assert!(!is_copy(name.as_bytes()), "{name}");
        }
    }
}
