//! `snug tune`, on programs that are slow or large by the options that they see.

use crate::common::{assert_refused, stderr, stdout, text, Place};

/// Quick only with one option, small only with another; the first makes it large, too.
const PROGRAM: &str = r#"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int has(const char *name, const char *value)
{
    const char *found = getenv(name);
    return found && strcmp(found, value) == 0;
}
int main(void)
{
    size_t size = has("SNUG_DIRTY", "0") ? 1 << 20 : has("SNUG_DEPOT", "16M") ? 12 << 20 : 6 << 20;
    memset(malloc(size), 1, size);
    usleep(has("SNUG_DEPOT", "16M") ? 1000 : 120000);
}
"#;

#[test]
fn the_options_that_help_are_found_and_their_price_is_told() {
    let place = Place::new();
    let program = place.compile("program", PROGRAM, &["-O0", "-w"]);
    let json = place.path("out.json");
    let output = place.output(&["tune", "--rounds", "6", "--json", text(&json), "--", text(&program)]);
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
    let said = stdout(&output);
    let after = |mark: &str| said.split(mark).nth(1).unwrap_or_else(|| panic!("{said}")).to_string();
    let (time, memory) =
        (after("Best for time, with 95 % confidence: "), after("Best for memory, with 95 % confidence: "));
    let line = |text: &str, number: usize| text.lines().nth(number).unwrap().to_string();
    assert!(said.lines().filter(|line| line.starts_with(['│', '┌'])).all(|line| line.chars().count() <= 80), "{said}");
    assert!(line(&time, 0).contains("SNUG_DEPOT=16M"), "{said}");
    assert!(line(&time, 1).contains("less time") && line(&time, 2).contains(" memory"), "{said}");
    assert!(line(&memory, 0).contains("SNUG_DIRTY=0"), "{said}");
    assert!(line(&memory, 1).contains("less memory") && line(&memory, 2).contains(" time"), "{said}");
    assert!(line(&time, 3).contains(&format!("snug run {} -- {}", line(&time, 0), text(&program))), "{said}");
    let lab: serde_json::Value = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
    assert_eq!(lab["title"], "snug tune");
}

#[test]
fn a_program_that_no_option_helps() {
    let place = Place::new();
    let mut tune =
        place.snug(&["tune", "--rounds", "3", "--", "sh", "-c", "echo ${SNUG_STATS-none} >>seen; sleep 0.02"]);
    let output = tune.env("SNUG_STATS", "stderr").output().unwrap();
    assert_eq!((output.status.code(), stderr(&output).lines().count()), (Some(0), 1), "{}", stderr(&output));
    let seen = std::fs::read_to_string(place.path("seen")).unwrap();
    assert!(seen.lines().all(|line| line == "none"), "what is compared with is snug without options");
    // A ratio of memory may be off by a page in all three rounds; of time, by nothing that is worth a word.
    assert!(stdout(&output).contains("Best for time"), "{}", stdout(&output));
    assert!(stdout(&output).contains("SNUG_DEPOT=16M"), "{}", stdout(&output));
}

#[test]
fn a_recorded_trace() {
    let place = Place::new();
    let trace = place.path("ls.trace");
    assert!(place.output(&["record", "-q", "-o", text(&trace), "ls", "-lR", "/usr/include"]).status.success());
    let output = place.output(&["tune", "--rounds", "3", text(&trace)]);
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
    assert!(stdout(&output).contains(" ns ") && stdout(&output).contains("Best for memory"), "{}", stdout(&output));
}

#[test]
fn a_trace_that_is_cut_short() {
    let place = Place::new();
    let trace = place.path("ls.trace");
    assert!(place.output(&["record", "-q", "-o", text(&trace), "ls", "-lR", "/usr/include"]).status.success());
    let bytes = std::fs::read(&trace).unwrap();
    std::fs::write(&trace, &bytes[..bytes.len() - 10]).unwrap();
    assert_refused(&place.output(&["tune", "--rounds", "3", text(&trace)]), 1, &["ls.trace", "--whole"]);
    let output = place.output(&["tune", "--rounds", "3", "--whole", text(&trace)]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).contains("Best for memory"), "{}", stdout(&output));
}

#[test]
fn what_cannot_be_tuned() {
    let place = Place::new();
    assert_refused(&place.output(&["tune", "--whole", "sleep", "0"]), 2, &["--whole and --process are for traces"]);
    assert_refused(&place.output(&["tune", "no-such-program"]), 127, &["no-such-program"]);
    assert_refused(&place.output(&["tune", "--", "sh", "-c", "exit 3"]), 1, &["the command fails: exit status: 3\n"]);
}
