//! Programs on snug that are looked at while they run.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use libtest_mimic::Completion;
use serde_json::Value;

use super::{assert_clean, stdout, text, Place, Test, Tests};

/// Holds blocks of known sizes, and at each line of input does a bit of work; then says "ready".
pub const HOLDER: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(void)
{
    static void *volatile kept[3000];
    char line[64] = ""; /* all of it: what ran before main() has left addresses there, of snug's too */
    for (int i = 0; i < 3000; i++)
        kept[i] = malloc(100);
    char *large = malloc(5000000);
    memset(large, 1, 5000000);
    for (int i = 0; i < 30; i++) { void *volatile p = malloc(3000000); memset(p, 1, 3000000); free(p); }
    do {
        for (int i = 0; i < 2000; i++) { void *volatile p = malloc(200000); free(p); }
        puts("ready");
        fflush(stdout);
    } while (read(0, line, sizeof(line)) > 0);
    return large[0] - 1;
}
"#;

/// A program that is ready, and is ended when this goes.
pub struct Running {
    pub child: Child,
    pub input: Option<ChildStdin>,
    pub output: BufReader<std::process::ChildStdout>,
}

impl Running {
    pub fn start(mut command: Command) -> Running {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        let mut running = Running { child, input, output };
        running.wait_until_ready();
        running
    }

    pub fn wait_until_ready(&mut self) {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
    }

    pub fn work(&mut self) {
        self.input.as_mut().unwrap().write_all(b"go\n").unwrap();
    }

    pub fn pid(&self) -> String {
        self.child.id().to_string()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.input.take();
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn holder(place: &Place) -> Running {
    let program = place.compile("holder", HOLDER, &["-O1", "-w", "-fno-builtin"]);
    Running::start(place.snug(&["run", text(&program)]))
}

pub fn json_of(place: &Place, pid: &str) -> Value {
    let output = place.output(&["stats", pid, "--format", "json"]);
    assert_clean(&output);
    serde_json::from_str(&stdout(&output)).unwrap()
}

/// Why there can be no terminals; None: there can.
pub fn no_terminals() -> Option<&'static str> {
    if Command::new("tmux").arg("-V").output().is_err() {
        return Some("no tmux");
    }
    // What is not mounted has no terminals, though tmux starts.
    (!Path::new("/dev/pts/ptmx").exists()).then_some("no /dev/pts is mounted")
}

/// Tests that need one: each is left out where there can be none.
pub fn in_terminals(tests: Tests) -> Tests {
    if no_terminals().is_none() {
        return tests;
    }
    let leave_out = |_: &Place| Ok(Completion::ignored_with(no_terminals().unwrap()));
    tests.into_iter().map(|(name, _)| (name, leave_out as Test)).collect()
}

/// A terminal of its own, in which commands run.
pub struct Terminal<'a>(pub &'a Place);

impl Terminal<'_> {
    pub fn tmux(&self, words: &[&str]) -> String {
        let socket = self.0.path("tmux");
        let mut command = Command::new("tmux");
        let output = command.args(["-S", text(&socket)]).args(words).env("LC_ALL", "C.UTF-8").output().unwrap();
        stdout(&output)
    }

    /// The screen, once it shows this and is drawn: it is the same when looked at again.
    pub fn screen_with(&self, wanted: &str) -> String {
        self.screen_when(&["capture-pane", "-p"], wanted)
    }

    /// The same of one of several sessions.
    pub fn screen_of(&self, session: &str, wanted: &str) -> String {
        self.screen_when(&["capture-pane", "-p", "-t", session], wanted)
    }

    fn screen_when(&self, capture: &[&str], wanted: &str) -> String {
        for _ in 0..200 {
            let screen = self.tmux(capture);
            sleep(Duration::from_millis(25));
            if screen.contains(wanted) && self.tmux(capture) == screen {
                return screen;
            }
            sleep(Duration::from_millis(25));
        }
        panic!("{wanted} does not come: {}", self.tmux(capture));
    }
}

impl Drop for Terminal<'_> {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}
