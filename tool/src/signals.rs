//! Signals that come for the tool while it stands beside a command: it hands them on, as if the command stood there alone.
//!
//! What a terminal sends, it sends to the whole group, so the command has got it already. What a process sends to the
//! tool is meant for the command. The handlers stand before the command does: what comes early waits until it is there.
//! They go when it has ended: from then on signals are the tool's own.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering::SeqCst};

use libc::{c_int, c_void, sigaction, siginfo_t, sigset_t};

/// Those that end a program, wake it, or tell it something; real-time signals too. What stops a program is not among
/// them, as the tool would go on and the command not.
const HANDED_ON: [c_int; 14] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGALRM,
    libc::SIGTERM,
    libc::SIGCONT,
    libc::SIGURG,
    libc::SIGWINCH,
    libc::SIGIO,
    libc::SIGPWR,
    libc::SIGVTALRM,
    libc::SIGPROF,
];

/// The command's number, or 0, and a descriptor of it: numbers are used again, descriptors lead nowhere then.
static COMMAND: AtomicI32 = AtomicI32::new(0);
static DESCRIPTOR: AtomicI32 = AtomicI32::new(-1);

/// A bit for each signal that has come and was not handed on yet.
static WAITING: AtomicU64 = AtomicU64::new(0);

/// As long as this is there, signals are handed on.
pub struct HandedOn {
    before: Vec<(c_int, sigaction)>,
}

impl HandedOn {
    /// From now on, so before the command is started, which itself begins with the actions that there were, and with
    /// the signals blocked that were blocked. What the tool has a handler for already is its own.
    pub fn to(command: &mut Command) -> HandedOn {
        WAITING.store(0, SeqCst);
        let mut handed_on = HandedOn { before: Vec::new() };
        let to_the_command = hand_on as extern "C" fn(c_int, *mut siginfo_t, *mut c_void) as libc::sighandler_t;
        for signal in HANDED_ON.into_iter().chain(libc::SIGRTMIN()..=libc::SIGRTMAX()) {
            handed_on.take(signal, to_the_command, libc::SA_SIGINFO);
        }
        // That it has a handler at all ends the wait of who waits for something else.
        handed_on.take(libc::SIGCHLD, wake_up as extern "C" fn(c_int) as libc::sighandler_t, 0);
        let (before, blocked) = (handed_on.before.clone(), change_mask(libc::SIG_BLOCK, &no_signals()));
        // SAFETY: sigaction and pthread_sigmask are async-signal-safe.
        unsafe {
            command.pre_exec(move || {
                restore(&before);
                change_mask(libc::SIG_SETMASK, &blocked);
                Ok(())
            });
        }
        handed_on
    }

    fn take(&mut self, signal: c_int, handler: libc::sighandler_t, flags: c_int) {
        let old = action_of(signal);
        if old.sa_sigaction != libc::SIG_DFL && old.sa_sigaction != libc::SIG_IGN {
            return;
        }
        // SAFETY: all bytes zero are a valid action, of which the set is empty.
        let mut new: sigaction = unsafe { std::mem::zeroed() };
        (new.sa_sigaction, new.sa_flags) = (handler, flags | libc::SA_RESTART);
        // SAFETY: the handlers are async-signal-safe.
        if unsafe { sigaction(signal, &new, null_mut()) } == 0 {
            self.before.push((signal, old));
        }
    }

    /// The command is there; who calls this has not waited for it yet.
    pub fn begin(&self, command: i32) {
        // SAFETY: this only makes a descriptor. Without it (before Linux 5.3) the number alone must do.
        let descriptor = unsafe { libc::syscall(libc::SYS_pidfd_open, command, 0) };
        DESCRIPTOR.store(descriptor as c_int, SeqCst);
        COMMAND.store(command, SeqCst);
        send_what_waits();
    }
}

impl Drop for HandedOn {
    fn drop(&mut self) {
        restore(&self.before);
        COMMAND.store(0, SeqCst);
        let descriptor = DESCRIPTOR.swap(-1, SeqCst);
        if descriptor >= 0 {
            // SAFETY: it was made above, and nobody else knows it.
            unsafe { libc::close(descriptor) };
        }
    }
}

/// Starts a command that was given to HandedOn::to: until it has its own actions, signals wait for it.
pub fn spawn(command: &mut Command) -> io::Result<Child> {
    // SAFETY: all bytes zero are a set, which sigfillset fills.
    let all = unsafe {
        let mut all: sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        all
    };
    let before = change_mask(libc::SIG_SETMASK, &all);
    let child = command.spawn();
    change_mask(libc::SIG_SETMASK, &before);
    child
}

extern "C" fn hand_on(signal: c_int, info: *mut siginfo_t, _: *mut c_void) {
    // SAFETY: the kernel gives the information, and each thread has an errno, which the interrupted code may still read.
    let (code, errno) = unsafe { ((*info).si_code, *libc::__errno_location()) };
    let is_of_terminal = matches!(signal, libc::SIGINT | libc::SIGQUIT | libc::SIGWINCH) && code > 0;
    // Before there was a command, it was not in the group.
    if !is_of_terminal || COMMAND.load(SeqCst) == 0 {
        WAITING.fetch_or(1 << (signal - 1), SeqCst);
        send_what_waits();
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

/// A file that would be larger than its limit (`ulimit -f`) is an error of what writes it, and not the end of the tool. A
/// handler does not stay for the commands that are started, as an ignored signal would. One that is ignored stays so.
pub fn have_limits_of_files_told() {
    if action_of(libc::SIGXFSZ).sa_sigaction == libc::SIG_DFL {
        let handler = wake_up as extern "C" fn(c_int) as libc::sighandler_t;
        // SAFETY: the handler does nothing.
        unsafe { libc::signal(libc::SIGXFSZ, handler) };
    }
}

extern "C" fn wake_up(_signal: c_int) {}

/// Async-signal-safe. Whoever finds the command there sends; a bit that is set after that is sent by who set it.
fn send_what_waits() {
    let command = COMMAND.load(SeqCst);
    if command == 0 {
        return;
    }
    let descriptor = DESCRIPTOR.load(SeqCst);
    let mut waiting = WAITING.swap(0, SeqCst);
    while waiting != 0 {
        let signal = waiting.trailing_zeros() as c_int + 1;
        waiting &= waiting - 1;
        // SAFETY: both calls only send.
        unsafe {
            if descriptor < 0 {
                libc::kill(command, signal);
            } else {
                libc::syscall(libc::SYS_pidfd_send_signal, descriptor, signal, null::<siginfo_t>(), 0);
            }
        }
    }
}

fn restore(before: &[(c_int, sigaction)]) {
    for (signal, action) in before {
        // SAFETY: the action is one that the signal has had.
        unsafe { sigaction(*signal, action, null_mut()) };
    }
}

pub fn action_of(signal: c_int) -> sigaction {
    // SAFETY: sigaction with no new action only writes to `old`, which is large enough.
    unsafe {
        let mut old: sigaction = std::mem::zeroed();
        sigaction(signal, null(), &mut old);
        old
    }
}

fn no_signals() -> sigset_t {
    // SAFETY: all bytes zero are a set without signals.
    unsafe { std::mem::zeroed() }
}

/// Of the signals that this thread has blocked; what was before.
pub fn change_mask(how: c_int, set: &sigset_t) -> sigset_t {
    let mut before = no_signals();
    // SAFETY: both sets are valid.
    unsafe { libc::pthread_sigmask(how, set, &mut before) };
    before
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tool_has_its_signals_back() {
        let actions = || [libc::SIGTERM, libc::SIGINT, libc::SIGRTMAX()].map(|signal| action_of(signal).sa_sigaction);
        let before = actions();
        let mut command = Command::new("sleep");
        let handed_on = HandedOn::to(command.arg("100"));
        assert!(actions().iter().all(|&action| action == hand_on as *const () as usize));
        let mut child = spawn(&mut command).unwrap();
        WAITING.fetch_or(1 << (libc::SIGTERM - 1), SeqCst); // it came before the command was known
        handed_on.begin(child.id() as i32);
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&child.wait().unwrap()), Some(libc::SIGTERM));
        drop(handed_on);
        assert_eq!((actions(), COMMAND.load(SeqCst), DESCRIPTOR.load(SeqCst)), (before, 0, -1));
    }
}
