//! A command and the processes that it starts, watched from outside while they run: `snug run --stats` and `--plot`.
//!
//! The idea: whoever is to tell how a program ended must not be that program. The tool stays the command's parent and
//! traces it and its descendants (ptrace), so that each stands still for a moment when it ends, whatever ends it: return
//! from main, _exit, an exec, SIGKILL. Its memory is still there then, and is read as `snug stats` would read it. Between
//! start and end it is looked at now and then, for the picture, and for those whose memory is gone before they stop (the
//! out-of-memory killer takes it at once).
//!
//! Cost to the program: two stops for each thread and process that begins and ends, and one for each signal; no stop for a
//! look. The price that cannot be paid away: what is traced cannot be traced by another (a debugger inside), and for a
//! user who is not root, programs that are set-user-ID start without their rights. `--children=none` leaves the children
//! alone.
//!
//!     ptrace   the system calls          follow   the events, until all have ended
//!     process  one process, its looks    group    whether the system killed it for want of memory
//!     report   the statistics of those   tree     which belongs to which, as lines
//!              that are wanted

mod follow;
mod group;
mod process;
mod ptrace;
pub mod report;
mod tree;

use std::process::{Command, ExitStatus};

use anyhow::Result;

pub use process::{Heap, Held, Point, Process};

/// Whose details are wanted.
#[derive(Debug, Clone)]
pub enum Children {
    /// Of the process with the highest peak, whichever it is.
    Highest,
    /// Of each.
    All,
    /// Of the command itself; its children are not followed.
    None,
    /// Of those with such a name.
    Named(glob::Pattern),
}

/// As `--children=` has it.
pub fn parse_children(text: &str) -> Result<Children, String> {
    match text {
        "all" => Ok(Children::All),
        "none" => Ok(Children::None),
        "" => Err("all, none, or the name of a program".to_string()),
        name => glob::Pattern::new(name).map(Children::Named).map_err(|error| error.to_string()),
    }
}

/// What there was to see.
pub struct Watched {
    /// How the command itself ended.
    pub status: ExitStatus,
    /// In the order in which they began; the command is the first.
    pub processes: Vec<Process>,
    /// Lines about what could not be seen.
    pub notes: Vec<String>,
}

/// Runs the command to its end. `points`: what the processes held over time is kept, too.
pub fn run(command: Command, children: &Children, points: bool) -> Result<Watched> {
    follow::run(command, children, points)
}

impl Watched {
    /// The processes whose details are wanted; those that nothing is known of are left out.
    pub fn chosen(&self, children: &Children) -> Vec<&Process> {
        let known = || self.processes.iter().filter(|process| process.values.is_some());
        match children {
            Children::Highest => known().max_by_key(|process| process.peak).into_iter().collect(),
            Children::All => known().collect(),
            Children::None => known().take(1).filter(|process| process.pid == self.processes[0].pid).collect(),
            Children::Named(name) => known().filter(|process| name.matches(&process.name)).collect(),
        }
    }
}
