//! One process that is watched: what it is called, what was seen of it, and how it ended.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use super::group::Group;
use crate::live::list::name_of;
use crate::live::profile::{Raw, Site};
use crate::live::{thread_with_memory, Depth, Program, Values};
use crate::proc;

/// What it held at a moment; bytes. What the library knows is missing where it does not run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Since the command began.
    pub seconds: f64,
    pub resident: f64,
    pub heap: Option<Heap>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Heap {
    pub requested: f64,
    pub live: f64,
    /// Of metadata, what is in use.
    pub mapped: f64,
}

/// What sites held at a moment, by their stacks.
pub struct Held {
    pub seconds: f64,
    /// The largest, in bytes.
    pub sites: Vec<(u64, f64)>,
    /// What all others had.
    pub rest: f64,
}

pub struct Process {
    pub pid: i32,
    pub parent: i32,
    pub name: String,
    pub began: Duration,
    pub ended: Option<Duration>,
    pub status: Option<ExitStatus>,
    /// The most that was resident, in bytes.
    pub peak: u64,
    /// The last look, and when it was; None if snug was not seen in it, or the look was given up.
    pub values: Option<Values>,
    pub seen: Duration,
    seen_last: bool,
    /// What it had of a profile when it ended.
    pub profile: Option<Raw>,
    pub points: Vec<Point>,
    /// With some of the points, if it has a profile.
    pub held: Vec<Held>,
    /// Its threads that are not about to end.
    pub threads: usize,
    /// The control group in which it became what it is, while it lives.
    group: Option<Group>,
    /// That the system killed it since memory was short, if that is what happened.
    pub starved: Option<String>,
    /// Whether snug was ever seen in it.
    was_seen: bool,
    program: Option<Program>,
    /// snug was not found: look for it again after so many more looks.
    search: Search,
    /// Of so many looks, one becomes a point.
    every: u32,
    looks: u32,
}

/// Where snug is not found at once, it is not there yet, or never will be: the pauses double after the first look.
#[derive(Default)]
struct Search {
    pause: u32,
    left: u32,
}

const PAUSE_MOST: u32 = 64;

/// So many points are kept; when there are more, every second one goes, and half as many come.
const POINTS_MOST: usize = 4096;

impl Process {
    pub fn new(pid: i32, parent: i32, began: Duration) -> Process {
        let name = name_of(pid).unwrap_or_else(|| "?".to_string());
        Process {
            pid,
            parent,
            name,
            began,
            ended: None,
            status: None,
            peak: 0,
            values: None,
            seen: began,
            seen_last: false,
            profile: None,
            points: Vec::new(),
            held: Vec::new(),
            threads: 1,
            group: Group::of(pid),
            starved: None,
            was_seen: false,
            program: None,
            search: Search::default(),
            every: 1,
            looks: 0,
        }
    }

    /// It has become another program, in which everything begins anew; what it held before stays in the points.
    pub fn becomes_another(&mut self) {
        self.name = name_of(self.pid).unwrap_or_default();
        self.peak = 0;
        self.values = None;
        self.profile = None;
        self.held.clear(); // stacks have other numbers
        (self.seen_last, self.was_seen) = (false, false);
        self.program = None;
        self.search = Search::default();
        self.threads = 1;
        self.group = Group::of(self.pid);
    }

    /// It has ended, so long after the command began.
    pub fn ends(&mut self, status: ExitStatus, now: Duration) {
        (self.status, self.ended) = (Some(status), Some(now));
        let killed = status.signal() == Some(libc::SIGKILL);
        self.starved = self.group.take().filter(|_| killed).and_then(|group| group.has_killed());
    }

    /// The system took its memory before anything of it had been seen.
    pub fn is_unknown(&self) -> bool {
        self.starved.is_some() && !self.was_seen
    }

    /// Looks at it while it runs.
    pub fn look(&mut self, start: Instant, points: bool) {
        self.note_peak();
        let values = self.values_now(Depth::Quick);
        let now = start.elapsed();
        if points {
            self.add_point(now, values.as_ref());
        }
        if values.is_some() {
            (self.values, self.seen, self.seen_last) = (values, now, false);
        }
    }

    /// Looks at it for the last time, while a thread of it stands still. What cannot be read any more is what was seen
    /// last.
    pub fn look_last(&mut self, start: Instant, depth: Depth, points: bool) {
        self.search = Search::default();
        let values = self.values_now(depth);
        self.profile = self.program.as_ref().and_then(Program::profile).or(self.profile.take());
        let now = start.elapsed();
        if points {
            self.every = 1;
            self.add_point(now, values.as_ref());
        }
        if values.is_some() {
            (self.values, self.seen, self.seen_last) = (values, now, true);
        }
    }

    /// The kernel's own mark of the most that was resident.
    pub fn note_peak(&mut self) {
        self.peak = self.peak.max(status_bytes(self.pid, "VmHWM:").unwrap_or(0));
    }

    /// Whether the last look was its very last moment.
    pub fn is_seen_to_the_end(&self) -> bool {
        self.seen_last
    }

    fn values_now(&mut self, depth: Depth) -> Option<Values> {
        if self.program.is_none() {
            if self.search.left > 0 {
                self.search.left -= 1;
                return None;
            }
            self.program = Program::find(self.pid).ok();
        }
        let values = self.program.as_ref().and_then(|program| program.values(depth).ok());
        self.was_seen |= values.is_some();
        if values.is_none() {
            // Not there, or only just being loaded: what was found then is not yet as it will be.
            self.program = None;
            self.search.left = self.search.pause;
            self.search.pause = (2 * self.search.pause + 1).min(PAUSE_MOST);
        }
        values
    }

    fn add_point(&mut self, now: Duration, values: Option<&Values>) {
        self.looks += 1;
        if self.looks % self.every != 0 {
            return;
        }
        let Some(resident) = status_bytes(self.pid, "VmRSS:") else { return };
        let get = |values: &Values, name: &str| values.get(name).unwrap_or(0) as f64;
        let heap = values.map(|values| {
            let metadata = get(values, "metadata");
            let in_use = get(values, "metadata_used").min(metadata);
            // Of blocks in heaps of the program's own nobody knows what was asked for.
            let heaps = get(values, "heaps_live");
            Heap {
                requested: get(values, "requested") + heaps,
                live: get(values, "live") + heaps,
                mapped: get(values, "mapped") - metadata + in_use + get(values, "heaps_mapped"),
            }
        });
        self.points.push(Point { seconds: now.as_secs_f64(), resident: resident as f64, heap });
        let sites = self.program.as_ref().map(Program::profile_sites).unwrap_or_default();
        if !sites.is_empty() {
            self.held.push(held(now.as_secs_f64(), &sites));
        }
        if self.points.len() > POINTS_MOST {
            halve(&mut self.points);
            halve(&mut self.held);
            self.every *= 2;
        }
    }
}

/// So many sites of each look are kept.
const HELD_MOST: usize = 16;

fn held(seconds: f64, sites: &[Site]) -> Held {
    let mut all: Vec<(u64, f64)> = sites.iter().map(|site| (site.stack, site.live_bytes as f64)).collect();
    all.sort_by(|a, b| b.1.total_cmp(&a.1));
    let rest = all.iter().skip(HELD_MOST).map(|site| site.1).sum();
    all.truncate(HELD_MOST);
    Held { seconds, sites: all, rest }
}

/// Every second one goes; the first stays.
fn halve<T>(list: &mut Vec<T>) {
    let mut place = 0;
    list.retain(|_| {
        place += 1;
        place % 2 == 1
    });
}

/// A number of /proc/PID/status about memory, which is in kB, in bytes.
fn status_bytes(pid: i32, name: &str) -> Option<u64> {
    let status = proc::text(format!("/proc/{}/status", thread_with_memory(pid))).ok()?;
    Some(proc::field(&status, name)?.strip_suffix(" kB")?.parse::<u64>().ok()? * 1024)
}

/// To which process a thread belongs, and which process started that.
pub fn family_of(tid: i32) -> Option<(i32, i32)> {
    let status = proc::text(format!("/proc/{tid}/status")).ok()?;
    let number = |name: &str| proc::field(&status, name)?.parse().ok();
    Some((number("Tgid:")?, number("PPid:")?))
}

/// Whether the program that it has just become would have other rights, had nobody traced it.
pub fn lost_rights(pid: i32) -> bool {
    use std::os::unix::fs::MetadataExt;
    let users = || -> Option<u32> {
        let status = proc::text(format!("/proc/{pid}/status")).ok()?;
        proc::field(&status, "Uid:")?.split_ascii_whitespace().nth(1)?.parse().ok()
    };
    let (Ok(file), Some(user)) = (fs::metadata(format!("/proc/{pid}/exe")), users()) else { return false };
    file.mode() & libc::S_ISUID != 0 && file.uid() != user
}
