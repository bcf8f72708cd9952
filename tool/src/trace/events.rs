//! What stands in a block of events, and the events of all threads of a process in one order.
//!
//! trace/recorder/stream.h describes the encoding, and why tickets give an order in which no free comes before its
//! malloc. A realloc becomes two steps, as it has two tickets.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use anyhow::{Context, Result};

use super::format::Header;
use super::reader::{Block, Trace};

/// Blocks are named by their address / 8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Allocate {
        kind: Allocation,
        size: u64,
        address: u64,
    },
    Free {
        address: u64,
    },
    /// The old block is taken away ...
    ReallocStart {
        old: u64,
    },
    /// ... and stands at its new place, or the same one, some tickets later.
    ReallocEnd {
        size: u64,
        address: u64,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allocation {
    Malloc,
    Calloc,
    /// With the binary logarithm of the alignment.
    Aligned(u8),
}

const TICKET_FOLLOWS: u8 = 1 << 3;
const TIME_FOLLOWS: u8 = 1 << 4;

/// A step, its place in the order of all threads' steps, and its time: ns of CLOCK_MONOTONIC, 0 if it is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    pub order: u64,
    pub time: u64,
    pub step: Step,
}

/// The kind of a free; the greater ones draw a ticket, too.
const FREE: u8 = 4;

/// Who has a ticket without drawing it comes after who drew it.
fn order_of(ticket: u64, draws: bool) -> u64 {
    ticket.wrapping_mul(2).wrapping_add((!draws).into())
}

/// Reads the events of one block.
#[derive(Debug)]
pub struct Decoder {
    bytes: Vec<u8>,
    at: usize,
    /// Allocations have the last ticket that was drawn and come after who drew it. In version 1 they drew one as well.
    allocations_draw: bool,
    ticket: u64,
    /// When the block was begun, and then of the last event that has a time.
    time: u64,
    address: u64,
    /// The second half of a realloc.
    pending: Option<Event>,
}

impl Decoder {
    pub fn new(bytes: Vec<u8>, header: &Header, version: u32) -> Decoder {
        let Header { ticket, time, .. } = *header;
        Decoder { bytes, at: 0, allocations_draw: version == 1, ticket, time, address: 0, pending: None }
    }

    /// The next step; `None` at the end. What is no event is an error.
    pub fn next(&mut self) -> Result<Option<Event>> {
        if let Some(pending) = self.pending.take() {
            return Ok(Some(pending));
        }
        if self.at == self.bytes.len() {
            return Ok(None);
        }
        self.event().context("it holds what is no event").map(Some)
    }

    fn event(&mut self) -> Option<Event> {
        let tag = self.byte()?;
        let kind = tag & !(TICKET_FOLLOWS | TIME_FOLLOWS);
        let draws = self.allocations_draw || kind >= FREE;
        let step = if tag & TICKET_FOLLOWS != 0 { self.number()? } else { draws.into() };
        self.ticket = self.ticket.wrapping_add(step);
        let order = order_of(self.ticket, draws);
        let mut time = 0;
        if tag & TIME_FOLLOWS != 0 {
            self.time = self.time.wrapping_add(self.number()?);
            time = self.time;
        }
        let step = match kind {
            1 => self.allocation(Allocation::Malloc)?,
            2 => self.allocation(Allocation::Calloc)?,
            3 => {
                let alignment = self.byte().filter(|&logarithm| logarithm < 64)?;
                self.allocation(Allocation::Aligned(alignment))?
            }
            FREE => Step::Free { address: self.address()? },
            5 => {
                let old = self.address()?;
                let (size, address) = (self.number()?, self.address()?);
                self.ticket = self.ticket.wrapping_add(self.number()?);
                let order = order_of(self.ticket, self.allocations_draw);
                self.pending = Some(Event { order, time, step: Step::ReallocEnd { size, address } });
                Step::ReallocStart { old }
            }
            _ => return None,
        };
        Some(Event { order, time, step })
    }

    fn allocation(&mut self, kind: Allocation) -> Option<Step> {
        let size = self.number()?;
        Some(Step::Allocate { kind, size, address: self.address()? })
    }

    fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn address(&mut self) -> Option<u64> {
        let number = self.number()?;
        self.address = self.address.wrapping_add((number >> 1) ^ (number & 1).wrapping_neg());
        Some(self.address)
    }
}

/// One thread of the process, while its blocks are read.
struct Lane {
    blocks: Vec<Block>,
    read: usize,
    decoder: Option<Decoder>,
    /// The step that comes next.
    next: Option<Event>,
}

/// What happens to a thread. Threads are numbered from 0 in the order of their first steps.
#[derive(Debug, PartialEq, Eq)]
pub enum Happening {
    Begin,
    /// With its time, or 0.
    Step(Step, u64),
    End,
}

/// All steps of a process in order. At any time one block is in memory for each thread that has begun and not ended.
pub struct Merge<'a> {
    trace: &'a mut Trace,
    lanes: Vec<Lane>,
    /// By the order of their next steps: the lanes that are not finished, but for `current`.
    waiting: BinaryHeap<Reverse<(u64, usize)>>,
    /// The lane that the last step came from: it often has the next one, too.
    current: Option<usize>,
    /// The bytes of the blocks that are in memory.
    open: u64,
}

/// The largest buffer that a recording can have. In it each thread has its block at any time, so a trace in which more
/// are open was made by nobody's recorder.
const OPEN_MOST: u64 = 2 << 30;

impl<'a> Merge<'a> {
    pub fn new(trace: &'a mut Trace, process: u32) -> Merge<'a> {
        let mut lanes: Vec<Lane> = Vec::new();
        let mut by_thread = std::collections::BTreeMap::<u32, Vec<Block>>::new();
        for block in trace.blocks_of(process) {
            by_thread.entry(block.header.thread).or_default().push(block);
        }
        for (_, mut blocks) in by_thread {
            // The blocks of a thread come in order, but for those of a thread that was ending when the program was.
            blocks.sort_by_key(|block| block.header.ticket);
            lanes.push(Lane { blocks, read: 0, decoder: None, next: None });
        }
        lanes.sort_by_key(|lane| lane.blocks[0].header.ticket);
        let first = |lane: &Lane| order_of(lane.blocks[0].header.ticket, true);
        let waiting = lanes.iter().enumerate().map(|(place, lane)| Reverse((first(lane), place))).collect();
        Merge { trace, lanes, waiting, current: None, open: 0 }
    }

    /// Calls `happens` with the thread for all that happens, in order.
    pub fn run(&mut self, mut happens: impl FnMut(usize, Happening) -> Result<()>) -> Result<()> {
        while let Some(lane) = self.choose(&mut happens)? {
            if let Some(Event { step, time, .. }) = self.lanes[lane].next.take() {
                happens(lane, Happening::Step(step, time))?;
            }
            self.advance(lane)?;
            if self.lanes[lane].next.is_none() {
                self.current = None;
                happens(lane, Happening::End)?;
            }
        }
        Ok(())
    }

    /// The lane whose step comes first.
    fn choose(&mut self, happens: &mut impl FnMut(usize, Happening) -> Result<()>) -> Result<Option<usize>> {
        if let Some(lane) = self.current {
            let own = self.lanes[lane].next.expect("the current lane has a step").order;
            match self.waiting.peek() {
                Some(Reverse((other, _))) if *other < own => self.waiting.push(Reverse((own, lane))),
                _ => return Ok(Some(lane)),
            }
        }
        loop {
            self.current = self.waiting.pop().map(|Reverse((_, lane))| lane);
            let Some(lane) = self.current.filter(|&lane| self.lanes[lane].read == 0) else { return Ok(self.current) };
            // Its place was a guess by its first block; now its first step is read, and may be later.
            self.advance(lane)?;
            happens(lane, Happening::Begin)?;
            let Some(Event { order, .. }) = self.lanes[lane].next else { return Ok(self.current) };
            self.waiting.push(Reverse((order, lane)));
        }
    }

    /// Reads the lane's next step; there is none after its last.
    fn advance(&mut self, number: usize) -> Result<()> {
        let lane = &mut self.lanes[number];
        loop {
            let mut damage = None;
            if let Some(decoder) = &mut lane.decoder {
                match decoder.next() {
                    Ok(Some(step)) => {
                        lane.next = Some(step);
                        return Ok(());
                    }
                    Ok(None) => {}
                    Err(error) => damage = Some(error),
                }
                lane.decoder = None;
                self.open -= u64::from(lane.blocks[lane.read - 1].header.length);
            }
            if let Some(error) = damage {
                self.trace.tolerate(&lane.blocks[lane.read - 1], &error.to_string())?;
            }
            let Some(block) = lane.blocks.get(lane.read) else {
                return Ok(());
            };
            lane.read += 1;
            let length = u64::from(block.header.length);
            if self.open + length > OPEN_MOST {
                return Err(self.trace.impossible("its threads would have needed a larger buffer than there is"));
            }
            if let Some(bytes) = self.trace.read(block)? {
                self.open += length;
                lane.decoder = Some(Decoder::new(bytes, &block.header, self.trace.version));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(bytes: &[u8], ticket: u64, version: u32) -> Result<Vec<Event>> {
        let kind = crate::trace::format::Kind::Events;
        let header = Header { kind, process: 1, thread: 1, ticket, time: 1000, length: 0, stored: 0, checksum: 0 };
        let mut decoder = Decoder::new(bytes.to_vec(), &header, version);
        let mut found = Vec::new();
        while let Some(event) = decoder.next()? {
            found.push(event);
        }
        Ok(found)
    }

    /// With their tickets, as in version 1.
    fn steps(bytes: &[u8], ticket: u64) -> Result<Vec<(u64, Step)>> {
        Ok(events(bytes, ticket, 1)?.into_iter().map(|event| (event.order / 2, event.step)).collect())
    }

    #[test]
    fn allocations_come_after_the_free_whose_ticket_they_have() {
        let bytes = [
            &[1, 24, 0x80, 0x01][..], // malloc(24) at 64: the ticket before
            &[4, 0],                  // its free draws the next
            &[1 | 8, 24, 1, 3],       // malloc(24), 24 tickets later
            &[5, 3, 100, 8, 5],       // realloc draws, and has the one that is five later
        ]
        .concat();
        let orders: Vec<u64> = events(&bytes, 10, 2).unwrap().iter().map(|event| event.order).collect();
        assert_eq!(orders, [21, 22, 2 * 35 + 1, 2 * 36, 2 * 41 + 1]);
    }

    #[test]
    fn times_are_added_up() {
        let bytes = [&[1 | 16, 5, 24, 2][..], &[4 | 16, 0x80, 1, 0], &[4, 0]].concat();
        let times: Vec<u64> = events(&bytes, 10, 2).unwrap().iter().map(|event| event.time).collect();
        assert_eq!(times, [1005, 1133, 0]);
    }

    #[test]
    fn all_kinds() {
        let bytes = [
            &[1, 24, 0x80, 0x01][..],   // malloc(24) at 64
            &[2 | 8, 3, 0x80, 0x02, 2], // 3 tickets later calloc(256) at 65
            &[3, 12, 1, 2],             // aligned to 4096 at 66
            &[5, 3, 100, 8, 5],         // realloc of 64 + 0 .. to 100 bytes
            &[4, 0],                    // free of the same
        ]
        .concat();
        let kind = Allocation::Malloc;
        assert_eq!(
            steps(&bytes, 10).unwrap(),
            [
                (11, Step::Allocate { kind, size: 24, address: 64 }),
                (14, Step::Allocate { kind: Allocation::Calloc, size: 256, address: 65 }),
                (15, Step::Allocate { kind: Allocation::Aligned(12), size: 1, address: 66 }),
                (16, Step::ReallocStart { old: 64 }),
                (21, Step::ReallocEnd { size: 100, address: 68 }),
                (22, Step::Free { address: 68 }),
            ]
        );
    }

    #[test]
    fn what_is_no_event() {
        for bytes in [&[0][..], &[6], &[0x11], &[1], &[1, 0x80], &[3, 64, 1, 2], &[4, 0xff, 0xff]] {
            assert!(steps(bytes, 0).is_err(), "{bytes:?}");
        }
        let endless = [&[4][..], &[0xff; 11]].concat();
        assert!(steps(&endless, 0).is_err());
    }

    /// Whatever stands in a block, there is an end of it: no step takes less than a byte, but for the second of a realloc.
    #[test]
    fn whatever_stands_in_a_block() {
        let mut random = fastrand::Rng::with_seed(1);
        let rounds = if std::env::var_os("SNUG_TEST_FULL").is_some() { 3_000_000 } else { 30_000 };
        let mut read = 0;
        for _ in 0..rounds {
            let kinds = [1, 2, 3, 4, 5, 9, 17, 20, 29, 0xff];
            let byte = |random: &mut fastrand::Rng| match random.bool() {
                true => kinds[random.usize(..kinds.len())],
                false => random.u8(..),
            };
            let bytes: Vec<u8> = (0..random.usize(..40)).map(|_| byte(&mut random)).collect();
            if let Ok(found) = events(&bytes, u64::MAX - 9, 2) {
                assert!(found.len() <= 2 * bytes.len());
                read += 1;
            }
        }
        assert!(read > rounds / 50, "{read} of {rounds} were read");
    }
}
