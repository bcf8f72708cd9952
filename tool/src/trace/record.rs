//! `snug record`: runs a command with the recorder preloaded, and writes what it says into a file.
//!
//! The tool and the program share memory (see region.rs); the tool empties it, compresses block by block and writes
//! them in the order in which they come. It needs the same memory however long the program runs.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::BufWriter;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitCode, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::{ensure, Context, Result};
use clap::Args;

use super::format::{self, Header, Kind, Writer};
use super::reader::Trace;
use super::region::{self, Region, Slot, SLOT_SIZE};
use crate::cache;
use crate::carried;
use crate::launch;
use crate::output::{self, counted};
use crate::proc;
use crate::signals::{self, HandedOn};
use crate::whole::ensure_is_a_name;

/// How long the tool waits for a slot before it looks at the program. The recorder knows this: see slots.c.
const ROUND: Duration = Duration::from_millis(50);
/// Slots that wait: with so many of the 64 that may, the program is faster than the tool.
const BEHIND: u32 = 16;
/// So often it looks how much of its time it works.
const PACE: Duration = Duration::from_millis(20);
/// Parts of the time: who works more than the first hurries, until it is less than the second, since what is done in a
/// hurry takes an eighth of the time or less for most programs' events.
const BUSY: u32 = 3;
const IDLE: u32 = 24;
/// How often it looks which processes are still there, and hands what it wrote to the system.
const CHECK: Duration = Duration::from_millis(500);

/// Record all that a command allocates and frees, to replay it later
///
/// The command runs on its own malloc, a little slower. The trace holds sizes, alignments, order and threads, not the
/// contents of memory; docs/lab-traces.md tells what it promises.
///
/// Exit status: that of the command, or 128 and the number of the signal that ended it; 127, 126 and 125 as for
/// `snug run`.
#[derive(Debug, Args)]
#[command(override_usage = "snug record [-o FILE] [--children[=all|none]] [--times] [--] CMD [ARGS]...")]
pub struct RecordArgs {
    /// Where to write the trace [default: the command's name and .trace, in the current folder]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Record the processes that the command starts, too, into the same file: all (as without a word), or none
    #[arg(long, value_name = "all|none", num_args = 0..=1, require_equals = true, default_value = "none",
          default_missing_value = "all", hide_possible_values = true, value_enum)]
    pub children: Recorded,

    /// Keep the time of each call, for snug replay --pace recorded; a program is slowed down more, and the trace is larger
    #[arg(long)]
    pub times: bool,

    /// Memory between the program and the tool, at most; it has room for 16 threads a MiB
    #[arg(long, value_name = "MIB", default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..=2048))]
    pub buffer: u32,

    /// Say nothing at the end
    #[arg(short, long)]
    pub quiet: bool,

    /// The command and its arguments
    #[arg(value_name = "CMD", trailing_var_arg = true, required = true)]
    pub words: Vec<OsString>,
}

/// Of the processes that the command starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Recorded {
    All,
    None,
}

pub fn run(args: &RecordArgs) -> Result<ExitCode> {
    let mut command = launch::command_for(&args.words)?;
    let recorder = cache::unpack(&carried::RECORDER)?;
    let slots = args.buffer as usize * (1 << 20) / SLOT_SIZE;
    let region = Region::new(slots, args.children == Recorded::All, args.times)
        .context("cannot share memory with the program")?;
    let path = args.output.clone().unwrap_or_else(|| default_output(&args.words[0]));
    ensure_is_a_name(&path)?;
    ensure_is_no_others(&path)?;
    let writer = Writer::create(&path).with_context(|| output::cannot_write(&path))?;

    launch::set_up(&mut command, &recorder, &[]);
    command.env(region::VARIABLE, region.path()).env_remove(region::NAMESPACE_VARIABLE);
    if args.children == Recorded::All {
        command.env(region::NAMESPACE_VARIABLE, fs::read_link("/proc/self/ns/pid").unwrap_or_default());
    }
    let handed_on = HandedOn::to(&mut command);
    let child = signals::spawn(&mut command);
    let child = child.with_context(|| format!("{} cannot be run", args.words[0].to_string_lossy()))?;
    handed_on.begin(child.id() as i32);
    let recording = Recording {
        region,
        journal: Journal { pace: Pace::new(), writer, processes: HashMap::new(), threads: 0, events: 0 },
    };
    let (status, result) = recording.follow(child, handed_on);
    let summary = result.with_context(|| output::cannot_write(&path))?;
    if !args.quiet {
        eprintln!("snug: {}: {summary}", path.display());
    }
    Ok(ExitCode::from(code_of(status?)))
}

/// A trace goes when another takes its name; what else has it may be anything, such as the program in `-o ./program`, where
/// the name was forgotten.
fn ensure_is_no_others(path: &Path) -> Result<()> {
    let is_full = fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() > 0);
    let is_other = is_full && File::open(path).is_ok() && !Trace::is_trace(path);
    ensure!(
        !is_other,
        "{} is there, and no trace: it stays, and nothing was run; remove it, or give another name",
        path.display()
    );
    Ok(())
}

/// `gcc` is recorded to gcc.trace in the current folder.
fn default_output(program: &std::ffi::OsStr) -> PathBuf {
    let mut name = Path::new(program).file_name().unwrap_or(program).to_os_string();
    name.push(".trace");
    name.into()
}

/// As shells do: 128 and the number of the signal.
fn code_of(status: ExitStatus) -> u8 {
    match status.code() {
        Some(code) => code as u8,
        None => 128 + status.signal().unwrap_or(0) as u8,
    }
}

struct Recording {
    region: Region,
    journal: Journal,
}

/// Whether the tool should do with less work: where there are no processors to spare, its work is time that the program
/// does not have.
struct Pace {
    since: Instant,
    worked: Duration,
    hurry: bool,
}

impl Pace {
    fn new() -> Pace {
        Pace { since: Instant::now(), worked: Duration::ZERO, hurry: false }
    }

    /// Some work was done, and this is how long it took, until `now`.
    fn note(&mut self, work: Duration, now: Instant) {
        self.worked += work;
        let elapsed = now.saturating_duration_since(self.since);
        if elapsed >= PACE {
            let most = if self.hurry { IDLE } else { BUSY };
            self.hurry = self.worked * most > elapsed;
            (self.since, self.worked) = (now, Duration::ZERO);
        }
    }
}

/// The file, and what went into it.
struct Journal {
    pace: Pace,
    writer: Writer<BufWriter<File>>,
    /// Processes by number, with their pid, until they have gone.
    processes: HashMap<u32, u32>,
    /// The most that one process had.
    threads: u32,
    /// Bytes of events.
    events: u64,
}

impl Recording {
    /// Until the command has ended. If the file cannot be written, the program goes on unrecorded.
    fn follow(mut self, mut child: Child, handed_on: HandedOn) -> (std::io::Result<ExitStatus>, Result<String>) {
        let mut written = Ok(());
        let mut checked = Instant::now();
        let status = loop {
            self.region.wait(ROUND);
            // Asked before the slots are emptied: what it wrote before it ended is there then.
            let ended = child.try_wait().transpose();
            if written.is_ok() {
                written = self.empty(checked.elapsed() > CHECK);
                if written.is_err() {
                    self.region.close();
                }
            }
            if checked.elapsed() > CHECK {
                checked = Instant::now();
            }
            if let Some(status) = ended {
                break status;
            }
        };
        drop(handed_on);
        (status, written.and_then(|()| self.finish()))
    }

    fn empty(&mut self, check: bool) -> Result<()> {
        let Recording { region, journal } = self;
        region.drain(|slot| journal.take(slot))?;
        if check {
            self.sweep_the_dead()?;
            self.journal.writer.flush()?;
        }
        Ok(())
    }

    /// Slots of processes that have ended, or that became another one by exec.
    fn sweep_the_dead(&mut self) -> Result<()> {
        let gone = self.journal.processes_that_have_gone();
        if gone.is_empty() {
            return Ok(());
        }
        let Recording { region, journal } = self;
        // What they submitted last comes before what they did not submit.
        region.drain(|slot| journal.take(slot))?;
        region.sweep(|owner| gone.contains(&owner), |slot| journal.take(slot))?;
        journal.processes.retain(|number, _| !gone.contains(number));
        Ok(())
    }

    fn finish(mut self) -> Result<String> {
        self.region.close();
        let Recording { region, journal } = &mut self;
        region.drain(|slot| journal.take(slot))?;
        region.sweep(|_| true, |slot| journal.take(slot))?;
        let (lost, damaged, stored) = (self.region.lost(), self.region.damaged, self.journal.writer.stored);
        let Journal { writer, threads, events, .. } = self.journal;
        let attached = writer.length > 0;
        writer.finish(lost)?;
        let mut summary = match events {
            0 if attached => "nothing was recorded: the program has a malloc of its own, or called none".into(),
            0 => "nothing was recorded: the program does not load the recorder, or cannot reach snug".into(),
            _ => format!("{} of events in {}, {}", bytes(events), bytes(stored), counted(threads as usize, "thread")),
        };
        if lost > 0 {
            summary += &format!("; {lost} events were lost, as more threads ran than the buffer has room for");
        }
        if damaged > 0 {
            summary += &format!("; {damaged} blocks were damaged by the program");
        }
        Ok(summary)
    }
}

impl Journal {
    fn take(&mut self, slot: Slot) -> Result<()> {
        let kind = if slot.kind == region::START { Kind::Start } else { Kind::Events };
        match kind {
            Kind::Start if slot.data.len() >= 4 => {
                self.processes.insert(slot.process, format::u32_at(&slot.data, 0));
            }
            _ => self.events += slot.data.len() as u64,
        }
        self.threads = self.threads.max(slot.thread);
        let begun = Instant::now();
        self.writer.hurry(slot.backlog >= BEHIND || self.pace.hurry)?;
        let Slot { process, thread, ticket, time, .. } = slot;
        let header = Header { kind, process, thread, ticket, time, length: 0, stored: 0, checksum: 0 };
        self.writer.write(header, &slot.data)?;
        let now = Instant::now();
        self.pace.note(now - begun, now);
        Ok(())
    }

    /// Those that have ended, and those whose pid belongs to a later one, after exec: as far as that is sure, since what
    /// is taken from a process that goes on is damaged.
    fn processes_that_have_gone(&self) -> Vec<u32> {
        let mut latest = HashMap::new();
        for (&number, &pid) in &self.processes {
            let known = latest.entry(pid).or_insert(number);
            *known = number.max(*known);
        }
        let is_earlier = |number: &u32, pid: &u32| latest[pid] != *number;
        let mut gone: Vec<(u32, u32)> = self.processes.iter().map(|(&number, &pid)| (number, pid)).collect();
        gone.retain(|(number, pid)| is_earlier(number, pid) || !is_alive(*pid));
        if !gone.is_empty() {
            let seen = Seen::now();
            gone.retain(|(number, pid)| !seen.own.contains(pid) || is_earlier(number, pid) && !seen.are_apart);
        }
        gone.into_iter().map(|(number, _)| number).collect()
    }
}

fn is_alive(pid: u32) -> bool {
    // SAFETY: signal 0 only asks.
    let answer = unsafe { libc::kill(pid as libc::pid_t, 0) };
    answer == 0 || std::io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH)
}

/// The processes that there are. In a namespace of its own a process has another pid for itself, which it notes, than it
/// has here; another process may have the same.
struct Seen {
    /// The pids that they have for themselves.
    own: HashSet<u32>,
    /// Whether some are in other namespaces: then a pid may belong to several.
    are_apart: bool,
}

impl Seen {
    fn now() -> Seen {
        let mut seen = Seen { own: HashSet::new(), are_apart: false };
        for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            // Of one that has just ended nothing is there.
            let Ok(status) = proc::text(entry.path().join("status")) else { continue };
            seen.add(pid, &status);
        }
        seen
    }

    fn add(&mut self, pid: u32, status: &str) {
        let numbers = proc::field(status, "NSpid:").unwrap_or_default();
        let own = numbers.split_ascii_whitespace().next_back().and_then(|number| number.parse().ok()).unwrap_or(pid);
        self.are_apart |= numbers.split_ascii_whitespace().count() > 1;
        self.own.insert(own);
    }
}

fn bytes(count: u64) -> String {
    indicatif::HumanBytes(count).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_trace_is_called_after_the_program() {
        assert_eq!(default_output("/usr/bin/gcc".as_ref()), Path::new("gcc.trace"));
    }

    #[test]
    fn pids_of_other_namespaces() {
        let mut seen = Seen { own: HashSet::new(), are_apart: false };
        seen.add(100, "Name:\ta\nNSpid:\t100\n");
        assert!(!seen.are_apart);
        seen.add(101, "NSpid:\t101\t7\n");
        assert!(seen.are_apart && seen.own == HashSet::from([100, 7]));
        assert!(Seen::now().own.contains(&std::process::id()));
    }

    #[test]
    fn who_works_much_hurries_until_there_is_little_to_do() {
        let mut pace = Pace::new();
        let mut now = pace.since;
        let mut after = |work: u64, total: u64| {
            now += Duration::from_millis(total);
            pace.note(Duration::from_millis(work), now);
            pace.hurry
        };
        assert!(!after(5, 5), "too soon to tell");
        assert!(!after(5, 35), "10 of 40");
        assert!(after(20, 40) && after(2, 40));
        assert!(!after(1, 40));
    }

    #[test]
    fn statuses_are_those_of_shells() {
        assert_eq!(code_of(ExitStatus::from_raw(3 << 8)), 3);
        assert_eq!(code_of(ExitStatus::from_raw(9)), 137);
    }
}
