//! The control group of a process, as far as it says that the system has killed for want of memory (cgroups(7)).

use std::path::PathBuf;

use indicatif::HumanBytes;

use crate::proc;

/// Of version 2 and of version 1: where groups are, the file that counts kills, and the one with the limit.
const VERSIONS: [(&str, &str, &str, &str); 2] = [
    ("", "/sys/fs/cgroup", "memory.events", "memory.max"),
    ("memory", "/sys/fs/cgroup/memory", "memory.oom_control", "memory.limit_in_bytes"),
];

/// What version 1 has for no limit is more than this.
const LIMIT_MOST: u64 = 1 << 60;

pub struct Group {
    folder: PathBuf,
    kills_file: &'static str,
    limit_file: &'static str,
    /// How many it had killed when the process began.
    kills: u64,
}

impl Group {
    pub fn of(process: i32) -> Option<Group> {
        let groups = proc::text(format!("/proc/{process}/cgroup")).ok()?;
        groups.lines().find_map(Group::of_line)
    }

    /// From a line of /proc/PID/cgroup, `number:controllers:path`, of a group that limits memory.
    fn of_line(line: &str) -> Option<Group> {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        let has = |name: &str| controllers.split(',').any(|controller| controller == name);
        let (_, root, kills_file, limit_file) = VERSIONS.into_iter().find(|version| has(version.0))?;
        let mut group = Group { folder: PathBuf::from(format!("{root}{path}")), kills_file, limit_file, kills: 0 };
        group.kills = group.kills_now()?;
        Some(group)
    }

    fn kills_now(&self) -> Option<u64> {
        kills_in(&proc::text(self.folder.join(self.kills_file)).ok()?)
    }

    /// That it has killed since, in words that follow the name of a process.
    pub fn has_killed(&self) -> Option<String> {
        (self.kills_now()? > self.kills).then_some(())?;
        let limit = proc::text(self.folder.join(self.limit_file)).ok();
        let limit = limit.and_then(|text| text.trim().parse::<u64>().ok()).filter(|&limit| limit < LIMIT_MOST);
        let of = limit.map_or(String::new(), |limit| format!(", which may have {}", HumanBytes(limit)));
        Some(format!("was killed by the system, since memory was short in its control group{of}"))
    }
}

fn kills_in(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("oom_kill "))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kills_are_counted_in_both_versions() {
        assert_eq!(kills_in("low 0\nhigh 0\nmax 7\noom 1\noom_kill 3\noom_group_kill 0\n"), Some(3));
        assert_eq!(kills_in("oom_kill_disable 0\nunder_oom 0\noom_kill 2\n"), Some(2));
        assert_eq!(kills_in("oom_kill_disable 0\n"), None);
    }

    #[test]
    fn who_was_not_killed_says_nothing() {
        assert!(Group::of_line("3:cpu,cpuacct:/x").is_none() && Group::of_line("nonsense").is_none());
        assert!(Group::of(std::process::id() as i32).is_none_or(|group| group.has_killed().is_none()));
    }
}
