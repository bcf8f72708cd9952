//! Has a running program do something at once, by a thread of it that sleeps (src/platform/borrow.h of the library).
//!
//! All threads that sleep where nothing comes of it are stopped for a moment. One of them does the work; what waits in the
//! magazines of the others is given back as well, as far as they are sure not to be on their way through snug. Then all
//! go on with what they were in.

use std::fs;
use std::io;
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

use anyhow::{anyhow, bail, Context, Result};
use humantime::format_duration;

use super::asleep::{by_itself, goes_on, is_asleep, is_stopped, Mappings};
use super::lent::{Done, Outcome, What, NONE_LENT};
use super::memory::Memory;
use super::ptrace::{self, Waited};
use super::{ffi, read, Buffer};
use crate::output::shown;
use crate::proc;

/// How long a thread may take to stop: it only has to leave its call.
const STOP_MOST: Duration = Duration::from_millis(100);
/// The longest pause between two looks at a thread that works.
const LOOK: Duration = Duration::from_millis(1);

/// In a thread of its own: whatever of the other process is left when it ends, whichever way, the kernel lets go.
pub fn call(process: i32, anchor: &[u64], what: What, most: Duration) -> Result<Outcome> {
    let anchor = Buffer(anchor.to_vec());
    let signals = Signals::hold();
    let outcome = spawn(move || Caller::new(process, anchor, most)?.call(what)).join();
    drop(signals);
    outcome.map_err(|_| anyhow!("the thread that traces has failed"))?
}

/// Ctrl-C waits until the other process is as it was.
struct Signals(libc::sigset_t);

impl Signals {
    fn hold() -> Signals {
        // SAFETY: both sets are filled in by the calls that get them.
        unsafe {
            let (mut all, mut before) = (std::mem::zeroed(), std::mem::zeroed());
            libc::sigfillset(&mut all);
            libc::pthread_sigmask(libc::SIG_BLOCK, &all, &mut before);
            Signals(before)
        }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // SAFETY: the set is what the thread had before.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, std::ptr::null_mut()) };
    }
}

struct Caller {
    process: i32,
    anchor: Buffer,
    places: ffi::Places,
    memory: Memory,
    /// How long the work may take. What is not done then may never be: that end is for the process to say.
    most: Duration,
}

/// A thread that stands still.
struct Still {
    tid: i32,
    registers: libc::user_regs_struct,
}

impl Caller {
    fn new(process: i32, anchor: Buffer, most: Duration) -> Result<Caller> {
        let mut places = ffi::Places::default();
        // SAFETY: the anchor was filled in.
        unsafe { ffi::outside_places(anchor.start(), &mut places) };
        Ok(Caller { process, anchor, places, memory: Memory::of(process), most })
    }

    fn call(&self, what: What) -> Result<Outcome> {
        if self.places.entry == 0 {
            return Ok(Outcome::Never(NONE_LENT.to_string()));
        }
        let first = self.memory.thread();
        if is_stopped(first) {
            return Ok(Outcome::NotNow("it is stopped, until it gets SIGCONT"));
        }
        if let Err(error) = ptrace::seize(first) {
            return Ok(Outcome::Never(self.not_traced(&error)));
        }
        if self.is_in_use()? {
            return Ok(Outcome::NotNow("a thread of it is on its way back from being asked before"));
        }
        let still = self.stop_sleepers(first)?;
        let outcome = match still.first() {
            None => Ok(Outcome::NotNow("none of its threads sleeps")),
            Some(worker) => self.work(worker, &still, what),
        };
        for thread in still {
            ptrace::detach(thread.tid, 0);
        }
        outcome
    }

    fn not_traced(&self, error: &io::Error) -> String {
        let status = proc::text(format!("/proc/{}/status", self.memory.thread())).unwrap_or_default();
        match proc::field(&status, "TracerPid:").unwrap_or_default() {
            "" | "0" => format!("it cannot be traced: {error}"),
            tracer => format!("process {tracer} traces it"),
        }
    }

    /// The one which is traced already comes first, if it sleeps.
    fn stop_sleepers(&self, first: i32) -> Result<Vec<Still>> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.process))
            .with_context(|| format!("process {} has ended", self.process))?;
        let mut tids: Vec<i32> = tasks.flatten().filter_map(|task| task.file_name().to_str()?.parse().ok()).collect();
        tids.sort_by_key(|&tid| (tid != first, tid));
        tids.retain(|&tid| is_asleep(self.process, tid));
        tids.retain(|&tid| tid == first || ptrace::seize(tid).is_ok());
        tids.retain(|&tid| ptrace::interrupt(tid).is_ok());
        Ok(tids.into_iter().filter_map(stand_still).collect())
    }

    fn work(&self, worker: &Still, still: &[Still], what: What) -> Result<Outcome> {
        let caches = self.caches_of(still);
        let Some(image) = ptrace::image(worker.tid, self.places.image_bytes as usize) else {
            return Ok(Outcome::Never("this processor has more registers than snug knows of".to_string()));
        };
        let mask = ptrace::signal_mask(worker.tid)?;
        let mut call = self.filled(what, worker.tid, mask, &by_itself(&worker.registers), &caches);
        self.memory.write_all(self.places.image as usize, &image)?;
        self.memory.write_all(self.places.call as usize, call.bytes())?;
        let begun = Instant::now();
        let done = self.lend(worker, mask, &image);
        let took = begun.elapsed();
        done?;
        self.memory.refresh();
        if !self.memory.read(self.places.call as usize, call.bytes_mut()) {
            bail!("process {} has ended", self.process);
        }
        let (mut outcome, mut wrong, mut place) = (0, 0, 0);
        // SAFETY: the call was read as a whole, but for caches.
        unsafe { ffi::outside_call_result(call.start(), &mut outcome, &mut wrong, &mut place) };
        if outcome != ffi::MADE {
            return Ok(Outcome::NotNow("a thread of it is in the middle of a call of malloc's"));
        }
        let wrong = (wrong != 0).then(|| match place {
            0 => self.text_at(wrong as usize),
            _ => format!("{}, at {place:#x}", self.text_at(wrong as usize)),
        });
        Ok(Outcome::Done(Done { thread: worker.tid, took, stopped: still.len(), emptied: caches.len(), wrong }))
    }

    /// From here on, wherever this tool is killed, the thread finds its way back by itself.
    fn lend(&self, worker: &Still, mask: u64, image: &[u8]) -> Result<()> {
        let ended = || format!("process {} has ended", self.process);
        let mut registers = worker.registers;
        registers.rip = self.places.entry;
        registers.rsp = self.places.stack_top;
        registers.rdi = self.places.call;
        registers.rsi = self.places.work;
        registers.orig_rax = u64::MAX; // it is in no call
        registers.eflags &= !(DIRECTION | TRAP);
        ptrace::set_registers(worker.tid, &registers).with_context(ended)?;
        ptrace::set_signal_mask(worker.tid, u64::MAX).with_context(ended)?;
        ptrace::go_on(worker.tid).with_context(ended)?;
        let mut pause = Duration::from_micros(10);
        let begun = Instant::now();
        loop {
            if begun.elapsed() > self.most {
                bail!("process {} has not done it in {}", self.process, format_duration(self.most));
            }
            let has_done = self.state()? != ffi::WORKING;
            match ptrace::poll(worker.tid) {
                Waited::Ended => bail!(ended()),
                Waited::Nothing if has_done => break,
                Waited::Nothing => sleep(pause),
                Waited::Signal(signal) => bail!("process {} got signal {signal} meanwhile", self.process),
                _ => ptrace::go_on(worker.tid).with_context(ended)?,
            }
            pause = (2 * pause).min(LOOK);
        }
        ptrace::interrupt(worker.tid).with_context(ended)?;
        while ptrace::poll(worker.tid) == Waited::Nothing && begun.elapsed() < self.most.saturating_add(STOP_MOST) {
            sleep(Duration::from_micros(10));
        }
        if self.state()? == ffi::DONE_WORK {
            ptrace::set_signal_mask(worker.tid, mask).with_context(ended)?;
            ptrace::set_image(worker.tid, image).with_context(ended)?;
            ptrace::set_registers(worker.tid, &worker.registers).with_context(ended)?;
            self.memory.write_all(self.places.call as usize, &ffi::IDLE.to_le_bytes())?;
        }
        Ok(())
    }

    fn state(&self) -> Result<u32> {
        Ok(self.state_and_thread()?.0)
    }

    fn state_and_thread(&self) -> Result<(u32, i32)> {
        let word = self.memory.read_now(self.places.call as usize);
        let word = word.with_context(|| format!("process {} has ended", self.process))?;
        Ok((word as u32, (word >> 32) as i32))
    }

    /// Whether a thread that somebody had borrowed who was killed is still at it. If that was killed before the thread
    /// went on, it is not.
    fn is_in_use(&self) -> Result<bool> {
        let (state, thread) = self.state_and_thread()?;
        if state == ffi::IDLE {
            return Ok(false);
        }
        let Ok(call) = proc::text(format!("/proc/{}/task/{thread}/syscall", self.process)) else {
            return Ok(false); // it has ended
        };
        let stack = call.split_ascii_whitespace().rev().nth(1).and_then(|word| word.strip_prefix("0x"));
        let stack = stack.and_then(|word| u64::from_str_radix(word, 16).ok());
        Ok(stack.is_none_or(|stack| (self.places.call..=self.places.stack_top).contains(&stack)))
    }

    fn filled(&self, what: What, tid: i32, mask: u64, registers: &[u64; 20], caches: &[u64]) -> Buffer {
        // SAFETY: the buffer has the size that was asked for; all arrays are as long as is said.
        unsafe {
            let mut call = Buffer::of(ffi::outside_call_bytes(caches.len()));
            ffi::outside_call_fill(
                call.start_mut(),
                self.anchor.start(),
                what as u32,
                tid,
                mask,
                registers.as_ptr(),
                caches.as_ptr(),
                caches.len(),
            );
            call
        }
    }

    /// The caches of those threads that are sure not to use them now.
    fn caches_of(&self, still: &[Still]) -> Vec<u64> {
        let known = self.caches_known();
        let Some(mut mappings) = Mappings::of(self.memory.thread(), self.places.work as usize) else {
            return Vec::new();
        };
        let Ok(own) = self.memory.read_now(self.places.own as usize) else { return Vec::new() };
        let of = |thread: &Still| {
            let place = thread.registers.fs_base.wrapping_add(own).wrapping_add(self.places.cache);
            let cache = self.memory.read_now(place as usize).ok()?;
            let is_clear = known.contains(&cache) && mappings.is_clear_of_snug(&self.memory, &thread.registers);
            is_clear.then_some(cache)
        };
        let mut caches: Vec<u64> = still.iter().filter_map(of).collect();
        caches.sort_unstable();
        caches.dedup();
        // SAFETY: this only asks for a number.
        caches.truncate(unsafe { ffi::outside_caches_most() });
        caches
    }

    fn caches_known(&self) -> Vec<u64> {
        let mut caches = vec![0; CACHES_MOST];
        let context = (&raw const self.memory).cast_mut().cast();
        // SAFETY: `caches` has room for as many as is said, and `memory` outlives the call.
        let count =
            unsafe { ffi::outside_caches(read, context, self.anchor.start(), caches.as_mut_ptr(), caches.len()) };
        caches.truncate(count);
        caches
    }

    fn text_at(&self, address: usize) -> String {
        let mut bytes = Vec::new();
        let mut byte = [0];
        while bytes.len() < 200 && self.memory.read(address.wrapping_add(bytes.len()), &mut byte) && byte[0] != 0 {
            bytes.push(byte[0]);
        }
        shown(&String::from_utf8_lossy(&bytes))
    }
}

/// More threads than any process has here at a time.
const CACHES_MOST: usize = 1 << 16;

/// Flags of the processor that a function wants to be 0.
const DIRECTION: u64 = 1 << 10;
const TRAP: u64 = 1 << 8;

/// Waits for a thread to stop; None, and it is let go, if it cannot be sure to go on with what it was in.
fn stand_still(tid: i32) -> Option<Still> {
    let begun = Instant::now();
    loop {
        match ptrace::poll(tid) {
            Waited::Stopped => break,
            Waited::Nothing if begun.elapsed() > STOP_MOST => return None,
            Waited::Nothing => sleep(Duration::from_micros(20)),
            Waited::Ended => return None,
            Waited::StoppedBySignal => {
                ptrace::detach(tid, 0);
                return None;
            }
            Waited::Signal(signal) => {
                ptrace::detach(tid, signal);
                return None;
            }
        }
    }
    let mut registers = ptrace::registers(tid)?;
    let goes_on = goes_on(&mut registers);
    // Also of one that is let go: an EINTR that there would not have been.
    if !goes_on || ptrace::set_registers(tid, &registers).is_err() {
        ptrace::detach(tid, 0);
        return None;
    }
    Some(Still { tid, registers })
}
