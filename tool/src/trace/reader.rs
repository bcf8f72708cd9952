//! Finds the blocks of a trace file, and says what is wrong with it.
//!
//! A file that is cut short or damaged is refused, with one line that says where. With `whole`, all blocks that are
//! whole are used: after a damaged header the next good one is searched for.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Display, Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use anyhow::{anyhow, bail, ensure, Context, Error, Result};
use indicatif::ProgressBar;
use serde::Serialize;

use super::format::{self, Header, Kind, BLOCK_HEADER, BLOCK_MAGIC, FILE_HEADER};
use crate::output::{self, counted, shown};

/// What is said when a signal ends a replay that has no figures yet.
pub const STOPPED: &str = "stopped before anything was replayed: there is nothing to show";

const SEARCH_STEP: usize = 64 * 1024;

#[derive(Debug, Clone, Copy)]
pub struct Block {
    pub header: Header,
    /// Where the contents are in the file.
    offset: u64,
}

/// A process of a trace, and how much was recorded of it.
#[derive(Debug, Clone, Serialize)]
pub struct Process {
    pub number: u32,
    pub pid: u32,
    /// The number of the process that forked it; 0 if it was started by exec.
    pub forked_from: u32,
    pub program: String,
    pub arguments: Vec<String>,
    pub threads: usize,
    /// Of events, before compression.
    pub bytes: u64,
}

#[derive(Debug)]
pub struct Trace {
    file: File,
    path: PathBuf,
    length: u64,
    whole: bool,
    pub version: u32,
    blocks: Vec<Block>,
    pub processes: Vec<Process>,
    /// Events that the recorder had no room for.
    pub lost: u64,
    /// What is wrong, one line each; empty unless `whole`.
    pub faults: Vec<String>,
    /// Bytes of events that were read.
    progress: ProgressBar,
    /// Set by a signal: nothing more is to be read.
    stop: Option<Arc<AtomicBool>>,
}

impl Trace {
    /// Its name, for messages.
    pub fn shown(&self) -> Display<'_> {
        self.path.display()
    }

    /// From now on reading is an error as soon as this is set.
    pub fn stop_when(&mut self, stop: &Arc<AtomicBool>) {
        self.stop = Some(Arc::clone(stop));
    }

    /// Whether the file begins as one.
    pub fn is_trace(path: &Path) -> bool {
        let mut start = [0; 8];
        let read = File::open(path).and_then(|mut file| file.read_exact(&mut start));
        read.is_ok() && start == format::FILE_MAGIC
    }

    pub fn open(path: &Path, whole: bool) -> Result<Trace> {
        let shown = path.display();
        let mut file = File::open(path).with_context(|| output::cannot_read(path))?;
        let found = file.metadata()?;
        ensure!(found.is_file(), "{shown} is not a file");
        let mut start = [0; FILE_HEADER];
        let is_trace = file.read_exact(&mut start).is_ok() && start[..8] == format::FILE_MAGIC;
        ensure!(is_trace, "{shown} is not a trace of snug record");
        let version = format::u32_at(&start, 8);
        let known = 1..=format::VERSION;
        ensure!(known.contains(&version), "{shown} has version {version} of the format, not {}", format::VERSION);
        let mut trace = Trace {
            file,
            path: path.to_path_buf(),
            length: found.len(),
            whole,
            version,
            blocks: Vec::new(),
            processes: Vec::new(),
            lost: 0,
            faults: Vec::new(),
            progress: ProgressBar::hidden(),
            stop: None,
        };
        if start != format::file_header(version) {
            trace.fault("it is damaged at byte 12: its header does not agree with its checksum".into())?;
        }
        trace.find_blocks()?;
        trace.find_processes()?;
        Ok(trace)
    }

    /// Notes what is wrong, or fails because of it.
    fn fault(&mut self, what: String) -> Result<()> {
        if !self.whole {
            bail!("{}: {what}; with --whole, what is whole is used", self.path.display());
        }
        self.faults.push(what);
        Ok(())
    }

    /// Something is wrong with the contents of this block.
    pub fn tolerate(&mut self, block: &Block, what: &str) -> Result<()> {
        self.fault(format!("the block at byte {} is damaged: {what}", block.offset - BLOCK_HEADER as u64))
    }

    /// It is no trace, whatever its blocks say.
    pub fn impossible(&self, why: &str) -> Error {
        anyhow!("{} was not recorded: {why}", self.path.display())
    }

    fn find_blocks(&mut self) -> Result<()> {
        let mut at = FILE_HEADER as u64;
        let mut end = None;
        while at < self.length && end.is_none() {
            let Some(header) = self.header_at(at)? else {
                at = self.after_damage(at)?;
                continue;
            };
            let block = Block { header, offset: at + BLOCK_HEADER as u64 };
            at = block.offset + u64::from(header.stored);
            if at > self.length {
                break;
            }
            match header.kind {
                Kind::End => end = Some(block),
                _ => self.blocks.push(block),
            }
        }
        let count = self.blocks.len();
        let Some(end) = end else {
            let whole = counted(count, "whole block");
            return self.fault(format!("it is cut short, at byte {} after {whole}", self.length));
        };
        if at < self.length {
            self.fault(format!("{} bytes stand after its end", self.length - at))?;
        }
        if let Some(contents) = self.read(&end)?.filter(|contents| contents.len() == 16) {
            self.lost = format::u64_at(&contents, 0);
            let expected = format::u64_at(&contents, 8);
            if expected != count as u64 {
                self.fault(format!("{count} of its {expected} blocks are there"))?;
            }
        }
        Ok(())
    }

    /// `None` if there is no good header. A file that ends in a header has none.
    fn header_at(&self, at: u64) -> Result<Option<Header>> {
        let mut bytes = [0; BLOCK_HEADER];
        if at + BLOCK_HEADER as u64 > self.length {
            return Ok(None);
        }
        self.file.read_exact_at(&mut bytes, at)?;
        Ok(Header::from_bytes(&bytes))
    }

    /// Where to go on after a place without a good header: at the next one, or the end of the file.
    fn after_damage(&mut self, at: u64) -> Result<u64> {
        if at + BLOCK_HEADER as u64 > self.length {
            return Ok(self.length); // cut short; that is said in the end
        }
        self.fault(format!("it is damaged at byte {at}: there should be a block"))?;
        let mut buffer = vec![0; SEARCH_STEP + BLOCK_HEADER];
        let mut place = at + 1;
        while place + BLOCK_HEADER as u64 <= self.length {
            let size = buffer.len().min((self.length - place) as usize);
            self.file.read_exact_at(&mut buffer[..size], place)?;
            let candidates = buffer[..size].windows(BLOCK_HEADER).enumerate();
            let good = |bytes: &[u8]| Header::from_bytes(bytes.try_into().expect("its length")).is_some();
            let found = candidates.filter(|(_, bytes)| bytes[..4] == BLOCK_MAGIC).find(|(_, bytes)| good(bytes));
            if let Some((step, _)) = found {
                return Ok(place + step as u64);
            }
            place += SEARCH_STEP as u64;
        }
        Ok(self.length)
    }

    /// The contents of a block; `None` if they are damaged and that is tolerated.
    pub fn read(&mut self, block: &Block) -> Result<Option<Vec<u8>>> {
        ensure!(!self.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed)), STOPPED);
        let mut stored = vec![0; block.header.stored as usize];
        let path = &self.path;
        self.file.read_exact_at(&mut stored, block.offset).with_context(|| output::cannot_read(path))?;
        let contents = block.header.unpack(&stored);
        self.progress.inc(block.header.length.into());
        if contents.is_none() {
            self.leave_out(block);
            self.tolerate(block, "its contents do not agree with their checksum")?;
        }
        Ok(contents)
    }

    /// What is damaged is no event of its process.
    fn leave_out(&mut self, block: &Block) {
        let number = block.header.process;
        if let Some(process) = self.processes.iter_mut().find(|process| process.number == number) {
            process.bytes = process.bytes.saturating_sub(block.header.length.into());
        }
    }

    fn find_processes(&mut self) -> Result<()> {
        let mut found = BTreeMap::<u32, Process>::new();
        for block in self.blocks.clone() {
            let header = block.header;
            let process = found.entry(header.process).or_insert_with(|| Process {
                number: header.process,
                pid: 0,
                forked_from: 0,
                program: "unknown".into(),
                arguments: Vec::new(),
                threads: 0,
                bytes: 0,
            });
            match header.kind {
                Kind::Start => {
                    if let Some(contents) = self.read(&block)? {
                        describe(process, &contents);
                    }
                }
                _ => {
                    process.bytes += u64::from(header.length);
                    process.threads = process.threads.max(header.thread as usize);
                }
            }
        }
        self.processes = found.into_values().collect();
        Ok(())
    }

    /// From now on, what is read of a process is shown as a bar, until that is finished.
    pub fn show_progress(&mut self, process: u32, name: &str) -> ProgressBar {
        let bytes = self.blocks_of(process).map(|block| u64::from(block.header.length)).sum();
        // The name is a file's: braces would be the bar's.
        self.progress = output::bar(bytes, &shown(name).replace(['{', '}'], "?"));
        self.progress.clone()
    }

    pub fn blocks_of(&self, process: u32) -> impl Iterator<Item = Block> + '_ {
        let of_process = move |block: &&Block| block.header.process == process && block.header.kind == Kind::Events;
        self.blocks.iter().filter(of_process).copied()
    }

    /// The process with this number; if none is named, the one that allocated most.
    pub fn choose(&self, number: Option<u32>) -> Result<&Process> {
        let shown = self.path.display();
        match number {
            Some(number) => self
                .processes
                .iter()
                .find(|process| process.number == number)
                .with_context(|| format!("{shown} has no process {number}; it has {}", self.processes.len())),
            None => self
                .processes
                .iter()
                .max_by_key(|process| (process.bytes, std::cmp::Reverse(process.number)))
                .filter(|process| process.bytes > 0)
                .with_context(|| format!("{shown} holds no events")),
        }
    }
}

/// Takes what the first block of a process says.
fn describe(process: &mut Process, contents: &[u8]) {
    if contents.len() < 8 {
        return;
    }
    process.pid = format::u32_at(contents, 0);
    process.forked_from = format::u32_at(contents, 4);
    let mut words = contents[8..].split(|&byte| byte == 0).map(|word| String::from_utf8_lossy(word).into_owned());
    process.program = words.next().unwrap_or_default();
    process.arguments = words.collect();
    if process.arguments.last().is_some_and(String::is_empty) {
        process.arguments.pop(); // what stands after the last NUL
    }
}
