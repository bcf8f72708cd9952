//! The memory that a recorded program shares with the tool: the tool's side of trace/recorder/region.h, which explains
//! it.
//!
//! All of it can be written by the recorded program, by mistake too. So nothing read from it is trusted: lengths are
//! checked, and what is wrong is left out and counted.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::path::PathBuf;
use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use memmap2::{MmapOptions, MmapRaw};

/// The variable of the environment that tells the recorder where the memory is.
pub const VARIABLE: &str = "LIBSNUGRECORD_REGION";

/// And the one that tells a process of which namespace the tool is; only where all are to be recorded.
pub const NAMESPACE_VARIABLE: &str = "LIBSNUGRECORD_NAMESPACE";

const MAGIC: u64 = 0x4e49_4745_5247_5553;
const VERSION: u32 = 3;
const STATES: usize = 4096;
const SLOT_HEADER: usize = 64;
pub const SLOT_SIZE: usize = 64 * 1024;

/// Kinds of slots.
pub const START: u32 = 1;
const EVENTS: u32 = 2;

const FREE: u32 = 0;
const OWNED: u32 = 1;
const FULL: u32 = 2;

/// Where the fields of `struct region` are, in bytes.
mod at {
    pub const MAGIC: usize = 0;
    pub const VERSION: usize = 8;
    pub const SLOT_SIZE: usize = 12;
    pub const SLOT_COUNT: usize = 16;
    pub const SLOTS: usize = 20;
    pub const CHILDREN: usize = 24;
    pub const CLOSED: usize = 36;
    pub const SUBMITTED: usize = 40;
    pub const FREED: usize = 44;
    pub const BEAT: usize = 48;
    pub const TIMES: usize = 52;
    pub const LOST: usize = 56;
}

/// The contents of a slot, copied.
#[derive(Debug, Default)]
pub struct Slot {
    /// How many more wait to be emptied.
    pub backlog: u32,
    pub process: u32,
    pub thread: u32,
    pub kind: u32,
    pub ticket: u64,
    pub time: u64,
    pub data: Vec<u8>,
}

pub struct Region {
    file: File,
    map: MmapRaw,
    slots_start: usize,
    slot_count: usize,
    /// Slots whose header made no sense.
    pub damaged: u64,
}

impl Region {
    /// Memory for at most `slot_count` slots; the system gives it only as it is used.
    pub fn new(slot_count: usize, children: bool, times: bool) -> io::Result<Region> {
        let slots_start = (STATES + 4 * slot_count).next_multiple_of(SLOT_SIZE);
        let size = slots_start + slot_count * SLOT_SIZE;
        // SAFETY: the name is a C string, and the descriptor that comes back is nobody else's.
        let file = unsafe {
            match libc::memfd_create(c"snug record".as_ptr(), libc::MFD_CLOEXEC) {
                -1 => return Err(io::Error::last_os_error()),
                descriptor => File::from_raw_fd(descriptor),
            }
        };
        file.set_len(size as u64)?;
        let map = MmapOptions::new().len(size).map_raw(&file)?;
        let region = Region { file, map, slots_start, slot_count, damaged: 0 };
        region.word(at::VERSION).store(VERSION, Ordering::Relaxed);
        region.word(at::SLOT_SIZE).store(SLOT_SIZE as u32, Ordering::Relaxed);
        region.word(at::SLOT_COUNT).store(slot_count as u32, Ordering::Relaxed);
        region.word(at::SLOTS).store(slots_start as u32, Ordering::Relaxed);
        region.word(at::CHILDREN).store(children.into(), Ordering::Relaxed);
        region.word(at::TIMES).store(times.into(), Ordering::Relaxed);
        region.long(at::MAGIC).store(MAGIC, Ordering::Release);
        Ok(region)
    }

    /// The file by a name that a program of the same user can open.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd()))
    }

    fn word(&self, offset: usize) -> &AtomicU32 {
        assert!(offset % 4 == 0 && offset + 4 <= self.map.len());
        // SAFETY: it lies in the mapping, which is aligned to pages, and is only used as an atomic while others have it.
        unsafe { AtomicU32::from_ptr(self.map.as_mut_ptr().add(offset).cast()) }
    }

    fn long(&self, offset: usize) -> &AtomicU64 {
        assert!(offset % 8 == 0 && offset + 8 <= self.map.len());
        // SAFETY: as above.
        unsafe { AtomicU64::from_ptr(self.map.as_mut_ptr().add(offset).cast()) }
    }

    fn state(&self, index: usize) -> &AtomicU32 {
        self.word(STATES + 4 * index)
    }

    /// Waits until a slot was submitted, or for this long; and tells the recorder that the tool is alive.
    pub fn wait(&self, limit: Duration) {
        self.word(at::BEAT).fetch_add(1, Ordering::Relaxed);
        let submitted = self.word(at::SUBMITTED);
        let seen = submitted.load(Ordering::Acquire);
        if (0..self.slot_count).any(|index| self.state(index).load(Ordering::Relaxed) == FULL) {
            return;
        }
        let limit = libc::timespec { tv_sec: 0, tv_nsec: limit.subsec_nanos().into() };
        // SAFETY: the word is mapped, and the kernel only reads the two.
        unsafe {
            libc::syscall(libc::SYS_futex, submitted.as_ptr(), libc::FUTEX_WAIT, seen, &limit, ptr::null::<u32>(), 0);
        }
    }

    /// Empties every slot that was submitted.
    pub fn drain<E>(&mut self, mut take: impl FnMut(Slot) -> Result<(), E>) -> Result<(), E> {
        for index in 0..self.slot_count {
            // Acquire: what the recorder wrote before it submitted the slot.
            if self.state(index).load(Ordering::Acquire) == FULL {
                let slot = self.copy(index);
                self.free(index);
                self.wake(1);
                slot.map_or(Ok(()), &mut take)?;
            }
        }
        Ok(())
    }

    /// Empties slots that were not submitted, as their process has gone.
    pub fn sweep<E>(
        &mut self,
        has_gone: impl Fn(u32) -> bool,
        mut take: impl FnMut(Slot) -> Result<(), E>,
    ) -> Result<(), E> {
        for index in 0..self.slot_count {
            let owner = self.word(self.slot_start(index)).load(Ordering::Relaxed);
            if self.state(index).load(Ordering::Acquire) == OWNED && has_gone(owner) {
                let slot = self.copy(index);
                self.free(index);
                slot.map_or(Ok(()), &mut take)?;
            }
        }
        Ok(())
    }

    fn slot_start(&self, index: usize) -> usize {
        self.slots_start + index * SLOT_SIZE
    }

    /// `None` if there is nothing in it, or nothing that makes sense.
    fn copy(&mut self, index: usize) -> Option<Slot> {
        let start = self.slot_start(index);
        // Acquire: the bytes of all events that are counted.
        let used = self.word(start + 12).load(Ordering::Acquire) as usize;
        if used == 0 {
            return None;
        }
        let kind = self.word(start + 8).load(Ordering::Relaxed);
        let process = self.word(start).load(Ordering::Relaxed);
        if used > SLOT_SIZE - SLOT_HEADER || process == 0 || (kind != START && kind != EVENTS) {
            self.damaged += 1;
            return None;
        }
        let mut data = vec![0; used];
        // SAFETY: the bytes lie in the slot. The recorder does not write to those that `used` counts; a program that
        // runs wild may, and then they are wrong, which is found when they are decoded.
        unsafe {
            ptr::copy_nonoverlapping(self.map.as_ptr().add(start + SLOT_HEADER), data.as_mut_ptr(), used);
        }
        let submitted = self.word(at::SUBMITTED).load(Ordering::Relaxed);
        Some(Slot {
            backlog: submitted.wrapping_sub(self.word(at::FREED).load(Ordering::Relaxed)),
            process,
            thread: self.word(start + 4).load(Ordering::Relaxed),
            kind,
            ticket: self.long(start + 16).load(Ordering::Relaxed),
            time: self.long(start + 24).load(Ordering::Relaxed),
            data,
        })
    }

    /// A new owner that dies before it has filled in the header must not be taken for the one before.
    fn free(&self, index: usize) {
        self.word(self.slot_start(index)).store(0, Ordering::Relaxed);
        self.word(self.slot_start(index) + 12).store(0, Ordering::Relaxed);
        self.state(index).store(FREE, Ordering::Release);
    }

    /// Another slot was emptied: so many of those that wait for one go on.
    fn wake(&self, most: i32) {
        let freed = self.word(at::FREED);
        freed.fetch_add(1, Ordering::Release);
        // SAFETY: the word is mapped.
        unsafe {
            libc::syscall(libc::SYS_futex, freed.as_ptr(), libc::FUTEX_WAKE, most);
        }
    }

    /// From now on programs go on unrecorded.
    pub fn close(&self) {
        self.word(at::CLOSED).store(1, Ordering::Relaxed);
        self.wake(i32::MAX);
    }

    /// Events that found no slot.
    pub fn lost(&self) -> u64 {
        self.long(at::LOST).load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the recorder does with a slot.
    fn write(region: &Region, index: usize, state: u32, process: u32, used: u32) {
        let start = region.slot_start(index);
        region.word(start).store(process, Ordering::Relaxed);
        region.word(start + 4).store(7, Ordering::Relaxed);
        region.word(start + 8).store(2, Ordering::Relaxed);
        region.word(start + 12).store(used, Ordering::Relaxed);
        region.long(start + 16).store(99, Ordering::Relaxed);
        region.state(index).store(state, Ordering::Release);
    }

    fn drained(region: &mut Region) -> Vec<Slot> {
        let mut slots = Vec::new();
        region
            .drain::<()>(|slot| {
                slots.push(slot);
                Ok(())
            })
            .unwrap();
        slots
    }

    #[test]
    fn full_slots_are_emptied_once() {
        let mut region = Region::new(8, false, false).unwrap();
        write(&region, 3, FULL, 1, 10);
        write(&region, 4, OWNED, 1, 10);
        let slots = drained(&mut region);
        assert_eq!(slots.len(), 1);
        assert_eq!((slots[0].process, slots[0].thread, slots[0].ticket, slots[0].data.len()), (1, 7, 99, 10));
        assert!(drained(&mut region).is_empty());
    }

    #[test]
    fn owned_slots_are_swept_when_the_owner_has_gone() {
        let mut region = Region::new(8, false, false).unwrap();
        write(&region, 0, OWNED, 1, 5);
        write(&region, 1, OWNED, 2, 6);
        write(&region, 2, OWNED, 1, 0);
        let mut lengths = Vec::new();
        region
            .sweep::<()>(
                |owner| owner == 1,
                |slot| {
                    lengths.push(slot.data.len());
                    Ok(())
                },
            )
            .unwrap();
        assert_eq!(lengths, [5]);
        assert_eq!(region.state(1).load(Ordering::Relaxed), OWNED);
    }

    #[test]
    fn headers_that_make_no_sense_are_counted() {
        let mut region = Region::new(8, false, false).unwrap();
        write(&region, 0, FULL, 1, u32::MAX);
        write(&region, 1, FULL, 0, 5);
        assert!(drained(&mut region).is_empty());
        assert_eq!(region.damaged, 2);
    }
}
