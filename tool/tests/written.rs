//! What snug writes: nothing is lost that was there, and what cannot be written is told with its name.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::process::{CommandExt, ExitStatusExt};

use crate::common::{assert_refused, stderr, stdout, Place};

#[test]
fn statistics_go_where_links_lead() {
    let place = Place::new();
    fs::create_dir(place.path("d")).unwrap();
    fs::write(place.path("real.json"), "old").unwrap();
    symlink("../real.json", place.path("d/link.json")).unwrap();
    let output = place.output(&["run", "--stats=d/link.json", "true"]);
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
    assert!(place.path("d/link.json").is_symlink());
    assert!(fs::read_to_string(place.path("real.json")).unwrap().starts_with("{\"schema\""));
    // The link of /dev/stdout is not touched, nor is what the command has printed.
    symlink("/proc/self/fd/1", place.path("out.txt")).unwrap();
    let mut command = place.snug(&["run", "--stats=out.txt", "echo", "ran"]);
    let status = command.stdout(fs::File::create(place.path("f")).unwrap()).status().unwrap();
    let printed = fs::read_to_string(place.path("f")).unwrap();
    assert!(status.success() && printed.starts_with("ran\nsnug: 1 process\n"), "{printed}");
    assert!(place.path("out.txt").is_symlink());
}

#[test]
fn a_file_for_each_process_is_tried_before() {
    let place = Place::new();
    let output = place.output(&["run", "--stats=no/x.%p.json", "sh", "-c", "echo ran"]);
    assert_refused(&output, 125, &["cannot be written"]);
    assert_eq!(stdout(&output), "");
}

/// What fails when the command has ended well is snug's failure; a command that failed says more.
#[test]
fn what_cannot_be_written_in_the_end_is_the_end_of_a_command_that_ended_well() {
    let place = Place::new();
    for (wanted, file) in [("profile", "-o=d/p.pb.gz"), ("run", "--stats=d/s.json")] {
        for (command, status) in [("rm -r d", 125), ("rm -r d; exit 7", 7)] {
            fs::create_dir(place.path("d")).unwrap();
            let output = place.output(&[wanted, file, "sh", "-c", command]);
            let said = stderr(&output);
            assert_eq!(output.status.code(), Some(status), "{wanted}: {said}");
            assert!(said.contains("cannot be written: No such file"), "{wanted}: {said}");
        }
    }
}

#[test]
fn one_report_that_cannot_be_written_leaves_the_others() {
    let place = Place::new();
    let words = ["compare", "--rounds", "1", "--warmup", "0", "--json", "/dev/full", "--csv", "c.csv", "true"];
    assert_refused(&place.output(&words), 1, &["/dev/full cannot be written: No space"]);
    assert_eq!(fs::read_to_string(place.path("c.csv")).unwrap().lines().count(), 3);
}

/// As `ulimit -f` has it; a command that snug runs gets the signal as ever.
#[test]
fn a_file_that_would_be_too_large_is_told() {
    let place = Place::new();
    assert_eq!(place.output(&["run", "true"]).status.code(), Some(0)); // the library is written before
    let limited = |words: &[&str]| {
        let mut command = place.snug(words);
        // SAFETY: setrlimit may be called between fork and exec.
        unsafe {
            command.pre_exec(|| {
                libc::setrlimit(libc::RLIMIT_FSIZE, &libc::rlimit { rlim_cur: 0, rlim_max: 0 });
                Ok(())
            });
        }
        command
    };
    assert_refused(&limited(&["man", "--to", "."]).output().unwrap(), 1, &["snug.1 cannot be written: File too large"]);
    let output = limited(&["options"]).stdout(fs::File::create(place.path("o")).unwrap()).output().unwrap();
    assert_refused(&output, 1, &["standard output: File too large"]);
    let output = limited(&["run", "sh", "-c", "exec /bin/echo ran >f"]).output().unwrap();
    assert_eq!(output.status.signal(), Some(libc::SIGXFSZ), "{}", stderr(&output));
}

#[test]
fn what_cannot_be_said_is_told() {
    let place = Place::new();
    for words in [&["--version"][..], &["options"]] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = place.snug(words).stdout(full).output().unwrap();
        assert_refused(&output, 1, &["cannot write to the standard output: No space left on device"]);
    }
}

/// The word behind `--json` is its FILE, also where the command was meant.
#[test]
fn what_is_no_report_is_not_written_over() {
    let place = Place::new();
    let program = "#!/bin/sh\nexit 0\n";
    place.write("prog", program, 0o755);
    let output = place.output(&["compare", "--rounds", "1", "--json", "./prog", "true"]);
    assert_refused(&output, 2, &["./prog is there and is no report"]);
    assert_eq!(fs::read_to_string(place.path("prog")).unwrap(), program);
    for _again in 0..2 {
        let words = ["compare", "--rounds", "1", "--warmup", "0", "--json", "c.json", "--markdown", "c.md", "true"];
        assert_eq!(place.output(&words).status.code(), Some(0));
    }
}
