//! Files of /proc as text. Names and paths in them are whatever bytes a program chose: those are no reason not to read
//! the rest.

use std::fs;
use std::io;
use std::path::Path;

/// What is no text in it is replaced.
pub fn text(path: impl AsRef<Path>) -> io::Result<String> {
    Ok(String::from_utf8_lossy(&fs::read(path)?).into_owned())
}

/// Of a text of lines that begin with names, as /proc/PID/status is: what stands behind this one.
pub fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn names_of_any_bytes() {
        let look = || {
            // SAFETY: the name ends in 0.
            unsafe { libc::prctl(libc::PR_SET_NAME, c"sl\xe9ep".as_ptr()) };
            let status = text("/proc/thread-self/status").unwrap();
            (field(&status, "Name:").map(str::to_string), field(&status, "Tgid:").map(str::to_string))
        };
        let (name, process) = std::thread::spawn(look).join().unwrap();
        assert_eq!((name, process), (Some("sl\u{fffd}ep".into()), Some(std::process::id().to_string())));
        assert!(text(std::ffi::OsStr::from_bytes(b"/proc/\xe9")).is_err());
    }
}
