//! `snug top` in terminals of three sizes, and printed.

use std::thread::sleep;
use std::time::Duration;

use crate::common::running::{holder, in_terminals, Running, Terminal, HOLDER};
use crate::common::{assert_clean, assert_refused, stdout, text, Place, Tests, SNUG};
use libtest_mimic::{Completion, Failed};

pub fn tests() -> Tests {
    let mut tests = in_terminals(vec![
        ("all_programs_and_one_of_them", all_programs_and_one_of_them),
        ("on_a_screen_of_80_by_24", |place| on_a_screen(place, 80, 24)),
        ("on_a_screen_of_200_by_50", |place| on_a_screen(place, 200, 50)),
        ("on_a_screen_of_60_by_12", |place| on_a_screen(place, 60, 12)),
        ("rows_are_sorted_and_filtered", rows_are_sorted_and_filtered),
        ("the_page_of_sites", the_page_of_sites),
        ("it_can_pause", it_can_pause),
    ]);
    tests.push(("printed", printed));
    tests
}

fn start(terminal: &Terminal, (columns, rows): (usize, usize), arguments: &str) {
    let command = format!("{SNUG} top {arguments}; echo ended $?; sleep 60");
    let (columns, rows) = (columns.to_string(), rows.to_string());
    terminal.tmux(&["-f", "/dev/null", "new-session", "-d", "-x", &columns, "-y", &rows, &command]);
}

/// Programs of two names, of which the second has less in use.
fn two(place: &Place) -> [Running; 2] {
    let source = HOLDER.replace("5000000", "700000");
    let smaller = place.compile("smaller", &source, &["-O1", "-w", "-fno-builtin"]);
    [holder(place), Running::start(place.snug(&["run", text(&smaller)]))]
}

fn line_with<'a>(screen: &'a str, part: &str) -> &'a str {
    screen.lines().find(|line| line.contains(part)).unwrap_or_else(|| panic!("{part} is not in {screen}"))
}

fn all_programs_and_one_of_them(place: &Place) -> Result<Completion, Failed> {
    let [larger, smaller] = two(place);
    let terminal = Terminal(place);
    start(&terminal, (120, 30), "--every 0.2");
    terminal.screen_with(&larger.pid());
    // Others may run on snug here, too.
    terminal.tmux(&["send-keys", "/", "place_of_the_test"]);
    terminal.screen_with("only: place_of_the_test_");
    terminal.tmux(&["send-keys", "Escape"]);
    // Before the next key: together they would be one, with Alt.
    terminal.screen_with(&larger.pid());
    terminal.tmux(&["send-keys", "/", place.dir.path().file_name().unwrap().to_str().unwrap(), "Enter"]);
    let screen = terminal.screen_with(&smaller.pid());
    assert!(line_with(&screen, &larger.pid()).contains("holder"), "{screen}");
    let place_of = |screen: &str, pid: &str| screen.find(pid).unwrap();
    assert!(place_of(&screen, &larger.pid()) < place_of(&screen, &smaller.pid()), "{screen}");
    terminal.tmux(&["send-keys", "r"]);
    terminal.screen_with("▴");
    let screen = terminal.screen_with(&larger.pid());
    assert!(place_of(&screen, &larger.pid()) > place_of(&screen, &smaller.pid()), "{screen}");
    terminal.tmux(&["send-keys", "Home", "Enter"]);
    terminal.screen_with(&format!("snug: process {}", smaller.pid()));
    terminal.screen_with("Esc all");
    // One that ends leads back to the others, whether a key or a look finds it, and so does Esc.
    terminal.tmux(&["send-keys", "p"]);
    terminal.screen_with("paused");
    drop(smaller);
    terminal.tmux(&["send-keys", "t"]);
    let screen = terminal.screen_with("has ended");
    assert!(screen.contains("Enter one of them"), "{screen}");
    terminal.tmux(&["send-keys", "Enter"]);
    terminal.screen_with(&format!("snug: process {}", larger.pid()));
    terminal.tmux(&["send-keys", "Escape"]);
    terminal.screen_with("Enter one of them");
    terminal.tmux(&["send-keys", "Enter"]);
    terminal.screen_with("Esc all");
    drop(larger);
    terminal.tmux(&["send-keys", "p"]);
    terminal.screen_with("has ended");
    terminal.tmux(&["send-keys", "q"]);
    terminal.screen_with("ended 0");
    Ok(Completion::Completed)
}

fn on_a_screen(place: &Place, columns: usize, rows: usize) -> Result<Completion, Failed> {
    let mut program = holder(place);
    let terminal = Terminal(place);
    start(&terminal, (columns, rows), &format!("{} --every 0.2", program.pid()));
    let screen = terminal.screen_with("q quit");
    assert!(screen.contains(&format!("snug: process {}", program.pid())), "{screen}");
    assert!(screen.lines().count() <= rows, "{screen}");
    assert!(screen.lines().all(|line| line.chars().count() <= columns), "{screen}");
    assert!(screen.contains("CHANGE"), "{screen}");
    program.work();
    program.wait_until_ready();
    if rows >= 24 {
        let screen = terminal.screen_with("handed out 0 B/s");
        for part in
            ["holder", "in use", "waiting for threads", "peaks: segments", "to 8 MiB", "112 B", "calls/s", "faults/s"]
        {
            assert!(screen.contains(part), "{part} is not in {screen}");
        }
        // A history of some looks, as wide as there is room.
        let bars = |line: &str| line.chars().filter(|letter| ('▁'..='█').contains(letter)).count();
        let history = line_with(&terminal.screen_with("▁▁"), "waiting for threads").to_string();
        assert!(bars(&history) >= 3, "{history}");
        let end = |part: &str| line_with(&screen, part).trim_end().chars().count();
        // What stands beside the bars ends at the right edge, all of it.
        assert_eq!(end("waste inside"), columns, "{screen}");
        assert_eq!(end("waiting for threads"), columns, "{screen}");
        // Numbers stand to the right: their last letters are below each other.
        let place_of =
            |part: &str| line_with(&screen, part).split(part).next().unwrap().chars().count() + part.chars().count();
        assert_eq!(place_of("4.77 MiB"), place_of("IN USE▾"), "{screen}");
        assert_eq!(place_of("112 B"), place_of("to 8 MiB"), "{screen}");
    }
    terminal.tmux(&["send-keys", "2"]);
    let screen = terminal.screen_with("CPU %");
    if rows >= 24 {
        assert!(line_with(&screen, "sleeps").contains(&program.pid()), "{screen}");
    }
    terminal.tmux(&["send-keys", "Tab"]);
    terminal.screen_with("QUOTA");
    terminal.tmux(&["send-keys", "1"]);
    terminal.screen_with("CHANGE");
    terminal.tmux(&["send-keys", "?"]);
    let screen = terminal.screen_with("sort by another column");
    assert!(screen.lines().all(|line| line.chars().count() <= columns), "{screen}");
    terminal.tmux(&["send-keys", "?"]);
    terminal.tmux(&["send-keys", "t"]);
    terminal.screen_with("gave back");
    terminal.tmux(&["resize-window", "-x", "70", "-y", "20"]);
    // A key in the moment of the change was lost once in some 20 runs: so the new size is drawn first.
    sleep(Duration::from_millis(500));
    terminal.screen_with("q quit");
    terminal.tmux(&["send-keys", "q"]);
    terminal.screen_with("ended 0");
    Ok(Completion::Completed)
}

fn rows_are_sorted_and_filtered(place: &Place) -> Result<Completion, Failed> {
    let program = holder(place);
    let terminal = Terminal(place);
    start(&terminal, (100, 40), &format!("{} --every 0.2", program.pid()));
    let screen = terminal.screen_with("IN USE▾");
    assert!(screen.find("to 8 MiB").unwrap() < screen.find("112 B").unwrap(), "{screen}");
    terminal.tmux(&["send-keys", "<"]);
    let screen = terminal.screen_with("BLOCKS▾");
    assert!(screen.find("to 8 MiB").unwrap() > screen.find("112 B").unwrap(), "{screen}");
    terminal.tmux(&["send-keys", "/", "112"]);
    let screen = terminal.screen_with("only: 112_");
    assert!(!screen.contains("to 8 MiB") && screen.contains("112 B"), "{screen}");
    terminal.tmux(&["send-keys", "Enter"]);
    terminal.tmux(&["send-keys", "/"]);
    terminal.tmux(&["send-keys", "Escape"]);
    terminal.screen_with("to 8 MiB");
    terminal.tmux(&["send-keys", "q"]);
    terminal.screen_with("ended 0");
    Ok(Completion::Completed)
}

/// It has the program take a profile, shows it, and has it end with it.
fn the_page_of_sites(place: &Place) -> Result<Completion, Failed> {
    let source = "#include <stdlib.h>\n#include <stdio.h>\n#include <unistd.h>\n\
        __attribute__((noinline, noclone)) void keep(void) { void *p = malloc(300000); __asm__ volatile(\"\" : \"+r\"(p)); }\n\
        int main(void) { puts(\"ready\"); fflush(stdout); for (;;) { keep(); usleep(20000); } }\n";
    let growing = place.compile("growing", source, &["-O1", "-g"]);
    let program = Running::start(place.snug(&["run", "SNUG_PROFILE_BYTES=1", text(&growing)]));
    let terminal = Terminal(place);
    start(&terminal, (120, 30), &format!("{} --every 0.2", program.pid()));
    terminal.screen_with("4 sites");
    terminal.tmux(&["send-keys", "4"]);
    terminal.screen_with("no profile is taken: s begins one");
    terminal.tmux(&["send-keys", "s"]);
    terminal.screen_with("keep < main");
    sleep(Duration::from_millis(600));
    let screen = terminal.screen_with("keep < main");
    assert!(line_with(&screen, "keep < main").contains("MiB/s"), "{screen}");
    terminal.tmux(&["send-keys", "q"]);
    terminal.screen_with("ended 0");
    start(&terminal, (100, 24), &format!("{} --every 0.2", program.pid()));
    terminal.tmux(&["kill-session", "-t", "0"]);
    terminal.screen_with("4 sites");
    terminal.tmux(&["send-keys", "s"]);
    terminal.screen_with("a profile begins"); // so there was none any more
                                              // A signal ends it as well, and leaves nothing behind either.
    let shell = terminal.tmux(&["display-message", "-p", "#{pane_pid}"]).trim().to_string();
    let children = std::fs::read_to_string(format!("/proc/{shell}/task/{shell}/children")).unwrap();
    let top: i32 = children.trim().parse().unwrap();
    // SAFETY: the shell waits for it, so its number is still its own.
    unsafe { libc::kill(top, libc::SIGQUIT) };
    let screen = terminal.screen_with("ended 131");
    assert!(!screen.contains("q quit"), "the screen is as it was: {screen}");
    start(&terminal, (100, 24), &format!("{} --every 0.2", program.pid()));
    terminal.tmux(&["kill-session", "-t", "1"]);
    terminal.screen_with("4 sites");
    terminal.tmux(&["send-keys", "s"]);
    terminal.screen_with("a profile begins");
    Ok(Completion::Completed)
}

fn it_can_pause(place: &Place) -> Result<Completion, Failed> {
    let program = holder(place);
    let terminal = Terminal(place);
    start(&terminal, (80, 24), &format!("{} --every 0.1", program.pid()));
    terminal.tmux(&["send-keys", "p"]);
    terminal.screen_with("paused");
    drop(program); // and nothing is seen of it
    std::thread::sleep(std::time::Duration::from_millis(500));
    terminal.screen_with("paused");
    terminal.tmux(&["send-keys", "p"]);
    let screen = terminal.screen_with("ended 1");
    assert!(screen.contains("has ended"), "{screen}");
    Ok(Completion::Completed)
}

fn printed(place: &Place) -> Result<Completion, Failed> {
    let [larger, smaller] = two(place);
    let all = place.output(&["top", "--once"]);
    assert_clean(&all);
    let all = stdout(&all);
    assert!(all.starts_with("    PID") || all.trim_start().starts_with("PID"), "{all}");
    assert!(all.lines().all(|line| line.chars().count() <= 80), "{all}");
    // Others may run on snug here, too, and have so long numbers that 80 columns have no room for names.
    let wide = stdout(&place.snug(&["top", "--once"]).env("COLUMNS", "200").output().unwrap());
    for (program, name) in [(&larger, "holder"), (&smaller, "smaller")] {
        assert!(line_with(&wide, &program.pid()).contains(name), "{wide}");
        let names_fit = all.lines().next().is_some_and(|heading| heading.contains("PROGRAM"));
        let line = line_with(&all, &program.pid());
        assert!(line.contains(name) || (!names_fit && all.lines().count() > 3), "{all}");
    }
    let one = stdout(&place.output(&["top", &larger.pid(), "--once"]));
    for part in ["snug: process", "4.77 MiB", "to 8 MiB", "SIZE"] {
        assert!(one.contains(part), "{part} is not in {one}");
    }
    assert!(!one.contains('\u{1b}') && one.lines().all(|line| line.chars().count() <= 80), "{one}");
    // What a hardened heap has stands with the parts that it belongs to.
    let hardened = Running::start(place.snug(&["run", "SNUG_PRESET=hardened", text(&place.path("smaller"))]));
    let parts = stdout(&place.output(&["top", &hardened.pid(), "--once"]));
    assert!(!line_with(&parts, "free in slabs and spans").ends_with(" 0 B"), "{parts}");
    let row = place.output(&["top", &larger.pid(), "--batch", "--rounds", "3", "--every", "50ms"]);
    assert_clean(&row);
    let row = stdout(&row);
    assert_eq!(row.matches("snug: process").count(), 3, "{row}");
    assert!(row.contains("handed out -") && row.contains("handed out 0 B/s"), "{row}");
    assert_refused(&place.output(&["top"]), 1, &["needs a terminal", "snug top --once"]);
    assert_eq!(place.output(&["top", "--once", "--batch"]).status.code(), Some(2));
    Ok(Completion::Completed)
}
