//! What the program must inherit as snug found it, and what Rust's start-up code changes before main.
//!
//! Rust ignores SIGPIPE, opens /dev/null where a standard stream was closed, and on exec sets SIGPIPE to its default.
//! Under `snug run` the program would see all three. So a function that runs before Rust's start-up code notes how
//! things were, and `restore` puts them back.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed};

static SIGPIPE_IGNORED: AtomicBool = AtomicBool::new(false);
/// One bit for each of the descriptors 0, 1 and 2 that was closed.
static CLOSED_STREAMS: AtomicU8 = AtomicU8::new(0);

#[used]
#[link_section = ".init_array"]
static RECORD: extern "C" fn() = record;

extern "C" fn record() {
    // SAFETY: sigaction with no new action only writes to `old`, which is large enough; F_GETFD only asks.
    unsafe {
        let mut old: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(libc::SIGPIPE, std::ptr::null(), &mut old) == 0 {
            SIGPIPE_IGNORED.store(old.sa_sigaction == libc::SIG_IGN, Relaxed);
        }
        for fd in 0..3 {
            if libc::fcntl(fd, libc::F_GETFD) == -1 {
                CLOSED_STREAMS.fetch_or(1 << fd, Relaxed);
            }
        }
    }
}

/// SIGPIPE as it was: snug's own output, too, ends quietly when its reader has gone.
pub fn restore() {
    let action = if SIGPIPE_IGNORED.load(Relaxed) { libc::SIG_IGN } else { libc::SIG_DFL };
    // SAFETY: both actions are valid for SIGPIPE.
    unsafe {
        libc::signal(libc::SIGPIPE, action);
    }
}

/// The same, and the streams that were closed; for the moment before exec. Async-signal-safe, as pre_exec demands.
pub fn restore_for_exec() {
    restore();
    let closed = CLOSED_STREAMS.load(Relaxed);
    for fd in (0..3).filter(|fd| closed & (1 << fd) != 0) {
        // SAFETY: what is open there is the /dev/null of Rust's start-up code; nothing here uses it after this.
        unsafe {
            libc::close(fd);
        }
    }
}
