//! `snug replay --info`: what a trace holds, for people and as JSON.

use std::fmt::Write;

use indicatif::HumanBytes;
use serde::Serialize;

use super::program::{Converted, Totals};
use super::reader::{Process, Trace};
use crate::output::{counted, filled, shown, terminal_width, WIDTH};

/// How many processes and sizes are shown to people.
const LINES: usize = 10;

#[derive(Debug, Serialize)]
pub struct Summary<'a> {
    pub processes: &'a [Process],
    /// The number of the process that the rest is about.
    pub process: u32,
    pub totals: &'a Totals,
    /// Events that the recorder had no room for.
    pub lost: u64,
    pub faults: &'a [String],
    /// Pairs of a size and how often it was asked for, by size.
    pub sizes: Vec<(u64, u64)>,
}

impl<'a> Summary<'a> {
    pub fn new(trace: &'a Trace, process: u32, converted: &'a Converted) -> Summary<'a> {
        let mut sizes: Vec<(u64, u64)> = converted.sizes.iter().map(|(&size, &times)| (size, times)).collect();
        sizes.sort_unstable();
        Summary {
            processes: &trace.processes,
            process,
            totals: &converted.totals,
            lost: trace.lost,
            faults: &trace.faults,
            sizes,
        }
    }

    pub fn to_text(&self) -> String {
        let mut text = String::new();
        self.write_processes(&mut text);
        let totals = self.totals;
        let _ = writeln!(
            text,
            "\n{} operations of {}: {} allocations, {} frees, {} reallocs",
            totals.operations,
            counted(totals.threads, "thread"),
            totals.allocations,
            totals.frees,
            totals.reallocs
        );
        let _ = writeln!(
            text,
            "most live: {} in {} blocks; live at the end: {} in {}",
            HumanBytes(totals.peak_live_bytes),
            totals.peak_live_blocks,
            HumanBytes(totals.end_live_bytes),
            totals.end_live_blocks
        );
        self.write_sizes(&mut text);
        text + &self.warnings()
    }

    fn write_processes(&self, text: &mut String) {
        for process in self.processes.iter().take(LINES) {
            let chosen = if process.number == self.process { '*' } else { ' ' };
            let size = HumanBytes(process.bytes).to_string();
            let Process { number, pid, program, .. } = process;
            let threads = counted(process.threads, "thread");
            let _ =
                writeln!(text, "{chosen} process {number}, pid {pid}: {}, {threads}, {size} of events", shown(program));
        }
        if self.processes.len() > LINES {
            let _ = writeln!(text, "  and {} more", self.processes.len() - LINES);
        }
    }

    fn write_sizes(&self, text: &mut String) {
        let mut by_times = self.sizes.clone();
        by_times.sort_by_key(|&(size, times)| (std::cmp::Reverse(times), size));
        let shown = |&(size, times): &(u64, u64)| match times {
            1 => format!("{size} (once)"),
            times => format!("{size} ({times} times)"),
        };
        let shown: Vec<String> = by_times.iter().take(LINES).map(shown).collect();
        let line = format!("sizes asked for most, in bytes: {}", shown.join(", "));
        let _ = writeln!(text, "{}", filled(&line, terminal_width().unwrap_or(WIDTH)));
    }

    /// One line for each thing that makes a replay differ from the program.
    pub fn warnings(&self) -> String {
        let mut text = String::new();
        for fault in self.faults {
            let _ = writeln!(text, "Damage: {fault}");
        }
        if self.lost > 0 {
            let _ = writeln!(text, "{} events were lost while recording.", self.lost);
        }
        if self.totals.missing_frees > 0 {
            let _ = writeln!(
                text,
                "{} frees are missing; they are done when their place is used again.",
                self.totals.missing_frees
            );
        }
        if self.totals.too_large > 0 {
            let _ = writeln!(text, "Left out: {} of 1 TiB or more.", counted(self.totals.too_large as usize, "block"));
        }
        text
    }
}
