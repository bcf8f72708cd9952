//! Programs that lie to whoever looks into them: whatever stands where the tool looks, it ends soon, with a line that says
//! so or with numbers, and writes nothing that a terminal would obey.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::common::{assert_refused, is_full, nobody_looks_at_all, text, Place};

/// In a process of this size a look has some millions of reads, of which those of the page map take ten seconds.
const MOST: Duration = Duration::from_secs(50);

/// Where the program learns what the anchor is like.
const INCLUDE: &str = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/../src");

struct Liar {
    child: Child,
    said: BufReader<std::process::ChildStdout>,
}

impl Liar {
    fn new(place: &Place) -> Liar {
        let program = place.compile("liar", include_str!("hostile.c"), &["-O1", "-w", "-pthread", INCLUDE]);
        let mut command = place.snug(&["run", text(&program)]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        let mut liar = Liar { child, said };
        assert!(liar.is_ready());
        liar
    }

    fn is_ready(&mut self) -> bool {
        let mut line = String::new();
        self.said.read_line(&mut line).is_ok() && line == "ready\n"
    }

    /// Who lies about what is to be called in it may not survive that: then there is another.
    fn lie(&mut self, place: &Place, kind: &str, seed: u64) {
        let line = format!("{kind} {seed}\n"); // written at once, as it is read
        let said =
            |liar: &mut Liar| liar.child.stdin.as_mut().unwrap().write_all(line.as_bytes()).is_ok() && liar.is_ready();
        if !said(self) {
            *self = Liar::new(place);
            assert!(said(self), "{kind} {seed}");
        }
    }

    fn pid(&self) -> String {
        self.child.id().to_string()
    }
}

impl Drop for Liar {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// With its memory limited: what the other process says must not be what this one takes.
fn limited(place: &Place, arguments: &[&str]) -> (Output, Duration) {
    let mut command = place.snug(arguments);
    let mut limited = Command::new("timeout");
    limited.args(["-s", "KILL", &MOST.as_secs().to_string(), "sh", "-c", "ulimit -v 4000000; exec \"$0\" \"$@\""]);
    limited.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => limited.env(name, value),
            None => limited.env_remove(name),
        };
    }
    command.stdin(Stdio::null());
    let begun = Instant::now();
    (limited.current_dir(place.dir.path()).stdin(Stdio::null()).output().unwrap(), begun.elapsed())
}

fn assert_survives(place: &Place, arguments: &[&str], what: &str) {
    let (output, took) = limited(place, arguments);
    let both = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
    let said = String::from_utf8_lossy(&both);
    let ended = output.status.code().is_some_and(|code| code < 126 && code != 101) && output.status.signal().is_none();
    assert!(ended, "{what}: {arguments:?} after {took:?}: {:?}\n{said}", output.status);
    assert!(!said.contains("panicked"), "{what}: {arguments:?}: {said}");
    let moves = |one: char| one.is_control() && one != '\n';
    assert!(!said.chars().any(moves), "{what}: {arguments:?}: {said:?}");
    assert!(output.status.success() || !output.stderr.is_empty(), "{what}: {arguments:?} says nothing");
}

fn look_at(place: &Place, liar: &mut Liar, kind: &str, seed: u64) {
    for words in [
        "stats PID --detail",
        "stats PID --format json",
        "stats PID --format csv",
        "stats PID --format openmetrics",
        "export",
        "trim --wait 50ms --work 300ms PID",
        "check --wait 50ms --work 300ms PID",
        "profile --for 50ms PID",
    ] {
        liar.lie(place, kind, seed);
        let words = words.replace("PID", &liar.pid());
        assert_survives(place, &words.split(' ').collect::<Vec<_>>(), &format!("{kind} {seed}"));
    }
}

#[test]
fn whatever_stands_there() {
    let _alone = nobody_looks_at_all();
    let place = Place::new();
    let mut liar = Liar::new(&place);
    let honest = place.output(&["stats", &liar.pid()]);
    assert!(honest.status.success(), "{}", String::from_utf8_lossy(&honest.stderr));
    for kind in ["zero", "ones", "many", "layout", "names", "moving"] {
        look_at(&place, &mut liar, kind, 1);
    }
    if is_full() {
        look_at(&place, &mut liar, "circle", 1); // each look makes all the reads that it may: ten seconds
    }
    let rounds = if is_full() { 200 } else { 3 };
    for seed in 0..rounds {
        look_at(&place, &mut liar, "random", seed);
    }
}

/// The borrowed thread does not come back: that is said after as long as it may take.
#[cfg(target_arch = "x86_64")]
#[test]
fn work_without_end() {
    let _alone = nobody_looks_at_all();
    for command in ["trim", "check"] {
        let place = Place::new();
        let mut liar = Liar::new(&place);
        liar.lie(&place, "work", 1);
        let (output, took) = limited(&place, &[command, "--work", "200ms", &liar.pid()]);
        assert_refused(&output, 1, &["has not done it in 200ms"]);
        assert!(took < Duration::from_secs(10), "{took:?}");
    }
}
