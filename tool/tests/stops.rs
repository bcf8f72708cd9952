//! What signals to `snug compare` do to the command that it measures, and to the figures.

use std::fs;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::Duration;

use std::os::unix::process::CommandExt;

use crate::common::{text, Place};
use serde_json::Value;

/// Compares a command that takes half a second and writes its number to a file each time.
fn compare(place: &Place, rounds: &str) -> Child {
    let command = "echo $$ >> ran; exec sleep 0.5";
    let words = ["compare", "--rounds", rounds, "--warmup", "0", "--json", "c.json", "sh", "-c", command];
    // In a group of its own, whose parent is in another one: else the kernel would not stop it.
    place.snug(&words).stdout(Stdio::null()).process_group(0).spawn().unwrap()
}

fn ran(place: &Place) -> Vec<i32> {
    let text = fs::read_to_string(place.path("ran")).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

fn wait_until(done: impl Fn() -> bool) {
    for _ in 0..1000 {
        if done() {
            return;
        }
        sleep(Duration::from_millis(10));
    }
    panic!("it does not come");
}

fn signal(child: &Child, signal: i32) {
    // SAFETY: the child was not waited for.
    unsafe { libc::kill(child.id() as i32, signal) };
}

fn state(pid: i32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    Some(stat.rsplit_once(") ")?.1[..1].to_string())
}

fn figures(place: &Place) -> (Value, Vec<f64>) {
    let lab: Value = serde_json::from_slice(&fs::read(place.path("c.json")).unwrap()).unwrap();
    let series = lab["rows"][0]["series"].as_array().unwrap();
    let figures = series.iter().flat_map(|series| series["figures"].as_array().unwrap());
    let times = figures.map(|run| run["time"].as_f64().unwrap()).collect();
    (lab, times)
}

/// At Ctrl-Z the command stops, too; whoever stops snug alone does not stop it. Either way the run is done again.
#[test]
fn the_time_that_snug_is_stopped_is_not_the_commands() {
    for stop in [libc::SIGTSTP, libc::SIGSTOP] {
        let place = Place::new();
        let mut child = compare(&place, "1");
        wait_until(|| !ran(&place).is_empty());
        sleep(Duration::from_millis(50));
        signal(&child, stop);
        wait_until(|| state(child.id() as i32).as_deref() == Some("T"));
        let command = ran(&place)[0];
        wait_until(|| stop == libc::SIGSTOP || state(command).as_deref() == Some("T"));
        sleep(Duration::from_millis(900));
        assert_eq!(state(command).as_deref() == Some("T"), stop == libc::SIGTSTP);
        signal(&child, libc::SIGCONT);
        assert!(child.wait().unwrap().success());
        let (_, times) = figures(&place);
        assert_eq!((times.len(), ran(&place).len()), (2, 4), "one more for the stop, and one for the statistics");
        assert!(times.iter().all(|&time| time < 0.9), "{times:?}");
    }
}

#[test]
fn when_the_terminal_goes_what_there_is_is_kept() {
    let place = Place::new();
    let mut child = compare(&place, "1000");
    wait_until(|| ran(&place).len() == 3);
    signal(&child, libc::SIGHUP);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let (lab, times) = figures(&place);
    assert!(times.len() >= 2 && lab["ended_early"].as_str().unwrap().contains("of 1000 rounds"), "{lab}");
    assert_eq!(state(ran(&place)[2]), None, "its command was ended");
}

#[test]
fn a_command_ends_with_snug_even_if_that_is_killed() {
    let place = Place::new();
    let program = place.write("endless", "#!/bin/sh\necho $$ >> ran\nexec sleep 1000\n", 0o755);
    let mut child = place.snug(&["compare", text(&program)]).stdout(Stdio::null()).spawn().unwrap();
    wait_until(|| !ran(&place).is_empty());
    child.kill().unwrap();
    child.wait().unwrap();
    // Where nobody waits for it, it stays as what has ended.
    wait_until(|| matches!(state(ran(&place)[0]).as_deref(), None | Some("Z")));
}

/// What is run before a run is waited for no longer than a run.
#[test]
fn a_stop_while_something_is_prepared_keeps_what_there_is() {
    let place = Place::new();
    let prepare = "echo $$ >> ran; [ $(wc -l < ran) -lt 4 ] || exec sleep 1000";
    let words = ["compare", "--rounds", "9", "--warmup", "0", "--json", "c.json", "--prepare", prepare, "true"];
    let mut child = place.snug(&words).stdout(Stdio::null()).spawn().unwrap();
    wait_until(|| ran(&place).len() == 4);
    signal(&child, libc::SIGTERM);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let (lab, times) = figures(&place);
    assert_eq!((times.len(), &lab["ended_early"]), (3, &"stopped after 1 of 9 rounds".into()));
}
