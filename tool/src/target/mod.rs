//! May this program run on snug? Where it cannot, the loader would ignore LD_PRELOAD without a word, or the kernel
//! would refuse to start it; `check` says why beforehand.
//!
//!     find      the file that execvp would run
//!     script    the interpreter behind a `#!` line
//!     elf       the facts in an ELF file's headers
//!     privilege whether starting it changes user, group or capabilities

mod elf;
mod find;
mod privilege;
mod script;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{bail, Result};

use crate::carried;
use crate::refusal::Refusal;

pub use find::find;

/// The kernel follows this many `#!` lines before it gives up.
const SCRIPT_DEPTH: usize = 5;

/// Fails with a `Refusal` if `program`, or the interpreter that stands behind it, cannot run on snug.
pub fn check(program: &Path) -> Result<()> {
    let mut subject = Subject { file: program.to_path_buf(), script: None };
    for _ in 0..SCRIPT_DEPTH {
        let Some(start) = first_bytes(&subject.file) else {
            return check_privilege(&subject); // may be run but not read: the loader has the last word
        };
        if start.starts_with(b"\x7fELF") {
            check_elf(&subject)?;
            return check_privilege(&subject);
        }
        match script::interpreter(&start) {
            // Neither a program nor a script: execvp hands it to /bin/sh, or the kernel knows its format.
            None => return Ok(()),
            Some(interpreter) => subject = subject.interpreted_by(interpreter)?,
        }
    }
    Ok(()) // the kernel will say that this is too deep
}

/// Bytes: what tells the kind of an ELF file, its headers, stands in the first of them.
const ELF_START: u64 = 4096;

/// The file that is looked at, and the script that led to it.
struct Subject {
    file: PathBuf,
    script: Option<PathBuf>,
}

impl Subject {
    fn interpreted_by(self, interpreter: PathBuf) -> Result<Subject> {
        let script = self.script.unwrap_or(self.file);
        let subject = Subject { file: interpreter, script: Some(script) };
        match find::runnable(&subject.file) {
            Ok(()) => Ok(subject),
            Err(refusal) => bail!(subject.refuse(refusal.status, &refusal.message)),
        }
    }

    fn refuse(&self, status: u8, why: &str) -> Refusal {
        let file = self.file.display();
        let message = match &self.script {
            None => format!("{file} {why}"),
            Some(script) => format!("{file}, the interpreter of {}, {why}", script.display()),
        };
        Refusal { status, message }
    }

    fn cannot_run(&self, why: &str) -> anyhow::Error {
        self.refuse(crate::refusal::CANNOT_RUN, why).into()
    }
}

/// As much as the kernel looks at to tell what kind of file this is. None if it may not be read.
fn first_bytes(file: &Path) -> Option<Vec<u8>> {
    let mut start = Vec::new();
    File::open(file).ok()?.take(script::LINE_LIMIT).read_to_end(&mut start).ok()?;
    Some(start)
}

fn check_elf(subject: &Subject) -> Result<()> {
    let mut start = Vec::new();
    carried::LIBRARY.read()?.take(ELF_START).read_to_end(&mut start)?;
    let library = elf::Facts::of_bytes(&start)?;
    let program = match elf::Facts::of_file(&subject.file) {
        Ok(facts) => facts,
        Err(error) => bail!(subject.cannot_run(&format!("is a damaged program file: {error:#}"))),
    };
    if program.kind() != library.kind() {
        let (program, library) = (program.kind(), library.kind());
        bail!(subject.cannot_run(&format!("is a program for {program}; this snug is for {library}")));
    }
    let Some(loader) = program.interpreter else {
        // The loader itself may be called as a program, and then honours LD_PRELOAD.
        if elf::is_glibc_loader(&subject.file) {
            return Ok(());
        }
        bail!(subject.cannot_run("is statically linked: its malloc is part of it, and none can be preloaded"));
    };
    if elf::is_musl_loader(&loader) {
        bail!(subject.cannot_run("is linked with musl; this snug is for programs linked with glibc"));
    }
    if !loader.exists() {
        let why = format!("needs the loader {}, which is not on this system", loader.display());
        bail!(subject.refuse(crate::refusal::NOT_FOUND, &why));
    }
    Ok(())
}

fn check_privilege(subject: &Subject) -> Result<()> {
    match privilege::gained_by(&subject.file) {
        None => Ok(()),
        Some(gain) => bail!(subject.cannot_run(&format!("{gain}: the system lets nothing be preloaded into it"))),
    }
}
