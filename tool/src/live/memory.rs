//! The memory of another process, read a page at a time; a page is read once for each look.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::c_void;
use std::io;

const PAGE: usize = 4096;

/// So many are kept; a walk through all headers of a large heap reads each page of it once.
const PAGES_MOST: usize = 4096;

pub struct Memory {
    process: i32,
    pages: RefCell<HashMap<usize, Option<Box<[u8; PAGE]>>>>,
}

impl Memory {
    pub fn of(process: i32) -> Memory {
        Memory { process, pages: RefCell::new(HashMap::new()) }
    }

    /// Forgets what was read: the next reads see the process as it is then.
    pub fn refresh(&self) {
        self.pages.borrow_mut().clear();
    }

    /// Fills `into` from `address` on. False: some of it is not there, or must not be read.
    pub fn read(&self, address: usize, into: &mut [u8]) -> bool {
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
