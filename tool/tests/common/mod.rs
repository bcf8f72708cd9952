//! What the tests share: `snug` with a cache of its own, and programs made for a test.
#![allow(dead_code)] // each of the two test programs uses a part

pub mod browser;
pub mod running;

use std::fs;
use std::io::{Error, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use libtest_mimic::{Completion, Failed};
use tempfile::TempDir;

/// A test that may find out while it runs that it must be skipped, with a place of its own.
pub type Test = fn(&Place) -> Result<Completion, Failed>;

/// Such tests of one file, by their names.
pub type Tests = Vec<(&'static str, Test)>;

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

    /// What may be executed is written by another process: as long as this one has a file open for writing, so has each
    /// process that another test begins, until it runs its program; and what somebody may write to, nobody can run.
    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>, mode: u32) -> PathBuf {
        let path = self.path(name);
        if mode & 0o111 == 0 {
            fs::write(&path, bytes).unwrap();
        } else {
            let mut cat = Command::new("sh");
            let mut cat = cat.args(["-c", "cat >\"$0\"", text(&path)]).stdin(Stdio::piped()).spawn().unwrap();
            cat.stdin.take().unwrap().write_all(bytes.as_ref()).unwrap();
            assert!(cat.wait().unwrap().success());
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    /// A copy of a program, made by another process for the same reason.
    pub fn copy(&self, program: impl AsRef<Path>, name: &str) -> PathBuf {
        let path = self.path(name);
        assert!(Command::new("cp").arg(program.as_ref()).arg(&path).status().unwrap().success());
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

/// Whether there is time for more than the same thing once: `./dev test --full`.
pub fn is_full() -> bool {
    std::env::var("SNUG_TEST_FULL").as_deref() == Ok("1")
}

/// Between tests that look at all programs on snug and those whose programs lie to whoever looks.
static LIARS: RwLock<()> = RwLock::new(());

/// As long as what is returned is there, no test has a program that lies.
pub fn nobody_lies() -> RwLockReadGuard<'static, ()> {
    LIARS.read().unwrap_or_else(PoisonError::into_inner)
}

/// As long as what is returned is there, no test looks at all programs.
pub fn nobody_looks_at_all() -> RwLockWriteGuard<'static, ()> {
    LIARS.write().unwrap_or_else(PoisonError::into_inner)
}

/// Takes away what would change how programs run on snug, the variables of the build and of the tests included. For the
/// path for libraries that cargo sets the loader makes blocks in each program.
pub fn without_surroundings(command: &mut Command) -> &mut Command {
    let own = std::env::vars_os().map(|(name, _)| name).filter(|name| name.as_bytes().starts_with(b"SNUG_"));
    own.chain(["LD_PRELOAD", "LD_LIBRARY_PATH", "COLUMNS"].map(Into::into))
        .fold(command, |command, name| command.env_remove(name))
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
