//! What the tests share: `snug` with a cache of its own, and programs made for a test.
#![allow(dead_code)] // each test program uses a part

pub mod browser;
pub mod running;

use std::fs;
use std::io::Error;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

pub const SNUG: &str = env!("CARGO_BIN_EXE_snug");

/// A folder for one test, with a cache in it. What still works there when it goes is ended: a test that fails before it
/// ends what it started leaves nothing that goes on, and keeps the output of the tests open, for ever.
pub struct Place {
    pub dir: TempDir,
}

impl Drop for Place {
    fn drop(&mut self) {
        for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let Ok(pid) = entry.file_name().to_string_lossy().parse::<i32>() else { continue };
            let works_here = fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(self.dir.path()));
            if works_here && pid != std::process::id() as i32 {
                // SAFETY: it works in a folder that only this test knows, so the test started it.
                unsafe { libc::kill(pid, libc::SIGKILL) };
            }
        }
    }
}

impl Place {
    pub fn new() -> Place {
        let dir = TempDir::new().unwrap();
        // As a folder of the system's is: from one that is closed to others, root's programs could not go on as others.
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        Place { dir }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn cache(&self) -> PathBuf {
        self.path("cache")
    }

    /// `snug` with these arguments, unpacking into this place.
    pub fn snug<S: AsRef<std::ffi::OsStr>>(&self, args: &[S]) -> Command {
        let mut command = Command::new(SNUG);
        without_surroundings(command.args(args)).env("XDG_CACHE_HOME", self.cache());
        command.current_dir(self.dir.path()).stdin(Stdio::null());
        // Whoever starts the tests behind a shell may have it ignored, and programs inherit that.
        // SAFETY: signal() may be called between fork and exec.
        unsafe {
            command.pre_exec(|| {
                (libc::signal(libc::SIGINT, libc::SIG_DFL) != libc::SIG_ERR)
                    .then_some(())
                    .ok_or_else(Error::last_os_error)
            })
        };
        command
    }

    pub fn output<S: AsRef<std::ffi::OsStr>>(&self, args: &[S]) -> Output {
        self.snug(args).output().unwrap()
    }

    /// The libraries in the cache, temporary files included.
    pub fn cached(&self) -> Vec<PathBuf> {
        fs::read_dir(self.cache().join("snug")).unwrap().map(|entry| entry.unwrap().path()).collect()
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>, mode: u32) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, bytes).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    /// A C program, compiled with these flags.
    pub fn compile(&self, name: &str, source: &str, flags: &[&str]) -> PathBuf {
        let file = self.write(&format!("{name}.c"), source, 0o644);
        let program = self.path(name);
        let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
        let done = Command::new(compiler).arg(file).arg("-o").arg(&program).args(flags).output().unwrap();
        assert!(done.status.success(), "{}", stderr(&done));
        program
    }
}

/// Takes away what would change how programs run on snug, the variables of the build and of the tests included.
pub fn without_surroundings(command: &mut Command) -> &mut Command {
    let own = std::env::vars_os().map(|(name, _)| name).filter(|name| name.as_bytes().starts_with(b"SNUG_"));
    own.fold(command.env_remove("LD_PRELOAD").env_remove("COLUMNS"), |command, name| command.env_remove(name))
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// It ended well and said nothing on stderr.
#[track_caller]
pub fn assert_clean(output: &Output) {
    assert_eq!((output.status.code(), stderr(output).as_str()), (Some(0), ""));
}

/// It ended with this status and one line from snug, which holds all these parts.
#[track_caller]
pub fn assert_refused(output: &Output, status: i32, parts: &[&str]) {
    let said = stderr(output);
    assert_eq!(output.status.code(), Some(status), "{said}");
    assert!(said.starts_with("snug: ") && said.lines().count() == 1, "{said}");
    for part in parts {
        assert!(said.contains(part), "{part} is not in {said}");
    }
}

pub fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
