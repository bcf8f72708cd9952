//! The overview, a line for each option, and the page of a group.

use std::fmt::Write;

use super::{Shown, GROUPS};
use crate::live::options::in_force;
use crate::output::{filled, terminal_width};

/// In a pipe.
const WIDTH: usize = 80;
/// A page is not wider: long lines are hard to read.
const WIDTH_MOST: usize = 110;
const INDENT: &str = "    ";

pub fn is_option(word: &str) -> bool {
    in_force(std::iter::empty()).iter().any(|row| row.name == word)
}

/// By groups; what is changed has a star, and what the presets would make of it stands beside.
pub fn overview(options: &[Shown], only_changed: bool) -> String {
    if options.is_empty() && only_changed {
        return "all options are at their default\n".to_string();
    }
    let mut text = format!("{:26}{:>14}{:>14}{:>12}{:>12}\n", "option", "in force", "default", "lean", "fast");
    for (group, about, _) in GROUPS {
        let members: Vec<&Shown> = options.iter().filter(|option| option.group == group).collect();
        if members.is_empty() {
            continue;
        }
        let _ = writeln!(text, "{group}: {about}");
        for Shown { name, value, default, changed, lean, fast, .. } in members {
            let mark = if *changed { "*" } else { " " };
            let [lean, fast] = [lean, fast].map(|preset| preset.as_deref().unwrap_or(""));
            let line = format!("{mark} {name:24}{value:>14}{default:>14}{lean:>12}{fast:>12}");
            let _ = writeln!(text, "{}", line.trim_end());
        }
    }
    text + "* is not at its default. What they do: snug options GROUP, or SNUG_NAME\n"
}

pub fn pages(options: &[Shown]) -> String {
    let width = terminal_width().unwrap_or(WIDTH).min(WIDTH_MOST);
    let mut text = String::new();
    for option in options {
        let mark = if option.changed { " *" } else { "" };
        let _ = writeln!(text, "{} = {}{mark}", option.name, option.value);
        let mut facts = format!("{}; default {}", option.allowed, option.default);
        for (preset, value) in [("lean", &option.lean), ("fast", &option.fast)] {
            if let Some(value) = value {
                let _ = write!(facts, "; {preset} {value}");
            }
        }
        for part in [&option.text, &facts] {
            for line in filled(part, width - INDENT.len()).lines() {
                let _ = writeln!(text, "{INDENT}{line}");
            }
        }
        text.push('\n');
    }
    text
}
