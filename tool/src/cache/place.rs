//! Where the carried files are put.
//!
//! Whoever can change such a file, or swap one of the folders that lead to it, can run code in the user's programs. So
//! the folder must be the user's own, no symbolic link, and closed to others' writing; and each folder above it must
//! belong to the user or root and not let anybody else rename what is in it. Root's must be reachable by all, too:
//! programs that root starts may go on as other users. Other users' programs cannot become anybody else, and a home that
//! is closed to others serves them.

use std::env;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{ensure, Context, Result};

use crate::proc;

const ROOT: u32 = 0;

/// Everybody may enter and read, the owner alone may change it.
const FOLDER_MODE: u32 = 0o755;

/// Where root's programs find the library when root's home is closed to others, as it nearly always is.
const FOR_ALL: &str = "/var/cache/snug";

pub fn user_id() -> u32 {
    // SAFETY: cannot fail and touches nothing.
    unsafe { libc::geteuid() }
}

/// Where they may be put, best first. The XDG specification says to ignore a path that is not absolute.
pub fn folders() -> Vec<PathBuf> {
    let variable = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let user = user_id();
    let in_cache = variable("XDG_CACHE_HOME").map(|path| path.join("snug"));
    let in_home = variable("HOME").map(|path| path.join(".cache/snug"));
    let for_all = (user == ROOT).then(|| PathBuf::from(FOR_ALL));
    let last_resort = PathBuf::from(format!("/tmp/snug-{user}"));
    in_cache.into_iter().chain(in_home).chain(for_all).chain([last_resort]).collect()
}

/// Who must be able to reach a folder. Where root has none that all can reach, one that root can is better than none.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    All,
    Own,
}

/// What is asked of a folder, first choice first.
pub fn reaches() -> &'static [Reach] {
    match user_id() {
        ROOT => &[Reach::All, Reach::Own],
        _ => &[Reach::Own],
    }
}

/// Makes the folder if need be. An error says why it will not do.
pub fn prepare(folder: &Path, reach: Reach) -> Result<()> {
    ensure_preloadable(folder)?;
    let above = folder.ancestors().skip(1).find(|path| path.exists()).context("no folder above it")?;
    ensure_safe(above, reach)?;
    DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(folder).context("cannot make it")?;
    let opened = open_own(folder)?;
    if opened.metadata()?.mode() & 0o777 != FOLDER_MODE {
        opened.set_permissions(Permissions::from_mode(FOLDER_MODE))?;
    }
    ensure!(!forbids_code(&opened)?, "programs there may not run (mounted noexec)");
    ensure_safe(folder.parent().context("no folder above it")?, reach)
}

/// The folder itself, no link to one, and the user's own.
pub fn open_own(folder: &Path) -> Result<File> {
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_DIRECTORY | libc::O_NOFOLLOW)
        .open(folder)
        .context("not a folder of snug's own")?;
    ensure!(opened.metadata()?.uid() == user_id(), "it belongs to another user");
    Ok(opened)
}

/// ld.so splits LD_PRELOAD at spaces and colons, and replaces words that begin with `$`; there is no way to quote them.
fn ensure_preloadable(folder: &Path) -> Result<()> {
    let awkward = folder.as_os_str().as_bytes().iter().any(|byte| b" :$".contains(byte));
    ensure!(!awkward, "LD_PRELOAD cannot hold a path with a space, colon or dollar sign");
    Ok(())
}

/// Nobody else can rename `folder` or what is above it, both as it is written and where links lead. This also keeps
/// root, when sudo leaves HOME as it was, out of the user's home.
fn ensure_safe(folder: &Path, reach: Reach) -> Result<()> {
    let outside = user_outside();
    let real = fs::canonicalize(folder).with_context(|| format!("{} cannot be reached", folder.display()))?;
    for above in real.ancestors().chain(folder.ancestors()) {
        let found = fs::metadata(above).with_context(|| format!("{} cannot be reached", above.display()))?;
        let place = above.display();
        ensure!(found.is_dir(), "{place} is not a folder");
        let owner = found.uid();
        let is_trusted = owner == user_id() || owner == ROOT || Some(owner) == outside;
        ensure!(is_trusted, "{place} belongs to another user");
        let sticky = found.mode() & libc::S_ISVTX != 0;
        ensure!(found.mode() & 0o002 == 0 || sticky, "{place} is open to all users");
        ensure!(!is_open_to_group(&found) || sticky, "{place} is open to its group");
        let reached = reach == Reach::Own || found.mode() & 0o001 != 0;
        ensure!(reached, "{place} is closed to other users, as whom programs of root's may go on");
    }
    Ok(())
}

/// In a user namespace the folders of the system, and root's, seem to belong to a user of this number, whom nobody
/// inside can be. None if there can be such a user.
fn user_outside() -> Option<u32> {
    let read = |path| proc::text(path).ok();
    let overflow: u32 = read("/proc/sys/kernel/overflowuid")?.trim().parse().ok()?;
    (!maps(&read("/proc/self/uid_map")?, overflow)).then_some(overflow)
}

/// Whether a table of users, lines of `INSIDE OUTSIDE COUNT`, has one.
fn maps(table: &str, user: u32) -> bool {
    table.lines().any(|line| {
        let numbers: Vec<u64> = line.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect();
        matches!(numbers[..], [inside, _, count] if (inside..inside + count).contains(&u64::from(user)))
    })
}

/// A user's private group has the user's number, and nobody else in it.
fn is_open_to_group(found: &fs::Metadata) -> bool {
    found.mode() & 0o020 != 0 && found.gid() != ROOT && found.gid() != found.uid()
}

fn forbids_code(folder: &File) -> io::Result<bool> {
    // SAFETY: fstatvfs writes only to `found`, which is large enough; the descriptor is open.
    unsafe {
        let mut found: libc::statvfs = std::mem::zeroed();
        match libc::fstatvfs(folder.as_raw_fd(), &mut found) {
            0 => Ok(found.f_flag & libc::ST_NOEXEC != 0),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_of_a_namespace() {
        assert!(maps("         0          0 4294967295\n", 65534));
        assert!(!maps("0 1000 1\n", 65534) && maps("0 1000 1\n1 100000 65536\n", 65534));
    }
}
