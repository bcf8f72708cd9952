//! `snug trim` and `snug check` of running programs: at once, and so that the programs do not notice.

use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::common::running::{holder, json_of, Running, HOLDER};
use crate::common::{assert_clean, assert_refused, is_full, stderr, stdout, text, without_surroundings, Place};

const WITNESS: &str = include_str!("common/witness.c");

/// A program that would notice if anything were different.
fn witness(place: &Place, words: &[&str]) -> Running {
    let flags = ["-O1", "-w", "-fno-builtin", "-pthread", "-mno-red-zone"];
    let program = place.compile("witness", WITNESS, &flags);
    Running::start(place.snug(&[&["run", text(&program)], words].concat()))
}

/// It is as it should be to its end, and each of its threads has gone on with its work.
fn assert_noticed_nothing(mut program: Running) {
    program.input.take();
    let mut said = String::new();
    std::io::Read::read_to_string(&mut program.output, &mut said).unwrap();
    assert_eq!(program.child.wait().unwrap().code(), Some(0), "{said}");
    let counts: Vec<u64> = said.lines().map(|line| line.rsplit(' ').next().unwrap().parse().unwrap()).collect();
    assert!(counts.len() > 10 && counts.iter().all(|&count| count > 20), "{said}");
}

/// How many rounds, in a short run and in a full one.
fn rounds(short: usize, full: usize) -> usize {
    if is_full() {
        full
    } else {
        short
    }
}

fn resident(pid: &str) -> u64 {
    let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
    let line = rollup.lines().find(|line| line.starts_with("Rss:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

#[test]
fn a_program_that_sleeps_gives_back_at_once() {
    let place = Place::new();
    let mut program = holder(&place);
    let pid = program.pid();
    let pending = json_of(&place, &pid)["memory"]["purge_pending"].as_u64().unwrap();
    assert!(pending > 100_000, "{pending}");
    let before = resident(&pid);
    let output = place.output(&["trim", &pid]);
    assert_clean(&output);
    let said = stdout(&output);
    assert!(said.starts_with(&format!("process {pid} gave back ")), "{said}");
    assert!(said.contains("1 thread stopped meanwhile, the magazines of 1 emptied"), "{said}");
    assert!(resident(&pid) + pending / 2 < before, "{said}");
    let memory = json_of(&place, &pid)["memory"].clone();
    for gauge in ["purge_pending", "cached_small", "cached_cells", "depots"] {
        assert_eq!(memory[gauge], 0, "{memory}");
    }
    let again = stdout(&place.output(&["trim", &pid]));
    assert!(again.contains("had nothing to give back"), "{again}");
    program.work();
    program.wait_until_ready();
}

#[test]
fn a_program_at_work_does_not_notice() {
    let place = Place::new();
    let program = witness(&place, &[]);
    for round in 0..rounds(100, 10_000) {
        let command = if round % 10 == 9 { "check" } else { "trim" };
        let output = place.output(&[command, &program.pid(), "--wait", "30"]);
        assert_eq!(output.status.code(), Some(0), "{round}: {}{}", stdout(&output), stderr(&output));
    }
    assert_noticed_nothing(program);
}

/// Wherever the tool is killed, the thread that it had borrowed finds its way back.
#[test]
fn a_tool_that_is_killed_leaves_the_program_as_it_was() {
    let place = Place::new();
    let program = witness(&place, &["stopped"]);
    for _ in 0..rounds(100, 2000) {
        let mut tool =
            place.snug(&["trim", &program.pid()]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        sleep(Duration::from_micros(fastrand::u64(500..8000)));
        tool.kill().unwrap();
        tool.wait().unwrap();
    }
    sleep(Duration::from_millis(1200)); // the longest that a thread waits for whoever borrowed it
    let output = place.output(&["trim", &program.pid(), "--wait", "30"]);
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    assert_noticed_nothing(program);
}

#[test]
fn a_program_that_is_stopped_or_traced_is_asked() {
    let place = Place::new();
    let program = holder(&place);
    let pid = program.pid();
    let signal = |name: &str| assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
    signal("-STOP");
    let output = place.output(&["trim", &pid, "--wait", "0.1"]);
    assert_refused(&output, 1, &["was asked, but it is stopped, until it gets SIGCONT"]);
    assert_eq!(stdout(&output), "");
    signal("-CONT");
    // It was asked, and has not come by since; so this is still to be done, and is.
    let output = place.output(&["trim", &pid]);
    assert!(stdout(&output).contains("gave back"), "{}", stdout(&output));

    let mut tracer = Command::new("strace");
    let tracer = without_surroundings(&mut tracer).args(["-q", "-o/dev/null", "-p", &pid]).spawn();
    let Ok(mut tracer) = tracer else { return };
    let status = || std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    while status().contains("TracerPid:\t0\n") {
        sleep(Duration::from_millis(10));
    }
    let output = place.output(&["trim", &pid, "--wait", "0.1"]);
    assert_refused(&output, 1, &[&format!("process {} traces it", tracer.id())]);
    tracer.kill().unwrap();
    tracer.wait().unwrap();
}

#[test]
fn a_check_finds_damage() {
    let place = Place::new();
    let program = holder(&place);
    let output = place.output(&["check", &program.pid()]);
    assert_clean(&output);
    assert!(stdout(&output).contains("its heap is as it should be"), "{}", stdout(&output));
    let planted = HOLDER.replace(
        "    do {\n",
        "    char *volatile a = malloc(3000), *volatile b = malloc(3000);\n    free(b);\n    memset(a, 1, 3100);\n    do {\n",
    );
    let program = place.compile("damaged", &planted, &["-O1", "-w", "-fno-builtin"]);
    let program = Running::start(place.snug(&["run", text(&program)]));
    let output = place.output(&["check", &program.pid()]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stdout(&output).contains("its heap is damaged: "), "{}", stdout(&output));
    let place = stdout(&output).trim_end().rsplit(", at 0x").next().map(|it| u64::from_str_radix(it, 16).is_ok());
    assert_eq!(place, Some(true), "{}", stdout(&output));
}
