//! The memory of another process, read a page at a time; a page is read once for each look.
//!
//! What is there is whatever the process likes: lists that lead in circles, counts without end. A look may read so much,
//! by what the kernel says of the process, and then nothing more is there: so every walk ends, whatever it goes by.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::c_void;
use std::io;

const PAGE: usize = 4096;

/// So many are kept; a walk through all headers of a large heap reads each page of it once.
const PAGES_MOST: usize = 4096;

/// Reads of a look, which take less than a second: a process with ten thousand threads has two million for them.
const READS_LEAST: u64 = 1 << 22;
/// And for each so many bytes that are resident one more: a medium block, whose header is read, has more than a KiB.
const READ_BYTES: u64 = 8;

pub struct Memory {
    process: i32,
    reads_left: Cell<u64>,
    pages: RefCell<HashMap<usize, Option<Box<[u8; PAGE]>>>>,
}

impl Memory {
    pub fn of(process: i32) -> Memory {
        Memory { process, reads_left: Cell::new(reads_of(process)), pages: RefCell::new(HashMap::new()) }
    }

    /// Forgets what was read: the next reads see the process as it is then.
    pub fn refresh(&self) {
        self.pages.borrow_mut().clear();
        self.reads_left.set(reads_of(self.process));
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
            let page = pages.entry(start).or_insert_with(|| read_page(self.process, start));
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
        transfer(self.process, address, &mut word, false)?;
        Ok(u64::from_le_bytes(word))
    }

    /// Writes all of these bytes.
    pub fn write_all(&self, address: usize, bytes: &[u8]) -> io::Result<()> {
        transfer(self.process, address, &mut bytes.to_vec(), true)
    }

    /// Writes one byte.
    pub fn write(&self, address: usize, byte: u8) -> io::Result<()> {
        transfer(self.process, address, &mut [byte], true)
    }

    /// Writes a word of zeros.
    pub fn clear_word(&self, address: usize) -> io::Result<()> {
        transfer(self.process, address, &mut [0; 8], true)
    }
}

fn reads_of(process: i32) -> u64 {
    let sizes = std::fs::read_to_string(format!("/proc/{process}/statm")).unwrap_or_default();
    let pages: u64 = sizes.split_ascii_whitespace().nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0);
    READS_LEAST.saturating_add(pages.saturating_mul(PAGE as u64 / READ_BYTES))
}

fn read_page(process: i32, start: usize) -> Option<Box<[u8; PAGE]>> {
    let mut page = Box::new([0; PAGE]);
    transfer(process, start, &mut page[..], false).ok().map(|()| page)
}

fn transfer(process: i32, address: usize, local: &mut [u8], write: bool) -> io::Result<()> {
    let ours = libc::iovec { iov_base: local.as_mut_ptr().cast(), iov_len: local.len() };
    let theirs = libc::iovec { iov_base: address as *mut c_void, iov_len: local.len() };
    let call = if write { libc::process_vm_writev } else { libc::process_vm_readv };
    // SAFETY: `ours` describes `local`, which lives and is ours alone during the call; addresses of the other process
    // are checked by the kernel.
    let moved = unsafe { call(process, &ours, 1, &theirs, 1, 0) };
    match usize::try_from(moved) {
        Ok(count) if count == local.len() => Ok(()),
        Ok(_) => Err(io::ErrorKind::UnexpectedEof.into()),
        Err(_) => Err(io::Error::last_os_error()),
    }
}
