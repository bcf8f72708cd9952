//! Why the system does not let one process look into another, and the command that helps.
//!
//! The kernel's answer is the same whatever the cause (ptrace(2), "Ptrace access mode checking"); so each of its checks is
//! made again here, in its order, with what /proc shows to everybody.

use std::env;
use std::fs;
use std::os::unix::fs::MetadataExt;

use crate::proc;

const YAMA: &str = "/proc/sys/kernel/yama/ptrace_scope";
const ROOT: u32 = 0;
/// The bit of CAP_SYS_PTRACE in the sets of /proc/PID/status.
const MAY_LOOK: u64 = 1 << 19;

/// What is known of both.
struct Facts {
    process: i32,
    /// Who looks, and whether it may look at anybody.
    user: u32,
    is_privileged: bool,
    /// Whose the process is: its real, effective and saved user.
    users: Vec<u32>,
    /// To whom its files in /proc belong: root, if it is protected.
    owner: Option<u32>,
    yama: u32,
    is_descendant: bool,
}

/// Commands of snug that look into one process.
const LOOKING: [&str; 6] = ["stats", "top", "trim", "check", "profile", "export"];

/// One line, which begins with what is not allowed.
pub fn why_not(process: i32) -> String {
    let asked = env::args().nth(1).unwrap_or_default();
    format!("process {process} must not be looked into: {}", reason(&Facts::of(process), &asked))
}

/// `asked`: the command that wanted to look, which the advice repeats.
fn reason(facts: &Facts, asked: &str) -> String {
    let process = facts.process;
    let command = LOOKING.into_iter().find(|name| *name == asked).unwrap_or("stats");
    let again = format!("sudo snug {command} {process}");
    if facts.yama >= 3 && !facts.is_privileged {
        return format!("{YAMA} is 3, which forbids it to all until the next start of the system");
    }
    if facts.user == ROOT && !facts.is_privileged {
        return "this root has no CAP_SYS_PTRACE, as in containers; start the container with --cap-add=SYS_PTRACE, or \
                look from outside it"
            .to_string();
    }
    if facts.is_privileged {
        return "root of this container has no rights over it; look from outside the container".to_string();
    }
    if let Some(other) = facts.users.iter().find(|&&user| user != facts.user) {
        return format!("it belongs to the user {}; use the same user or root: {again}", name_of(*other));
    }
    if facts.owner == Some(ROOT) {
        return format!(
            "it is protected (not dumpable: it asked for that by prctl, or its program may not be read); use root: {again}"
        );
    }
    if facts.yama == 2 {
        return format!("kernel.yama.ptrace_scope is 2, which leaves it to root: {again}");
    }
    if facts.yama == 1 && !facts.is_descendant {
        return format!(
            "kernel.yama.ptrace_scope is 1, which leaves it to root and to who started it: {again}, or \
             sudo sysctl kernel.yama.ptrace_scope=0"
        );
    }
    format!("the system forbids it (a security module, or another container); try root: {again}")
}

impl Facts {
    fn of(process: i32) -> Facts {
        let folder = format!("/proc/{process}");
        let capabilities = status_line("/proc/self/status", "CapEff:").unwrap_or_default();
        let users = status_line(&format!("{folder}/status"), "Uid:").unwrap_or_default();
        Facts {
            process,
            // SAFETY: cannot fail and touches nothing.
            user: unsafe { libc::geteuid() },
            is_privileged: u64::from_str_radix(capabilities.trim(), 16).is_ok_and(|set| set & MAY_LOOK != 0),
            users: users.split_ascii_whitespace().take(3).filter_map(|word| word.parse().ok()).collect(),
            owner: fs::metadata(format!("{folder}/maps")).ok().map(|found| found.uid()),
            yama: proc::text(YAMA).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0),
            is_descendant: is_descendant(process),
        }
    }
}

fn status_line(path: &str, name: &str) -> Option<String> {
    let text = proc::text(path).ok()?;
    proc::field(&text, name).map(str::to_string)
}

fn is_descendant(mut process: i32) -> bool {
    let own = std::process::id() as i32;
    while process > 1 {
        let parent = status_line(&format!("/proc/{process}/status"), "PPid:");
        process = parent.and_then(|line| line.trim().parse().ok()).unwrap_or(0);
        if process == own {
            return true;
        }
    }
    false
}

/// The name of a user as /etc/passwd has it, else the number.
fn name_of(user: u32) -> String {
    let table = proc::text("/etc/passwd").unwrap_or_default();
    let name = table.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(user)).then(|| name.to_string())
    });
    name.unwrap_or_else(|| user.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> Facts {
        let users = vec![1000; 3];
        let owner = Some(1000);
        Facts { process: 7, user: 1000, is_privileged: false, users, owner, yama: 0, is_descendant: false }
    }

    #[test]
    fn each_cause_has_its_own_words() {
        let cases = [
            (Facts { users: vec![1000, 0, 1000], ..facts() }, "belongs to the user root"),
            (Facts { owner: Some(0), ..facts() }, "not dumpable"),
            (Facts { yama: 1, ..facts() }, "sysctl kernel.yama.ptrace_scope=0"),
            (Facts { yama: 2, ..facts() }, "ptrace_scope is 2"),
            (Facts { yama: 3, ..facts() }, "until the next start"),
            (Facts { user: 0, ..facts() }, "--cap-add=SYS_PTRACE"),
            (Facts { user: 0, is_privileged: true, ..facts() }, "from outside the container"),
            (Facts { yama: 1, is_descendant: true, ..facts() }, "a security module"),
        ];
        for (facts, part) in cases {
            let said = reason(&facts, "stats");
            assert!(said.contains(part), "{part} is not in {said}");
        }
    }

    #[test]
    fn the_advice_repeats_the_command() {
        let other = Facts { users: vec![0; 3], ..facts() };
        for (asked, advice) in [
            ("trim", "sudo snug trim 7"),
            ("check", "snug check 7"),
            ("export", "snug export 7"),
            ("run", "snug stats 7"),
        ] {
            assert!(reason(&other, asked).ends_with(advice), "{}", reason(&other, asked));
        }
    }
}
