//! `snug compare` really runs the command on both, and says when it failed.

mod common;

use std::fs;
use std::process::Stdio;

use common::{assert_refused, stderr, stdout, Place};

/// Notes each run, and what is preloaded in it.
const NOTE: &str = r#"echo "${LD_PRELOAD:-none}" >> runs; "#;

/// The runs of the command in order, as S (system) and s (snug).
fn runs(place: &Place) -> String {
    let text = fs::read_to_string(place.path("runs")).unwrap();
    text.lines().map(|line| if line.contains("libsnug") { 's' } else { 'S' }).collect()
}

#[test]
fn runs_alternate_and_a_table_is_shown() {
    let place = Place::new();
    let output = place.output(&["compare", "--runs", "3", "SNUG_CHECK=full", "--", "sh", "-c", NOTE]);
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
    assert_eq!(runs(&place), "Ss".to_string() + "SssSSs" + "s"); // warm-up, rounds, statistics
    for part in ["system", "snug", "ratio", "peak memory", "faults", "on each: 3,", "largest single process"] {
        assert!(stdout(&output).contains(part), "{part} is not in {}", stdout(&output));
    }
    assert!(!stdout(&output).contains("FAILED"));
}

#[test]
fn statistics_stand_at_the_end() {
    let place = Place::new();
    place.compile("nothing", "int main(void) { return 0; }", &[]);
    let text = stdout(&place.output(&["compare", "--runs", "1", "./nothing"]));
    let (table, statistics) = text.split_once("\nsnug's own statistics, from one more run:\n").expect(&text);
    assert!(table.contains("ratio") && statistics.starts_with("snug: statistics"), "{text}");
}

#[test]
fn a_command_that_leaves_no_statistics() {
    let place = Place::new();
    place.compile("abrupt", "#include <unistd.h>\nint main(void) { _exit(0); }", &[]);
    let text = stdout(&place.output(&["compare", "--runs", "1", "./abrupt"]));
    assert!(text.contains("ratio") && text.contains("left no statistics"), "{text}");
}

#[test]
fn failures_are_shown() {
    let place = Place::new();
    let script = r#"echo what it said >&2; case "$LD_PRELOAD" in *libsnug*) exit 7;; esac"#;
    let output = place.output(&["compare", "--runs", "2", "sh", "-c", script]);
    assert_eq!(output.status.code(), Some(1));
    let text = stdout(&output);
    assert!(text.contains("FAILED on snug: exit status: 7, in 2 of 2 runs\n    what it said\n"), "{text}");
    assert!(!text.contains("FAILED on the system"), "{text}");
}

#[test]
fn every_run_reads_the_same_input() {
    let place = Place::new();
    let input = place.write("input", "some words\n", 0o644);
    let mut command = place.snug(&["compare", "--runs", "1", "sh", "-c", r#"test "$(cat)" = "some words""#]);
    let output = command.stdin(Stdio::from(fs::File::open(input).unwrap())).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
}

#[test]
fn what_the_command_prints_is_not_shown() {
    let place = Place::new();
    let output = place.output(&["compare", "--runs", "1", "sh", "-c", "echo loud; echo louder >&2"]);
    assert!(!stdout(&output).contains("loud") && stderr(&output).is_empty());
}

/// What a measured program holds is counted, and what snug itself holds is not: without care the kernel would count
/// the memory of the process that started it.
#[test]
fn peak_memory_is_that_of_the_command() {
    let place = Place::new();
    let source = r#"
        #include <stdlib.h>
        #include <string.h>
        int main(int count, char **words) {
            size_t size = count > 1 ? (size_t)atoi(words[1]) << 20 : 1;
            char *block = malloc(size);
            memset(block, 1, size);
            return block[size / 2] != 1;
        }"#;
    place.compile("hold", source, &[]);
    let peak = |mebibytes: &str| -> f64 {
        let output = place.output(&["compare", "--runs", "1", "./hold", mebibytes]);
        let text = stdout(&output);
        let line = text.lines().find(|line| line.contains("system")).unwrap();
        let cell = line.split(['│', '┆']).nth(4).unwrap();
        cell.trim().strip_suffix(" MiB").unwrap().parse().unwrap()
    };
    assert!(peak("0") < 2.0, "{}", peak("0"));
    let large = peak("64");
    assert!((64.0..68.0).contains(&large), "{large}");
}

#[test]
fn commands_that_cannot_run() {
    let place = Place::new();
    assert_refused(&place.output(&["compare", "no-such-program"]), 127, &["no-such-program was not found"]);
}
