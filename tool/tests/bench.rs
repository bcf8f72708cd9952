//! `snug bench pairs`, on a stand-in for the workload that prints times by the allocator that is preloaded.

mod common;

use std::process::Command;

use common::{assert_refused, stderr, stdout, text, Place};

const WORKLOAD: &str = r#"#!/bin/sh
case "$1" in --list) echo lifo; echo fifo; exit;; esac
case "$LD_PRELOAD" in
    "") ns=4.5;;
    *libsnug*) ns=3.0;;
    *libbroken*) echo "it broke" >&2; exit 9;;
    *) ns=6.0;;
esac
echo "$1 ${LD_PRELOAD##*/}" >> "$RUNS"
echo "row=$1 ops=1000 ns_per_op_min=$ns ns_per_op_median=$ns peak_rss_kib=2048"
"#;

fn bench(place: &Place, args: &[&str]) -> Command {
    place.write("pairs", WORKLOAD, 0o755);
    let mut command = place.snug(&[&["bench", "pairs"], args].concat());
    command.env("SNUG_WORKLOADS", place.dir.path()).env("RUNS", place.path("runs"));
    command
}

fn peer(place: &Place, name: &str) -> String {
    let library = place.compile(&format!("lib{name}.so"), "int nothing;", &["-shared", "-fPIC"]);
    format!("{name}={}", text(&library))
}

fn line_of<'a>(table: &'a str, name: &str) -> &'a str {
    table
        .lines()
        .find(|line| line.split('┆').nth(1).is_some_and(|cell| cell.trim() == name))
        .unwrap_or_else(|| panic!("{table}"))
}

#[test]
fn ratios_to_snug() {
    let place = Place::new();
    let json = place.path("out.json");
    let peer = peer(&place, "mine");
    let args = ["--rounds", "3", "--only", "lifo", "--peer", &peer, "--json", text(&json)];
    let output = bench(&place, &args).output().unwrap();
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
    let table = stdout(&output);
    for (name, time, ratio) in [("system", "4.50", "1.50"), ("snug", "3.00", "1.00"), ("mine", "6.00", "2.00")] {
        assert!(line_of(&table, name).contains(time) && line_of(&table, name).contains(ratio), "{table}");
    }
    assert!(!table.contains("fifo"), "{table}");

    let values: serde_json::Value = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
    assert_eq!(values["rounds"], 3);
    assert_eq!(values["series"][0][1]["figures"].as_array().unwrap().len(), 3);
    assert_eq!(values["series"][0][1]["figures"][2]["ns_per_op_min"], 3.0);
}

#[test]
fn allocators_take_turns() {
    let place = Place::new();
    let output = bench(&place, &["--rounds", "2"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let runs = std::fs::read_to_string(place.path("runs")).unwrap();
    let runs: Vec<&str> = runs.lines().collect();
    let count = runs.len() / 4; // 2 rows, 2 rounds
    assert!(count >= 2 && runs.len() == 4 * count, "{runs:?}");
    assert!(runs[0] == "lifo " && runs[1].starts_with("lifo libsnug"), "{runs:?}");
    assert!(runs[count] == "fifo ", "{runs:?}");
    // The second round begins with the second allocator.
    assert!(runs[2 * count].starts_with("lifo libsnug") && runs[3 * count - 1] == "lifo ", "{runs:?}");
}

#[test]
fn a_failing_allocator_is_shown_as_failed() {
    let place = Place::new();
    let peer = peer(&place, "broken");
    let output = bench(&place, &["--rounds", "2", "--only", "fifo", "--peer", &peer]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(line_of(&stdout(&output), "broken").contains("failed"), "{}", stdout(&output));
    assert!(stdout(&output).contains("FAILED: fifo on broken: exit status: 9; it broke"), "{}", stdout(&output));
    assert!(line_of(&stdout(&output), "system").contains("1.50"));
}

#[test]
fn a_peer_that_does_not_load_is_refused() {
    let place = Place::new();
    let library = place.write("libtext.so", "no library", 0o755);
    let output = bench(&place, &["--peer", &format!("text={}", text(&library))]).output().unwrap();
    assert_refused_by_loader(&stderr(&output), output.status.code());
    assert!(!place.path("runs").exists(), "it ran all the same");
}

fn assert_refused_by_loader(said: &str, status: Option<i32>) {
    assert_eq!(status, Some(1), "{said}");
    assert!(said.starts_with("snug: text cannot be preloaded"), "{said}");
}

#[test]
fn what_is_not_there() {
    let place = Place::new();
    let output = bench(&place, &["--only", "filo"]).output().unwrap();
    assert_refused(&output, 1, &["there is no row filo; the rows are: lifo, fifo"]);
    let output = bench(&place, &["--workloads", "/no/such"]).output().unwrap();
    assert_refused(&output, 1, &["there is no workload /no/such/pairs", "./dev build"]);
}
