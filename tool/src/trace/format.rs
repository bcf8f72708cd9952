//! The file of a trace: a header, and blocks that each can be checked and read without the others.
//!
//! All numbers are little-endian. docs/lab-traces.md describes the format for others.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

pub const FILE_MAGIC: [u8; 8] = *b"SNUGTRC\n";
pub const BLOCK_MAGIC: [u8; 4] = *b"BLCK";
/// Of what is written; the one before, in which each allocation drew a ticket, can be read as well.
pub const VERSION: u32 = 2;
pub const FILE_HEADER: usize = 16;
pub const BLOCK_HEADER: usize = 48;
/// No block is longer; what says so is damaged. The recorder's slots are much smaller.
pub const BLOCK_LIMIT: u32 = 1 << 20;

/// Of zstd. 44 MB of events of CPython became 8.77 MB at level 1 (900 MB/s), 8.30 at 3 (640) and 7.38 at 9 (120); 72 MB
/// of cc1 became 46.4, 45.2 (280 MB/s) and 43.7. The tool must keep up with programs: CPython writes 30 MB/s, a loop that
/// only allocates some hundred.
const LEVEL: i32 = 1;
/// Where the tool's time is the program's. What cannot be found at once is left as it is: events of CPython become 0.66 of
/// what they were (2,500 MB/s; level 1: 0.32, 430), those of a loop that frees the last first 0.73 (960; 0.20, 420). Level -1
/// is no faster than 1 for the last.
const LEVEL_IN_A_HURRY: i32 = -50;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Who a process is; trace/recorder/process.c has the layout.
    Start = 1,
    /// Events of one thread; trace/recorder/stream.h has the layout.
    Events = 2,
    /// The last block of a complete file: u64 events lost, u64 blocks before this one.
    End = 3,
}

/// A block without its contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    pub kind: Kind,
    pub process: u32,
    pub thread: u32,
    pub ticket: u64,
    pub time: u64,
    /// Bytes of the contents.
    pub length: u32,
    /// Bytes in the file: fewer if they are compressed with zstd, else the same.
    pub stored: u32,
    /// CRC-32 of the bytes in the file.
    pub checksum: u32,
}

impl Header {
    pub fn to_bytes(self) -> [u8; BLOCK_HEADER] {
        let mut bytes = Vec::with_capacity(BLOCK_HEADER);
        bytes.extend(BLOCK_MAGIC);
        bytes.extend((self.kind as u32).to_le_bytes());
        bytes.extend(self.process.to_le_bytes());
        bytes.extend(self.thread.to_le_bytes());
        bytes.extend(self.ticket.to_le_bytes());
        bytes.extend(self.time.to_le_bytes());
        bytes.extend(self.length.to_le_bytes());
        bytes.extend(self.stored.to_le_bytes());
        bytes.extend(self.checksum.to_le_bytes());
        bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
        bytes.try_into().expect("the fields add up")
    }

    /// `None` if these bytes are no header, or a damaged one.
    pub fn from_bytes(bytes: &[u8; BLOCK_HEADER]) -> Option<Header> {
        let (content, checksum) = bytes.split_at(BLOCK_HEADER - 4);
        if content[..4] != BLOCK_MAGIC || crc32fast::hash(content).to_le_bytes() != checksum {
            return None;
        }
        let header = Header {
            kind: match u32_at(bytes, 4) {
                1 => Kind::Start,
                2 => Kind::Events,
                3 => Kind::End,
                _ => return None,
            },
            process: u32_at(bytes, 8),
            thread: u32_at(bytes, 12),
            ticket: u64_at(bytes, 16),
            time: u64_at(bytes, 24),
            length: u32_at(bytes, 32),
            stored: u32_at(bytes, 36),
            checksum: u32_at(bytes, 40),
        };
        (header.length <= BLOCK_LIMIT && header.stored <= header.length).then_some(header)
    }

    /// The contents, from the bytes in the file. `None` if they are damaged.
    pub fn unpack(&self, stored: &[u8]) -> Option<Vec<u8>> {
        if stored.len() != self.stored as usize || crc32fast::hash(stored) != self.checksum {
            return None;
        }
        if self.stored == self.length {
            return Some(stored.to_vec());
        }
        let contents = zstd::bulk::decompress(stored, self.length as usize).ok()?;
        (contents.len() == self.length as usize).then_some(contents)
    }
}

pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

pub fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

pub fn file_header(version: u32) -> [u8; FILE_HEADER] {
    let mut bytes = Vec::with_capacity(FILE_HEADER);
    bytes.extend(FILE_MAGIC);
    bytes.extend(version.to_le_bytes());
    bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
    bytes.try_into().expect("the fields add up")
}

/// Writes a trace. Each block reaches the system before the next is begun only in so far as BufWriter's buffer is
/// full; `flush` sees to the rest.
pub struct Writer<W: Write> {
    out: W,
    compressor: zstd::bulk::Compressor<'static>,
    level: i32,
    blocks: u64,
    /// Bytes of contents, and bytes written.
    pub length: u64,
    pub stored: u64,
}

impl Writer<BufWriter<File>> {
    pub fn create(path: &Path) -> io::Result<Self> {
        Writer::new(BufWriter::with_capacity(1 << 18, File::create(path)?))
    }
}

impl<W: Write> Writer<W> {
    pub fn new(mut out: W) -> io::Result<Writer<W>> {
        out.write_all(&file_header(VERSION))?;
        let compressor = zstd::bulk::Compressor::new(LEVEL)?;
        Ok(Writer { out, compressor, level: LEVEL, blocks: 0, length: 0, stored: FILE_HEADER as u64 })
    }

    /// Compresses what comes now faster, and less.
    pub fn hurry(&mut self, hurry: bool) -> io::Result<()> {
        let level = if hurry { LEVEL_IN_A_HURRY } else { LEVEL };
        if level != self.level {
            self.compressor.set_compression_level(level)?;
            self.level = level;
        }
        Ok(())
    }

    /// Writes a block; lengths and checksum of the header are filled in.
    pub fn write(&mut self, mut header: Header, contents: &[u8]) -> io::Result<()> {
        let packed = self.compressor.compress(contents)?;
        let stored = if packed.len() < contents.len() { &packed[..] } else { contents };
        header.length = contents.len() as u32;
        header.stored = stored.len() as u32;
        header.checksum = crc32fast::hash(stored);
        self.out.write_all(&header.to_bytes())?;
        self.out.write_all(stored)?;
        self.blocks += 1;
        self.length += u64::from(header.length);
        self.stored += (BLOCK_HEADER + stored.len()) as u64;
        Ok(())
    }

    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// The last block; without it a file is known to be cut short.
    pub fn finish(mut self, lost: u64) -> io::Result<W> {
        let contents = [lost.to_le_bytes(), self.blocks.to_le_bytes()].concat();
        let header =
            Header { kind: Kind::End, process: 0, thread: 0, ticket: 0, time: 0, length: 0, stored: 0, checksum: 0 };
        self.write(header, &contents)?;
        self.out.flush()?;
        Ok(self.out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        let kind = Kind::Events;
        Header { kind, process: 1, thread: 2, ticket: 3, time: 4, length: 5, stored: 5, checksum: 6 }
    }

    #[test]
    fn headers_survive() {
        assert_eq!(Header::from_bytes(&header().to_bytes()), Some(header()));
    }

    #[test]
    fn every_flipped_bit_of_a_header_is_seen() {
        for bit in 0..BLOCK_HEADER * 8 {
            let mut bytes = header().to_bytes();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Header::from_bytes(&bytes), None, "bit {bit}");
        }
    }

    #[test]
    fn contents_survive_and_damage_is_seen() {
        for contents in [vec![7; 10_000], (0..=255).collect(), Vec::new()] {
            let mut writer = Writer::new(Vec::new()).unwrap();
            writer.write(header(), &contents).unwrap();
            let file = writer.finish(0).unwrap();
            let found = Header::from_bytes(file[16..64].try_into().unwrap()).unwrap();
            let mut stored = file[64..64 + found.stored as usize].to_vec();
            assert_eq!(found.unpack(&stored), Some(contents.clone()));
            if let Some(byte) = stored.first_mut() {
                *byte ^= 1;
                assert_eq!(found.unpack(&stored), None);
                assert_eq!(found.unpack(&stored[1..]), None);
            }
        }
    }
}
