//! Which file a command's name means, found as execvp finds it.

use std::env;
use std::ffi::{CString, OsStr};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::refusal::Refusal;

/// Where the C library looks when PATH is not set.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// A name with a slash is a path; any other is looked for in the folders of PATH. A file that may not be run is passed
/// over, and remembered in case nothing else is found. Unlike execvp, but like shells, this does not hold a folder that
/// may not be entered against a name that is nowhere.
pub fn find(name: &OsStr) -> Result<PathBuf, Refusal> {
    let shown = name.to_string_lossy();
    if name.as_bytes().contains(&b'/') {
        let path = PathBuf::from(name);
        return match runnable(&path) {
            Ok(()) => Ok(path),
            Err(refusal) => Err(Refusal { message: format!("{shown} {}", refusal.message), ..refusal }),
        };
    }
    let folders = env::var_os("PATH").unwrap_or_else(|| DEFAULT_PATH.into());
    let mut passed_over = None;
    for folder in env::split_paths(&folders).filter(|_| !name.is_empty()) {
        // An empty entry is the current folder; "./" keeps exec from searching again.
        let folder = if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder };
        let path = folder.join(name);
        match runnable(&path) {
            Ok(()) => return Ok(path),
            Err(refusal) if path.exists() => {
                let message = format!("{} {}", path.display(), refusal.message);
                passed_over.get_or_insert(Refusal { message, ..refusal });
            }
            Err(_) => {}
        }
    }
    let here = if Path::new(name).is_file() {
        format!(" in PATH; the file in this folder is ./{shown}")
    } else {
        String::new()
    };
    Err(passed_over.unwrap_or_else(|| Refusal::not_found(format!("{shown} was not found{here}"))))
}

/// Whether `path` is a file that this process may run. The refusal's message is what follows the file's name.
pub fn runnable(path: &Path) -> Result<(), Refusal> {
    let found = fs::metadata(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Refusal::not_found("was not found".into()),
        _ => Refusal::cannot_run(format!("cannot be reached: {error}")),
    })?;
    if found.is_dir() {
        return Err(Refusal::cannot_run("is a folder".into()));
    }
    if !found.is_file() || !may_execute(path) {
        return Err(Refusal::cannot_run("may not be executed".into()));
    }
    Ok(())
}

fn may_execute(path: &Path) -> bool {
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else { return false };
    // SAFETY: `path` is a valid C string for the whole call, which only asks.
    unsafe { libc::faccessat(libc::AT_FDCWD, path.as_ptr(), libc::X_OK, libc::AT_EACCESS) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::refusal::{CANNOT_RUN, NOT_FOUND};

    fn status_of(name: &str) -> u8 {
        find(OsStr::new(name)).expect_err(name).status
    }

    #[test]
    fn names_and_paths() {
        assert!(find(OsStr::new("sh")).unwrap().ends_with("sh"));
        assert_eq!(find(OsStr::new("/bin/sh")).unwrap(), Path::new("/bin/sh"));
        for name in ["", "no-such-program", "/no/such/program", "/bin/sh/x", "./sh"] {
            assert_eq!(status_of(name), NOT_FOUND, "{name}");
        }
        for name in ["/etc", "/etc/passwd", "/dev/null"] {
            assert_eq!(status_of(name), CANNOT_RUN, "{name}");
        }
    }
}
