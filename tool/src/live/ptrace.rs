//! ptrace(2) as far as borrowing a thread needs it: threads are stopped for a moment, and changed.

use std::ffi::c_void;
use std::io;
use std::mem::size_of;

/// The number of the regset of registers of integers, and of all others.
const NT_PRSTATUS: usize = 1;
const NT_X86_XSTATE: usize = 0x202;
/// Not yet in the crate libc for every target; from the kernel's interface.
const PTRACE_GETSIGMASK: libc::c_uint = 0x420a;
const PTRACE_SETSIGMASK: libc::c_uint = 0x420b;

/// How a wait for a thread ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Waited {
    /// It was stopped because that was asked for.
    Stopped,
    /// It was stopped by a signal, with its whole process.
    StoppedBySignal,
    /// It is about to get this signal.
    Signal(i32),
    Ended,
    Nothing,
}

fn request(what: libc::c_uint, tid: i32, address: usize, data: usize) -> io::Result<()> {
    // SAFETY: those who call this give addresses of memory of theirs that the request may use, or none.
    match unsafe { libc::ptrace(what, tid, address, data) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

pub fn seize(tid: i32) -> io::Result<()> {
    request(libc::PTRACE_SEIZE, tid, 0, 0)
}

pub fn interrupt(tid: i32) -> io::Result<()> {
    request(libc::PTRACE_INTERRUPT, tid, 0, 0)
}

pub fn go_on(tid: i32) -> io::Result<()> {
    request(libc::PTRACE_CONT, tid, 0, 0)
}

/// Leaves a stopped thread alone; with a signal, it gets it.
pub fn detach(tid: i32, signal: i32) {
    let _ = request(libc::PTRACE_DETACH, tid, 0, signal as usize);
}

/// What has happened to a thread, if anything.
pub fn poll(tid: i32) -> Waited {
    let mut status = 0;
    // SAFETY: waitpid writes only to `status`.
    match unsafe { libc::waitpid(tid, &mut status, libc::__WALL | libc::WNOHANG) } {
        0 => Waited::Nothing,
        -1 => Waited::Ended,
        _ if !libc::WIFSTOPPED(status) => Waited::Ended,
        _ => match (status >> 16, libc::WSTOPSIG(status)) {
            (libc::PTRACE_EVENT_STOP, libc::SIGTRAP) => Waited::Stopped,
            (libc::PTRACE_EVENT_STOP, _) => Waited::StoppedBySignal,
            (_, signal) => Waited::Signal(signal),
        },
    }
}

/// Those of integers; None if the thread runs in a mode that has others.
pub fn registers(tid: i32) -> Option<libc::user_regs_struct> {
    // SAFETY: all its fields are numbers.
    let mut registers: libc::user_regs_struct = unsafe { std::mem::zeroed() };
    let bytes = size_of::<libc::user_regs_struct>();
    let mut part = libc::iovec { iov_base: (&raw mut registers).cast::<c_void>(), iov_len: bytes };
    request(libc::PTRACE_GETREGSET, tid, NT_PRSTATUS, (&raw mut part) as usize).ok()?;
    (part.iov_len == bytes).then_some(registers)
}

pub fn set_registers(tid: i32, registers: &libc::user_regs_struct) -> io::Result<()> {
    let mut copy = *registers;
    let bytes = size_of::<libc::user_regs_struct>();
    let mut part = libc::iovec { iov_base: (&raw mut copy).cast::<c_void>(), iov_len: bytes };
    request(libc::PTRACE_SETREGSET, tid, NT_PRSTATUS, (&raw mut part) as usize)
}

/// All other registers, as the processor itself stores them; None if they take more than `most` bytes.
pub fn image(tid: i32, most: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; most + 8]; // the kernel wants whole words
    let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast::<c_void>(), iov_len: bytes.len() };
    request(libc::PTRACE_GETREGSET, tid, NT_X86_XSTATE, (&raw mut part) as usize).ok()?;
    bytes.truncate(part.iov_len);
    (part.iov_len <= most).then_some(bytes)
}

pub fn set_image(tid: i32, image: &[u8]) -> io::Result<()> {
    let mut part = libc::iovec { iov_base: image.as_ptr().cast_mut().cast::<c_void>(), iov_len: image.len() };
    request(libc::PTRACE_SETREGSET, tid, NT_X86_XSTATE, (&raw mut part) as usize)
}

/// The signals that a thread does not want now.
pub fn signal_mask(tid: i32) -> io::Result<u64> {
    let mut mask = 0_u64;
    request(PTRACE_GETSIGMASK, tid, size_of::<u64>(), (&raw mut mask) as usize)?;
    Ok(mask)
}

pub fn set_signal_mask(tid: i32, mask: u64) -> io::Result<()> {
    let mut mask = mask;
    request(PTRACE_SETSIGMASK, tid, size_of::<u64>(), (&raw mut mask) as usize)
}
