//! pprof's format, a gzipped protocol buffer: what snug keeps profiles in, since everybody reads it.
//!
//! The messages are those of perftools.profiles (profile.proto of github.com/google/pprof), as far as they are used.

use std::cell::Cell;
use std::collections::HashMap;
use std::io::{Read, Write};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{ensure, Context, Result};
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use flate2::Compression;
use prost::encoding::{decode_key, decode_varint, WireType};
use prost::Message;

use super::model::{Line, Module, Numbers, Place, Profile, Sample, What, DIFFERENCE, KEPT, PINNED};
use crate::output::shown;

mod proto {
    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Profile {
        #[prost(message, repeated, tag = "1")]
        pub sample_type: Vec<ValueType>,
        #[prost(message, repeated, tag = "2")]
        pub sample: Vec<Sample>,
        #[prost(message, repeated, tag = "3")]
        pub mapping: Vec<Mapping>,
        #[prost(message, repeated, tag = "4")]
        pub location: Vec<Location>,
        #[prost(message, repeated, tag = "5")]
        pub function: Vec<Function>,
        #[prost(string, repeated, tag = "6")]
        pub string_table: Vec<String>,
        #[prost(int64, tag = "9")]
        pub time_nanos: i64,
        #[prost(message, optional, tag = "11")]
        pub period_type: Option<ValueType>,
        #[prost(int64, tag = "12")]
        pub period: i64,
        #[prost(int64, repeated, tag = "13")]
        pub comment: Vec<i64>,
        #[prost(int64, tag = "14")]
        pub default_sample_type: i64,
    }

    #[derive(Clone, Copy, PartialEq, prost::Message)]
    pub struct ValueType {
        #[prost(int64, tag = "1")]
        pub kind: i64,
        #[prost(int64, tag = "2")]
        pub unit: i64,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Sample {
        #[prost(uint64, repeated, tag = "1")]
        pub location_id: Vec<u64>,
        #[prost(int64, repeated, tag = "2")]
        pub value: Vec<i64>,
    }

    #[derive(Clone, Copy, PartialEq, prost::Message)]
    pub struct Mapping {
        #[prost(uint64, tag = "1")]
        pub id: u64,
        #[prost(uint64, tag = "2")]
        pub memory_start: u64,
        #[prost(uint64, tag = "3")]
        pub memory_limit: u64,
        #[prost(int64, tag = "5")]
        pub filename: i64,
        #[prost(int64, tag = "6")]
        pub build_id: i64,
        #[prost(bool, tag = "7")]
        pub has_functions: bool,
        #[prost(bool, tag = "8")]
        pub has_filenames: bool,
        #[prost(bool, tag = "9")]
        pub has_line_numbers: bool,
        #[prost(bool, tag = "10")]
        pub has_inline_frames: bool,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Location {
        #[prost(uint64, tag = "1")]
        pub id: u64,
        #[prost(uint64, tag = "2")]
        pub mapping_id: u64,
        #[prost(uint64, tag = "3")]
        pub address: u64,
        #[prost(message, repeated, tag = "4")]
        pub line: Vec<Line>,
    }

    #[derive(Clone, Copy, PartialEq, prost::Message)]
    pub struct Line {
        #[prost(uint64, tag = "1")]
        pub function_id: u64,
        #[prost(int64, tag = "2")]
        pub line: i64,
    }

    #[derive(Clone, Copy, PartialEq, Eq, Hash, prost::Message)]
    pub struct Function {
        #[prost(uint64, tag = "1")]
        pub id: u64,
        #[prost(int64, tag = "2")]
        pub name: i64,
        #[prost(int64, tag = "3")]
        pub system_name: i64,
        #[prost(int64, tag = "4")]
        pub filename: i64,
    }
}

/// Strings stand in a table, once each.
struct Strings {
    table: Vec<String>,
    known: HashMap<String, i64>,
}

impl Strings {
    fn new() -> Strings {
        Strings { table: vec![String::new()], known: HashMap::from([(String::new(), 0)]) }
    }

    fn put(&mut self, text: &str) -> i64 {
        if let Some(&number) = self.known.get(text) {
            return number;
        }
        let number = self.table.len() as i64;
        self.table.push(text.to_string());
        self.known.insert(text.to_string(), number);
        number
    }
}

pub fn encode(profile: &Profile) -> Result<Vec<u8>> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(&messages(profile).encode_to_vec())?;
    Ok(gzip.finish()?)
}

fn messages(profile: &Profile) -> proto::Profile {
    let mut strings = Strings::new();
    let mut functions: HashMap<(i64, i64), u64> = HashMap::new();
    let value_type = |strings: &mut Strings, (kind, unit): (&str, &str)| proto::ValueType {
        kind: strings.put(kind),
        unit: strings.put(unit),
    };
    let mut out = proto::Profile {
        sample_type: KEPT.iter().map(|&kept| value_type(&mut strings, kept)).collect(),
        period_type: Some(value_type(&mut strings, ("space", "bytes"))),
        period: profile.mean.max(1),
        time_nanos: profile.taken.map_or(0, nanos_of),
        default_sample_type: strings.put("inuse_space"),
        ..proto::Profile::default()
    };
    out.mapping = profile.modules.iter().enumerate().map(|(at, module)| mapping(&mut strings, at, module)).collect();
    for (at, place) in profile.places.iter().enumerate() {
        let line = |line: &Line| {
            let key = (strings.put(&line.function), strings.put(&line.file));
            let next = functions.len() as u64 + 1;
            let id = *functions.entry(key).or_insert_with(|| {
                out.function.push(proto::Function { id: next, name: key.0, system_name: key.0, filename: key.1 });
                next
            });
            proto::Line { function_id: id, line: line.line }
        };
        out.location.push(proto::Location {
            id: at as u64 + 1,
            mapping_id: place.module.map_or(0, |module| module as u64 + 1),
            address: place.address,
            line: place.lines.iter().map(line).collect(),
        });
    }
    let sample = |sample: &Sample| proto::Sample {
        location_id: sample.stack.iter().map(|&place| place as u64 + 1).collect(),
        value: sample.numbers.to_vec(),
    };
    out.sample = profile.samples.iter().map(sample).collect();
    let difference = profile.is_difference.then_some(DIFFERENCE);
    let notes = profile.notes.iter().map(String::as_str);
    out.comment = difference.into_iter().chain(notes).map(|note| strings.put(note)).collect();
    out.string_table = strings.table;
    out
}

fn nanos_of(taken: SystemTime) -> i64 {
    taken.duration_since(UNIX_EPOCH).ok().and_then(|time| i64::try_from(time.as_nanos()).ok()).unwrap_or(0)
}

fn mapping(strings: &mut Strings, at: usize, module: &Module) -> proto::Mapping {
    proto::Mapping {
        id: at as u64 + 1,
        memory_start: module.start,
        memory_limit: module.end,
        filename: strings.put(&module.path),
        build_id: strings.put(&module.build_id),
        has_functions: true, // or pprof would look for symbols in files of this machine
        has_filenames: true,
        has_line_numbers: true,
        has_inline_frames: true,
    }
}

/// Bytes: four million sites, more than a process keeps, with 200 each. A KiB of gzip can become a MiB.
pub const BYTES_MOST: u64 = 1 << 30;

/// What may come of them in memory: two bytes can become a hundred, so it is counted before it is made. And of its texts,
/// each of which may be used many times.
const MADE_MOST: u64 = 2 << 30;
const TEXT_MOST: u64 = 1 << 30;

const TOO_LARGE: &str = "it is larger than any profile";

/// About what the messages take in memory, with what becomes of them here. Each number in them ends in a byte without
/// its highest bit.
fn memory_for(mut raw: &[u8]) -> u64 {
    let mut sum = 0u64;
    while let Ok((field, kind)) = decode_key(&mut raw) {
        let length = match kind {
            WireType::Varint => decode_varint(&mut raw).map(|_| 0),
            WireType::LengthDelimited => decode_varint(&mut raw),
            WireType::SixtyFourBit => Ok(8),
            WireType::ThirtyTwoBit => Ok(4),
            WireType::StartGroup | WireType::EndGroup => Ok(0),
        };
        let length = length.ok().and_then(|length| usize::try_from(length).ok());
        let Some((message, rest)) = length.and_then(|length| raw.split_at_checked(length)) else { break };
        let numbers = message.iter().filter(|&&byte| byte < 0x80).count() as u64;
        sum += match field {
            SAMPLE => 160 + 16 * numbers,
            LOCATION => 160 + 36 * numbers, // two of them are a line
            STRING => 24 + message.len() as u64,
            _ => 160 + 32 * numbers,
        };
        raw = rest;
    }
    sum
}

/// Fields of a profile.
const SAMPLE: u32 = 2;
const LOCATION: u32 = 4;
const STRING: u32 = 6;

/// Reads a profile that snug wrote, or another with the same numbers (those of Go programs); what is missing is 0.
pub fn decode(bytes: &[u8]) -> Result<Profile> {
    let mut unpacked = Vec::new();
    let mut raw = bytes;
    if bytes.starts_with(&[0x1f, 0x8b]) {
        GzDecoder::new(bytes).take(BYTES_MOST + 1).read_to_end(&mut unpacked).context("its gzip is damaged")?;
        raw = &unpacked;
    }
    ensure!(raw.len() as u64 <= BYTES_MOST && memory_for(raw) <= MADE_MOST, TOO_LARGE);
    let of = proto::Profile::decode(raw).ok().context("it is no profile of pprof's format")?;
    let text_left = Cell::new(TEXT_MOST);
    let text = |number: i64| {
        let text = usize::try_from(number).ok().and_then(|at| of.string_table.get(at));
        let text = text.context("it refers to a string that it does not have")?;
        text_left.set(text_left.get().checked_sub(text.len() as u64).context(TOO_LARGE)?);
        Ok(text.clone())
    };
    ensure!(!of.sample_type.is_empty(), "it is no profile: it is empty");
    let names = of.sample_type.iter().map(|kind| text(kind.kind)).collect::<Result<Vec<_>>>()?;
    let column = |wanted: &str| names.iter().position(|name| name == wanted);
    let (columns, held) = (KEPT.map(|(kept, _)| column(kept)), column("held_space"));
    ensure!(columns.iter().any(Option::is_some), "it is no profile of memory: it has {}", shown(&names.join(", ")));

    let time = u64::try_from(of.time_nanos).ok().filter(|&nanos| nanos != 0);
    let taken = time.map(|nanos| UNIX_EPOCH + Duration::from_nanos(nanos));
    let mut profile = Profile { mean: of.period, taken, ..Profile::default() };
    let mut module_at = HashMap::new();
    for module in &of.mapping {
        module_at.insert(module.id, profile.modules.len());
        let (path, build_id) = (text(module.filename)?, text(module.build_id)?);
        profile.modules.push(Module { path, build_id, start: module.memory_start, end: module.memory_limit });
    }
    let functions: HashMap<u64, &proto::Function> =
        of.function.iter().map(|function| (function.id, function)).collect();
    let mut place_at = HashMap::new();
    for location in &of.location {
        let line = |line: &proto::Line| {
            let function = functions.get(&line.function_id).context("it refers to a function that it does not have")?;
            Ok(Line { function: text(function.name)?, file: text(function.filename)?, line: line.line })
        };
        place_at.insert(location.id, profile.places.len());
        profile.places.push(Place {
            module: module_at.get(&location.mapping_id).copied(),
            address: location.address,
            lines: location.line.iter().map(line).collect::<Result<Vec<_>>>()?,
        });
    }
    for sample in &of.sample {
        let place = |id| place_at.get(id).copied().context("it refers to a place that it does not have");
        let stack = sample.location_id.iter().map(place).collect::<Result<Vec<_>>>()?;
        let number = |column: &Option<usize>| column.and_then(|at| sample.value.get(at).copied()).unwrap_or(0);
        let mut numbers = columns.each_ref().map(number);
        if columns[PINNED].is_none() {
            numbers[PINNED] = pinned_of_held(number(&held), &numbers);
        }
        profile.samples.push(Sample { stack, numbers });
    }
    profile.notes = of.comment.iter().map(|&note| text(note)).collect::<Result<Vec<_>>>()?;
    profile.is_difference = profile.notes.iter().any(|note| note == DIFFERENCE);
    profile.notes.retain(|note| note != DIFFERENCE);
    Ok(profile)
}

/// Earlier versions of snug wrote what live blocks hold of their pages, their own bytes included; 0 if it was not known.
fn pinned_of_held(held: i64, numbers: &Numbers) -> i64 {
    match held {
        0 => 0,
        held => held.saturating_sub(What::Live.of(numbers)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{growth, show};
    use super::*;

    fn some() -> Profile {
        let line = |name: &str, line| Line { function: name.into(), file: "a.c".into(), line };
        Profile {
            modules: vec![Module { path: "/bin/a".into(), build_id: "0a".into(), start: 0, end: 8192 }],
            places: vec![
                Place { module: Some(0), address: 4100, lines: vec![line("inner", 3), line("outer", 9)] },
                Place { module: None, address: 1, lines: vec![] },
            ],
            samples: vec![Sample { stack: vec![0, 1], numbers: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11] }],
            mean: 4096,
            is_difference: false,
            taken: Some(UNIX_EPOCH + Duration::from_nanos(1_700_000_000_123_456_789)),
            notes: vec!["a note".into()],
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let read = decode(&encode(&some()).unwrap()).unwrap();
        assert_eq!(format!("{read:?}"), format!("{:?}", some()));
        let difference = Profile { is_difference: true, ..some() };
        let read = decode(&encode(&difference).unwrap()).unwrap();
        assert_eq!(format!("{read:?}"), format!("{difference:?}"));
    }

    #[test]
    fn what_is_none_is_refused() {
        let whole = encode(&some()).unwrap();
        for bytes in [&b"no profile"[..], &[], &whole[..whole.len() - 9]] {
            assert!(decode(bytes).is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn a_small_file_that_would_become_a_large_profile() {
        let mut bytes = messages(&some()).encode_to_vec();
        assert!((1000..20_000).contains(&memory_for(&bytes)));
        bytes.extend([0x12, 0].repeat(14_000_000)); // samples of nothing
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(&bytes).unwrap();
        assert_eq!(decode(&gzip.finish().unwrap()).unwrap_err().to_string(), TOO_LARGE);
    }

    /// Bytes that change, go or come, by a seed: what comes of it is refused, or shown like any other.
    #[test]
    fn whatever_stands_in_a_file() {
        let mut random = fastrand::Rng::with_seed(1);
        let whole = messages(&some()).encode_to_vec();
        let rounds = if std::env::var_os("SNUG_TEST_FULL").is_some() { 300_000 } else { 10_000 };
        let mut read = 0;
        for _ in 0..rounds {
            let mut bytes = whole.clone();
            for _ in 0..random.usize(1..4) {
                let at = random.usize(..bytes.len());
                match random.u8(..12) {
                    0 => bytes.truncate(at.max(1)),
                    1 => bytes.insert(at, random.u8(..)),
                    2 => bytes.splice(at..at + 1, [0xff; 9]).for_each(drop),
                    _ => bytes[at] = random.u8(..),
                }
            }
            let Ok(mut profile) = decode(&bytes) else { continue };
            read += 1;
            for what in [What::Live, What::Freed, What::Pinned, What::AllocatedBlocks] {
                show::table(&profile, what, 5);
                show::folded(&profile, what);
            }
            show::json(&profile).unwrap();
            growth::text(&[profile.clone(), some(), profile.clone()], 5);
            profile.add(&some(), -1);
            decode(&encode(&profile).unwrap()).unwrap();
        }
        assert!((rounds / 50..rounds).contains(&read), "{read} of {rounds} were read");
    }
}
