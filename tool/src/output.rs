//! What snug itself says, in a terminal or a pipe, and how it says what went wrong.

use std::env;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use ratatui::crossterm::terminal;

use crate::period::seconds;

/// As the name of a file: the standard output.
pub const STANDARD: &str = "-";

pub fn is_standard(path: &Path) -> bool {
    path == Path::new(STANDARD)
}

/// Prints to standard output; a full disk is an error that says so.
pub fn print(bytes: &[u8]) -> Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).context("cannot write to the standard output")
}

/// Prints lines for a person: on a terminal none is longer than that is wide, and words stay whole.
pub fn say(lines: &str) -> Result<()> {
    print(terminal_width().map_or(lines.to_string(), |width| fitted(lines, width)).as_bytes())
}

/// The same on the standard error.
pub fn complain(lines: &str) {
    let width = io::stderr().is_terminal().then(|| terminal::size().ok()).flatten().map(|size| usize::from(size.0));
    let lines = width.filter(|&width| width >= WIDTH_LEAST).map_or(lines.to_string(), |width| fitted(lines, width));
    let _ = io::stderr().write_all(lines.as_bytes()); // it cannot be said anywhere that this cannot
}

fn fitted(lines: &str, width: usize) -> String {
    lines.lines().map(|line| filled(line, width) + "\n").collect()
}

pub fn cannot_write(path: &Path) -> String {
    format!("{} cannot be written", path.display())
}

pub fn cannot_run(path: &Path) -> String {
    format!("{} cannot be run", path.display())
}

pub fn cannot_read(path: &Path) -> String {
    format!("{} cannot be read", path.display())
}

/// What went wrong, in one line: causes behind colons, without the system's numbers of errors, which say nothing that
/// their words do not.
pub fn told(error: &anyhow::Error) -> String {
    let text = format!("{error:#}");
    let mut parts = text.split(" (os error ");
    let mut told = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let rest = part.trim_start_matches(|one: char| one.is_ascii_digit());
        told.push_str(rest.strip_prefix(')').unwrap_or(rest));
    }
    told
}

/// Of what is done whatever becomes of the rest: the last error is returned, and those before it are told here.
pub fn last_error(done: impl IntoIterator<Item = Result<()>>) -> Result<()> {
    let mut last = Ok(());
    for error in done.into_iter().filter_map(Result::err) {
        if let Err(before) = std::mem::replace(&mut last, Err(error)) {
            complain(&format!("snug: {}\n", told(&before)));
        }
    }
    last
}

/// A text that others have made, as it may be shown in a terminal: what would move about there is spelled out.
pub fn shown(text: &str) -> String {
    let moves = |character: char| {
        let turns = matches!(character, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        turns || character.is_control()
    };
    text.chars().map(|one| if moves(one) { one.escape_default().to_string() } else { one.to_string() }).collect()
}

/// `1 thread`, `2 threads`.
pub fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// With commas between thousands.
pub fn grouped(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut grouped = String::new();
    for (place, digit) in whole.chars().enumerate() {
        if digit.is_ascii_digit() && !grouped.is_empty() && !grouped.ends_with('-') && (whole.len() - place) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped + rest
}

/// Whether something can be drawn on the terminal, by moving about on it.
pub fn can_draw(on_it: bool) -> bool {
    on_it && env::var_os("TERM").is_some_and(|name| !name.is_empty() && name != "dumb")
}

/// Whether the user wants no colours (no-color.org).
pub fn is_plain() -> bool {
    env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}

/// Where bars of progress go: to the terminal, if there is one that they can be drawn on.
pub fn progress() -> ProgressDrawTarget {
    match can_draw(io::stderr().is_terminal()) {
        true => ProgressDrawTarget::stderr(),
        false => ProgressDrawTarget::hidden(),
    }
}

/// A bar of progress with the time left; `what` may have {pos} and {len}.
pub fn bar(steps: u64, what: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(&format!("{{wide_bar}} {what}, {{eta}} left"));
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::with_draw_target(Some(steps), progress()).with_style(style)
}

/// A line that counts the seconds of something of which only the most that it takes is known; it goes when it is dropped.
pub fn waiting(what: &str, most: Duration) -> impl Drop {
    struct Waiting(ProgressBar);
    impl Drop for Waiting {
        fn drop(&mut self) {
            self.0.finish_and_clear();
        }
    }
    let most = seconds(most);
    let style = ProgressStyle::with_template(&format!("{{spinner}} {what}: {{elapsed}} of {most} at most"));
    let bar = ProgressBar::with_draw_target(None, progress());
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
    if !bar.is_hidden() {
        bar.enable_steady_tick(Duration::from_secs(1));
    }
    Waiting(bar)
}

/// In a pipe, and on a terminal that does not say.
pub const WIDTH: usize = 80;

/// Columns that a text can have: fewer are no room for any table.
const WIDTH_LEAST: usize = 40;

/// The columns of the terminal that the standard output is, or else those that COLUMNS says, as for ps and ls.
pub fn terminal_width() -> Option<usize> {
    let size = io::stdout().is_terminal().then(|| terminal::size().ok()).flatten();
    let said = || env::var("COLUMNS").ok()?.parse().ok();
    size.map(|size| usize::from(size.0))
        .filter(|&columns| columns > 0)
        .or_else(|| said().filter(|&it| it >= WIDTH_LEAST))
}

/// Units, which stay on the line of their number.
const UNITS: [&str; 8] = ["%", "B", "KiB", "MiB", "GiB", "TiB", "s", "ms"];

/// With line ends put where lines would be longer than `width`; words stay whole, and so do numbers with their units.
pub fn filled(text: &str, width: usize) -> String {
    let mut joined = String::new();
    for word in text.split_whitespace() {
        let bare = word.trim_end_matches([',', '.', ';', ':', ')']);
        let gap = if UNITS.contains(&bare) { NO_BREAK } else { ' ' };
        if !joined.is_empty() {
            joined.push(gap);
        }
        joined.push_str(word);
    }
    let options = textwrap::Options::new(width).break_words(false);
    let options = options.word_splitter(textwrap::WordSplitter::NoHyphenation);
    textwrap::fill(&joined, options.wrap_algorithm(textwrap::WrapAlgorithm::FirstFit)).replace(NO_BREAK, " ")
}

/// A space at which no line ends.
const NO_BREAK: char = '\u{a0}';

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_told_without_numbers() {
        let error = anyhow::Error::new(io::Error::from_raw_os_error(libc::ENOENT));
        assert_eq!(told(&error.context("x cannot be read")), "x cannot be read: No such file or directory");
        assert_eq!(told(&anyhow::anyhow!("nothing (of that)")), "nothing (of that)");
    }

    #[test]
    fn thousands_are_grouped() {
        assert_eq!((grouped(1234567.0, 0), grouped(999.0, 1)), ("1,234,567".into(), "999.0".into()));
        assert_eq!((grouped(-123456.0, 0), grouped(-1234.5, 1)), ("-123,456".into(), "-1,234.5".into()));
    }

    #[test]
    fn lines_are_filled() {
        assert_eq!(filled("a bb ccc", 4), "a bb\nccc");
        assert_eq!(filled("aaaaaa b", 4), "aaaaaa\nb");
        assert_eq!(filled("", 4), "");
        assert_eq!(filled("of it 5 % (2.5 MiB), a-b", 7), "of it\n5 %\n(2.5 MiB),\na-b");
        assert_eq!(fitted("a bb ccc\n\nd", 4), "a bb\nccc\n\nd\n");
    }
}
