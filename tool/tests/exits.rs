//! Exit statuses are those of the table in `snug --help`; flags of several commands are spelled alike; and what is no
//! terminal, or a poor one, gets plain text.

use std::fs;
use std::process::Stdio;

use crate::common::running::holder;
use crate::common::{assert_refused, stderr, stdout, text, Place};
use serde_json::Value;

#[test]
fn statuses_are_those_of_the_table() {
    let place = Place::new();
    let help = stdout(&place.output(&["--help"]));
    let table = help.split("Exit status:\n").nth(1).unwrap_or_else(|| panic!("{help}"));
    let told = |status: i32| table.lines().any(|line| line.trim_start().starts_with(&format!("{status}  ")));
    place.write("old.json", "{}", 0o644);
    assert!(place.output(&["record", "-o", "a.trace", "ls", "/"]).status.success());
    assert_eq!(place.output(&["profile", "-o", "a.pb.gz", "SNUG_PROFILE_BYTES=1", "ls", "/"]).status.code(), Some(0));
    let named = |file: &std::path::PathBuf| text(file).contains("/libsnug-").then(|| format!("a={}", text(file)));
    let peer = place.cached().iter().find_map(named).unwrap();
    let cases: [(&[&str], i32); 28] = [
        (&["--version"], 0),
        (&["options"], 0),
        (&["compare", "--rounds", "1", "true"], 0),
        (&["compare", "--rounds", "1", "false"], 1),
        (&["stats", "999999999"], 1),
        (&["bench", "--compare", "old.json", "old.json"], 1),
        (&["stats", "x"], 2),
        (&["compare", "--rounds", "x", "true"], 2),
        (&["compare", "SNUG_DIRTI=1", "true"], 2),
        (&["compare", "-c", "true", "-c", "true"], 2),
        (&["options", "nonsense"], 2),
        (&["stats", "1", "--openmetrics", "--every", "1"], 2),
        (&["stats", "0"], 2),
        (&["export", "0"], 2),
        (&["replay", "--peer", "bogus", "a.trace"], 2),
        (&["bench", "--only", "nosuch"], 2),
        (&["bench", "--only", "[", "--list"], 2),
        (&["replay", "--peer", "system=/bin/true", "a.trace"], 2),
        (&["replay", "--peers", "none", "--peer", &peer, "--peer", &peer, "a.trace"], 2),
        (&["profile", "show", "a.pb.gz", "-o", "b"], 125),
        (&["profile", "growth", "a.pb.gz"], 125),
        (&["profile", "--for", "1", "0"], 125),
        (&["profile", "0", "--for", "1"], 125),
        (&["run", "SNUG_DIRTI=1", "true"], 125),
        (&["run", "--nonsense", "true"], 125),
        (&["run", "/etc"], 126),
        (&["compare", "/etc/passwd"], 126),
        (&["run", "no-such-program"], 127),
    ];
    for (arguments, status) in cases {
        let output = place.output(arguments);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {}", stderr(&output));
        assert!(told(status), "{status} is not in {table}");
    }
    assert_eq!(place.output(&["run", "--stats=f.txt", "sh", "-c", "exit 77"]).status.code(), Some(77));
    // A disk that is full is no success of what prints.
    for (words, status) in [(&["--help"][..], 1), (&["stats", "--help"], 1), (&["run", "--help"], 125)] {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let output = place.snug(words).stdout(full).output().unwrap();
        assert_refused(&output, status, &["cannot write to the standard output: No space left on device"]);
    }
    // The manual and the documentation have the same table.
    let bare = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let table = bare(table.split("\n\n").next().unwrap());
    let manual = stdout(&place.output(&["man", "snug"])).replace('\\', "");
    assert!(bare(&manual).contains(&table), "{manual}");
    let page = include_str!("../../docs/running.md");
    assert!(bare(page).contains(&table), "not in docs/running.md: {table}");
}

/// A flag that several commands have means the same in each; numbers of runs are rounds everywhere.
#[test]
fn flags_are_spelled_alike() {
    let place = Place::new();
    for command in ["compare", "bench", "tune", "replay"] {
        let help = stdout(&place.output(&[command, "--help"]));
        assert!(help.contains("--rounds <N>"), "{command}: {help}");
        assert!(!help.contains("--runs"), "{command}: {help}");
    }
    // A format without a file is printed, by commands that measure as by those that look.
    let printed = |words: &[&str]| serde_json::from_str::<Value>(&stdout(&place.output(words)));
    assert!(printed(&["compare", "--rounds", "1", "--json", "--", "true"]).unwrap()["rows"].is_array());
    assert!(printed(&["compare", "--json", "--rounds", "1", "true"]).unwrap()["rows"].is_array());
    assert!(printed(&["options", "--json"]).unwrap().is_array());
    for words in [vec!["options", "--json=a.json"], vec!["compare", "--rounds", "1", "--json=a.json", "true"]] {
        assert_eq!(place.output(&words).status.code(), Some(0), "{words:?}");
        let written = fs::read(place.path("a.json")).unwrap();
        assert!(serde_json::from_slice::<Value>(&written).is_ok(), "{words:?}");
    }
    assert_eq!(place.output(&["compare", "--runs", "1", "true"]).status.code(), Some(0), "the old name still does");
    for (command, words) in [("run", "all|none|NAME"), ("profile", "all|none|NAME"), ("record", "all|none")] {
        let help = stdout(&place.output(&[command, "--help"]));
        assert!(help.contains(&format!("--children[=<{words}>]")), "{command}: {help}");
    }
    let recorded = ["--children", "--children=all", "--children=none"].map(|children| {
        let output = place.output(&["record", children, "-q", "-o", "c.trace", "sh", "-c", "true; env true; true"]);
        assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""), "{children}");
        stdout(&place.output(&["replay", "--info", "c.trace"])).matches("pid ").count()
    });
    assert!(recorded[0] >= 2 && recorded[0] == recorded[1] && recorded[2] == 1, "{recorded:?}");
    for command in ["stats", "top", "export", "profile"] {
        let help = stdout(&place.output(&[command, "--help"]));
        assert!(help.contains("--every <TIME>"), "{command}: {help}");
    }
}

#[test]
fn statistics_in_all_formats_and_in_a_row() {
    let place = Place::new();
    let program = holder(&place);
    let pid = program.pid();
    let said = |flags: &[&str]| stdout(&place.output(&[&["stats", pid.as_str()], flags].concat()));
    assert_eq!(serde_json::from_str::<Value>(&said(&["--json"])).unwrap()["pid"].to_string(), pid);
    assert!(said(&["--csv"]).starts_with("milliseconds,pid,"));
    assert!(said(&["--openmetrics"]).ends_with("# EOF\n"));
    assert!(said(&[]).starts_with("snug: statistics of process"));
    // A file is replaced as a whole.
    let before = place.write("metrics.prom", "before", 0o640);
    let inode = |path: &std::path::Path| std::os::unix::fs::MetadataExt::ino(&fs::metadata(path).unwrap());
    // As long as somebody has it open, its number is not given to another.
    let (_open, first) = (fs::File::open(&before).unwrap(), inode(&before));
    assert_eq!(said(&["--openmetrics", "--output", "metrics.prom"]), "");
    assert!(fs::read_to_string(&before).unwrap().ends_with("# EOF\n") && inode(&before) != first);

    let mut row = place.snug(&["stats", &pid, "--csv", "--every", "50ms"]);
    let row = row.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(600));
    drop(program); // and the row ends with it
    let output = row.wait_with_output().unwrap();
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
    let lines = csv::Reader::from_reader(output.stdout.as_slice()).records().map(Result::unwrap).count();
    assert!((3..=20).contains(&lines), "{lines}");
    assert_refused(&place.output(&["stats", &pid]), 1, &["no process"]);
}

/// What is small and what children say is then kept in memory; what may be large is refused, with the folder's name.
#[test]
fn without_a_temporary_folder() {
    let place = Place::new();
    let output = |words: &[&str]| place.snug(words).env("TMPDIR", "/nonexist").output().unwrap();
    for words in [
        &["run", "SNUG_DIRTY=1MiB", "true"][..],
        &["run", "--stats", "true"],
        &["compare", "--rounds", "1", "true"],
        &["options", "SNUG_DIRTY=1MiB"],
        &["record", "-o", "ls.trace", "ls", "/"],
    ] {
        let output = output(words);
        assert!(output.status.success(), "{words:?}: {}", stderr(&output));
    }
    let output = output(&["replay", "--rounds", "1", "--peers", "none", "ls.trace"]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.ends_with("snug: no temporary file can be made in /nonexist (TMPDIR): No such file or directory\n"),
        "{said}"
    );
}
