//! The files inside the tool: the library, what records and replays programs, and texts.

use std::io::{self, Read};

/// A file that the tool brings along.
#[derive(Debug)]
pub struct Carried {
    /// By zstd.
    packed: &'static [u8],
    /// CRC-32 of the bytes.
    checksum: &'static str,
    /// What its name begins and ends with, around the id.
    pub stem: &'static str,
    pub suffix: &'static str,
    /// Differs between any two versions: the start of the SHA-256 of the bytes.
    pub id: &'static str,
}

impl Carried {
    pub fn read(&self) -> io::Result<impl Read> {
        zstd::Decoder::with_buffer(self.packed)
    }

    /// The whole file.
    pub fn bytes(&self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.read()?.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Whether these are its bytes, as far as damage goes: who may write there would change the tool as well.
    pub fn is(&self, bytes: &[u8]) -> bool {
        self.checksum.parse() == Ok(crc32fast::hash(bytes))
    }
}

pub const LIBRARY: Carried = Carried {
    packed: include_bytes!(concat!(env!("OUT_DIR"), "/libsnug.so")),
    checksum: env!("CHECKSUM_OF_libsnug_so"),
    stem: "libsnug",
    suffix: ".so",
    id: env!("ID_OF_libsnug_so"),
};

/// What `snug record` preloads.
pub const RECORDER: Carried = Carried {
    packed: include_bytes!(concat!(env!("OUT_DIR"), "/libsnugrecord.so")),
    checksum: env!("CHECKSUM_OF_libsnugrecord_so"),
    stem: "libsnugrecord",
    suffix: ".so",
    id: env!("ID_OF_libsnugrecord_so"),
};

/// The program that `snug replay` runs.
pub const REPLAYER: Carried = Carried {
    packed: include_bytes!(concat!(env!("OUT_DIR"), "/snugreplay")),
    checksum: env!("CHECKSUM_OF_snugreplay"),
    stem: "snugreplay",
    suffix: "",
    id: env!("ID_OF_snugreplay"),
};

/// snug.h, of which the pages of its functions are made.
pub fn header() -> io::Result<String> {
    text(include_bytes!(concat!(env!("OUT_DIR"), "/snug.h")))
}

/// docs/dashboard.json.
pub fn dashboard() -> io::Result<String> {
    text(include_bytes!(concat!(env!("OUT_DIR"), "/dashboard.json")))
}

fn text(packed: &[u8]) -> io::Result<String> {
    let mut text = String::new();
    zstd::Decoder::with_buffer(packed)?.read_to_string(&mut text)?;
    Ok(text)
}
