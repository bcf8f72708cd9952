//! Follows the command and what it starts, event by event, until all have ended.
//!
//! One thread does it all, since only the thread that traces may let go on what stands still. Between events it sleeps
//! until a signal says that there is one (SIGCHLD), or the next look is due. Looks are paid from a share of the time: with
//! many processes they become rarer.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{bail, Context, Result};

use super::process::{self, Process};
use super::ptrace::{self, Event};
use super::{Children, Watched};
use crate::live::Depth;
use crate::refusal::{Refusal, OWN_FAILURE};
use crate::signals::{self, HandedOn};

/// Between two looks, with a picture to draw and without.
const LOOK_OFTEN: Duration = Duration::from_millis(10);
const LOOK_SELDOM: Duration = Duration::from_millis(100);

/// When the command has ended, those that it started and left behind may end within this time; the rest are servers.
const GRACE: Duration = Duration::from_millis(200);

/// So often it is looked whether the command stands still before it has begun.
const STEP: Duration = Duration::from_millis(2);

/// At most one part in so many of the time goes into looks.
const SHARE: u32 = 10;

struct Follower<'a> {
    start: Instant,
    children: &'a Children,
    points: bool,
    /// The command's.
    first: i32,
    processes: Vec<Process>,
    /// Which place there a process has that has not ended.
    places: HashMap<i32, usize>,
    /// To which process a thread belongs that is traced.
    threads: HashMap<i32, i32>,
    highest: u64,
    notes: Vec<String>,
    status: Option<ExitStatus>,
    first_ended: Option<Instant>,
}

pub fn run(mut command: Command, children: &Children, points: bool) -> Result<Watched> {
    let follow = !matches!(children, Children::None);
    let handed_on = HandedOn::to(&mut command);
    let (first, refused) = start(command, follow, &handed_on)?;
    keep_events();
    let start = Instant::now();
    let mut follower = Follower {
        start,
        children,
        points,
        first,
        processes: Vec::new(),
        places: HashMap::new(),
        threads: HashMap::new(),
        highest: 0,
        notes: refused.map(|error| untraced(&error)).into_iter().collect(),
        status: None,
        first_ended: None,
    };
    follower.add(first, std::process::id() as i32);
    follower.go()
}

fn untraced(error: &io::Error) -> String {
    format!(
        "the command was not traced ({error}), so it was only looked at now and then, and its children were not seen; \
         what it held at its very end is not known"
    )
}

/// Starts the command, traced from before its first instruction if the system allows that; if not, the reason.
///
/// `Command::spawn` returns when exec is done, so a thread of its own calls it: the new process says who it is, and waits
/// to be traced, before it execs. Of this end of the pair it keeps no copy: without this tool nothing would come.
fn start(mut command: Command, follow: bool, handed_on: &HandedOn) -> Result<(i32, Option<io::Error>)> {
    let (ours, theirs) = UnixStream::pair()?;
    let program = command.get_program().to_string_lossy().into_owned();
    let copy = ours.as_raw_fd();
    // SAFETY: close, read, write and _exit are async-signal-safe, and the new process has no other use for the descriptor.
    unsafe {
        command.pre_exec(move || {
            libc::close(copy);
            let own = libc::getpid().to_ne_bytes();
            let begun = (&theirs).write_all(&own).and_then(|()| (&theirs).read_exact(&mut [0]));
            if begun.is_err() {
                libc::_exit(OWN_FAILURE.into()); // this tool is gone, and nobody waits to be told why
            }
            Ok(())
        });
    }
    let (send, receive) = mpsc::channel();
    thread::spawn(move || send.send(signals::spawn(&mut command))); // the command goes with it, and its end of the pair
    let mut own = [0; 4];
    let begun = (&ours).read_exact(&mut own);
    let first = i32::from_ne_bytes(own);
    let refused = match begun {
        Ok(()) => {
            handed_on.begin(first);
            ptrace::seize(first, follow).err()
        }
        Err(_) => None, // it could not even be started, and spawn says why
    };
    let _ = (&ours).write_all(&[1]);
    let started = loop {
        match receive.recv_timeout(STEP) {
            Err(RecvTimeoutError::Timeout) => ptrace::let_begin(first),
            other => break other.context("the thread that starts the command is gone")?,
        }
    };
    match started {
        Ok(_) => Ok((first, refused)),
        Err(error) => bail!(Refusal::cannot_run(format!("{program} cannot be run: {error}"))),
    }
}

/// SIGCHLD is waited for, not taken.
fn keep_events() {
    // SAFETY: all bytes zero are a set without signals, to which one is added.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigaddset(&mut set, libc::SIGCHLD);
        signals::change_mask(libc::SIG_BLOCK, &set);
    }
}

/// Sleeps until a child may have something to say, but no longer than this.
fn sleep_until_event(longest: Duration) {
    let time =
        libc::timespec { tv_sec: longest.as_secs() as libc::time_t, tv_nsec: longest.subsec_nanos() as libc::c_long };
    // SAFETY: the set and the time are valid, and nothing is written.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigaddset(&mut set, libc::SIGCHLD);
        libc::sigtimedwait(&set, std::ptr::null_mut(), &time);
    }
}

impl Follower<'_> {
    fn go(mut self) -> Result<Watched> {
        let usual = if self.points { LOOK_OFTEN } else { LOOK_SELDOM };
        let mut due = Instant::now();
        loop {
            match ptrace::next_event() {
                Ok(Some((tid, event))) => {
                    self.take(tid, &event);
                    continue;
                }
                Ok(None) => {}
                Err(error) if error.raw_os_error() == Some(libc::ECHILD) => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error).context("cannot wait for the command"),
            }
            let now = Instant::now();
            if self.first_ended.is_some_and(|ended| now - ended >= GRACE) {
                break; // who goes on is left alone when snug ends
            }
            if now >= due {
                self.look();
                due = Instant::now() + usual.max(SHARE * now.elapsed());
            }
            sleep_until_event(due.saturating_duration_since(Instant::now()));
        }
        let status = self.status.context("the command's end was not seen")?;
        Ok(Watched { status, processes: self.processes, notes: self.notes })
    }

    fn take(&mut self, tid: i32, event: &Event) {
        let Some(pid) = self.process_of(tid, event) else {
            ptrace::go_on(tid, event);
            return;
        };
        match event {
            Event::Exec => self.exec(pid),
            Event::Ending => self.ending(tid, pid),
            Event::Ended(status) => self.ended(tid, pid, *status),
            _ => {}
        }
        if self.is_stranger(pid) {
            ptrace::detach(tid);
        } else {
            ptrace::go_on(tid, event);
        }
    }

    /// The process that a thread belongs to. Who is new says itself whose it is: it stands still.
    fn process_of(&mut self, tid: i32, event: &Event) -> Option<i32> {
        if let Some(&pid) = self.threads.get(&tid) {
            return Some(pid);
        }
        if matches!(event, Event::Ended(_)) {
            return None;
        }
        let (pid, parent) = process::family_of(tid)?;
        match self.places.get(&pid) {
            Some(&place) => self.processes[place].threads += 1,
            None => self.add(pid, parent),
        }
        self.threads.insert(tid, pid);
        Some(pid)
    }

    /// Without children, what was made by clone and is no thread came along all the same.
    fn is_stranger(&self, pid: i32) -> bool {
        matches!(self.children, Children::None) && pid != self.first
    }

    fn add(&mut self, pid: i32, parent: i32) {
        self.threads.insert(pid, pid);
        if self.is_stranger(pid) {
            return;
        }
        self.places.insert(pid, self.processes.len());
        self.processes.push(Process::new(pid, parent, self.start.elapsed()));
    }

    fn process(&mut self, pid: i32) -> Option<&mut Process> {
        let place = *self.places.get(&pid)?;
        self.processes.get_mut(place)
    }

    fn exec(&mut self, pid: i32) {
        self.threads.retain(|&tid, &mut of| of != pid || tid == pid);
        let Some(process) = self.process(pid) else { return };
        process.becomes_another();
        let name = process.name.clone();
        if process::lost_rights(pid) {
            self.notes.push(format!(
                "{name} is set-user-ID and ran without its rights, since it was watched; --children=none leaves children alone"
            ));
        }
    }

    /// The last look is at the end of the first thread, which is that of all if the process ends as a whole, and again at
    /// the end of the last one.
    fn ending(&mut self, tid: i32, pid: i32) {
        let (start, points, highest) = (self.start, self.points, self.highest);
        let may_be_shown = |process: &Process| match self.children {
            Children::Highest => process.peak >= highest,
            Children::Named(name) => name.matches(&process.name),
            Children::All | Children::None => true,
        };
        let Some(&place) = self.places.get(&pid) else { return };
        self.processes[place].note_peak();
        let depth = if may_be_shown(&self.processes[place]) { Depth::Whole } else { Depth::Quick };
        let process = &mut self.processes[place];
        process.threads = process.threads.saturating_sub(1);
        if tid == pid || process.threads == 0 {
            process.look_last(start, depth, points);
        }
    }

    fn ended(&mut self, tid: i32, pid: i32, status: ExitStatus) {
        self.threads.remove(&tid);
        if pid == self.first && tid == pid {
            self.status = Some(status);
            self.first_ended = Some(Instant::now());
        }
        let now = self.start.elapsed();
        let Some(process) = self.process(pid) else { return };
        if tid == pid {
            process.ends(status, now);
            self.places.remove(&pid);
            self.keep_what_may_be_shown();
        }
    }

    /// Of thousands of processes that have ended, one is shown; the details of the others need not be kept.
    fn keep_what_may_be_shown(&mut self) {
        if !matches!(self.children, Children::Highest) {
            return;
        }
        let ended = self.processes.iter().filter(|process| process.status.is_some() && process.values.is_some());
        let Some(highest) = ended.map(|process| process.peak).max().filter(|&peak| peak > self.highest) else { return };
        self.highest = highest;
        for process in self.processes.iter_mut().filter(|process| process.status.is_some() && process.peak < highest) {
            process.values = None;
        }
    }

    fn look(&mut self) {
        for &place in self.places.values() {
            // Who has been seen to its end may be there for a moment more: what it is then is less than what was seen.
            if self.processes[place].threads > 0 {
                self.processes[place].look(self.start, self.points);
            }
        }
    }
}
