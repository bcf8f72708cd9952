//! SNUG_ settings, --stats, --version, and mistakes on the command line.

use std::fs;

use crate::common::{assert_clean, assert_refused, stderr, stdout, Place};

#[test]
fn settings_reach_the_command() {
    let place = Place::new();
    let script = "echo $SNUG_CHECK,$SNUG_MISUSE,$SNUG_STATS";
    let output = place.output(&["run", "SNUG_CHECK=full", "--stats=stdout", "SNUG_MISUSE=warn", "sh", "-c", script]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    // snug itself prints the statistics, when the command has ended.
    assert!(stdout(&output).starts_with("full,warn,\nsnug: 1 process\n"), "{}", stdout(&output));
    assert!(stdout(&place.output(&["run", "sh", "-c", script])).starts_with(",,\n"));
}

/// The library would report it as an option that does not exist.
#[test]
fn the_variable_of_the_tool_itself_is_not_passed_on() {
    let place = Place::new();
    let output =
        place.snug(&["run", "sh", "-c", "echo $SNUG_WORKLOADS"]).env("SNUG_WORKLOADS", "here").output().unwrap();
    assert_clean(&output);
    assert_eq!(stdout(&output), "\n");
}

#[test]
fn other_variables_are_refused() {
    let place = Place::new();
    for subcommand in ["run", "compare"] {
        let output = place.output(&[subcommand, "SNUG_CHECK=full", "LANG=C", "true"]);
        let status = if subcommand == "run" { 125 } else { 2 };
        assert_refused(&output, status, &["LANG=C", "begin with SNUG_"]);
    }
}

/// The library, whose environment may be older than it, would warn and go on.
#[test]
fn settings_that_the_library_does_not_know_are_refused() {
    let place = Place::new();
    let refused = |word: &str, parts: &[&str]| {
        assert_refused(&place.output(&["run", word, "true"]), 125, parts);
        assert_refused(&place.output(&["compare", word, "true"]), 2, parts);
    };
    refused("SNUG_DIRTI=1M", &["SNUG_DIRTI is not an option; did you mean SNUG_DIRTY?"]);
    refused("SNUG_MAX_MEMRY=1G", &["SNUG_MAX_MEMRY is not an option; see: snug options\n"]);
    refused("SNUG_DIRTY=much", &["SNUG_DIRTY=much is not a size"]);
    let words = ["run".as_bytes(), b"SNUG_DIRTY=\xff", b"true"].map(std::os::unix::ffi::OsStrExt::from_bytes);
    assert_refused(&place.output::<&std::ffi::OsStr>(&words), 125, &["SNUG_DIRTY=\u{fffd} is not a size"]);
    refused("SNUG_MISUSE=shout", &["SNUG_MISUSE=shout is not one of abort, warn"]);
    let output = place.snug(&["run", "true"]).env("SNUG_DIRTI", "1M").output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(stderr(&output).contains("did you mean SNUG_DIRTY?"), "{}", stderr(&output));
}

#[test]
fn a_file_name_that_promises_another_format_is_refused() {
    let place = Place::new();
    for (flag, name) in [("--stats=", "s.yaml"), ("--stats=", "s.html"), ("--plot=", "p.png"), ("--plot=", "p")] {
        let output = place.output(&["run", &format!("{flag}{name}"), "true"]);
        assert_refused(&output, 125, &[flag, name, if flag == "--stats=" { ".json" } else { ".svg" }]);
        assert!(!place.path(name).exists(), "{name}");
    }
    for name in ["s.json", "s.csv", "s.prom", "s.txt", "s"] {
        assert_clean(&place.output(&["run", &format!("--stats={name}"), "ls"]));
        assert!(place.path(name).exists(), "{name}");
    }
}

#[test]
fn usage_mistakes_have_their_own_status() {
    let place = Place::new();
    for (args, status) in [
        (vec!["run"], 125),
        (vec!["run", "--sats", "true"], 125),
        (vec!["run", "--stats=", "true"], 125),
        (vec!["compare", "--runs", "0", "true"], 2),
        (vec!["nonsense"], 2),
    ] {
        let output = place.output(&args);
        assert_eq!(output.status.code(), Some(status), "{args:?}");
        assert!(!stderr(&output).is_empty(), "{args:?}");
    }
}

/// Goes elsewhere: a file that was named from here must still be here.
const MOVER: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(void) { return chdir("elsewhere") != 0 || puts("moved") < 0; }
"#;

#[test]
fn statistics_go_to_the_named_file() {
    let place = Place::new();
    fs::create_dir(place.path("elsewhere")).unwrap();
    place.compile("mover", MOVER, &[]);
    let output = place.output(&["run", "--stats=numbers.txt", "--", "./mover"]);
    assert_clean(&output);
    assert_eq!(stdout(&output), "moved\n");
    let written = fs::read_to_string(place.path("numbers.txt")).unwrap();
    assert!(written.contains("mover (") && written.contains("\nsnug: statistics"), "{written}");
}

#[test]
fn statistics_go_to_stderr_by_default() {
    let place = Place::new();
    fs::create_dir(place.path("elsewhere")).unwrap();
    place.compile("mover", MOVER, &[]);
    let output = place.output(&["run", "--stats", "./mover"]);
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(0), "moved\n"));
    assert!(stderr(&output).contains("\nsnug: statistics"), "{}", stderr(&output));
}

#[test]
fn version_of_the_tool_and_of_the_library() {
    let place = Place::new();
    for flag in ["--version", "-V"] {
        let output = place.output(&[flag]);
        assert_clean(&output);
        let lines: Vec<String> = stdout(&output).lines().map(str::to_string).collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0], format!("snug {}", env!("CARGO_PKG_VERSION")));
        let version = lines[1].strip_prefix("libsnug ").unwrap().split(' ').next().unwrap();
        assert!(version.split('.').count() == 3 && version.starts_with(|c: char| c.is_ascii_digit()), "{}", lines[1]);
    }
}

#[test]
fn help_names_the_subcommands() {
    let place = Place::new();
    let output = place.output(&["--help"]);
    assert_clean(&output);
    for word in ["run", "compare", "bench"] {
        assert!(stdout(&output).contains(word), "{word}");
    }
    assert_clean(&place.output(&["run", "--help"]));
}
