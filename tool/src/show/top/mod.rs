//! `snug top`: all programs on snug, and each of them, in the terminal and refreshed; or printed.

mod facts;
mod history;
mod program;
mod programs;
mod sites;
mod sizes;
mod table;

use std::io::{stdout, IsTerminal};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{ensure, Error, Result};
use clap::Args;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Stylize;
use ratatui::text::{Line, Text};
use ratatui::widgets::{Block, Clear, Paragraph};
use ratatui::Frame;

use crate::output;
use crate::period::period;
use crate::process_id::process_id;
use program::{Screen, PAGES};
use programs::Programs;
use table::{Order, Table};

/// What keys do. The first line is also at the foot of the screen.
const HELP: &str = "\
q        end                       Esc      back to all programs
Enter    look at the marked one    ?        this help
t        give back free memory     p        pause, and go on
1 2 3 4  sizes, threads, heaps, sites; Tab the next of them
s        take a profile, of which sites are; end it
/        only rows with this text  r        the other way around
< >      sort by another column
Up Down PgUp PgDn Home End         move through the rows";

/// These end it as q does, and then as if it had not taken them: the terminal is as it was, and so are the programs.
const ENDING: [i32; 4] = [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM];

/// So often it is looked whether one has come.
const STEP: Duration = Duration::from_millis(50);

/// Show the programs that run on snug, or one of them, in the terminal, refreshed
///
/// Without a process: a row for each program, of which Enter shows one. With one: what occupies its memory, what that was at the
/// last looks, and what is in use by size, with the change of each row; its threads; its own heaps. The key ? tells the
/// other keys.
///
/// Exit status: 0; 1 if there is nothing to look at, or the process has ended.
#[derive(Debug, Args)]
pub struct TopArgs {
    /// The process
    #[arg(value_parser = process_id)]
    pub pid: Option<i32>,

    /// The time between two looks: 2, 0.5, 500ms
    #[arg(long, value_name = "TIME", default_value = "1", value_parser = period)]
    pub every: Duration,

    /// Print once, and end
    #[arg(long, conflicts_with = "batch")]
    pub once: bool,

    /// Print again and again, for a file or a pipe
    #[arg(long)]
    pub batch: bool,

    /// With --batch: so many times
    #[arg(long, value_name = "N", requires = "batch", value_parser = clap::value_parser!(u64).range(1..))]
    pub rounds: Option<u64>,
}

pub fn run(args: &TopArgs) -> Result<ExitCode> {
    if args.once || args.batch {
        return print(args);
    }
    let mut app = App::new(args)?;
    let is_terminal = output::can_draw(stdout().is_terminal());
    ensure!(is_terminal, "snug top needs a terminal that it can draw on; snug top --once prints once");
    for signal in ENDING {
        signal_hook::flag::register_usize(signal, Arc::clone(&app.signal), signal as usize)?;
    }
    let mut terminal = ratatui::init();
    let ended = app.show(&mut terminal);
    // A terminal that is gone is none to complain to: who tried, as both do by themselves, would end here.
    let _ = terminal.show_cursor();
    let _ = ratatui::try_restore();
    std::mem::forget(terminal);
    let signal = app.signal.load(Ordering::Relaxed);
    drop(app);
    if signal != 0 {
        signal_hook::low_level::emulate_default_handler(signal as i32)?;
    }
    ended.map(|()| ExitCode::SUCCESS)
}

fn print(args: &TopArgs) -> Result<ExitCode> {
    let width = output::terminal_width().unwrap_or(output::WIDTH);
    let mut left = if args.once { 1 } else { args.rounds.unwrap_or(u64::MAX) };
    let mut view = match args.pid {
        Some(pid) => View::One(Box::new(Screen::new(pid)?)),
        None => View::All(Box::new(Programs::new())),
    };
    loop {
        let text = match &view {
            View::All(all) => all.text(width)?,
            View::One(screen) => screen.text(width),
        };
        output::print(text.as_bytes())?;
        left -= 1;
        if left == 0 {
            return Ok(ExitCode::SUCCESS);
        }
        output::print(b"\n")?;
        sleep(args.every);
        match &mut view {
            View::All(all) => all.look(),
            View::One(screen) if screen.program.has_ended() => return Ok(ExitCode::SUCCESS),
            View::One(screen) => screen.look()?,
        }
    }
}

enum View {
    All(Box<Programs>),
    One(Box<Screen>),
}

struct App {
    view: View,
    /// All programs, while one is looked at that was chosen there.
    behind: Option<Box<Programs>>,
    every: Duration,
    is_paused: bool,
    has_help: bool,
    /// Keys go into the filter.
    is_filtering: bool,
    /// The first row on the screen, and how many there are.
    offset: usize,
    height: usize,
    note: String,
    /// The one that came, or 0.
    signal: Arc<AtomicUsize>,
}

impl App {
    fn new(args: &TopArgs) -> Result<App> {
        let view = match args.pid {
            Some(pid) => View::One(Box::new(Screen::new(pid)?)),
            None => View::All(Box::new(Programs::new())),
        };
        Ok(App {
            view,
            behind: None,
            every: args.every,
            is_paused: false,
            has_help: false,
            is_filtering: false,
            offset: 0,
            height: 1,
            note: String::new(),
            signal: Arc::default(),
        })
    }

    fn show(&mut self, terminal: &mut ratatui::DefaultTerminal) -> Result<()> {
        loop {
            terminal.draw(|frame| self.draw(frame))?;
            let due = Instant::now() + self.every;
            while let Some(left) = due.checked_duration_since(Instant::now()) {
                if self.signal.load(Ordering::Relaxed) != 0 {
                    return Ok(());
                }
                if !wait_for_key(left.min(STEP)) {
                    return Ok(());
                }
                if !event::poll(Duration::ZERO)? {
                    continue;
                }
                if let Event::Key(key) = event::read()? {
                    if key.kind == KeyEventKind::Press && !self.press(&key)? {
                        return Ok(());
                    }
                }
                terminal.draw(|frame| self.draw(frame))?;
            }
            if !self.is_paused {
                self.look()?;
            }
        }
    }

    fn look(&mut self) -> Result<()> {
        let looked = match &mut self.view {
            View::All(all) => {
                all.look();
                Ok(())
            }
            View::One(screen) => screen.look(),
        };
        looked.or_else(|error| self.leave(error))
    }

    /// One that was chosen among others and has ended leads back to them.
    fn leave(&mut self, error: Error) -> Result<()> {
        let Some(mut all) = self.behind.take() else { return Err(error) };
        all.look();
        self.note = output::told(&error);
        self.view = View::All(all);
        Ok(())
    }

    /// What a key asked of the program was not done.
    fn refuse(&mut self, error: Error) -> Result<()> {
        match &mut self.view {
            View::One(screen) if !screen.program.has_ended() => screen.note = output::told(&error),
            _ => return self.leave(error),
        }
        Ok(())
    }

    /// False: the end.
    fn press(&mut self, key: &KeyEvent) -> Result<bool> {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        if is_control && key.code == KeyCode::Char('c') {
            return Ok(false);
        }
        if self.is_filtering {
            self.type_filter(key.code);
            return Ok(true);
        }
        if self.has_help {
            self.has_help = false;
            return Ok(true);
        }
        self.note.clear();
        if let View::One(screen) = &mut self.view {
            screen.note.clear();
        }
        match key.code {
            KeyCode::Char('q') => return Ok(false),
            KeyCode::Esc => return Ok(self.back()),
            KeyCode::Char('?' | 'h') => self.has_help = true,
            KeyCode::Char('p' | ' ') => self.is_paused = !self.is_paused,
            KeyCode::Char('/') => self.is_filtering = true,
            KeyCode::Enter => self.open(),
            code => self.press_in_view(code).or_else(|error| self.refuse(error))?,
        }
        Ok(true)
    }

    fn press_in_view(&mut self, code: KeyCode) -> Result<()> {
        if let View::One(screen) = &mut self.view {
            match code {
                KeyCode::Char('t') => return screen.trim(),
                KeyCode::Tab => screen.turn_to(screen.page + 1),
                KeyCode::Char('s') => return screen.toggle_profile(),
                KeyCode::Char(digit @ '1'..='4') => screen.turn_to(digit as usize - '1' as usize),
                _ => {}
            }
        }
        let page = self.height.max(1) as isize;
        let (table, order) = self.table();
        let (rows, columns) =
            (table.ordered(order).len(), table.columns.iter().filter(|name| !name.is_empty()).count());
        match code {
            KeyCode::Char('<') | KeyCode::Left => order.next_column(-1, columns),
            KeyCode::Char('>') | KeyCode::Right => order.next_column(1, columns),
            KeyCode::Char('r') => order.is_reversed = !order.is_reversed,
            KeyCode::Up | KeyCode::Char('k') => order.step(-1, rows),
            KeyCode::Down | KeyCode::Char('j') => order.step(1, rows),
            KeyCode::PageUp => order.step(-page, rows),
            KeyCode::PageDown => order.step(page, rows),
            KeyCode::Home => order.selected = 0,
            KeyCode::End => order.selected = rows.saturating_sub(1),
            _ => {}
        }
        Ok(())
    }

    fn type_filter(&mut self, code: KeyCode) {
        let order = self.table().1;
        match code {
            KeyCode::Char(letter) => order.filter.push(letter),
            KeyCode::Backspace => drop(order.filter.pop()),
            KeyCode::Esc => order.filter.clear(),
            _ => {}
        }
        order.selected = 0;
        self.is_filtering = !matches!(code, KeyCode::Enter | KeyCode::Esc);
    }

    fn open(&mut self) {
        let View::All(all) = &mut self.view else { return };
        let Some(pid) = all.selected() else { return };
        match Screen::new(pid) {
            Err(error) => self.note = output::told(&error),
            Ok(screen) => {
                let one = View::One(Box::new(screen));
                if let View::All(all) = std::mem::replace(&mut self.view, one) {
                    self.behind = Some(all);
                }
            }
        }
    }

    /// False: there is nothing behind.
    fn back(&mut self) -> bool {
        let behind = self.behind.take();
        let is_there = behind.is_some();
        if let Some(mut all) = behind {
            all.look();
            self.view = View::All(all);
        }
        is_there
    }

    fn table(&mut self) -> (&Table, &mut Order) {
        match &mut self.view {
            View::All(all) => (&all.table, &mut all.order),
            View::One(screen) => screen.table_and_order(),
        }
    }

    fn draw(&mut self, frame: &mut Frame) {
        let above = match &self.view {
            View::All(_) => 1,
            View::One(screen) => screen.height(),
        };
        // Of a low terminal the table has some lines in any case.
        let above = above.min(frame.area().height.saturating_sub(5));
        let [head, bar, table, foot] = Layout::vertical([
            Constraint::Length(above),
            Constraint::Length(1),
            Constraint::Min(1),
            Constraint::Length(1),
        ])
        .areas(frame.area());
        match &self.view {
            View::All(all) => {
                let count = output::counted(all.table.rows.len(), "program");
                frame.render_widget(Line::from(format!("snug: {count}")).bold(), head);
            }
            View::One(screen) => screen.draw(frame, head),
        }
        frame.render_widget(self.pages(), bar);
        self.draw_table(frame, table);
        frame.render_widget(Line::from(self.foot()).dim(), foot);
        if self.has_help {
            draw_help(frame);
        }
    }

    fn pages(&mut self) -> Line<'static> {
        let page = match &self.view {
            View::All(_) => None,
            View::One(screen) => Some(screen.page),
        };
        let filter = self.table().1.filter.clone();
        let mut spans = vec![];
        for (place, name) in PAGES.iter().enumerate().filter(|_| page.is_some()) {
            let name = format!(" {} {name} ", place + 1).into();
            spans.push(if page == Some(place) { ratatui::text::Span::reversed(name) } else { name });
        }
        if self.is_filtering || !filter.is_empty() {
            spans.push(format!("  only: {filter}{}", if self.is_filtering { "_" } else { "" }).into());
        }
        Line::from(spans)
    }

    fn draw_table(&mut self, frame: &mut Frame, area: Rect) {
        let height = usize::from(area.height.saturating_sub(1));
        let mut offset = self.offset;
        let (table, order) = self.table();
        let selected = order.selected;
        offset = offset.min(selected).max((selected + 1).saturating_sub(height.max(1)));
        let lines = table.lines(order, area.width.into());
        (self.offset, self.height) = (offset, height);
        let mut shown = Vec::new();
        for (place, line) in lines.into_iter().enumerate() {
            let whole = table::fitted(&line, area.width.into(), false);
            match place.checked_sub(1) {
                None => shown.push(Line::from(whole).bold()),
                Some(row) if row < offset || row >= offset + height => {}
                Some(row) if row == selected => shown.push(Line::from(whole).reversed()),
                Some(_) => shown.push(Line::from(whole)),
            }
        }
        frame.render_widget(Text::from(shown), area);
    }

    fn foot(&self) -> String {
        let note = match &self.view {
            View::One(screen) if self.note.is_empty() => screen.foot_note(),
            _ => self.note.as_str(),
        };
        let paused = if self.is_paused { "paused   " } else { "" };
        let keys = match (&self.view, &self.behind) {
            (View::All(_), _) => "q quit   Enter one of them   ? help",
            (View::One(_), None) => "q quit   t trim   ? help",
            (View::One(_), Some(_)) => "q quit   Esc all   t trim   ? help",
        };
        format!("{paused}{keys}   {note}")
    }
}

/// False: the terminal is gone. Who reads keys there would never come back: that is asked before they are.
fn wait_for_key(most: Duration) -> bool {
    let mut terminal = libc::pollfd { fd: libc::STDOUT_FILENO, events: libc::POLLIN, revents: 0 };
    // SAFETY: poll gets one valid entry, and writes only to it.
    unsafe { libc::poll(&mut terminal, 1, most.as_millis() as libc::c_int) };
    terminal.revents & (libc::POLLHUP | libc::POLLERR | libc::POLLNVAL) == 0
}

fn draw_help(frame: &mut Frame) {
    let lines = HELP.lines().count() as u16 + 2;
    let width = HELP.lines().map(|line| line.chars().count()).max().unwrap_or(0) as u16 + 4;
    let whole = frame.area();
    let area = Rect {
        x: whole.width.saturating_sub(width) / 2,
        y: whole.height.saturating_sub(lines) / 2,
        width: width.min(whole.width),
        height: lines.min(whole.height),
    };
    frame.render_widget(Clear, area);
    let block = Block::bordered().title(" keys ").padding(ratatui::widgets::Padding::horizontal(1));
    frame.render_widget(Paragraph::new(HELP).block(block), area);
}
