//! One program: what occupies memory, what it was at the last looks, and pages of sizes and threads.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use anyhow::Result;
use indicatif::HumanBytes;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::{Line, Span, Text};
use ratatui::Frame;

use super::facts::{self, Thread};
use super::history::History;
use super::sites;
use super::sizes::{Sizes, Walked, SIZES};
use super::table::{fitted, Order, Row, Table, Value};
use crate::live::{Depth, Heap, Program, Values};
use crate::output;
use crate::show::trim::{trim, Trimmed};

/// What occupies memory: how it is called, its mark where there are no colours (that of the text report), its colour, and
/// the gauges that are it.
const PARTS: [(&str, char, Color, &[&str]); 8] = [
    ("in use", '#', Color::Green, &["live"]),
    ("waste inside", '+', Color::Red, &["waste"]),
    ("waiting for threads", '=', Color::Cyan, &["cached_small", "cached_cells", "depots", "hardened_cached"]),
    ("free in slabs and spans", '-', Color::Blue, &["free_slabs", "free_cells", "hardened_free"]),
    ("free pages, to be purged", '~', Color::Yellow, &["purge_pending"]),
    ("metadata in use", 'm', Color::Magenta, &["metadata_used"]),
    (QUARANTINE, 'q', Color::Gray, &["hardened_waiting"]),
    (HEAPS_PART, 'h', Color::LightBlue, &["heaps_mapped"]),
];

/// Shown only where there is some: a hardened heap's.
const QUARANTINE: &str = "in quarantine";

/// Shown only of a program that has made some.
const HEAPS_PART: &str = "in heaps of its own";

/// What is shown as a rate: how it is called, its counter, and whether that counts bytes.
const RATES: [(&str, &str, bool); 5] = [
    ("handed out", "taken_bytes", true),
    ("refills", "refills", false),
    ("mmap", "mmap_calls", false),
    ("madvise", "madvise_calls", false),
    ("page faults", "minor_faults", false),
];

/// What is drawn as a line of its last looks: how it is called, and its number.
const HISTORIES: [&str; 4] = ["resident", "in use", "faults/s", "calls/s"];

/// The pages of the table, in the order of their keys.
pub const PAGES: [&str; 4] = ["sizes", "threads", "heaps", "sites"];

/// The last: it costs more to look at than the others, so that is done only while it is shown.
const HEAPS_PAGE: usize = PAGES.len() - 2;
const SITES: usize = PAGES.len() - 1;

/// A trim of tens of GiB; the screen stands still meanwhile.
const TRIM_MOST: Duration = Duration::from_secs(10);

const HEAPS: &[&str] = &["HEAPS", "BLOCKS", "IN USE", "MAPPED", "MOST OF 1", "QUOTA", "PROVIDER", "NAME"];
const THREADS: &[&str] = &["THREAD", "CPU %", "FAULTS", "STATE", "NAME"];

struct Look {
    at: Instant,
    values: Values,
    threads: Vec<Thread>,
    sizes: Sizes,
}

fn look(program: &Program, pid: i32, walked: &mut Walked) -> Result<Look> {
    let at = Instant::now();
    Ok(Look { values: walked.look(program)?, at, threads: facts::threads(pid), sizes: Sizes::default() })
}

pub struct Screen {
    pub program: Program,
    pid: i32,
    command: String,
    now: Look,
    before: Option<Look>,
    walked: Walked,
    histories: [History; HISTORIES.len()],
    pub page: usize,
    sites: sites::Page,
    orders: [Order; PAGES.len()],
    pub table: Table,
    pub note: String,
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.sites.end(&self.program);
    }
}

impl Screen {
    pub fn new(pid: i32) -> Result<Screen> {
        let mut walked = Walked::new();
        let (program, now) = Program::with_named(pid, |program| look(program, pid, &mut walked))?;
        let mut screen = Screen {
            program,
            pid,
            command: facts::command_line(pid),
            now,
            before: None,
            walked,
            histories: Default::default(),
            page: 0,
            sites: sites::Page::new(),
            orders: [Order::by(2), Order::by(1), Order::by(3), Order::by(0)],
            table: Table { columns: SIZES, rows: Vec::new() },
            note: String::new(),
        };
        screen.note_look();
        Ok(screen)
    }

    pub fn look(&mut self) -> Result<()> {
        let now = look(&self.program, self.pid, &mut self.walked)?;
        self.before = Some(std::mem::replace(&mut self.now, now));
        self.note_look();
        Ok(())
    }

    fn note_look(&mut self) {
        let calls = self.calls();
        let numbers =
            [Some(self.get("resident") as f64), Some(self.get("live") as f64), self.rate("minor_faults"), calls];
        for (history, number) in self.histories.iter_mut().zip(numbers) {
            if let Some(number) = number {
                history.add(number);
            }
        }
        self.fill();
    }

    /// Calls that the magazines did not serve by themselves.
    fn calls(&self) -> Option<f64> {
        Some(self.rate("refills")? + self.rate("flushes")? + self.rate("medium_taken")?)
    }

    pub fn order(&mut self) -> &mut Order {
        &mut self.orders[self.page]
    }

    pub fn table_and_order(&mut self) -> (&Table, &mut Order) {
        (&self.table, &mut self.orders[self.page])
    }

    pub fn turn_to(&mut self, page: usize) {
        self.page = page % PAGES.len();
        self.fill();
    }

    /// Has free memory given back, and says what came of it.
    pub fn trim(&mut self) -> Result<()> {
        let resident = |program: &Program| -> Result<u64> {
            Ok(program.values(Depth::Resident)?.get("resident_snug").unwrap_or(0))
        };
        let before = resident(&self.program)?;
        self.note = match trim(&self.program, Duration::ZERO, TRIM_MOST)? {
            Trimmed::NotYet(why) => format!("asked to give back its free memory, but {why}"),
            _ => format!("gave back {}", HumanBytes(before.saturating_sub(resident(&self.program)?))),
        };
        Ok(())
    }

    /// What is said at the foot of the screen.
    pub fn foot_note(&self) -> &str {
        match (self.note.is_empty() && self.table.rows.is_empty(), self.page) {
            (true, SITES) => self.sites.note(&self.program),
            (true, HEAPS_PAGE) => "the program has made no heaps of its own",
            _ => &self.note,
        }
    }

    /// Has the program take a profile, of which the page of sites is, or end it.
    pub fn toggle_profile(&mut self) -> Result<()> {
        self.turn_to(SITES);
        self.note = self.sites.toggle(&self.program)?.to_string();
        Ok(())
    }

    fn get(&self, name: &str) -> u64 {
        self.now.values.get(name).unwrap_or(0)
    }

    fn size(&self, name: &str) -> String {
        self.now.values.get(name).map_or("unknown".to_string(), |bytes| HumanBytes(bytes).to_string())
    }

    /// Seconds between the last two looks.
    fn seconds(&self) -> Option<f64> {
        Some((self.now.at - self.before.as_ref()?.at).as_secs_f64().max(1e-6))
    }

    /// Per second, between the last two looks.
    fn rate(&self, name: &str) -> Option<f64> {
        let before = self.before.as_ref()?;
        let more = self.now.values.get(name)?.saturating_sub(before.values.get(name)?);
        Some(more as f64 / self.seconds()?)
    }

    /// Fills the table of the page.
    fn fill(&mut self) {
        self.table = match self.page {
            0 => self.sizes(),
            1 => self.threads(),
            SITES => self.sites.table(&self.program, self.seconds()),
            _ => self.heaps(),
        };
        let count = self.table.rows.len();
        self.order().step(0, count);
    }

    fn sizes(&mut self) -> Table {
        let before = self.before.as_ref().map(|before| &before.sizes);
        self.now.sizes = Sizes::of(&self.now.values, self.now.at, &self.walked, before);
        Table { columns: SIZES, rows: self.now.sizes.rows() }
    }

    fn threads(&self) -> Table {
        let before = |tid: u64| self.before.as_ref()?.threads.iter().find(|thread| thread.tid == tid);
        let row = |thread: &Thread| {
            let (before, seconds) = (before(thread.tid), self.seconds());
            let rate = |of: &dyn Fn(&Thread) -> f64| {
                before.zip(seconds).map(|(before, seconds)| (of(thread) - of(before)) / seconds)
            };
            Row {
                key: thread.tid,
                values: vec![
                    Value::Id(thread.tid),
                    Value::Percent(rate(&|thread| 100.0 * thread.seconds)),
                    Value::Rate(rate(&|thread| thread.faults as f64)),
                    Value::Text(thread.state.to_string()),
                    Value::Text(thread.name.clone()),
                ],
            }
        };
        Table { columns: THREADS, rows: self.now.threads.iter().map(row).collect() }
    }

    /// Those of the program's own: a row for each name, provider and quota. They are apart from malloc's heap above.
    fn heaps(&self) -> Table {
        let row = |(place, heap): (usize, Heap)| Row {
            key: place as u64,
            values: vec![
                Value::Count(heap.heaps),
                Value::Count(heap.blocks),
                Value::Size(heap.live),
                Value::Size(heap.mapped),
                Value::Size(heap.peak),
                heap.quota.map_or(Value::Label("none".to_string()), Value::Size),
                Value::Text(heap.provider),
                Value::Text(if heap.name.is_empty() { "(no name)".to_string() } else { heap.name }),
            ],
        };
        Table { columns: HEAPS, rows: self.now.values.heaps().into_iter().enumerate().map(row).collect() }
    }

    /// All but the table.
    pub fn draw(&self, frame: &mut Frame, area: Rect) {
        let parts = self.parts().len() as u16;
        let [head, command, bar, table, process, rates] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(1),
            Constraint::Length(1),
            Constraint::Length(parts),
            Constraint::Length(2),
            Constraint::Length(1),
        ])
        .areas(area);
        frame.render_widget(Line::from(self.title()).bold(), head);
        frame.render_widget(Line::from(fitted(&self.command, command.width.into(), false)), command);
        frame.render_widget(self.bar(bar.width), bar);
        let [left, _, right] =
            Layout::horizontal([Constraint::Length(PARTS_WIDTH), Constraint::Length(2), Constraint::Fill(1)])
                .areas(table);
        frame.render_widget(Text::from(self.part_lines()), left);
        let lines = self.history_lines(right.width.into());
        frame.render_widget(Text::from(lines.into_iter().map(Line::from).collect::<Vec<_>>()), right);
        frame.render_widget(Text::from(self.process_lines().map(Line::from).to_vec()), process);
        frame.render_widget(Line::from(self.rate_line(rates.width.into())), rates);
    }

    /// How many lines that takes.
    pub fn height(&self) -> u16 {
        6 + self.parts().len() as u16
    }

    /// The same and the table, as plain lines.
    pub fn text(&self, width: usize) -> String {
        let mut lines = vec![self.title(), fitted(&self.command, width, false).trim_end().to_string()];
        for (name, _, _, bytes) in self.parts() {
            lines.push(format!("{name:<26}{:>12}", HumanBytes(bytes).to_string()));
        }
        lines.extend(self.process_lines());
        lines.extend(facts::limits(self.pid));
        lines.push(self.rate_line(width));
        lines.extend(self.table.lines(&self.orders[self.page], width));
        let heaps = self.heaps();
        if !heaps.rows.is_empty() {
            lines.extend(heaps.lines(&Order::by(3), width));
        }
        lines.join("\n") + "\n"
    }

    fn title(&self) -> String {
        let seconds = self.get("milliseconds") / 1000;
        format!("snug: process {}, {} s; {} mapped", self.pid, seconds, self.size("mapped"))
    }

    fn history_lines(&self, width: usize) -> Vec<String> {
        let numbers = [
            self.size("resident"),
            self.size("live"),
            Value::Rate(self.rate("minor_faults")).shown(),
            Value::Rate(self.calls()).shown(),
        ];
        let line = |((name, history), number): ((&&str, &History), String)| {
            let bars = width.saturating_sub(NAME_WIDTH + NUMBER_WIDTH);
            format!("{name:<NAME_WIDTH$}{}{number:>NUMBER_WIDTH$}", history.line(bars))
        };
        let mut lines: Vec<String> = HISTORIES.iter().zip(&self.histories).zip(numbers).map(line).collect();
        lines.extend(facts::limits(self.pid));
        lines.iter().map(|line| fitted(line, width, false)).collect()
    }

    /// Name, mark, colour and bytes.
    fn parts(&self) -> Vec<(&'static str, char, Color, u64)> {
        let sum = |gauges: &[&str]| gauges.iter().map(|gauge| self.get(gauge)).fold(0, u64::saturating_add);
        let mark = |mark| if output::is_plain() { mark } else { '█' };
        let is_there = |part: &&(&str, char, Color, &[&str])| match part.0 {
            HEAPS_PART => self.get("heaps") != 0,
            QUARANTINE => sum(part.3) != 0,
            _ => true,
        };
        let part = |&(name, letter, color, gauges): &(&'static str, _, _, _)| (name, mark(letter), color, sum(gauges));
        PARTS.iter().filter(is_there).map(part).collect()
    }

    fn part_lines(&self) -> Vec<Line<'static>> {
        let line = |(name, mark, color, bytes): (&str, char, Color, u64)| {
            let size = HumanBytes(bytes).to_string();
            Line::from(vec![
                Span::styled(mark.to_string(), Style::new().fg(color)),
                Span::raw(format!(" {name:<26}{size:>12}")),
            ])
        };
        self.parts().into_iter().map(line).collect()
    }

    /// All that occupies memory, in proportion.
    fn bar(&self, width: u16) -> Line<'static> {
        let parts = self.parts();
        let whole = parts.iter().map(|part| part.3).fold(0, u64::saturating_add).max(1);
        let column = |bytes: u64| (bytes as f64 / whole as f64 * f64::from(width)).round() as usize;
        let mut before = 0;
        let mut spans = Vec::new();
        for (_, mark, color, bytes) in parts {
            let after = u64::saturating_add(before, bytes); // a program says what it likes
            let count = column(after) - column(before);
            spans.push(Span::styled(mark.to_string().repeat(count), Style::new().fg(color)));
            before = after;
        }
        Line::from(spans)
    }

    fn process_lines(&self) -> [String; 2] {
        let mut resident = format!("resident {}", self.size("resident"));
        // Of a heap that grew or shrank while it was looked at it is not known.
        if self.now.values.get("resident_snug").is_some() {
            let (own, other) = (self.size("resident_snug"), self.size("resident_other"));
            let _ = write!(resident, ": snug's {own}, others' {other}");
        }
        if self.get("resident_excess") != 0 {
            resident = format!("{resident}, huge pages {}", self.size("resident_excess"));
        }
        let peaks = format!(
            "peaks: segments {}, pages in use {}, resident {}",
            self.size("mapped_peak"),
            self.size("used_peak"),
            self.size("resident_peak")
        );
        if self.get("heaps") != 0 {
            let heaps = output::counted(self.get("heaps") as usize, "heap");
            let _ = write!(resident, "; {heaps} of its own: {} in use", self.size("heaps_live"));
        }
        [resident, peaks]
    }

    /// As many of them as there is room for: half a number would be another one.
    fn rate_line(&self, width: usize) -> String {
        let one = |&(name, counter, bytes): &(&str, &str, bool)| match self.rate(counter) {
            None => format!("{name} -"),
            Some(rate) if bytes => format!("{name} {}/s", HumanBytes(rate as u64)),
            Some(rate) => format!("{name} {}/s", output::grouped(rate, 0)),
        };
        joined(RATES.iter().map(one), width)
    }
}

/// Columns: of the parts beside the histories, and of what stands before and behind the bars of those.
const PARTS_WIDTH: u16 = 40;
const NAME_WIDTH: usize = 9;
const NUMBER_WIDTH: usize = 12;

/// With commas between, as long as they fit.
fn joined(parts: impl Iterator<Item = String>, width: usize) -> String {
    let mut line = String::new();
    for part in parts {
        let gap = if line.is_empty() { "" } else { ", " };
        if line.chars().count() + gap.len() + part.chars().count() > width {
            break;
        }
        line = line + gap + &part;
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_number_is_cut() {
        let parts = || ["refills 12,345/s", "faults 3,931/s"].map(String::from).into_iter();
        assert_eq!(joined(parts(), 80), "refills 12,345/s, faults 3,931/s");
        assert_eq!(joined(parts(), 32), "refills 12,345/s, faults 3,931/s");
        assert_eq!(joined(parts(), 31), "refills 12,345/s");
        assert_eq!(joined(parts(), 3), "");
    }
}
