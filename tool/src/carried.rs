//! The files inside the tool: the library, and what records and replays programs.

/// A file that the tool brings along.
#[derive(Debug)]
pub struct Carried {
    pub bytes: &'static [u8],
    /// What its name begins and ends with, around the id.
    pub stem: &'static str,
    pub suffix: &'static str,
    /// Differs between any two versions: the start of the SHA-256 of the bytes.
    pub id: &'static str,
}

pub const LIBRARY: Carried = Carried {
    bytes: include_bytes!(concat!(env!("OUT_DIR"), "/libsnug.so")),
    stem: "libsnug",
    suffix: ".so",
    id: env!("ID_OF_libsnug_so"),
};

/// What `snug record` preloads.
pub const RECORDER: Carried = Carried {
    bytes: include_bytes!(concat!(env!("OUT_DIR"), "/libsnugrecord.so")),
    stem: "libsnugrecord",
    suffix: ".so",
    id: env!("ID_OF_libsnugrecord_so"),
};

/// The program that `snug replay` runs.
pub const REPLAYER: Carried = Carried {
    bytes: include_bytes!(concat!(env!("OUT_DIR"), "/snugreplay")),
    stem: "snugreplay",
    suffix: "",
    id: env!("ID_OF_snugreplay"),
};
