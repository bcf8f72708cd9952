//! Profiles while a command runs: at times, or when a signal comes.
//!
//! A thread of its own looks, since the one that follows the command (watch) must answer that. It reads the processes'
//! memory as `snug profile PID` would, and stops nothing. It takes at most half of a processor.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::formats::{numbered, Output};
use super::gather::{profile_of, Before};
use super::model::Profile;
use super::symbols::Symbols;
use super::View;
use crate::live::Program;
use crate::proc;

/// How often is looked whether something is to be done.
pub const STEP: Duration = Duration::from_millis(10);

/// Of the time, looks may take one part in so many: the first, which reads symbols, takes long.
const SHARE: u32 = 2;

/// When snapshots are wanted, and where they go.
pub struct Wanted<'a> {
    pub every: Option<Duration>,
    pub signal: Option<Arc<AtomicBool>>,
    /// Snapshots stand beside it, with their numbers.
    pub output: Option<&'a Path>,
    pub view: &'a View,
}

impl Wanted<'_> {
    pub fn is_any(&self) -> bool {
        self.every.is_some() || self.signal.is_some()
    }

    fn signal_came(&self) -> bool {
        self.signal.as_ref().is_some_and(|came| came.swap(false, Ordering::Relaxed))
    }

    /// Takes snapshots until `over`. `take` gives one, or nothing where there is nothing yet. They get their names when they
    /// are written, or in the end: to read symbols the first time takes longer than a short look.
    pub fn follow(&self, over: &AtomicBool, mut take: impl FnMut() -> Option<Profile>) -> Vec<Profile> {
        let (mut taken, mut symbols) = (Vec::new(), Symbols::new());
        let mut due = self.every.map(|every| Instant::now() + every);
        while !over.load(Ordering::Relaxed) {
            let is_due = due.is_some_and(|due| Instant::now() >= due);
            if !self.signal_came() && !is_due {
                sleep(STEP);
                continue;
            }
            let begun = Instant::now();
            if let Some(snapshot) = take() {
                taken.push(snapshot);
                if let Err(error) = self.write(&mut taken, &mut symbols) {
                    eprintln!("snug: {}", crate::output::told(&error));
                }
            }
            due = due.and_then(|due| Some((due + self.every?).max(Instant::now() + (SHARE - 1) * begun.elapsed())));
        }
        for snapshot in &mut taken {
            symbols.resolve(snapshot);
        }
        taken
    }

    fn write(&self, taken: &mut [Profile], symbols: &mut Symbols) -> Result<()> {
        let number = taken.len();
        let (Some(output), Some(last)) = (self.output, taken.last_mut()) else { return Ok(()) };
        symbols.resolve(last);
        Output::new(&numbered(output, number))?.write(last, self.view)
    }
}

/// The processes that this one has started, and those that they have, which run on snug; looked for anew each time.
#[derive(Default)]
pub struct Descendants {
    known: HashMap<i32, Program>,
}

impl Descendants {
    /// All their profiles together, without names; None: none has one. `wanted`: by their names.
    pub fn profile(&mut self, wanted: impl Fn(i32) -> bool) -> Option<Profile> {
        let pids = below(std::process::id() as i32);
        self.known.retain(|pid, program| pids.contains(pid) && !program.has_ended());
        let mut all: Option<Profile> = None;
        for pid in pids.into_iter().filter(|&pid| wanted(pid)) {
            let program = match self.known.entry(pid) {
                std::collections::hash_map::Entry::Occupied(found) => found.into_mut(),
                std::collections::hash_map::Entry::Vacant(place) => match Program::find(pid) {
                    Ok(program) => place.insert(program),
                    Err(_) => continue,
                },
            };
            if let Some(raw) = program.profile() {
                all.get_or_insert_with(Profile::default).add(&profile_of(&raw, &Before::new()), 1);
            }
        }
        all
    }
}

fn below(pid: i32) -> Vec<i32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let text: String = tasks.filter_map(|task| proc::text(task.path().join("children")).ok()).collect();
    let children = text.split_ascii_whitespace().filter_map(|word| word.parse().ok());
    children.flat_map(|child| [vec![child], below(child)].concat()).collect()
}
