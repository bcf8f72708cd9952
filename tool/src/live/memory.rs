//! The memory of another process, read a page at a time; a page is read once for each look.
//!
//! What is there is whatever the process likes: lists that lead in circles, counts without end. A look may read so much,
//! by what the kernel says of the process, and then nothing more is there: so every walk ends, whatever it goes by.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::c_void;
use std::fs;
use std::io;

use crate::proc;

const PAGE: usize = 4096;

/// So many are kept; a walk through all headers of a large heap reads each page of it once.
const PAGES_MOST: usize = 4096;

/// Reads of a look, which take less than a second: a process with ten thousand threads has two million for them.
const READS_LEAST: u64 = 1 << 22;
/// And for each so many bytes that are resident one more: a medium block, whose header is read, has more than a KiB.
const READ_BYTES: u64 = 8;

pub struct Memory {
    process: i32,
    /// Through which it is seen.
    thread: Cell<i32>,
    reads_left: Cell<u64>,
    pages: RefCell<HashMap<usize, Option<Box<[u8; PAGE]>>>>,
}

impl Memory {
    pub fn of(process: i32) -> Memory {
        let (thread, reads) = look_begins(process);
        Memory { process, thread: Cell::new(thread), reads_left: Cell::new(reads), pages: RefCell::new(HashMap::new()) }
    }

    /// Forgets what was read: the next reads see the process as it is then.
    pub fn refresh(&self) {
        self.pages.borrow_mut().clear();
        let (thread, reads) = look_begins(self.process);
        self.thread.set(thread);
        self.reads_left.set(reads);
    }

    /// The thread through which it is seen: files of it in /proc that tell of memory are to be asked for by this number.
    pub fn thread(&self) -> i32 {
        self.thread.get()
    }

    /// Whether there was no end of it: all reads of this look were made.
    pub fn is_endless(&self) -> bool {
        self.reads_left.get() == 0
    }

    /// Fills `into` from `address` on. False: some of it is not there, or must not be read.
    pub fn read(&self, address: usize, into: &mut [u8]) -> bool {
        match self.reads_left.get() {
            0 => return false,
            left => self.reads_left.set(left - 1),
        }
        let mut pages = self.pages.borrow_mut();
        if pages.len() > PAGES_MOST {
            pages.clear();
        }
        let mut done = 0;
        while done < into.len() {
            let at = address.wrapping_add(done);
            let start = at & !(PAGE - 1);
            let page = pages.entry(start).or_insert_with(|| read_page(self.thread.get(), start));
            let Some(page) = page else { return false };
            let count = (PAGE - (at - start)).min(into.len() - done);
            into[done..done + count].copy_from_slice(&page[at - start..at - start + count]);
            done += count;
        }
        true
    }

    /// A word as it is now.
    pub fn read_now(&self, address: usize) -> io::Result<u64> {
        let mut word = [0; 8];
        transfer(self.thread.get(), address, &mut word, false)?;
        Ok(u64::from_le_bytes(word))
    }

    /// Writes all of these bytes.
    pub fn write_all(&self, address: usize, bytes: &[u8]) -> io::Result<()> {
        transfer(self.thread.get(), address, &mut bytes.to_vec(), true)
    }

    /// Writes one byte.
    pub fn write(&self, address: usize, byte: u8) -> io::Result<()> {
        transfer(self.thread.get(), address, &mut [byte], true)
    }

    /// Writes a word of zeros.
    pub fn clear_word(&self, address: usize) -> io::Result<()> {
        transfer(self.thread.get(), address, &mut [0; 8], true)
    }
}

/// The thread through which a process is seen, and how many reads a look at it may make.
fn look_begins(process: i32) -> (i32, u64) {
    let thread = thread_with_memory(process);
    let resident = resident_pages(thread).unwrap_or(0);
    (thread, READS_LEAST.saturating_add(resident.saturating_mul(PAGE as u64 / READ_BYTES)))
}

/// A thread that has a process's memory: the first one, unless that has ended. Then it has none, nor a command line or
/// open files, though others go on with them.
pub fn thread_with_memory(process: i32) -> i32 {
    if resident_pages(process).is_some() {
        return process;
    }
    let tasks = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let mut threads = tasks.filter_map(|task| task.file_name().to_str()?.parse().ok());
    threads.find(|&thread| resident_pages(thread).is_some()).unwrap_or(process)
}

/// Whether a process has not ended.
pub fn has_memory(process: i32) -> bool {
    resident_pages(thread_with_memory(process)).is_some()
}

fn resident_pages(thread: i32) -> Option<u64> {
    let text = proc::text(format!("/proc/{thread}/statm")).ok()?;
    let mut sizes = text.split_ascii_whitespace().map_while(|size| size.parse::<u64>().ok());
    let mapped = sizes.next()?;
    sizes.next().filter(|_| mapped > 0)
}

fn read_page(thread: i32, start: usize) -> Option<Box<[u8; PAGE]>> {
    let mut page = Box::new([0; PAGE]);
    transfer(thread, start, &mut page[..], false).ok().map(|()| page)
}

fn transfer(thread: i32, address: usize, local: &mut [u8], write: bool) -> io::Result<()> {
    let ours = libc::iovec { iov_base: local.as_mut_ptr().cast(), iov_len: local.len() };
    let theirs = libc::iovec { iov_base: address as *mut c_void, iov_len: local.len() };
    let call = if write { libc::process_vm_writev } else { libc::process_vm_readv };
    // SAFETY: `ours` describes `local`, which lives and is ours alone during the call; addresses of the other process
    // are checked by the kernel.
    let moved = unsafe { call(thread, &ours, 1, &theirs, 1, 0) };
    match usize::try_from(moved) {
        Ok(count) if count == local.len() => Ok(()),
        Ok(_) => Err(io::ErrorKind::UnexpectedEof.into()),
        Err(_) => Err(io::Error::last_os_error()),
    }
}
