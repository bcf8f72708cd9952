//! Files without a name, for what is written and read again by this process and its children: they go when it ends, however
//! it ends.

use std::env;
use std::fs::File;
use std::io;
use std::os::fd::FromRawFd;

use anyhow::{Context, Result};

/// For a few kilobytes: in memory, since a system may have no folder that can be written to.
pub fn small() -> Result<File> {
    in_memory().or_else(|_| large())
}

/// For what may become large: in the folder for temporary files.
pub fn large() -> Result<File> {
    tempfile::tempfile()
        .with_context(|| format!("no temporary file can be made in {} (TMPDIR)", env::temp_dir().display()))
}

/// For what a child writes, of which there is little as a rule: where there is no such folder, in memory.
pub fn for_output() -> Result<File> {
    large().or_else(|error| in_memory().map_err(|_| error))
}

fn in_memory() -> io::Result<File> {
    // SAFETY: the name is a C string, and the descriptor that comes back is nobody else's.
    unsafe {
        match libc::memfd_create(c"snug scratch".as_ptr(), libc::MFD_CLOEXEC) {
            -1 => Err(io::Error::last_os_error()),
            descriptor => Ok(File::from_raw_fd(descriptor)),
        }
    }
}
