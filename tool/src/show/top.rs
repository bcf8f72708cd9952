//! `snug top PID`: a running program's heap in the terminal, refreshed.

use std::io::{stdout, IsTerminal};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{ensure, Result};
use clap::Args;
use indicatif::HumanBytes;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Cell, Row, Table};
use ratatui::Frame;

use crate::live::{Depth, Medium, Program, Values};
use crate::output;
use crate::period::period;
use crate::show::trim::{trim, Trimmed};

/// What occupies memory: how it is called, its mark where there are no colours (that of the text report), its colour, and
/// the gauges that are it.
const PARTS: [(&str, char, Color, &[&str]); 6] = [
    ("in use", '#', Color::Green, &["live"]),
    ("waste inside", '+', Color::Red, &["waste"]),
    ("waiting for threads", '=', Color::Cyan, &["cached_small", "cached_cells", "depots"]),
    ("free in slabs and spans", '-', Color::Blue, &["free_slabs", "free_cells"]),
    ("free pages, to be purged", '~', Color::Yellow, &["purge_pending"]),
    ("metadata in use", 'm', Color::Magenta, &["metadata_used"]),
];

/// What is shown as a rate: how it is called, its counter, and whether that counts bytes.
const RATES: [(&str, &str, bool); 5] = [
    ("handed out", "taken_bytes", true),
    ("refills", "refills", false),
    ("mmap", "mmap_calls", false),
    ("madvise", "madvise_calls", false),
    ("page faults", "minor_faults", false),
];

struct Look {
    at: Instant,
    values: Values,
}

struct Screen {
    pid: i32,
    now: Look,
    before: Option<Look>,
    sizes: Sizes,
    note: String,
}

/// Medium blocks by size, which take long to find in a large heap: at most a twentieth of the time goes there.
struct Sizes {
    rows: Option<Vec<Medium>>,
    large: Option<Vec<Medium>>,
    due: Instant,
}

impl Sizes {
    fn look(&mut self, program: &Program) -> Result<Look> {
        let begun = Instant::now();
        if begun < self.due {
            return Ok(Look { values: program.values(Depth::Resident)?, at: begun });
        }
        let values = program.values(Depth::Whole)?;
        (self.rows, self.large) = (values.medium(), values.large());
        self.due = Instant::now() + 20 * begun.elapsed();
        Ok(Look { values, at: begun })
    }
}

/// Show a running program's heap in the terminal, refreshed
///
/// Keys: q ends, t asks the program to give back its free memory.
#[derive(Debug, Args)]
pub struct TopArgs {
    /// The process
    pub pid: i32,

    /// The time between two looks: 2, 0.5, 500ms
    #[arg(long, value_name = "TIME", default_value = "1", value_parser = period)]
    pub every: Duration,
}

pub fn run(args: &TopArgs) -> Result<ExitCode> {
    let program = Program::find(args.pid)?;
    let is_terminal = output::can_draw(stdout().is_terminal());
    ensure!(is_terminal, "snug top needs a terminal that it can draw on; snug stats {} prints once", args.pid);
    let mut sizes = Sizes { rows: None, large: None, due: Instant::now() };
    let now = sizes.look(&program)?;
    let mut screen = Screen { pid: args.pid, now, before: None, sizes, note: String::new() };
    let mut terminal = ratatui::init();
    let ended = show(&program, &mut screen, &mut terminal, args.every);
    ratatui::restore();
    ended.map(|()| ExitCode::SUCCESS)
}

fn show(
    program: &Program,
    screen: &mut Screen,
    terminal: &mut ratatui::DefaultTerminal,
    every: Duration,
) -> Result<()> {
    loop {
        terminal.draw(|frame| screen.draw(frame))?;
        let due = screen.now.at + every;
        while let Some(left) = due.checked_duration_since(Instant::now()) {
            if !event::poll(left)? {
                break;
            }
            match event::read()? {
                Event::Key(key) if is_end(&key) => return Ok(()),
                Event::Key(key) if key.code == KeyCode::Char('t') => {
                    screen.note = trimmed(program)?;
                    terminal.draw(|frame| screen.draw(frame))?;
                }
                Event::Resize(..) => {
                    terminal.draw(|frame| screen.draw(frame))?;
                }
                _ => {}
            }
        }
        let now = screen.sizes.look(program)?;
        screen.before = Some(std::mem::replace(&mut screen.now, now));
    }
}

fn is_end(key: &KeyEvent) -> bool {
    let control_c = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
    key.kind == KeyEventKind::Press && (control_c || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc))
}

impl Screen {
    fn get(&self, name: &str) -> u64 {
        self.now.values.get(name).unwrap_or(0)
    }

    fn size(&self, name: &str) -> String {
        self.now.values.get(name).map_or("unknown".to_string(), |bytes| HumanBytes(bytes).to_string())
    }

    /// Per second, between the last two looks.
    fn rate(&self, name: &str) -> Option<f64> {
        let before = self.before.as_ref()?;
        let seconds = (self.now.at - before.at).as_secs_f64();
        let more = self.now.values.get(name)?.saturating_sub(before.values.get(name)?);
        Some(more as f64 / seconds)
    }

    fn draw(&self, frame: &mut Frame) {
        let parts = PARTS.len() as u16;
        let [head, bar, table, process, rates, classes, foot] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(1),
            Constraint::Length(parts),
            Constraint::Length(2),
            Constraint::Length(1),
            Constraint::Min(3),
            Constraint::Length(1),
        ])
        .areas(frame.area());
        let seconds = self.get("milliseconds") / 1000;
        let title = format!("snug: process {}, {} s; {} mapped", self.pid, seconds, self.size("mapped"));
        frame.render_widget(Line::from(title).bold(), head);
        frame.render_widget(self.bar(bar.width), bar);
        self.draw_parts(frame, table);
        frame.render_widget(ratatui::text::Text::from(self.process_lines()), process);
        frame.render_widget(self.rate_line(), rates);
        self.draw_classes(frame, classes);
        let keys = format!("q quit   t trim   {}", self.note);
        frame.render_widget(Line::from(keys).dim(), foot);
    }

    /// Name, mark, colour and bytes.
    fn parts(&self) -> Vec<(&'static str, char, Color, u64)> {
        let sum = |gauges: &[&str]| gauges.iter().map(|gauge| self.get(gauge)).sum();
        let mark = |mark| if output::is_plain() { mark } else { '█' };
        PARTS.iter().map(|&(name, letter, color, gauges)| (name, mark(letter), color, sum(gauges))).collect()
    }

    /// All that occupies memory, in proportion.
    fn bar(&self, width: u16) -> Line<'static> {
        let parts = self.parts();
        let whole: u64 = parts.iter().map(|part| part.3).sum::<u64>().max(1);
        let column = |bytes: u64| (bytes as f64 / whole as f64 * f64::from(width)).round() as usize;
        let mut before = 0;
        let mut spans = Vec::new();
        for (_, mark, color, bytes) in parts {
            let count = column(before + bytes) - column(before);
            spans.push(Span::styled(mark.to_string().repeat(count), Style::new().fg(color)));
            before += bytes;
        }
        Line::from(spans)
    }

    fn draw_parts(&self, frame: &mut Frame, area: Rect) {
        let row = |(name, mark, color, bytes): (_, char, _, _)| {
            Row::new([
                Cell::from(mark.to_string()).fg(color),
                Cell::from(name),
                Cell::from(HumanBytes(bytes).to_string()),
            ])
        };
        let widths = [Constraint::Length(1), Constraint::Length(26), Constraint::Length(14)];
        frame.render_widget(Table::new(self.parts().into_iter().map(row), widths), area);
    }

    fn process_lines(&self) -> Vec<Line<'static>> {
        let mut resident = format!(
            "resident {}: snug's {}, others' {}",
            self.size("resident"),
            self.size("resident_snug"),
            self.size("resident_other")
        );
        if self.get("resident_excess") != 0 {
            resident = format!("{resident}, huge pages {}", self.size("resident_excess"));
        }
        let peaks = format!(
            "peaks: mapped {}, in use {}, resident {}",
            self.size("mapped_peak"),
            self.size("used_peak"),
            self.size("resident_peak")
        );
        vec![Line::from(resident), Line::from(peaks)]
    }

    fn rate_line(&self) -> Line<'static> {
        let one = |&(name, counter, bytes): &(&str, &str, bool)| match self.rate(counter) {
            None => format!("{name} -"),
            Some(rate) if bytes => format!("{name} {}/s", HumanBytes(rate as u64)),
            Some(rate) => format!("{name} {rate:.0}/s"),
        };
        Line::from(RATES.iter().map(one).collect::<Vec<_>>().join(", "))
    }

    fn draw_classes(&self, frame: &mut Frame, area: Rect) {
        let mut rows: Vec<(String, u64, u64)> = match &self.sizes.large {
            Some(sizes) => {
                sizes.iter().map(|size| (format!("to {}", short(size.to)), size.blocks, size.bytes)).collect()
            }
            None => vec![
                ("to 128 MiB".into(), self.get("blocks_large"), self.get("live_large")),
                ("larger".into(), self.get("blocks_huge"), self.get("live_huge")),
            ],
        };
        match &self.sizes.rows {
            Some(sizes) => {
                rows.extend(sizes.iter().map(|size| (format!("to {} KiB", size.to / 1024), size.blocks, size.bytes)))
            }
            None => rows.push(("to 128 KiB".into(), self.get("blocks_medium"), self.get("live_cells"))),
        }
        let classes = self.now.values.classes();
        rows.extend(classes.iter().map(|class| (format!("{} B", class.size), class.live, class.live * class.size)));
        rows.retain(|row| row.2 != 0);
        rows.sort_by_key(|row| std::cmp::Reverse(row.2));
        let most = rows.first().map_or(1, |row| row.2);
        let width = usize::from(area.width.saturating_sub(46));
        let row = |(name, blocks, bytes): (String, u64, u64)| {
            let bar = "█".repeat((bytes as f64 / most as f64 * width as f64).ceil() as usize);
            Row::new([
                format!("{name:>10}"),
                format!("{blocks:>14}"),
                format!("{:>12}", HumanBytes(bytes).to_string()),
                bar,
            ])
        };
        let widths = [Constraint::Length(10), Constraint::Length(14), Constraint::Length(12), Constraint::Fill(1)];
        let head = Row::new(["      size", "        blocks", "       bytes", ""]).bold();
        let table =
            Table::new(rows.into_iter().map(row), widths).header(head).block(Block::new().title("in use by size"));
        frame.render_widget(table, area);
    }
}

/// A power of two.
fn short(bytes: u64) -> String {
    HumanBytes(bytes).to_string().replace(".00", "")
}

/// Has free memory given back, and says what came of it.
fn trimmed(program: &Program) -> Result<String> {
    let resident = || Ok::<u64, anyhow::Error>(program.values(Depth::Resident)?.get("resident_snug").unwrap_or(0));
    let before = resident()?;
    Ok(match trim(program, Duration::ZERO)? {
        Trimmed::NotYet(why) => format!("asked to give back its free memory, but {why}"),
        _ => format!("gave back {}", HumanBytes(before.saturating_sub(resident()?))),
    })
}
