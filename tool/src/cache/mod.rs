//! What the tool carries, as files: LD_PRELOAD takes a path, and so does exec.
//!
//! Each is written once to a folder that is readable by all and that nobody else can change (place). Readable by all,
//! since a program may give up root, or start one that does (setpriv, gosu, runuser), and still loads the library by its
//! path. Nothing that is found there is trusted: a file that is there already must be the user's, closed to others'
//! writing, and have the checksum of the one that is carried. A new one is written beside it and renamed, so that many
//! may start at once, and a program that has the old one mapped keeps it. What other versions of the tool left behind
//! goes when nobody needs it any more (old).

mod old;
mod place;

use std::fs::{OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{bail, Context, Result};

use crate::carried::{self, Carried};
use place::{user_id, Reach};

/// Anybody may read and run it, and nobody may write.
const FILE_MODE: u32 = 0o555;

/// The path of the library, as a file that ld.so can preload.
pub fn library() -> Result<PathBuf> {
    unpack(&carried::LIBRARY)
}

/// The path of a carried file, which can be preloaded or run.
pub fn unpack(carried: &Carried) -> Result<PathBuf> {
    let mut reasons = Vec::new();
    let folders = place::folders();
    for (&reach, folder) in place::reaches().iter().flat_map(|reach| folders.iter().map(move |folder| (reach, folder)))
    {
        match unpack_into(folder, reach, carried) {
            Ok(path) => {
                old::remove(&folders, &path);
                return Ok(path);
            }
            Err(error) => reasons.push(format!("{}: {}", folder.display(), crate::output::told(&error))),
        }
    }
    bail!("there is no place for the library ({})", reasons.join("; "))
}

fn unpack_into(folder: &Path, reach: Reach, carried: &Carried) -> Result<PathBuf> {
    place::prepare(folder, reach)?;
    let path = folder.join(format!("{}-{}{}", carried.stem, carried.id, carried.suffix));
    if !is_intact(&path, carried) {
        write_whole(folder, &path, carried).context("cannot write there")?;
    }
    Ok(path)
}

fn is_intact(path: &Path, carried: &Carried) -> bool {
    let looks_right = || -> io::Result<bool> {
        let mut file = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)?;
        let found = file.metadata()?;
        let ours = found.is_file() && found.uid() == user_id() && found.mode() & 0o777 == FILE_MODE;
        if !ours {
            return Ok(false);
        }
        let mut bytes = Vec::with_capacity(found.len() as usize);
        file.read_to_end(&mut bytes)?;
        old::note_use(&file, &found);
        Ok(carried.is(&bytes))
    };
    looks_right().unwrap_or(false)
}

fn write_whole(folder: &Path, path: &Path, carried: &Carried) -> Result<()> {
    let mut file = tempfile::Builder::new().prefix(&format!(".{}-", carried.stem)).tempfile_in(folder)?;
    file.write_all(&carried.bytes()?)?;
    file.as_file().set_permissions(Permissions::from_mode(FILE_MODE))?;
    file.persist(path)?;
    Ok(())
}
