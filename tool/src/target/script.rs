//! Scripts: which program a `#!` line leads to.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::find;

/// The kernel reads no more of a file than this to find the line.
pub const LINE_LIMIT: u64 = 256;

/// The program that runs a script, from the script's first bytes; None if they are no `#!` line. `#!/usr/bin/env NAME`
/// is followed to NAME where that can be found; if not, env will say so.
pub fn interpreter(start: &[u8]) -> Option<PathBuf> {
    let line = start.strip_prefix(b"#!")?.split(|&byte| byte == b'\n').next()?;
    let words = || line.split(|byte| matches!(byte, b' ' | b'\t' | b'\0')).filter(|word| !word.is_empty());
    let program = PathBuf::from(OsStr::from_bytes(words().next()?));
    if program.file_name() != Some(OsStr::new("env")) {
        return Some(program);
    }
    let is_name = |word: &&[u8]| !word.starts_with(b"-") && !word.contains(&b'=');
    let named = words().skip(1).find(is_name).and_then(|name| find(OsStr::from_bytes(name)).ok());
    Some(named.unwrap_or(program))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(start: &[u8]) -> Option<String> {
        interpreter(start).map(|path| path.to_str().unwrap().to_string())
    }

    #[test]
    fn lines() {
        assert_eq!(text(b"#!/bin/sh\necho"), Some("/bin/sh".into()));
        assert_eq!(text(b"#! \t/a/b -x y"), Some("/a/b".into()));
        assert_eq!(text(b"echo #!/bin/sh\n"), None);
        assert_eq!(text(b"#!\n/bin/sh"), None);
        assert_eq!(text(b""), None);
    }

    #[test]
    fn env_is_followed() {
        let shell = find(OsStr::new("sh")).unwrap();
        assert_eq!(interpreter(b"#!/usr/bin/env sh\n"), Some(shell.clone()));
        assert_eq!(interpreter(b"#!/usr/bin/env -S A=1 sh -x\n"), Some(shell));
        assert_eq!(text(b"#!/usr/bin/env no-such-program\n"), Some("/usr/bin/env".into()));
    }
}
