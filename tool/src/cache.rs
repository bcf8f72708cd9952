//! What the tool carries, as files: LD_PRELOAD takes a path, and so does exec.
//!
//! Each is written once to a private folder of the user's cache. Whoever can change that file or swap its folder can run
//! code in the user's programs, so nothing found there is trusted: the folder must be the user's own, no symbolic link,
//! and closed to all others; the folders above it must not let others rename it; and a file that is there already must
//! be the user's and equal, byte for byte. A new one is written beside it and renamed, so that many may start at once,
//! and a program that has the old one mapped keeps it.

use std::env;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{bail, ensure, Context, Result};

use crate::carried::{self, Carried};

const ROOT: u32 = 0;

/// The path of the library, as a file that ld.so can preload.
pub fn library() -> Result<PathBuf> {
    unpack(&carried::LIBRARY)
}

/// The path of a carried file, which can be preloaded or run.
pub fn unpack(carried: &Carried) -> Result<PathBuf> {
    let mut reasons = Vec::new();
    for folder in folders() {
        match unpack_into(&folder, carried) {
            Ok(path) => return Ok(path),
            Err(error) => reasons.push(format!("{}: {error:#}", folder.display())),
        }
    }
    bail!("there is no place for the library ({})", reasons.join("; "))
}

/// Where it may be put, best first. The XDG specification says to ignore a path that is not absolute.
fn folders() -> Vec<PathBuf> {
    let variable = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let user = user_id();
    let in_cache = variable("XDG_CACHE_HOME").map(|path| path.join("snug"));
    let in_home = variable("HOME").map(|path| path.join(".cache/snug"));
    let last_resort = PathBuf::from(format!("/tmp/snug-{user}"));
    in_cache.into_iter().chain(in_home).chain([last_resort]).collect()
}

fn unpack_into(folder: &Path, carried: &Carried) -> Result<PathBuf> {
    ensure_preloadable(folder)?;
    ensure_not_movable(folder)?;
    make_private(folder)?;
    let path = folder.join(format!("{}-{}{}", carried.stem, carried.id, carried.suffix));
    if !is_intact(&path, carried.bytes) {
        write_whole(folder, &path, carried).context("cannot write there")?;
    }
    Ok(path)
}

/// ld.so splits LD_PRELOAD at spaces and colons, and replaces words that begin with `$`; there is no way to quote them.
fn ensure_preloadable(folder: &Path) -> Result<()> {
    let awkward = folder.as_os_str().as_bytes().iter().any(|byte| b" :$".contains(byte));
    ensure!(!awkward, "LD_PRELOAD cannot hold a path with a space, colon or dollar sign");
    Ok(())
}

/// The nearest folder that exists above `folder` must belong to this user or root, and not be open to others (but for
/// sticky ones such as /tmp). This also keeps root, when sudo leaves HOME as it was, out of the user's home.
fn ensure_not_movable(folder: &Path) -> Result<()> {
    let above = folder.ancestors().skip(1).find(|path| path.exists()).context("no folder above it")?;
    let found = fs::metadata(above)?;
    ensure!(found.is_dir(), "{} is not a folder", above.display());
    ensure!(found.uid() == user_id() || found.uid() == ROOT, "{} belongs to another user", above.display());
    let (open_to_all, sticky) = (found.mode() & 0o002 != 0, found.mode() & libc::S_ISVTX != 0);
    ensure!(!open_to_all || sticky, "{} is open to all users", above.display());
    Ok(())
}

fn make_private(folder: &Path) -> Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder).context("cannot make it")?;
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_DIRECTORY | libc::O_NOFOLLOW)
        .open(folder)
        .context("not a folder of snug's own")?;
    let found = opened.metadata()?;
    ensure!(found.uid() == user_id(), "it belongs to another user");
    if found.mode() & 0o777 != 0o700 {
        opened.set_permissions(Permissions::from_mode(0o700))?;
    }
    ensure!(!forbids_code(&opened)?, "programs there may not run (mounted noexec)");
    Ok(())
}

fn is_intact(path: &Path, expected: &[u8]) -> bool {
    let looks_right = || -> io::Result<bool> {
        let mut file = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)?;
        let found = file.metadata()?;
        let private = found.is_file() && found.uid() == user_id() && found.mode() & 0o022 == 0;
        if !private || found.len() != expected.len() as u64 {
            return Ok(false);
        }
        let mut bytes = Vec::with_capacity(expected.len());
        file.read_to_end(&mut bytes)?;
        Ok(bytes == expected)
    };
    looks_right().unwrap_or(false)
}

fn write_whole(folder: &Path, path: &Path, carried: &Carried) -> Result<()> {
    let mut file = tempfile::Builder::new().prefix(&format!(".{}-", carried.stem)).tempfile_in(folder)?;
    file.write_all(carried.bytes)?;
    file.as_file().set_permissions(Permissions::from_mode(0o500))?;
    file.persist(path)?;
    Ok(())
}

fn user_id() -> u32 {
    // SAFETY: cannot fail and touches nothing.
    unsafe { libc::geteuid() }
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
