//! When this process is stopped, as by Ctrl-Z: what it runs stops and goes on with it, and that it was stopped is known,
//! since a time that was measured meanwhile says nothing.

use std::io;
use std::mem::zeroed;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

use crate::signals::action_of;

/// How often this process was told to go on.
static CONTINUED: AtomicUsize = AtomicUsize::new(0);

/// Groups of processes that stop with this one; 0 is no group. Those for which there is no room go on.
static GROUPS: [AtomicI32; 64] = [const { AtomicI32::new(0) }; 64];

/// From here on it is known. A stop that is ignored, as where there is no shell that could end it, stays so.
pub fn follow() -> io::Result<()> {
    handle(libc::SIGCONT, on_continue)?;
    if !is_ignored(libc::SIGTSTP) {
        handle(libc::SIGTSTP, on_stop)?;
    }
    Ok(())
}

/// A number that is another one after this process was stopped.
pub fn count() -> usize {
    CONTINUED.load(Ordering::Relaxed)
}

/// Has a group stop with this process as long as what is returned is there.
pub fn with_group(group: i32) -> impl Drop {
    struct Member(Option<&'static AtomicI32>);
    impl Drop for Member {
        fn drop(&mut self) {
            if let Some(place) = self.0 {
                place.store(0, Ordering::Relaxed);
            }
        }
    }
    let is_free = |place: &&AtomicI32| place.compare_exchange(0, group, Ordering::Relaxed, Ordering::Relaxed).is_ok();
    Member(GROUPS.iter().find(is_free))
}

pub fn is_ignored(signal: i32) -> bool {
    action_of(signal).sa_sigaction == libc::SIG_IGN
}

fn handle(signal: i32, handler: extern "C" fn(i32)) -> io::Result<()> {
    // SAFETY: the handlers below make only calls that may be made in one.
    let failed = unsafe {
        let mut action: libc::sigaction = zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(signal, &action, null_mut()) != 0
    };
    if failed {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

extern "C" fn on_continue(_signal: i32) {
    CONTINUED.fetch_add(1, Ordering::Relaxed);
}

/// The groups first; then this process, as the kernel would have done it: which does not stop one that nobody continues.
extern "C" fn on_stop(signal: i32) {
    // SAFETY: all of these calls may be made in a handler, and errno is left as it was.
    unsafe {
        let errno = *libc::__errno_location();
        tell_groups(libc::SIGSTOP);
        let (mut usual, mut own, mut mask): (libc::sigaction, libc::sigaction, libc::sigset_t) = zeroed();
        usual.sa_sigaction = libc::SIG_DFL;
        libc::sigaction(signal, &usual, &mut own);
        libc::sigemptyset(&mut mask);
        libc::sigaddset(&mut mask, signal);
        libc::raise(signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &mask, null_mut()); // here it stops
        libc::pthread_sigmask(libc::SIG_BLOCK, &mask, null_mut());
        libc::sigaction(signal, &own, null_mut());
        tell_groups(libc::SIGCONT);
        CONTINUED.fetch_add(1, Ordering::Relaxed);
        *libc::__errno_location() = errno;
    }
}

fn tell_groups(signal: i32) {
    for group in GROUPS.iter().map(|group| group.load(Ordering::Relaxed)).filter(|&group| group > 1) {
        // SAFETY: the group is one that this process made and has not waited for.
        unsafe { libc::kill(-group, signal) };
    }
}
