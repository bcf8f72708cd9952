//! A trace as operations for snugreplay.
//!
//! Blocks become numbered slots, which are used again after a free, so that the replayer's table is no larger than the
//! most blocks that were live at once, or little more. A slot goes back to the thread that did the free, which takes it
//! again without waiting for anyone; what piles up at threads that free more than they allocate goes to a common pool.
//!
//! The first thread starts the others, each before its first operation in the order of the trace, and joins each after
//! its last: so as many run at once as in the recorded program.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufWriter, Seek, Write};

use anyhow::{ensure, Context, Result};
use clap::ValueEnum;
use rustc_hash::FxHashMap;
use serde::Serialize;

use super::events::{Allocation, Happening, Merge, Step};
use super::operations::{Kind, Operation, Writer, SIZE_LIMIT, TIME_LIMIT};
use super::reader::Trace;

/// Free slots of one thread.
const POOL_LIMIT: usize = 1024;

/// In ns: steps of a thread that follow each other sooner do not wait for each other's times, as a wait takes as long.
const PACE_STEP: u64 = 1000;

/// How fast steps follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Pace {
    /// One after the other
    Fast,
    /// When they were in the recorded program, if that was recorded with --times
    Recorded,
}

/// What a trace amounts to: what the program did and each replay does, and what is odd about it.
#[derive(Debug, Default, Clone, Serialize)]
pub struct Totals {
    /// Operations: a realloc is one.
    pub operations: u64,
    pub allocations: u64,
    pub frees: u64,
    pub reallocs: u64,
    pub threads: usize,
    /// Bytes that were asked for, added up; a realloc counts with its new size.
    pub requested_bytes: u64,
    pub peak_live_bytes: u64,
    pub peak_live_blocks: u64,
    pub end_live_bytes: u64,
    pub end_live_blocks: u64,
    /// A hash of the multiset of sizes, as snugreplay prints it; nothing to others, who get the sizes.
    #[serde(skip)]
    pub sizes: u64,
    /// Frees of blocks that were not seen: from before the recording, or lost.
    pub unknown_frees: u64,
    /// Blocks at a place where another was believed live: its free was lost.
    pub missing_frees: u64,
    /// Blocks that are left out, as they are of SIZE_LIMIT bytes or more: reservations that no other malloc need grant.
    pub too_large: u64,
}

#[derive(Debug, Clone, Copy)]
struct Live {
    slot: u32,
    size: u64,
}

/// How often a slot was used, and by which thread last.
#[derive(Debug, Clone, Copy)]
struct Use {
    turn: u32,
    thread: u32,
}

/// What is known of a trace once it has been converted.
#[derive(Debug)]
pub struct Converted {
    pub totals: Totals,
    /// How often each size was asked for.
    pub sizes: FxHashMap<u64, u64>,
}

struct Converter<W> {
    out: Writer<W>,
    one_thread: bool,
    pace: Pace,
    /// When the first step was, and how long after it each thread has waited last, in ns.
    first_time: Option<u64>,
    waited: Vec<u64>,
    live: FxHashMap<u64, Live>,
    /// By thread of the trace: the block of a realloc between its two steps.
    moving: FxHashMap<usize, Live>,
    uses: Vec<Use>,
    /// Free slots, by thread and for all.
    pools: Vec<VecDeque<u32>>,
    common: VecDeque<u32>,
    live_bytes: u64,
    totals: Totals,
    sizes: FxHashMap<u64, u64>,
}

/// Writes the program of a process of the trace. With `one_thread` all is done by one thread, in the order of the
/// trace, so that each replay is the same.
pub fn write(trace: &mut Trace, process: u32, one_thread: bool, pace: Pace, file: &mut File) -> Result<Converted> {
    let mut converter = Converter::new(BufWriter::with_capacity(1 << 18, file), one_thread).context(UNWRITTEN)?;
    converter.pace = pace;
    Merge::new(trace, process).run(|lane, happening| converter.take(lane, happening).context(UNWRITTEN))?;
    let has_times = converter.first_time.is_some();
    let shown = trace.shown();
    ensure!(pace == Pace::Fast || has_times, "{shown}: it has no times; record it with: snug record --times");
    converter.finish().context(UNWRITTEN)
}

/// Whatever is wrong with the trace is said with its name by who reads it.
const UNWRITTEN: &str = "cannot write what is to be replayed";

impl<W: Write + Seek> Converter<W> {
    fn new(out: W, one_thread: bool) -> Result<Self> {
        Ok(Converter {
            out: Writer::new(out)?,
            one_thread,
            pace: Pace::Fast,
            first_time: None,
            waited: Vec::new(),
            live: FxHashMap::default(),
            moving: FxHashMap::default(),
            uses: Vec::new(),
            pools: vec![VecDeque::new()],
            common: VecDeque::new(),
            live_bytes: 0,
            totals: Totals::default(),
            sizes: FxHashMap::default(),
        })
    }

    fn take(&mut self, lane: usize, happening: Happening) -> Result<()> {
        self.totals.threads = self.totals.threads.max(lane + 1);
        match happening {
            Happening::Step(step, time) => {
                self.keep_pace(if self.one_thread { 0 } else { lane }, time)?;
                self.step(lane, step)?
            }
            // The first thread needs neither; nor do the others if it does everything.
            _ if lane == 0 || self.one_thread => {}
            Happening::Begin => {
                self.out.ensure_thread(lane);
                let count = self.pools.len().max(lane + 1);
                self.pools.resize_with(count, VecDeque::new);
                self.out.append(0, Operation::of_thread(Kind::Spawn, lane))?;
            }
            Happening::End => {
                self.common.extend(std::mem::take(&mut self.pools[lane]));
                self.out.finish_thread(lane)?;
                self.out.append(0, Operation::of_thread(Kind::Join, lane))?;
            }
        }
        Ok(())
    }

    /// Has the thread wait for the time at which it came here, if that is wanted and known.
    fn keep_pace(&mut self, thread: usize, time: u64) -> Result<()> {
        if self.pace == Pace::Fast || time == 0 {
            return Ok(());
        }
        let first = *self.first_time.get_or_insert(time);
        let due = time.saturating_sub(first).min(TIME_LIMIT - 1);
        self.waited.resize(self.waited.len().max(thread + 1), 0);
        if due >= self.waited[thread].saturating_add(PACE_STEP) {
            self.waited[thread] = due;
            self.out.append(thread, Operation { size: due, ..Operation::of_thread(Kind::At, 0) })?;
        }
        Ok(())
    }

    fn step(&mut self, lane: usize, step: Step) -> Result<()> {
        let thread = if self.one_thread { 0 } else { lane };
        match step {
            Step::Allocate { kind, size, address } => self.allocate(thread, kind, size, address),
            Step::Free { address } => match self.live.remove(&address) {
                Some(live) => self.free(thread, live),
                None => {
                    self.totals.unknown_frees += 1;
                    Ok(())
                }
            },
            Step::ReallocStart { old } => {
                if let Some(live) = self.live.remove(&old) {
                    self.moving.insert(lane, live);
                }
                Ok(())
            }
            Step::ReallocEnd { size, address } => match self.moving.remove(&lane) {
                Some(live) => self.reallocate(thread, live, size, address),
                None => self.allocate(thread, Allocation::Malloc, size, address),
            },
        }
    }

    fn allocate(&mut self, thread: usize, kind: Allocation, size: u64, address: u64) -> Result<()> {
        self.make_place(thread, address)?;
        if size >= SIZE_LIMIT {
            self.totals.too_large += 1;
            return Ok(());
        }
        let (kind, alignment) = match kind {
            Allocation::Malloc => (Kind::Malloc, 0),
            Allocation::Calloc => (Kind::Calloc, 0),
            Allocation::Aligned(logarithm) => (Kind::Aligned, logarithm),
        };
        let slot = self.take_slot(thread);
        self.operate(thread, kind, slot, size, alignment)?;
        self.live.insert(address, Live { slot, size });
        self.totals.allocations += 1;
        self.count(size, 0);
        Ok(())
    }

    fn reallocate(&mut self, thread: usize, old: Live, size: u64, address: u64) -> Result<()> {
        self.make_place(thread, address)?;
        if size >= SIZE_LIMIT {
            self.totals.too_large += 1;
            return self.free(thread, old);
        }
        self.operate(thread, Kind::Realloc, old.slot, size, 0)?;
        self.live.insert(address, Live { slot: old.slot, size });
        self.totals.reallocs += 1;
        self.count(size, old.size);
        Ok(())
    }

    /// A block that is believed to be where a new one is must have been freed.
    fn make_place(&mut self, thread: usize, address: u64) -> Result<()> {
        if let Some(forgotten) = self.live.remove(&address) {
            self.totals.missing_frees += 1;
            self.free(thread, forgotten)?;
        }
        Ok(())
    }

    fn free(&mut self, thread: usize, live: Live) -> Result<()> {
        self.operate(thread, Kind::Free, live.slot, live.size, 0)?;
        self.totals.frees += 1;
        self.live_bytes = self.live_bytes.saturating_sub(live.size);
        let pool = &mut self.pools[thread];
        pool.push_back(live.slot);
        if pool.len() > POOL_LIMIT {
            self.common.extend(pool.drain(..POOL_LIMIT / 2));
        }
        Ok(())
    }

    /// The block that was freed last, as mallocs do it.
    fn take_slot(&mut self, thread: usize) -> u32 {
        let free = self.pools[thread].pop_back().or_else(|| self.common.pop_front());
        free.unwrap_or_else(|| {
            self.uses.push(Use { turn: 0, thread: thread as u32 });
            (self.uses.len() - 1) as u32
        })
    }

    fn count(&mut self, size: u64, old: u64) {
        *self.sizes.entry(size).or_default() += 1;
        self.totals.requested_bytes = self.totals.requested_bytes.saturating_add(size);
        self.totals.sizes = self.totals.sizes.wrapping_add(mix(size));
        self.live_bytes = self.live_bytes.saturating_add(size).saturating_sub(old);
        self.totals.peak_live_bytes = self.totals.peak_live_bytes.max(self.live_bytes);
        self.totals.peak_live_blocks = self.totals.peak_live_blocks.max(self.live.len() as u64);
    }

    fn operate(&mut self, thread: usize, kind: Kind, slot: u32, size: u64, alignment: u8) -> Result<()> {
        let last = &mut self.uses[slot as usize];
        let (turn, waits) = (last.turn, last.turn > 0 && last.thread != thread as u32);
        *last = Use { turn: turn.wrapping_add(1), thread: thread as u32 };
        self.totals.operations += 1;
        self.out.append(thread, Operation { kind, slot, turn, waits, size, alignment })
    }

    fn finish(mut self) -> Result<Converted> {
        self.totals.end_live_bytes = self.live_bytes;
        self.totals.end_live_blocks = self.live.len() as u64;
        self.out.finish(self.totals.operations, self.uses.len() as u64)?;
        Ok(Converted { totals: self.totals, sizes: self.sizes })
    }
}

/// The same hash as that of trace/replayer/worker.c.
fn mix(size: u64) -> u64 {
    let mut x = size.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    const MALLOC: Allocation = Allocation::Malloc;

    fn allocate(size: u64, address: u64) -> Step {
        Step::Allocate { kind: MALLOC, size, address }
    }

    /// Of an operation: kind, slot, and whether it waits.
    type Read = (u64, u32, bool);

    /// Runs steps of threads, and returns the operations of each, with what is known.
    fn convert(steps: &[(usize, Step)]) -> (Vec<Vec<Read>>, Converted) {
        let mut file = Cursor::new(Vec::new());
        let mut converter = Converter::new(&mut file, false).unwrap();
        let threads = steps.iter().map(|(lane, _)| lane + 1).max().unwrap_or(1);
        (0..threads).for_each(|lane| converter.take(lane, Happening::Begin).unwrap());
        for &(lane, step) in steps {
            converter.take(lane, Happening::Step(step, 0)).unwrap();
        }
        (0..threads).for_each(|lane| converter.take(lane, Happening::End).unwrap());
        let converted = converter.finish().unwrap();
        let bytes = file.into_inner();
        let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
        let chunk_table = number(40);
        let of_thread = |thread: usize| {
            let entry = number(48) + 16 * thread;
            (number(entry)..number(entry) + number(entry + 8)).map(|chunk| chunk_table + 16 * chunk)
        };
        let read = |at: usize| {
            let word = number(at + 8) as u64;
            (word >> 48 & 0xff, number(at) as u32, word >> 63 != 0)
        };
        let operations = |thread: usize| -> Vec<_> {
            of_thread(thread)
                .flat_map(|at| (0..number(at + 8)).map(move |i| (at, i)))
                .map(|(at, i)| read(number(at) + 16 * i))
                .collect()
        };
        ((0..threads).map(operations).collect(), converted)
    }

    #[test]
    fn a_slot_is_used_again_by_the_thread_that_freed_it() {
        let steps = [(0, allocate(1, 10)), (0, Step::Free { address: 10 }), (0, allocate(2, 20))];
        let (operations, converted) = convert(&steps);
        assert_eq!(operations[0], [(0, 0, false), (3, 0, false), (0, 0, false)]);
        assert_eq!((converted.totals.peak_live_bytes, converted.totals.end_live_bytes), (2, 2));
    }

    #[test]
    fn what_no_malloc_need_grant_is_left_out_and_counted() {
        let most = SIZE_LIMIT - 1;
        let steps = [
            (0, allocate(SIZE_LIMIT, 10)),
            (0, allocate(u64::MAX, 20)),
            (0, allocate(most, 30)),
            (0, Step::ReallocStart { old: 30 }),
            (0, Step::ReallocEnd { size: SIZE_LIMIT, address: 40 }),
        ];
        let totals = convert(&steps).1.totals;
        assert_eq!((totals.too_large, totals.allocations, totals.frees, totals.reallocs), (3, 1, 1, 0));
        assert_eq!((totals.peak_live_bytes, totals.end_live_bytes), (most, 0));
    }

    #[test]
    fn what_another_thread_did_is_waited_for() {
        let steps = [(0, allocate(1, 10)), (1, Step::Free { address: 10 }), (0, allocate(1, 10)), (1, allocate(1, 30))];
        let (operations, _) = convert(&steps);
        assert_eq!(operations[0], [(5, 1, false), (0, 0, false), (0, 1, false), (6, 1, false)]);
        assert_eq!(operations[1], [(3, 0, true), (0, 0, false)]);
    }

    #[test]
    fn a_free_that_comes_too_early_is_noticed() {
        // As if a ticket had been drawn after the free: another thread has the address before it is free.
        let steps = [(0, allocate(8, 10)), (1, allocate(9, 10)), (0, Step::Free { address: 10 })];
        let totals = convert(&steps).1.totals;
        assert_eq!((totals.missing_frees, totals.unknown_frees, totals.frees), (1, 0, 2));
        assert_eq!(totals.end_live_blocks, 0);
        let totals = convert(&[(0, Step::Free { address: 10 })]).1.totals;
        assert_eq!((totals.missing_frees, totals.unknown_frees, totals.operations), (0, 1, 0));
    }

    #[test]
    fn reallocs_of_two_threads_at_once() {
        let steps = [
            (0, allocate(8, 10)),
            (1, allocate(9, 20)),
            (0, Step::ReallocStart { old: 10 }),
            (1, Step::ReallocStart { old: 20 }),
            (0, Step::ReallocEnd { size: 80, address: 20 }),
            (1, Step::ReallocEnd { size: 90, address: 10 }),
            (0, Step::Free { address: 20 }),
        ];
        let totals = convert(&steps).1.totals;
        assert_eq!(
            (totals.reallocs, totals.missing_frees, totals.end_live_bytes, totals.peak_live_bytes),
            (2, 0, 90, 170)
        );
    }

    #[test]
    fn slots_do_not_pile_up_at_a_thread_that_only_frees() {
        let mut steps = Vec::new();
        for i in 0..20_000 {
            steps.push((0, allocate(8, i)));
            steps.push((1, Step::Free { address: i }));
        }
        let (operations, converted) = convert(&steps);
        assert_eq!(converted.totals.peak_live_blocks, 1);
        let most = operations[1].iter().map(|operation| operation.1).max().unwrap();
        assert!(most as usize <= POOL_LIMIT + 1, "{most} slots");
    }
}
