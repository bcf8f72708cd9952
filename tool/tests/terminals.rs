//! What other commands than `snug top` show in a terminal: lines of its width, colours, and less on a poor one.

use crate::common::running::{holder, in_terminals, Terminal};
use crate::common::{text, Place, Tests, SNUG};
use libtest_mimic::{Completion, Failed};

pub fn tests() -> Tests {
    in_terminals(vec![
        ("options_in_three_widths", options_in_three_widths),
        ("compare_in_three_sizes", compare_in_three_sizes),
        ("without_colour_and_on_a_dumb_terminal", without_colour_and_on_a_dumb_terminal),
    ])
}

fn options_in_three_widths(place: &Place) -> Result<Completion, Failed> {
    let terminal = Terminal(place);
    for (name, width, most) in [("narrow", "60", 60), ("usual", "80", 80), ("wide", "200", 110)] {
        let command = format!("{SNUG} options SNUG_PURGE_DELAY SNUG_DIRTY; echo ended $?; sleep 60");
        terminal.tmux(&["-f", "/dev/null", "new-session", "-d", "-s", name, "-x", width, "-y", "50", &command]);
        let screen = terminal.screen_of(name, "ended 0");
        let longest = screen.lines().map(|line| line.trim_end().chars().count()).max().unwrap();
        assert!(longest <= most && longest > most - 25, "{longest} of {most}: {screen}");
        assert!(screen.contains("SNUG_DIRTY = 4 MiB"), "{screen}");
    }
    Ok(Completion::Completed)
}

/// On terminals of three sizes no line is wrapped, and a wide one has more columns.
fn compare_in_three_sizes(place: &Place) -> Result<Completion, Failed> {
    let terminal = Terminal(place);
    for (width, wide) in [("80", false), ("120", true), ("200", true)] {
        let cache = text(&place.cache()).to_string();
        let command = format!("XDG_CACHE_HOME={cache} {SNUG} compare --rounds 3 true; echo ended; sleep 60");
        terminal.tmux(&["-f", "/dev/null", "new-session", "-d", "-s", width, "-x", width, "-y", "60", &command]);
        let screen = terminal.screen_of(width, "ended");
        let heading = screen.lines().find(|line| line.contains("time (ms)")).unwrap_or_else(|| panic!("{screen}"));
        assert_eq!(heading.contains("most peak"), wide, "{screen}");
        // A line that is wrapped by the terminal leaves a rest that begins in the middle of a row.
        assert_eq!(screen.lines().filter(|line| line.starts_with(" system ")).count(), 1, "{screen}");
        let rows = screen.lines().skip_while(|line| !line.contains("time (ms)")).take(4);
        let words: Vec<usize> = rows.map(|line| line.split_whitespace().count()).collect();
        assert_eq!(words[2], words[3], "{screen}");
    }
    Ok(Completion::Completed)
}

fn without_colour_and_on_a_dumb_terminal(place: &Place) -> Result<Completion, Failed> {
    let program = holder(place);
    let terminal = Terminal(place);
    let start = |name: &str, variables: &str, command: &str| {
        let line = format!("{variables} {SNUG} {command}; echo ended $?; sleep 60");
        terminal.tmux(&["-f", "/dev/null", "new-session", "-d", "-s", name, "-x", "80", "-y", "24", &line]);
    };
    let coloured = |name: &str| {
        terminal
            .tmux(&["capture-pane", "-p", "-e", "-t", name])
            .split("\u{1b}[3")
            .skip(1)
            .any(|code| code.starts_with(|digit| matches!(digit, '1'..='6' | '8')))
    };
    let top = format!("top {} --every 0.2", program.pid());
    start("colour", "", &top);
    terminal.screen_of("colour", "q quit");
    assert!(coloured("colour"));
    start("none", "NO_COLOR=1", &top);
    terminal.screen_of("none", "q quit");
    assert!(terminal.screen_of("none", "q quit").contains("# in use"));
    assert!(!coloured("none"), "{}", terminal.tmux(&["capture-pane", "-p", "-e", "-t", "none"]));
    start("dumb", "TERM=dumb", &top);
    let screen = terminal.screen_of("dumb", "ended 1");
    assert!(screen.contains("needs a terminal"), "{screen}");
    let cache = text(&place.cache()).to_string();
    start("progress", &format!("TERM=dumb XDG_CACHE_HOME={cache}"), "compare --rounds 2 sleep 0.3");
    let screen = terminal.screen_of("progress", "ended 0");
    assert!(!screen.contains("s left") && screen.contains("waits for locks"), "{screen}");
    start("bar", &format!("XDG_CACHE_HOME={cache}"), "compare --rounds 9 sleep 0.3");
    terminal.screen_of("bar", "s left");
    Ok(Completion::Completed)
}
