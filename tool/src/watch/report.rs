//! What `snug run --stats` leaves: the tree, and the details of the processes that are wanted.

use std::ffi::{CStr, OsString};
use std::fmt::Write as _;
use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};

use anyhow::{ensure, Result};

use super::{tree, Children, Process, Watched};
use crate::live::Format;
use crate::output;
use crate::whole::{ensure_writable, Whole};

/// Stands for the process id in the name of a file.
const PROCESS: &str = "%p";

/// Where the statistics go. That it can be written is found out before the command runs.
pub enum Place {
    Stderr,
    Stdout,
    File(Whole, Format),
    /// A file for each process, whose name has its id.
    Files(PathBuf, Format),
}

impl Place {
    pub fn of_file(path: &Path, format: Format, children: &Children) -> Result<Place> {
        if path.to_string_lossy().contains(PROCESS) {
            // The names are not known yet; what is tried is one of their kind, which is not there.
            ensure_writable(&named(path, std::process::id() as i32))?;
            return Ok(Place::Files(path.to_path_buf(), format));
        }
        let one_only = format == Format::OpenMetrics && !matches!(children, Children::Highest | Children::None);
        ensure!(!one_only, "metrics of several processes need a file each: put {PROCESS} into the name");
        Ok(Place::File(Whole::new(path)?, format))
    }
}

/// As text: the tree, what could not be seen, and the details.
pub fn text(watched: &mut Watched, children: &Children, detail: bool) -> Result<Vec<u8>> {
    note_reasons(watched);
    written(watched, children, detail)
}

/// Why each was looked at for the last time.
fn note_reasons(watched: &mut Watched) {
    for process in &mut watched.processes {
        let reason = reason_of(process);
        process.values.iter_mut().for_each(|values| values.because(reason));
    }
}

/// Writes them. `detail`: all numbers, also in text.
pub fn write(watched: &mut Watched, children: &Children, place: Place, detail: bool) -> Result<()> {
    note_reasons(watched);
    match place {
        Place::Stderr => std::io::stderr().write_all(&written(watched, children, detail)?)?,
        Place::Stdout => output::print(&written(watched, children, detail)?)?,
        Place::File(file, Format::Text) => file.write(&written(watched, children, detail)?)?,
        Place::File(file, format) => {
            let mut all = Vec::new();
            for process in watched.chosen(children) {
                let one = details(process, format, detail)?;
                // Of a second process no header follows.
                let skipped = if format == Format::Csv && !all.is_empty() { end_of_line(&one) } else { 0 };
                all.extend_from_slice(&one[skipped..]);
            }
            file.write(&all)?;
        }
        Place::Files(path, format) => {
            let write = |process: &Process| {
                let bytes = details(process, format, detail)?;
                Whole::new(&named(&path, process.pid))?.write(&bytes)
            };
            output::last_error(watched.chosen(&of_files(children)).into_iter().map(write))?;
        }
    }
    Ok(())
}

/// The name for one process; its bytes stay as they are, also where they are no UTF-8.
fn named(path: &Path, pid: i32) -> PathBuf {
    let (mut rest, mut name) = (path.as_os_str().as_bytes(), Vec::new());
    while let Some(at) = rest.windows(PROCESS.len()).position(|part| part == PROCESS.as_bytes()) {
        name.extend_from_slice(&rest[..at]);
        name.extend_from_slice(pid.to_string().as_bytes());
        rest = &rest[at + PROCESS.len()..];
    }
    name.extend_from_slice(rest);
    OsString::from_vec(name).into()
}

/// Files for each process are there to have all of them.
fn of_files(children: &Children) -> Children {
    match children {
        Children::Highest => Children::All,
        other => other.clone(),
    }
}

/// Whether the details of all will be wanted, which must be known before they end.
pub fn widened(children: Children, place: Option<&Place>) -> Children {
    match place {
        Some(Place::Files(..)) => of_files(&children),
        _ => children,
    }
}

fn reason_of(process: &Process) -> &'static CStr {
    match process.status {
        _ if !process.is_seen_to_the_end() => c"interval",
        Some(status) => status.signal().map_or(c"exit", name_of),
        None => c"exit",
    }
}

/// Of the signals that end programs most; the library, too, has the name of the signal as the reason.
fn name_of(signal: i32) -> &'static CStr {
    match signal {
        libc::SIGKILL => c"SIGKILL",
        libc::SIGTERM => c"SIGTERM",
        libc::SIGINT => c"SIGINT",
        libc::SIGABRT => c"SIGABRT",
        libc::SIGSEGV => c"SIGSEGV",
        libc::SIGBUS => c"SIGBUS",
        libc::SIGHUP => c"SIGHUP",
        libc::SIGPIPE => c"SIGPIPE",
        libc::SIGQUIT => c"SIGQUIT",
        _ => c"signal",
    }
}

fn details(process: &Process, format: Format, detail: bool) -> Result<Vec<u8>> {
    process.values.as_ref().map_or(Ok(Vec::new()), |values| values.written(format, detail))
}

fn end_of_line(bytes: &[u8]) -> usize {
    bytes.iter().position(|&byte| byte == b'\n').map_or(0, |end| end + 1)
}

fn written(watched: &Watched, children: &Children, detail: bool) -> Result<Vec<u8>> {
    let chosen = watched.chosen(children);
    let mut head = headline(watched, children, &chosen);
    let marked: Vec<i32> = if watched.processes.len() > 1 { pids(&chosen) } else { Vec::new() };
    head.push_str(&tree::lines(&watched.processes, &marked, matches!(children, Children::All)));
    for note in &watched.notes {
        let _ = writeln!(head, "snug: {note}");
    }
    for process in &watched.processes {
        if let Some(why) = &process.starved {
            let _ = writeln!(head, "snug: {} ({}) {why}", process.name, process.pid);
        }
    }
    for process in watched.processes.iter().filter(|process| process.is_unknown()) {
        let _ = writeln!(
            head,
            "snug: the memory of {} ({}) was gone before it could be looked at; whether it ran on snug is not known",
            process.name, process.pid
        );
    }
    let lost = |process: &&&Process| process.ended.is_some() && !process.is_seen_to_the_end();
    for process in chosen.iter().filter(lost) {
        let missing = process.ended.map_or(0.0, |ended| ended.saturating_sub(process.seen).as_secs_f64());
        let _ = writeln!(
            head,
            "snug: the end of {} ({}) was not seen; this is how it was {missing:.2} s before",
            process.name, process.pid
        );
    }
    let mut all = head.into_bytes();
    for process in chosen {
        if watched.processes.len() > 1 {
            writeln!(all, "\n{} ({}):", process.name, process.pid)?;
        }
        if let Some(values) = &process.values {
            all.extend(values.told(None, detail)?);
        }
    }
    Ok(all)
}

fn pids(chosen: &[&Process]) -> Vec<i32> {
    chosen.iter().map(|process| process.pid).collect()
}

fn headline(watched: &Watched, children: &Children, chosen: &[&Process]) -> String {
    let count = watched.processes.len();
    let processes = if count == 1 { "1 process".to_string() } else { format!("{count} processes") };
    match (chosen, children) {
        ([], Children::Named(name)) => format!("snug: {processes}; none on snug is called {name}\n"),
        ([], _) if watched.processes.iter().any(Process::is_unknown) => {
            format!("snug: {processes}; none was seen to run on snug\n")
        }
        ([], _) => format!("snug: {processes}; none ran on snug\n"),
        _ if count == 1 => format!("snug: {processes}\n"),
        ([one], Children::Highest) => {
            format!("snug: {processes}; {} ({}) has the highest peak, its details follow (*)\n", one.name, one.pid)
        }
        _ => format!("snug: {processes}; the details of {} follow (*)\n", chosen.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_the_process_keep_their_bytes() {
        let name = |bytes: &[u8]| PathBuf::from(OsString::from_vec(bytes.to_vec()));
        assert_eq!(named(&name(b"/a\xff/x.%p.%p%"), 77), name(b"/a\xff/x.77.77%"));
        assert_eq!(named(&name(b"x"), 77), name(b"x"));
    }
}
