//! The system calls for memory of a job: counted by strace, in one more run that nothing else is measured in, since
//! strace makes every call many times slower. The kernel is told which calls are meant (--seccomp-bpf), so that a program
//! that does much else is not stopped at each of its calls.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use super::allocators::Allocator;
use super::child::{self, Failure, Job, Limit};
use super::results::Unit;

const CALLS: &str = "trace=mmap,munmap,mremap,madvise,mprotect,brk,process_madvise";
pub const MISSING: &str = "strace 5.3 or newer, for system calls (apt-get install strace)";

pub fn is_there() -> bool {
    Command::new("strace").args(["--seccomp-bpf", "-V"]).output().is_ok_and(|output| output.status.success())
}

/// Counts by name, children and start included.
pub fn count(job: &Job, allocator: &Allocator, limit: &Limit) -> Result<BTreeMap<String, u64>, Failure> {
    let table = tempfile::NamedTempFile::new()?;
    let mut words = vec![
        "strace".into(),
        "--seccomp-bpf".into(),
        "-f".into(),
        "-qq".into(),
        "-c".into(),
        "-e".into(),
        CALLS.into(),
    ];
    words.extend(["-o".into(), table.path().into()]);
    // The variables are for the program alone: strace itself runs on the system's malloc.
    for (name, value) in child::variables_of(job, allocator) {
        let mut assignment = name;
        assignment.push("=");
        assignment.push(value);
        words.extend(["-E".into(), assignment]);
    }
    words.push("--".into());
    words.extend(job.words.iter().cloned());
    let mut command = Command::new("strace");
    command.args(&words[1..]).env_remove("LD_PRELOAD");
    if let Some(folder) = &job.folder {
        command.current_dir(folder);
    }
    child::finish(&mut command, Unit::Seconds, limit, &mut |_, _| Duration::from_millis(50))?;
    Ok(parse(&fs::read_to_string(table.path()).context("strace left no table")?))
}

/// Lines of `% time, seconds, usecs/call, calls, [errors,] syscall`.
fn parse(table: &str) -> BTreeMap<String, u64> {
    let line = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (name, calls) = (*fields.last()?, fields.get(3)?.parse().ok()?);
        (fields.len() >= 5 && name != "total").then(|| (name.to_string(), calls))
    };
    table.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 70,00    0.000079           5        14           mmap
 20.00    0.000020           4         5         2 madvise
 10.00    0.000010           3         3           brk
------ ----------- ----------- --------- --------- ----------------
100.00    0.000109           4        22         2 total
";

    #[test]
    fn calls_are_read() {
        let expected = [("brk", 3), ("madvise", 5), ("mmap", 14)];
        let expected: BTreeMap<String, u64> = expected.map(|(name, calls)| (name.to_string(), calls)).into();
        assert_eq!(parse(TABLE), expected);
        assert!(parse("").is_empty());
    }
}
