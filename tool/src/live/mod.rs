//! A running program on snug, looked at from outside: its memory is read, and nothing in it is run or stopped, but where a
//! thread is borrowed (borrow.rs).
//!
//! docs/decisions/0007-live.md says how, at which cost to the program (none), and who may.

#[cfg(target_arch = "x86_64")]
mod asleep;
mod barred;
#[cfg(target_arch = "x86_64")]
mod borrow;
mod explain;
mod ffi;
mod find;
pub mod jit;
pub mod lent;
pub mod list;
mod memory;
pub mod objects;
pub mod options;
pub mod profile;
#[cfg(target_arch = "x86_64")]
mod ptrace;

use std::ffi::{c_void, CStr, CString};
use std::fs::File;
use std::io::{Read, Seek};
use std::os::fd::AsRawFd;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{bail, ensure, Context, Result};

use crate::output::shown;
use crate::scratch;
pub use memory::thread_with_memory;
use memory::{has_memory, Memory};

/// A program that runs on snug.
pub struct Program {
    process: i32,
    /// When the process began; another one with the same number began at another time.
    began: u64,
    memory: Memory,
    /// Where the anchor is in the process, and its copy.
    address: usize,
    anchor: Buffer,
}

/// The statistics at one moment.
pub struct Values {
    buffer: Buffer,
}

/// One of the library's structures, as bytes of the right alignment.
struct Buffer(Vec<u64>);

impl Buffer {
    fn of(bytes: usize) -> Buffer {
        Buffer(vec![0; bytes.div_ceil(8)])
    }

    fn start(&self) -> *const c_void {
        self.0.as_ptr().cast()
    }

    fn start_mut(&mut self) -> *mut c_void {
        self.0.as_mut_ptr().cast()
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: all of the words are there, and any bytes are bytes.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast(), 8 * self.0.len()) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and any bytes are words.
        unsafe { std::slice::from_raw_parts_mut(self.0.as_mut_ptr().cast(), 8 * self.0.len()) }
    }
}

/// What is looked at: enum values_depth of the library, whose numbers these are.
#[derive(Clone, Copy)]
pub enum Depth {
    /// Counters only: microseconds.
    Quick = 0,
    /// The residence of every page too.
    Resident = 1,
    /// And the size of every medium block.
    Whole,
}

/// Choices of SNUG_STATS_FORMAT.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    Text,
    Json,
    Csv,
    #[value(name = "openmetrics")]
    OpenMetrics,
}

/// How long the lists of a busy program are followed again, if they led astray.
const FOLLOWED_MOST: Duration = Duration::from_millis(300);

extern "C" fn read(context: *mut c_void, address: usize, value: *mut c_void, bytes: usize) -> bool {
    // SAFETY: the context is the Memory that was given with this function, which outlives the call; `value` has room
    // for `bytes`.
    let (memory, into) =
        unsafe { (&*context.cast::<Memory>(), std::slice::from_raw_parts_mut(value.cast::<u8>(), bytes)) };
    memory.read(address, into)
}

/// How long a process that begins is waited for, and the time between two looks.
const BEGINS_MOST: Duration = Duration::from_secs(2);
const BEGINS_STEP: Duration = Duration::from_millis(5);

impl Program {
    /// Does something with snug in a process that somebody names, maybe at once when it was started: while it only begins,
    /// as `snug run` does before it becomes the command, it is waited for. What fails because the process has become another
    /// program meanwhile is done with that one.
    pub fn with_named<T>(process: i32, mut what: impl FnMut(&Program) -> Result<T>) -> Result<(Program, T)> {
        let until = Instant::now() + BEGINS_MOST;
        let mut is_another = false;
        loop {
            let program = Program::find_until(process, until, is_another)?;
            match what(&program) {
                Err(_) if Instant::now() < until && program.is_another() => is_another = true,
                done => return Ok((program, done?)),
            }
        }
    }

    /// Finds snug in a process that is known to begin, or seems to.
    fn find_until(process: i32, until: Instant, begins: bool) -> Result<Program> {
        loop {
            let found = Program::find(process).and_then(|program| {
                // Its anchor is there before it is filled in, and before there is a heap.
                program.values(Depth::Quick)?;
                Ok(program)
            });
            let may_come = || has_memory(process) && (begins || find::is_beginning(process));
            if found.is_ok() || Instant::now() > until || !may_come() {
                return found;
            }
            sleep(BEGINS_STEP);
        }
    }

    /// Finds snug in a process.
    pub fn find(process: i32) -> Result<Program> {
        ensure!(process > 0, "{process} is no process id");
        let memory = Memory::of(process);
        let began = find::began(process);
        // SAFETY: this only asks for a number.
        let mut anchor = Buffer::of(unsafe { ffi::outside_anchor_size() });
        for address in find::anchors(process, &memory)? {
            let context = (&raw const memory).cast_mut().cast();
            // SAFETY: `anchor` has the size that was asked for, and `memory` outlives the call.
            match unsafe { ffi::outside_anchor(read, context, address, anchor.start_mut()) } {
                ffi::DONE => return Ok(Program { process, began: began?, memory, address, anchor }),
                ffi::OTHER_LAYOUT => {
                    // SAFETY: the anchor was filled in, and its version ends in 0.
                    let version = unsafe { CStr::from_ptr(ffi::outside_version(anchor.start())) };
                    bail!(
                        "process {process} runs on another build of snug ({}) than this tool carries; use the tool \
                         of that build",
                        shown(&version.to_string_lossy())
                    )
                }
                _ => continue,
            }
        }
        bail!("process {process} does not run on snug; start it with: snug run COMMAND")
    }

    pub fn pid(&self) -> i32 {
        self.process
    }

    /// The statistics now. Lists of a busy program change while they are followed: then what is in them is not known, and
    /// all is looked at again, for a while.
    pub fn values(&self, depth: Depth) -> Result<Values> {
        let begun = Instant::now();
        loop {
            let values = self.look(depth)?;
            if values.are_complete(depth, true) || begun.elapsed() > FOLLOWED_MOST {
                return Ok(values);
            }
            // What is resident is in the page map alone: another look would not find it either.
            if values.are_complete(depth, false) && !self.has_page_map() {
                return Ok(values);
            }
        }
    }

    /// Whether it can be read which pages are resident: some systems have no page map, or not for everybody.
    fn has_page_map(&self) -> bool {
        let map = File::open(format!("/proc/{}/pagemap", self.memory.thread()));
        map.and_then(|mut map| map.read_exact(&mut [0; 8])).is_ok()
    }

    fn look(&self, depth: Depth) -> Result<Values> {
        self.memory.refresh();
        self.check_is_the_same()?;
        // SAFETY: this only asks for a number.
        let mut values = Buffer::of(unsafe { ffi::outside_values_size() });
        let context = (&raw const self.memory).cast_mut().cast();
        // SAFETY: both buffers have the sizes that were asked for; `memory` outlives the call.
        let done = unsafe {
            ffi::outside_read(
                read,
                context,
                self.anchor.start(),
                self.memory.thread(),
                depth as u32,
                values.start_mut(),
            )
        };
        // SAFETY: the values were filled in.
        unsafe { ffi::outside_of(values.start_mut(), self.process) };
        ensure!(!self.memory.is_endless(), "what process {} has in place of a heap has no end", self.process);
        ensure!(done, "process {} has ended, or cannot be read any more", self.process);
        let values = Values { buffer: values };
        // Nothing resident: its memory went while it was read, and what was read are parts of two moments.
        if values.get("resident") == Some(0) {
            self.memory.refresh();
            self.check_is_the_same()?;
        }
        Ok(values)
    }

    /// Whether the process has ended, or is another program now.
    pub fn has_ended(&self) -> bool {
        self.memory.refresh();
        self.check_is_the_same().is_err()
    }

    /// Whether the process lives, and is another program now.
    fn is_another(&self) -> bool {
        let lives = find::began(self.process).is_ok_and(|began| began == self.began) && has_memory(self.process);
        lives && self.has_ended()
    }

    /// After an exec there is another program in the process, and after its end maybe another process.
    fn check_is_the_same(&self) -> Result<()> {
        let alive = find::began(self.process).is_ok_and(|began| began == self.began);
        ensure!(alive, "process {} has ended", self.process);
        // SAFETY: this only asks for a number.
        let mut now = Buffer::of(unsafe { ffi::outside_anchor_size() });
        let context = (&raw const self.memory).cast_mut().cast();
        // SAFETY: `now` has the size that was asked for, and `memory` outlives the call.
        let found = unsafe { ffi::outside_anchor(read, context, self.address, now.start_mut()) };
        let same = found == ffi::DONE && now.0 == self.anchor.0;
        ensure!(same, "process {} has ended, or runs another program now", self.process);
        Ok(())
    }

    /// Has a thread that sleeps do something for the program, now, in that time at most.
    pub fn call(&self, what: lent::What, most: Duration) -> Result<lent::Outcome> {
        self.memory.refresh();
        self.check_is_the_same()?;
        #[cfg(target_arch = "x86_64")]
        return borrow::call(self.process, &self.anchor.0, what, most);
        #[cfg(not(target_arch = "x86_64"))]
        return {
            let _ = (what, most);
            Ok(lent::Outcome::Never(lent::NONE_LENT.to_string()))
        };
    }

    /// Asks the program to give back its free memory.
    pub fn request_trim(&self) -> Result<()> {
        self.memory.refresh();
        self.check_is_the_same()?;
        // SAFETY: the anchor was filled in.
        let done = self.memory.write(unsafe { ffi::outside_trim_request(self.anchor.start()) }, 1);
        done.with_context(|| format!("process {} must not be written to, or has ended", self.process))
    }

    /// How many such requests it has carried out.
    pub fn trims(&self) -> Result<u64> {
        // SAFETY: the anchor was filled in.
        let count = self.memory.read_now(unsafe { ffi::outside_trim_count(self.anchor.start()) });
        count.with_context(|| format!("process {} has ended", self.process))
    }
}

/// Small objects of one size.
pub struct Class {
    pub size: u64,
    pub live: u64,
}

/// Medium blocks of up to `to` bytes and more than half of it; all below 1 KiB are in one.
pub struct Medium {
    pub to: u64,
    pub blocks: u64,
    pub bytes: u64,
}

/// Heaps of the program's own that have the same name, provider and quota; bytes.
#[derive(Default)]
pub struct Heap {
    /// As it may be shown: a program chooses it. Empty: they have none.
    pub name: String,
    pub provider: String,
    pub heaps: u64,
    /// In all of them: blocks and bytes in use, and bytes taken.
    pub blocks: u64,
    pub live: u64,
    pub mapped: u64,
    /// The most that one of them had.
    pub peak: u64,
    /// Of each; None: none.
    pub quota: Option<u64>,
}

/// The slabs of a class, and those of them of which at most a quarter is in use.
#[derive(Clone, Default)]
pub struct Slabs {
    pub size: u64,
    pub all: u64,
    /// Objects in use, and how many there is room for.
    pub live: u64,
    pub room: u64,
    pub sparse: u64,
    /// Bytes that are free in those.
    pub sparse_free: u64,
}

impl Values {
    /// Large and huge blocks of up to `to` bytes and more than half of it.
    pub fn large(&self) -> Vec<Medium> {
        let row = |number| {
            let (mut to, mut blocks, mut bytes) = (0, 0, 0);
            // SAFETY: the values were filled in.
            let found = unsafe { ffi::outside_large(self.buffer.start(), number, &mut to, &mut blocks, &mut bytes) };
            found.then_some(Medium { to, blocks, bytes })
        };
        (0..).map_while(row).filter(|row| row.blocks > 0).collect()
    }

    /// Heaps of the program's own, by name.
    pub fn heaps(&self) -> Vec<Heap> {
        let row = |index| {
            let (mut name, mut provider, mut numbers) = (std::ptr::null(), std::ptr::null(), [0; 6]);
            // SAFETY: the values were filled in; both texts end in 0, and the name lives as long as they.
            unsafe {
                ffi::outside_heap(self.buffer.start(), index, &mut name, &mut provider, &mut numbers).then(|| {
                    let text = |text| shown(&CStr::from_ptr(text).to_string_lossy());
                    (text(name), text(provider), numbers)
                })
            }
        };
        let heap = |(name, provider, [heaps, blocks, live, mapped, peak, quota]): (String, String, [u64; 6])| Heap {
            name,
            provider,
            heaps,
            blocks,
            live,
            mapped,
            peak,
            quota: (quota != 0).then_some(quota),
        };
        (0..).map_while(row).map(heap).collect()
    }

    /// Of each class that has slabs; None if they are not known.
    pub fn slabs(&self) -> Option<Vec<Slabs>> {
        let slabs = |class| {
            let mut numbers = [0; 6];
            // SAFETY: the values were filled in.
            let found = unsafe { ffi::outside_slabs(self.buffer.start(), class, &mut numbers) };
            let [size, all, live, room, sparse, sparse_free] = numbers;
            found.then_some(Slabs { size, all, live, room, sparse, sparse_free })
        };
        let all: Vec<Slabs> = (1..).map_while(slabs).collect();
        (!all.is_empty()).then(|| all.into_iter().filter(|slabs| slabs.all > 0).collect())
    }

    /// A gauge or a counter by its name in the JSON; None if it is not known.
    pub fn get(&self, name: &str) -> Option<u64> {
        let name = CString::new(name).ok()?;
        let mut value = 0;
        // SAFETY: the values were filled in; `name` ends in 0.
        unsafe { ffi::outside_value(self.buffer.start(), name.as_ptr(), &mut value) }.then_some(value)
    }

    pub fn classes(&self) -> Vec<Class> {
        let class = |number| {
            let (mut size, mut live, mut idle) = (0, 0, 0);
            // SAFETY: the values were filled in.
            let found = unsafe { ffi::outside_class(self.buffer.start(), number, &mut size, &mut live, &mut idle) };
            found.then_some(Class { size, live })
        };
        (1..).map_while(class).collect()
    }

    /// Whether all is known that was looked at, what is resident only if the system tells it. A heap that was never used
    /// has nothing to walk through.
    fn are_complete(&self, depth: Depth, resident: bool) -> bool {
        let unused = self.get("mapped") == Some(0);
        let walked = unused || !resident || self.get("resident_snug").is_some();
        match depth {
            Depth::Quick => true,
            Depth::Resident => walked,
            Depth::Whole => walked && (unused || self.slabs().is_some() && self.medium().is_some()),
        }
    }

    /// None if they are not known.
    pub fn medium(&self) -> Option<Vec<Medium>> {
        let row = |number| {
            let (mut to, mut blocks, mut bytes) = (0, 0, 0);
            // SAFETY: the values were filled in.
            let found = unsafe { ffi::outside_medium(self.buffer.start(), number, &mut to, &mut blocks, &mut bytes) };
            found.then_some(Medium { to, blocks, bytes })
        };
        let rows: Vec<Medium> = (0..).map_while(row).collect();
        rows.iter().all(|row| row.blocks != u64::MAX).then_some(rows)
    }

    /// The same, as read for this reason: "exit", ...
    pub fn because(&mut self, reason: &'static CStr) {
        // SAFETY: the values were filled in; the reason lives as long as they.
        unsafe { ffi::outside_because(self.buffer.start_mut(), reason.as_ptr()) }
    }

    /// For people: as the library itself would write them, with a verdict after its first line, and explained.
    pub fn told(&self, process: Option<i32>, detail: bool) -> Result<Vec<u8>> {
        let written = self.written(Format::Text, detail)?;
        let first = written.iter().position(|&byte| byte == b'\n').map_or(written.len(), |end| end + 1);
        let (head, rest) = written.split_at(first);
        Ok([head, self.verdict(process).as_bytes(), rest, self.explained(process).as_bytes()].concat())
    }

    /// As the library itself would write them.
    pub fn written(&self, format: Format, detail: bool) -> Result<Vec<u8>> {
        let name = match format {
            Format::Text => c"text",
            Format::Json => c"json",
            Format::Csv => c"csv",
            Format::OpenMetrics => c"openmetrics",
        };
        let mut file = scratch::small()?;
        // SAFETY: the values were filled in, and the name ends in 0.
        let done = unsafe { ffi::outside_write(self.buffer.start(), name.as_ptr(), detail, file.as_raw_fd()) };
        ensure!(done, "the statistics could not be written to a temporary file");
        let mut bytes = Vec::new();
        file.rewind()?;
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}
