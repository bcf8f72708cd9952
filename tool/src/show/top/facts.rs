//! What /proc and the control groups know of a process beside its heap.

use std::fs;

use indicatif::HumanBytes;

use crate::live::thread_with_memory;
use crate::output::shown;
use crate::proc;

/// The words that it was started with, in one line.
pub fn command_line(process: i32) -> String {
    in_one_line(&fs::read(format!("/proc/{}/cmdline", thread_with_memory(process))).unwrap_or_default())
}

/// The ends of words and of lines, a script's for instance, become spaces.
fn in_one_line(words: &[u8]) -> String {
    let text = String::from_utf8_lossy(words);
    text.split(|one: char| one.is_whitespace() || one == '\0')
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

/// A thread at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Thread {
    pub tid: u64,
    pub name: String,
    pub state: &'static str,
    /// Of the processor, in seconds; and page faults.
    pub seconds: f64,
    pub faults: u64,
}

pub fn threads(process: i32) -> Vec<Thread> {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    tasks.filter_map(|task| thread_of(&proc::text(task.path().join("stat")).ok()?)).collect()
}

/// From a line of /proc/PID/task/TID/stat (proc(5)).
fn thread_of(stat: &str) -> Option<Thread> {
    let (head, rest) = stat.rsplit_once(')')?;
    let (tid, name) = head.split_once(" (")?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let number = |place: usize| fields.get(place)?.parse::<u64>().ok();
    // SAFETY: only asks.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) }.max(1) as f64;
    let state = match *fields.first()? {
        "R" => "runs",
        "S" => "sleeps",
        "D" => "waits for a device",
        "T" | "t" => "stopped",
        "Z" | "X" => "has ended",
        _ => "idle",
    };
    Some(Thread {
        tid: tid.parse().ok()?,
        name: shown(name),
        state,
        seconds: (number(11)? + number(12)?) as f64 / ticks,
        faults: number(7)? + number(9)?,
    })
}

/// What the process may have: its option SNUG_LIMIT, and its control group's bytes and their limit.
pub fn limits(process: i32) -> Vec<String> {
    let environment = fs::read(format!("/proc/{}/environ", thread_with_memory(process))).unwrap_or_default();
    let option = environment.split(|&byte| byte == 0).find_map(|word| word.strip_prefix(b"SNUG_LIMIT="));
    let option = option.map(|value| format!("limit      SNUG_LIMIT={}", String::from_utf8_lossy(value)));
    let groups = proc::text(format!("/proc/{process}/cgroup")).unwrap_or_default();
    option.into_iter().chain(groups.lines().find_map(group)).collect()
}

/// From a line of /proc/PID/cgroup (cgroups(7)): of version 2, or of memory in version 1.
fn group(line: &str) -> Option<String> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (controllers, path) = (fields.next()?, fields.next()?);
    let (folder, used, most) = match controllers {
        "" => (format!("/sys/fs/cgroup{path}"), "memory.current", "memory.max"),
        "memory" => (format!("/sys/fs/cgroup/memory{path}"), "memory.usage_in_bytes", "memory.limit_in_bytes"),
        _ => return None,
    };
    let number = |name: &str| proc::text(format!("{folder}/{name}")).ok()?.trim().parse::<u64>().ok();
    let used = HumanBytes(number(used)?);
    Some(match number(most).filter(|&most| most < 1 << 60) {
        Some(most) => format!("its group  {used} of {}", HumanBytes(most)),
        None => format!("its group  {used}, no limit"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_this_process() {
        let own = threads(std::process::id() as i32);
        assert!(own.iter().any(|thread| thread.state == "runs" && thread.seconds >= 0.0), "{own:?}");
        let line = "7 (a (b) c) S 1 2 3 4 5 6 10 0 1 0 150 50 0";
        let thread = thread_of(line).unwrap();
        assert_eq!((thread.tid, thread.name.as_str(), thread.state, thread.faults), (7, "a (b) c", "sleeps", 11));
        assert!(thread.seconds > 0.0);
        assert_eq!(thread_of("nonsense"), None);
    }

    #[test]
    fn the_command_line_of_this_process() {
        assert!(!command_line(std::process::id() as i32).is_empty());
        assert_eq!(command_line(-1), "");
        assert_eq!(in_one_line(b"python3\0-c\0\nimport time\n  x = 1\0"), "python3 -c import time x = 1");
    }
}
