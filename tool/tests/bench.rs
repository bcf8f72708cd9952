//! `snug bench`, on a stand-in for a workload that prints times by the allocator that is preloaded.

mod common;

use std::process::Command;

use common::{assert_refused, stderr, stdout, text, Place};

const WORKLOAD: &str = r#"#!/bin/sh
case "$LD_PRELOAD" in
    "") ns=4.5;;
    *libsnug*) ns=3.0;;
    *libbroken*) echo "it broke" >&2; exit 9;;
    *) ns=6.0;;
esac
echo "$1 ${LD_PRELOAD##*/}" >> "$RUNS"
echo "row=$1 ops=1000 ns_per_op=$ns peak_rss_kib=2048"
"#;

fn bench(place: &Place, args: &[&str]) -> Command {
    place.write("pairs", WORKLOAD, 0o755);
    let mut command = place.snug(&[&["bench", "--no-system-calls"], args].concat());
    command.env("SNUG_WORKLOADS", place.dir.path()).env("RUNS", place.path("runs"));
    command
}

fn peer(place: &Place, name: &str) -> String {
    let library = place.compile(&format!("lib{name}.so"), "int nothing;", &["-shared", "-fPIC"]);
    format!("{name}={}", text(&library))
}

/// The cell of an allocator in the first line of the first table, which is that of times.
fn time_of(text: &str, name: &str) -> String {
    let cells = |line: &str| line.trim_matches('│').split('┆').map(|cell| cell.trim().to_string()).collect::<Vec<_>>();
    let mut lines = text.lines().skip_while(|line| !line.starts_with('│'));
    let names = cells(lines.next().unwrap_or_else(|| panic!("{text}")));
    let first = cells(lines.nth(1).unwrap());
    let place = names.iter().position(|other| other == name).unwrap_or_else(|| panic!("no {name} in {text}"));
    first[place].clone()
}

#[test]
fn ratios_to_snug() {
    let place = Place::new();
    let json = place.path("out.json");
    let peer = peer(&place, "mine");
    let args = ["--rounds", "3", "--only", "pairs/reverse-100", "--peer", &peer, "--json", text(&json)];
    let output = bench(&place, &args).output().unwrap();
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
    let table = stdout(&output);
    for (name, time) in [("system", "1.50 ±0.00"), ("snug", "3.00 ±0%*"), ("mine", "2.00 ±0.00")] {
        assert_eq!(time_of(&table, name), time, "{table}");
    }
    assert!(!table.contains("in-order"), "{table}");

    let values: serde_json::Value = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
    assert_eq!(values["settings"]["rounds"], 3);
    assert_eq!(values["rows"][0]["series"][1]["figures"].as_array().unwrap().len(), 3);
    assert_eq!(values["rows"][0]["series"][1]["figures"][2]["time"], 3.0);
}

#[test]
fn allocators_take_turns() {
    let place = Place::new();
    let output =
        bench(&place, &["--rounds", "2", "--only", "pairs/reverse-100,pairs/in-order-10000"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let runs = std::fs::read_to_string(place.path("runs")).unwrap();
    let runs: Vec<&str> = runs.lines().collect();
    let count = runs.len() / 4; // 2 rows, 2 rounds
    assert!(count >= 2 && runs.len() == 4 * count, "{runs:?}");
    assert!(runs[0] == "reverse-100 " && runs[1].starts_with("reverse-100 libsnug"), "{runs:?}");
    assert!(runs[count] == "in-order-10000 ", "{runs:?}");
    // The second round begins with the second allocator.
    assert!(runs[2 * count].starts_with("reverse-100 libsnug") && runs[3 * count - 1] == "reverse-100 ", "{runs:?}");
}

#[test]
fn a_failing_allocator_is_shown_as_failed() {
    let place = Place::new();
    let peer = peer(&place, "broken");
    let output = bench(&place, &["--rounds", "2", "--only", "pairs/in-order-10000", "--peer", &peer]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(time_of(&stdout(&output), "broken"), "failed", "{}", stdout(&output));
    assert!(
        stdout(&output).contains("FAILED: pairs/in-order-10000 on broken: exit status: 9; it broke"),
        "{}",
        stdout(&output)
    );
    assert_eq!(time_of(&stdout(&output), "system"), "1.50");
}

#[test]
fn a_peer_that_does_not_load_is_refused() {
    let place = Place::new();
    let library = place.write("libtext.so", "no library", 0o755);
    let output = bench(&place, &["--only", "pairs", "--peer", &format!("text={}", text(&library))]).output().unwrap();
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
    assert_refused(&output, 1, &["there is no row filo; the families are: pairs, "]);
    let output = bench(&place, &["--workloads", "/no/such"]).output().unwrap();
    assert_refused(&output, 1, &["there are no workloads in /no/such", "./dev build"]);
}
