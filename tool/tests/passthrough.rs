//! Under `snug run` the program's status, signals, streams and surroundings are its own, and it and its children really
//! are on snug.

use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

use crate::common::{assert_clean, stderr, stdout, text, without_surroundings, Place, SNUG};

#[test]
fn exit_status() {
    let place = Place::new();
    assert_clean(&place.output(&["run", "true"]));
    for status in [1, 3, 125, 126, 127, 255] {
        let output = place.output(&["run", "--", "sh", "-c", &format!("exit {status}")]);
        assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(status), ""));
    }
}

#[test]
fn death_by_signal() {
    let place = Place::new();
    for (name, number) in [("KILL", libc::SIGKILL), ("TERM", libc::SIGTERM), ("SEGV", libc::SIGSEGV)] {
        let output = place.output(&["run", "sh", "-c", &format!("kill -{name} $$")]);
        assert_eq!(output.status.signal(), Some(number), "{name}");
    }
}

/// As a test leaves it that fails halfway.
#[test]
fn what_is_left_in_a_place_ends_with_it() {
    let place = Place::new();
    let mut child = place.snug(&["run", "sh", "-c", "while :; do sleep 0.02; done"]).spawn().unwrap();
    drop(place);
    assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGKILL));
}

#[test]
fn the_command_takes_the_place_of_snug() {
    let place = Place::new();
    let child = place.snug(&["run", "sh", "-c", "echo $$"]).stdout(Stdio::piped()).spawn().unwrap();
    let id = child.id().to_string();
    assert_eq!(stdout(&child.wait_with_output().unwrap()).trim(), id);
}

#[test]
fn standard_streams() {
    let place = Place::new();
    let mut command = place.snug(&["run", "--", "sh", "-c", "cat; echo said >&2"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"one\0two\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((stdout(&output).as_str(), stderr(&output).as_str()), ("one\0two\n", "said\n"));
}

#[test]
fn arguments_and_name() {
    let place = Place::new();
    let words = ["run", "--", "sh", "-c", r#"printf '%s|' "$0" "$@""#, "--", "a b", "", "--stats", "X=1", "--"];
    assert_eq!(stdout(&place.output(&words)), "--|a b||--stats|X=1|--|");
    let output = place.output(&["run", "cat", "/proc/self/cmdline"]);
    assert_eq!(stdout(&output), "cat\0/proc/self/cmdline\0");
}

/// Runs `script` in a shell that then becomes CMD, once as it is and once under snug.
fn with_and_without(place: &Place, script: &str) -> [(Option<i32>, String); 2] {
    ["", SNUG].map(|snug| {
        let run = if snug.is_empty() { "" } else { "run --" };
        let mut command = Command::new("sh");
        without_surroundings(command.args(["-c", script]))
            .env("RUN", format!("{snug} {run}"))
            .env("XDG_CACHE_HOME", place.cache());
        let output = command.current_dir(place.dir.path()).stdin(Stdio::null()).output().unwrap();
        (output.status.code(), stdout(&output) + &stderr(&output))
    })
}

#[test]
fn signal_dispositions_and_mask() {
    let place = Place::new();
    for trap in ["trap '' PIPE", "trap - PIPE", "trap '' INT HUP"] {
        let [without, with] =
            with_and_without(&place, &format!("{trap}; exec $RUN grep -E 'Sig(Ign|Blk|Cgt)' /proc/self/status"));
        assert_eq!(with, without, "{trap}");
        assert_eq!(with.1.lines().count(), 3);
    }
}

#[test]
fn closed_streams_stay_closed() {
    let place = Place::new();
    let look = "for stream in 0 1 2; do test -e /proc/$$/fd/$stream; echo $? >> state; done";
    for (closed, expected) in [("<&-", "1\n0\n0\n"), (">&-", "0\n1\n0\n"), ("2>&- <&-", "1\n0\n1\n")] {
        let script = format!("rm -f state; (exec $RUN sh -c '{look}' {closed}); cat state");
        let [without, with] = with_and_without(&place, &script);
        assert_eq!((without.1.as_str(), with.1.as_str()), (expected, expected), "{closed}");
    }
}

#[test]
fn children_run_on_snug() {
    let place = Place::new();
    let output = place.output(&["run", "sh", "-c", r#"sh -c "cat /proc/self/maps; true"; true"#]);
    assert_clean(&output);
    let library = text(&place.cached()[0]).to_string();
    assert!(library.contains("/libsnug-") && stdout(&output).contains(&library), "{}", stdout(&output));
}

#[test]
fn what_is_preloaded_already_stays_behind_snug() {
    let place = Place::new();
    let other = place.compile("libother.so", "int other;", &["-shared", "-fPIC"]);
    let nested = [SNUG, "run", "sh", "-c", "echo $LD_PRELOAD"];
    let output = place.snug(&[&["run"], &nested[..]].concat()).env("LD_PRELOAD", &other).output().unwrap();
    assert_clean(&output);
    let expected = format!("{}:{}", place.cached()[0].display(), other.display());
    assert_eq!(stdout(&output).trim(), expected);
}
