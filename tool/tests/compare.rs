//! `snug compare` really runs the command on both, and says when it failed.

use std::fs;
use std::io::Read;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use crate::common::{assert_refused, stderr, stdout, text, Place};

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
    for part in ["system", "snug", "over system", "peak (MiB)", "faults", "3 runs on each,", "largest single process"] {
        assert!(stdout(&output).contains(part), "{part} is not in {}", stdout(&output));
    }
    assert!(!stdout(&output).contains("FAILED"));
    assert!(stdout(&output).lines().all(|line| line.chars().count() <= 80), "{}", stdout(&output));
}

#[test]
fn statistics_stand_at_the_end() {
    let place = Place::new();
    place.compile("nothing", "int main(void) { return 0; }", &[]);
    let text = stdout(&place.output(&["compare", "--runs", "1", "./nothing"]));
    let (table, statistics) = text.split_once("\nsnug's own statistics, from one more run:\n").expect(&text);
    assert!(table.contains("over system") && statistics.starts_with("snug: 1 process\n"), "{text}");
    assert!(statistics.contains("\nsnug: statistics of process"), "{text}");
}

#[test]
fn a_command_that_ends_at_once_leaves_statistics() {
    let place = Place::new();
    place.compile("abrupt", "#include <unistd.h>\nint main(void) { _exit(0); }", &[]);
    let text = stdout(&place.output(&["compare", "--runs", "1", "./abrupt"]));
    assert!(text.contains("over system") && text.contains("\nsnug: statistics of process"), "{text}");
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
    let first = text.lines().next().unwrap();
    assert!(first.starts_with("The command FAILED on snug, so the figures"), "{text}");
    assert!(!text.contains("faster") && !text.contains("slower") && !text.contains("no difference"), "{text}");
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
        let line = text.lines().find(|line| line.starts_with(" system ")).unwrap();
        line.split_whitespace().nth(5).unwrap().parse().unwrap()
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

/// Slow on the system's malloc, and twice as large on snug.
const UNEVEN: &str = r#"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(void)
{
    const char *library = getenv("LD_PRELOAD");
    int snug = library != NULL && strstr(library, "libsnug") != NULL;
    size_t size = (snug ? 8 : 4) << 20;
    memset(malloc(size), 1, size);
    usleep(snug ? 40000 : 200000);
    return 0;
}"#;

#[test]
fn the_verdict_comes_first() {
    let place = Place::new();
    place.compile("uneven", UNEVEN, &["-O0", "-w"]);
    let said = stdout(&place.output(&["compare", "--rounds", "6", "./uneven"]));
    let first = said.split("\n\n").next().unwrap().replace('\n', " ");
    assert!(first.starts_with("snug is ") && first.contains("x faster than the system's malloc ("), "{said}");
    assert!(first.contains("and its peak is ") && first.ends_with(" % higher."), "{said}");
    let factor: f64 = first["snug is ".len()..].split('x').next().unwrap().parse().unwrap();
    assert!((1.5..5.5).contains(&factor), "{said}");
    // The same on both, and so few runs that nothing is sure.
    let said = stdout(&place.output(&["compare", "--rounds", "2", "true"]));
    assert!(said.starts_with("snug seems ") && said.contains("too few"), "{said}");
}

#[test]
fn several_commands_and_allocators_in_files() {
    let place = Place::new();
    let libc = place.compile(
        "libmine.so",
        "void *__libc_malloc(unsigned long);\nvoid __libc_free(void *);\n\
         void *malloc(unsigned long size) { return __libc_malloc(size); }\nvoid free(void *p) { __libc_free(p); }\n",
        &["-shared", "-fPIC", "-w"],
    );
    let peer = format!("mine={}", text(&libc));
    let files = ["--json", "c.json", "--csv", "c.csv", "--markdown", "c.md"];
    let commands = ["-c", "echo one >> ran", "-c", "true"];
    let more = ["compare", "--rounds", "3", "--warmup", "2", "--preset", "lean,fast", "--peer", &peer];
    let output = place.output(&[&more[..], &files, &commands].concat());
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
    let said = stdout(&output);
    assert!(said.starts_with("echo one >> ran\n") && said.contains("\n\ntrue\n"), "{said}");
    for name in ["snug-lean", "snug-fast", "mine"] {
        assert_eq!(said.matches(&format!("\n {name} ")).count(), 4, "{name}: {said}");
    }
    let ran = fs::read_to_string(place.path("ran")).unwrap();
    assert_eq!(ran.lines().count(), 5 * (2 + 3) + 1); // and once for the statistics

    let lab: serde_json::Value = serde_json::from_slice(&fs::read(place.path("c.json")).unwrap()).unwrap();
    assert_eq!((&lab["title"], lab["rows"].as_array().unwrap().len()), (&"snug compare".into(), 2));
    assert_eq!(lab["rows"][1]["series"][4]["figures"].as_array().unwrap().len(), 3);
    assert_eq!(csv::Reader::from_path(place.path("c.csv")).unwrap().records().count(), 2 * 5 * 3);
    let markdown = fs::read_to_string(place.path("c.md")).unwrap();
    assert!(markdown.contains("`snug compare --markdown`") && markdown.contains("| snug-lean |"), "{markdown}");
    assert_eq!(place.output(&["bench", "--compare", "c.json", "c.json"]).status.code(), Some(0));
}

/// What is measured has the settings of the command line, and no others.
#[test]
fn settings_of_the_environment_are_left_out_and_it_is_said() {
    let place = Place::new();
    let note = r#"echo "${SNUG_FOO-none} ${SNUG_STATS-none} ${SNUG_DIRTY-none}" >>seen"#;
    let words = ["--rounds", "1", "--warmup", "0", "--preset", "lean", "SNUG_DIRTY=64M", "sh", "-c", note];
    let mut command = place.snug(&[&["compare"], &words[..]].concat());
    let output = command.envs([("SNUG_FOO", "1"), ("SNUG_STATS", "stderr"), ("SNUG_DIRTY", "1")]).output().unwrap();
    assert!(output.status.success() && stdout(&output).contains("\n snug-lean "), "{}", stdout(&output));
    assert!(stderr(&output).contains("does not get these of the environment: SNUG_DIRTY, SNUG_FOO, SNUG_STATS\n"));
    let seen = fs::read_to_string(place.path("seen")).unwrap();
    let mut seen: Vec<&str> = seen.lines().collect();
    seen.dedup();
    assert_eq!(seen, ["none none none", "none none 64M"], "{seen:?}");
}

#[test]
fn setup_and_prepare() {
    let place = Place::new();
    let flags = ["--rounds", "2", "--warmup", "0", "--setup", "echo setup >> did", "--prepare", "echo prepare >> did"];
    let output = place.output(&[&["compare"], &flags[..], &["sh", "-c", "echo run >> did"]].concat());
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
    let did = fs::read_to_string(place.path("did")).unwrap();
    assert_eq!(did, "setup\n".to_string() + &"prepare\nrun\n".repeat(4) + "run\n");
    let output = place.output(&["compare", "--prepare", "exit 4", "true"]);
    assert_refused(&output, 1, &["--prepare failed: exit 4: exit status: 4"]);
}

/// A `--prepare` that fails, or a command that is not there any more, ends the rounds and loses none of them.
#[test]
fn what_goes_wrong_later_leaves_what_was_measured() {
    let place = Place::new();
    place.write("gone", "#!/bin/sh\nexit 0\n", 0o755);
    let cases = [("[ $(wc -l < n) -lt 6 ]", "--prepare failed: "), ("[ $(wc -l < n) -lt 6 ] || rm -f gone", "./gone")];
    for (line, why) in cases {
        fs::write(place.path("n"), "").unwrap();
        let prepare = format!("echo >> n; {line}");
        let output = place.output(&[
            "compare",
            "--rounds",
            "4",
            "--warmup",
            "0",
            "--json",
            "c.json",
            "--prepare",
            &prepare,
            "./gone",
        ]);
        assert_refused(&output, 1, &[why]);
        assert!(stdout(&output).replace('\n', " ").contains("NOT COMPLETE: stopped after 2 of 4 rounds: "));
        let lab: serde_json::Value = serde_json::from_slice(&fs::read(place.path("c.json")).unwrap()).unwrap();
        assert!(lab["rows"][0]["series"][1]["figures"].as_array().unwrap().len() >= 2, "{lab}");
    }
}

#[test]
fn what_is_quoted_is_of_a_run_that_failed() {
    let place = Place::new();
    let command = "echo >> n; c=$(wc -l < n); echo \"this is run $c\" >&2; [ $c != 5 ]";
    let output = place.output(&["compare", "--rounds", "3", "--warmup", "1", "sh", "-c", command]);
    let said = stdout(&output);
    assert!(said.contains("in 1 of 3 runs\n    this is run 5\n") && !said.contains("this is run 1"), "{said}");
}

#[test]
fn at_ctrl_c_what_there_is_is_kept() {
    let place = Place::new();
    let mut command =
        place.snug(&["compare", "--rounds", "1000", "--json", "c.json", "sh", "-c", "echo >> ran; sleep 0.05"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let runs = || fs::read_to_string(place.path("ran")).map_or(0, |text| text.lines().count());
    while runs() < 9 {
        sleep(Duration::from_millis(10));
    }
    // SAFETY: the child was not waited for.
    unsafe { libc::kill(child.id() as i32, libc::SIGINT) };
    let mut said = String::new();
    child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(said.contains("NOT COMPLETE: stopped after ") && said.contains("over system"), "{said}");
    assert!(!said.contains("FAILED") && !said.contains("one more run"), "{said}");
    let lab: serde_json::Value = serde_json::from_slice(&fs::read(place.path("c.json")).unwrap()).unwrap();
    assert!(lab["ended_early"].as_str().unwrap().contains("of 1000 rounds"), "{lab}");
}
