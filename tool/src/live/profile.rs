//! The profile that a program has of itself (src/profile/profile.h of the library), read from outside: also of one that
//! stands still at its end. And asking a running program to take one.

use std::collections::HashMap;
use std::ffi::{c_void, CStr, OsStr};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::SystemTime;

use super::jit::MadeCode;
use super::memory::Memory;
use super::objects::{Mapped, Object};
use super::{ffi, read, Buffer, Program};

pub use super::ffi::{Block, Call, Site};

/// Counts are in so many parts.
pub const COUNT_UNIT: f64 = 65536.0;

/// As enum profile_request of the library has them.
const ON: u8 = 1;
const OFF: u8 = 2;

/// What was found in one process, as it was there.
pub struct Raw {
    /// Bytes between two marks; 0: every allocation was looked at.
    pub mean: f64,
    /// Samples for which there was no room.
    pub lost: u64,
    pub sites: Vec<Site>,
    /// All that is live, if every allocation was looked at.
    pub blocks: Option<Vec<Block>>,
    /// By their numbers; the parent of the outermost is 0.
    pub calls: HashMap<u32, Call>,
    pub objects: HashMap<u32, Object>,
    /// Names of code that is in no file.
    pub made: MadeCode,
    pub process: i32,
    /// The file of the program itself.
    pub program: PathBuf,
    /// When it was read.
    pub taken: SystemTime,
}

impl Program {
    /// The tables of a profile as they are now. None: none was ever taken, or the process is gone.
    fn profile_tables(&self) -> Option<(Buffer, ffi::ProfileTotals)> {
        // SAFETY: this only asks for a number.
        let mut profile = Buffer::of(unsafe { ffi::outside_profile_size() });
        let mut totals = ffi::ProfileTotals::default();
        let context: *mut c_void = (&raw const self.memory).cast_mut().cast();
        self.memory.refresh();
        // SAFETY: the buffer has the size that was asked for; `memory` outlives it.
        unsafe { ffi::outside_profile(read, context, self.anchor.start(), profile.start_mut(), &mut totals) }
            .then_some((profile, totals))
    }

    /// What each site has, and nothing of where it is; none if there is no profile.
    pub fn profile_sites(&self) -> Vec<Site> {
        let Some((profile, _)) = self.profile_tables() else { return Vec::new() };
        let mut sites = Vec::new();
        let mut site = Site::default();
        // SAFETY: the profile was filled in.
        while unsafe { ffi::outside_profile_site(profile.start(), sites.len() as u32 + 1, &mut site) } {
            sites.push(site);
        }
        sites
    }

    /// None: none was ever taken, or the process is gone.
    pub fn profile(&self) -> Option<Raw> {
        let sites = self.profile_sites();
        if sites.is_empty() {
            return None;
        }
        // Of a running program: whatever these sites refer to is there by now.
        let (profile, totals) = self.profile_tables()?;
        let calls = calls_of(&sites, &profile);
        let objects = objects_of(&calls, &profile, &self.memory);
        let is_exact = totals.mean <= 1.0 && totals.lost == 0;
        let blocks = is_exact.then(|| blocks_of(&profile));
        let in_no_file = |call: &Call| call.object == 0 && call.code > 1;
        let made = match calls.values().any(in_no_file) {
            true => MadeCode::of(self.memory.thread()),
            false => MadeCode::default(),
        };
        let (mean, lost, process) = (totals.mean, totals.lost, self.process);
        let program = program_of(&self.memory);
        Some(Raw { mean, lost, sites, blocks, calls, objects, made, process, program, taken: SystemTime::now() })
    }

    /// Asks the program to take a profile, or to end that. It does so at the next request of any of its threads.
    pub fn request_profile(&self, on: bool) -> io::Result<()> {
        // SAFETY: the anchor was filled in.
        self.memory.write(unsafe { ffi::outside_profile_request(self.anchor.start()) }, if on { ON } else { OFF })?;
        for number in 0..if on { 4 } else { 0 } {
            // SAFETY: as above.
            self.memory.clear_word(unsafe { ffi::outside_profile_served(self.anchor.start(), number) })?;
        }
        Ok(())
    }

    /// Whether it takes one now.
    pub fn is_profiled(&self) -> io::Result<bool> {
        // SAFETY: the anchor was filled in.
        let word = self.memory.read_now(unsafe { ffi::outside_profile_on(self.anchor.start()) })?;
        Ok(word & 0xff != 0)
    }
}

fn blocks_of(profile: &Buffer) -> Vec<Block> {
    let block = |number| {
        let mut block = Block::default();
        // SAFETY: the profile was filled in.
        unsafe { ffi::outside_profile_block(profile.start(), number, &mut block) }.then_some(block)
    };
    (1..).map_while(block).filter(|block| block.address != 0).collect()
}

/// A stack is no deeper (UNWIND_MOST of the library); who says so may lead about in a circle.
pub const DEPTH_MOST: usize = 256;

fn calls_of(sites: &[Site], profile: &Buffer) -> HashMap<u32, Call> {
    let mut calls = HashMap::new();
    for site in sites {
        let mut number = site.stack as u32;
        while number != 0 && !calls.contains_key(&number) {
            let mut call = Call::default();
            // SAFETY: the profile was filled in.
            if !unsafe { ffi::outside_profile_call(profile.start(), number, &mut call) } {
                break;
            }
            calls.insert(number, call);
            number = call.parent;
        }
    }
    calls
}

fn objects_of(calls: &HashMap<u32, Call>, profile: &Buffer, memory: &Memory) -> HashMap<u32, Object> {
    let (mut objects, mapped) = (HashMap::new(), Mapped::of(memory.thread()));
    for number in calls.values().map(|call| call.object).filter(|&number| number != 0) {
        objects.entry(number).or_insert_with(|| object_of(number, profile, memory, &mapped));
    }
    objects
}

fn program_of(memory: &Memory) -> PathBuf {
    fs::read_link(format!("/proc/{}/exe", memory.thread())).unwrap_or_default()
}

fn object_of(number: u32, profile: &Buffer, memory: &Memory, mapped: &Mapped) -> Object {
    let mut raw = ffi::Object { start: 0, end: 0, bias: 0, name: [0; 232] };
    // SAFETY: the profile was filled in; the name ends in 0.
    let name = unsafe {
        ffi::outside_profile_object(profile.start(), number, &mut raw);
        CStr::from_ptr(raw.name.as_ptr())
    };
    let name = match name.to_bytes() {
        b"" => program_of(memory),
        name => PathBuf::from(OsStr::from_bytes(name)),
    };
    mapped.object(memory, &name.to_string_lossy(), (raw.start, raw.end, raw.bias))
}
