//! The file that snugreplay runs: the tool's side of trace/replayer/program.h, which describes it.

use std::io::{Seek, SeekFrom, Write};

use anyhow::Result;

const MAGIC: u64 = 0x3159_414c_5045_5253;
const CHUNK: usize = 1024;
const OPERATION: usize = 16;
const HEADER: usize = 56;

/// The replayer keeps a block's size in 40 bits.
pub const SIZE_LIMIT: u64 = 1 << 40;

/// In ns, for Kind::At: an operation has 48 bits for it, three days.
pub const TIME_LIMIT: u64 = 1 << 48;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    Malloc = 0,
    Calloc = 1,
    Aligned = 2,
    Free = 3,
    Realloc = 4,
    /// Starts the thread whose number is in `slot`.
    Spawn = 5,
    Join = 6,
    /// Waits until `size` ns after the first operation.
    At = 7,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    pub kind: Kind,
    pub slot: u32,
    /// How many operations on the slot come before.
    pub turn: u32,
    /// Whether it has to wait for them, as the last was another thread's.
    pub waits: bool,
    /// Below SIZE_LIMIT; of a time below TIME_LIMIT.
    pub size: u64,
    /// Its logarithm.
    pub alignment: u8,
}

impl Operation {
    pub fn of_thread(kind: Kind, number: usize) -> Operation {
        Operation { kind, slot: number as u32, turn: 0, waits: false, size: 0, alignment: 0 }
    }

    fn to_bytes(self) -> [u8; OPERATION] {
        let word = self.size | (self.kind as u64) << 48 | u64::from(self.alignment) << 56 | u64::from(self.waits) << 63;
        let mut bytes = [0; OPERATION];
        bytes[..4].copy_from_slice(&self.slot.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.turn.to_le_bytes());
        bytes[8..].copy_from_slice(&word.to_le_bytes());
        bytes
    }
}

#[derive(Default)]
struct Thread {
    /// What is not written yet.
    chunk: Vec<u8>,
    /// Offset and operations of each chunk that is.
    chunks: Vec<(u64, u64)>,
}

/// Writes the operations of all threads as they come. In memory is a chunk for each thread that is not finished.
pub struct Writer<W> {
    out: W,
    offset: u64,
    threads: Vec<Thread>,
}

impl<W: Write + Seek> Writer<W> {
    /// A program has at least one thread.
    pub fn new(mut out: W) -> Result<Writer<W>> {
        out.write_all(&[0; HEADER])?;
        Ok(Writer { out, offset: HEADER as u64, threads: vec![Thread::default()] })
    }

    pub fn ensure_thread(&mut self, number: usize) {
        let count = self.threads.len().max(number + 1);
        self.threads.resize_with(count, Thread::default);
    }

    pub fn append(&mut self, thread: usize, operation: Operation) -> Result<()> {
        let chunk = &mut self.threads[thread].chunk;
        chunk.extend(operation.to_bytes());
        if chunk.len() == CHUNK * OPERATION {
            self.write_chunk(thread)?;
        }
        Ok(())
    }

    fn write_chunk(&mut self, thread: usize) -> Result<()> {
        let Thread { chunk, chunks } = &mut self.threads[thread];
        if !chunk.is_empty() {
            self.out.write_all(chunk)?;
            chunks.push((self.offset, (chunk.len() / OPERATION) as u64));
            self.offset += chunk.len() as u64;
            chunk.clear();
        }
        Ok(())
    }

    /// Nothing more will come for this thread.
    pub fn finish_thread(&mut self, thread: usize) -> Result<()> {
        self.write_chunk(thread)?;
        self.threads[thread].chunk = Vec::new();
        Ok(())
    }

    /// Writes the tables and the header. `operations` are those on blocks.
    pub fn finish(mut self, operations: u64, slots: u64) -> Result<()> {
        for thread in 0..self.threads.len() {
            self.finish_thread(thread)?;
        }
        let mut thread_table = Vec::new();
        let mut chunks = 0u64;
        for Thread { chunks: of_thread, .. } in &self.threads {
            for (offset, operations) in of_thread {
                self.out.write_all(&offset.to_le_bytes())?;
                self.out.write_all(&operations.to_le_bytes())?;
            }
            thread_table.extend(chunks.to_le_bytes());
            thread_table.extend((of_thread.len() as u64).to_le_bytes());
            chunks += of_thread.len() as u64;
        }
        self.out.write_all(&thread_table)?;
        self.out.seek(SeekFrom::Start(0))?;
        let (threads, thread_place) = (self.threads.len() as u64, self.offset + 16 * chunks);
        for number in [MAGIC, operations, slots, threads, chunks, self.offset, thread_place] {
            self.out.write_all(&number.to_le_bytes())?;
        }
        Ok(self.out.flush()?)
    }
}
