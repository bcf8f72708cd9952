//! What `snug run --stats` says of ends that are hard to see: of a program that waits for its processor while it ends, and
//! of one that the system kills since memory is short.

use std::fs;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::common::{is_full, stderr, without_surroundings, Place, Tests, SNUG};
use libtest_mimic::{Completion, Failed};

pub fn tests() -> Tests {
    vec![
        ("who_ends_slowly_is_seen_to_the_end", who_ends_slowly_is_seen_to_the_end),
        ("killed_for_want_of_memory", killed_for_want_of_memory),
        ("killed_before_anything_was_seen", killed_before_anything_was_seen),
    ]
}

/// Ends while another process has its processor, and it gets that only when nobody else wants it.
const SLOW: &str = r#"
#define _GNU_SOURCE
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>
int main(void)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_setaffinity(0, sizeof one, &one);
    memset(malloc(6000000), 1, 6000000);
    int pipes[2];
    char byte = 0;
    pipe(pipes);
    if (fork() == 0) {
        time_t begun = time(NULL);
        write(pipes[1], &byte, 1);
        while (time(NULL) < begun + 3) /* longer than the other needs */
            ;
        _exit(0);
    }
    struct sched_param none = {0};
    read(pipes[0], &byte, 1);
    sched_setscheduler(0, SCHED_IDLE, &none);
    exit(7);
}
"#;

/// Between its last moment, of which all is known, and its end it is there for a while, and can be looked at.
fn who_ends_slowly_is_seen_to_the_end(place: &Place) -> Result<Completion, Failed> {
    place.compile("slow", SLOW, &["-O1", "-w", "-fno-builtin"]);
    for _ in 0..if is_full() { 3 } else { 1 } {
        let output = place.output(&["run", "--stats", "--plot=slow.svg", "--children=none", "./slow"]);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(7), "{said}");
        assert!(said.contains(" s (exit)") && !said.contains("was not seen"), "{said}");
        assert!(!said.contains("unknown"), "how much of it is resident is known: {said}");
    }
    Ok(Completion::Completed)
}

/// Takes a MiB at a time until it is killed.
const GREEDY: &str = r#"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int count, char **words)
{
    for (;;) {
        memset(malloc(1 << 20), 1, 1 << 20);
        if (count > 1) usleep(2000);
    }
}
"#;

/// A control group whose processes may have so many bytes; it goes with this.
struct Group(PathBuf);

impl Group {
    fn new(name: &str, most: u64) -> io::Result<Group> {
        let name = format!("snug-test-{name}-{}", std::process::id());
        let (root, limit) = match Path::new("/sys/fs/cgroup/cgroup.controllers").exists() {
            true => ("/sys/fs/cgroup", "memory.max"),
            false => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
        };
        let folder = Path::new(root).join(name);
        fs::create_dir(&folder)?;
        let group = Group(folder);
        fs::write(group.0.join(limit), most.to_string())?;
        Ok(group)
    }

    /// The command is started in it.
    fn output(&self, command: &mut Command) -> Output {
        let file = self.0.join("cgroup.procs");
        // SAFETY: the file is written to in the new process, which has one thread, by calls that are fit for that.
        unsafe { command.pre_exec(move || fs::write(&file, "0")) };
        command.output().unwrap()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0); // what is left is empty and does no harm
    }
}

fn no_group() -> Result<Completion, Failed> {
    Ok(Completion::ignored_with("no control group can be made here"))
}

fn killed_for_want_of_memory(place: &Place) -> Result<Completion, Failed> {
    place.compile("greedy", GREEDY, &["-O1", "-w", "-fno-builtin"]);
    let Ok(group) = Group::new("killed", 60 << 20) else { return no_group() };
    let script = format!("echo $$ >{}/cgroup.procs; exec ./greedy slowly", group.0.display());
    let output = place.output(&["run", "--stats", "sh", "-c", &script]);
    let said = stderr(&output);
    assert_eq!(output.status.signal(), Some(libc::SIGKILL), "{said}");
    let killed = "was killed by the system, since memory was short in its control group, which may have 60.00 MiB";
    assert!(said.contains(killed) && said.contains("to   1 MiB"), "{said}");
    // Who is killed by another is not told so.
    let output = place.output(&["run", "--stats", "sh", "-c", "kill -KILL $$"]);
    assert!(!stderr(&output).contains("memory was short"), "{}", stderr(&output));
    Ok(Completion::Completed)
}

/// The tool is in the group, too, and may be too slow there to see anything; it does not say that nothing ran on snug.
fn killed_before_anything_was_seen(place: &Place) -> Result<Completion, Failed> {
    place.compile("greedy", GREEDY, &["-O1", "-w", "-fno-builtin"]);
    let Ok(group) = Group::new("unseen", 60 << 20) else { return no_group() };
    for _ in 0..3 {
        let mut command = Command::new(SNUG);
        without_surroundings(command.args(["run", "--stats", "./greedy"])).env("XDG_CACHE_HOME", place.cache());
        let output = group.output(command.current_dir(place.dir.path()));
        let said = stderr(&output);
        assert_eq!(output.status.signal(), Some(libc::SIGKILL), "{said}");
        assert!(said.contains("memory was short") && !said.contains("none ran on snug"), "{said}");
        let seen = said.contains("snug: statistics of process");
        assert!(seen || said.contains("was gone before it could be looked at"), "{said}");
    }
    Ok(Completion::Completed)
}
