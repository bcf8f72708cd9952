//! ptrace(2) and what belongs to it, as far as following processes needs it.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// What has happened to a thread that is traced.
#[derive(Debug, PartialEq)]
pub enum Event {
    /// It is about to end, and stands still; its process's memory is still there.
    Ending,
    /// It has become another program. The other threads of its process are gone.
    Exec,
    /// It was stopped by a signal, with its whole process, and stays so until SIGCONT.
    Stopped,
    /// It gets a signal, unless that is kept from it.
    Signal(i32),
    /// Any other stop, of no interest.
    Pause,
    /// It has ended: of a process's first thread this is the status of the process.
    Ended(ExitStatus),
}

const FOLLOW: i32 = libc::PTRACE_O_TRACEFORK | libc::PTRACE_O_TRACEVFORK | libc::PTRACE_O_TRACECLONE;
const ALWAYS: i32 = libc::PTRACE_O_TRACEEXEC | libc::PTRACE_O_TRACEEXIT;

/// Traces a process from now on, and with `follow` what it starts. Threads are followed in any case.
pub fn seize(pid: i32, follow: bool) -> io::Result<()> {
    let options = ALWAYS | if follow { FOLLOW } else { libc::PTRACE_O_TRACECLONE };
    request(libc::PTRACE_SEIZE, pid, options as usize)
}

/// Lets a thread that stands still go on.
pub fn go_on(tid: i32, event: &Event) {
    // A thread may have been killed where it stood: then there is nothing to let go.
    let _ = match event {
        Event::Signal(signal) => request(libc::PTRACE_CONT, tid, *signal as usize),
        Event::Stopped => request(libc::PTRACE_LISTEN, tid, 0),
        Event::Ended(_) => Ok(()),
        _ => request(libc::PTRACE_CONT, tid, 0),
    };
}

/// Leaves a thread alone from now on.
pub fn detach(tid: i32) {
    let _ = request(libc::PTRACE_DETACH, tid, 0);
}

fn request(what: libc::c_uint, tid: i32, data: usize) -> io::Result<()> {
    // SAFETY: none of the requests used here reads or writes memory of this process.
    match unsafe { libc::ptrace(what, tid, 0usize, data) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// The next event of a child or of what is traced, if there is one already. An error: there is nobody left.
pub fn next_event() -> io::Result<Option<(i32, Event)>> {
    let mut status = 0;
    // SAFETY: waitpid writes only to `status`.
    match unsafe { libc::waitpid(-1, &mut status, libc::__WALL | libc::WNOHANG) } {
        0 => Ok(None),
        -1 => Err(io::Error::last_os_error()),
        tid => Ok(Some((tid, event_of(status)))),
    }
}

/// Lets go on what a signal has stopped, or its end, before it has become the command: nobody else waits for it then.
/// Exec is left to be found, and how it ended.
pub fn let_begin(pid: i32) {
    // SAFETY: waitid writes only to `info`, of which all bytes zero are a valid value, and whose status is read only if
    // there is one.
    let status = unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let found = libc::waitid(libc::P_PID, pid as u32, &mut info, libc::WSTOPPED | libc::WNOHANG | libc::WNOWAIT);
        if found != 0 || info.si_pid() == 0 {
            return;
        }
        info.si_status() << 8 | 0x7f
    };
    let event = event_of(status);
    if event != Event::Exec {
        go_on(pid, &event);
    }
}

fn event_of(status: i32) -> Event {
    if !libc::WIFSTOPPED(status) {
        return Event::Ended(ExitStatus::from_raw(status));
    }
    let signal = libc::WSTOPSIG(status);
    match status >> 16 {
        0 => Event::Signal(signal),
        libc::PTRACE_EVENT_EXIT => Event::Ending,
        libc::PTRACE_EVENT_EXEC => Event::Exec,
        libc::PTRACE_EVENT_STOP if signal != libc::SIGTRAP => Event::Stopped,
        _ => Event::Pause,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_statuses() {
        let stopped = |signal: i32, event: i32| event_of(event << 16 | signal << 8 | 0x7f);
        assert_eq!(stopped(libc::SIGTRAP, libc::PTRACE_EVENT_EXIT), Event::Ending);
        assert_eq!(stopped(libc::SIGTSTP, libc::PTRACE_EVENT_STOP), Event::Stopped);
        assert_eq!(stopped(libc::SIGTRAP, libc::PTRACE_EVENT_STOP), Event::Pause);
        assert_eq!(stopped(libc::SIGTRAP, libc::PTRACE_EVENT_FORK), Event::Pause);
        assert_eq!(stopped(libc::SIGUSR1, 0), Event::Signal(libc::SIGUSR1));
        assert_eq!(event_of(3 << 8), Event::Ended(ExitStatus::from_raw(3 << 8)));
        assert_eq!(event_of(libc::SIGKILL), Event::Ended(ExitStatus::from_raw(libc::SIGKILL)));
    }
}
