//! One run of a program, with what it cost; looked at while it runs, if that is wanted.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::halts;

#[derive(Debug, Clone)]
pub struct Sample {
    /// From just before the start to the end, in seconds.
    pub wall: f64,
    /// User and system time, with those of its children that it waited for, in seconds.
    pub cpu: f64,
    /// Peak resident memory of the largest single process, in KiB.
    pub peak_kib: u64,
    pub minor_faults: u64,
    pub major_faults: u64,
    pub status: ExitStatus,
    /// This process was stopped meanwhile (halts): the time may not be that of the program.
    pub halted: bool,
}

/// What is to happen to a program that is being watched.
pub enum Next {
    /// It goes on; look at it again after this time.
    LookAgainIn(Duration),
    /// It and the processes of its group are killed.
    Kill,
}

/// Runs `command` to its end. `look` is called at the start and then whenever it wants, with the process's number and the
/// time since the start, or since this process was stopped and went on; also when a signal arrives meanwhile. The command
/// must be made the leader of a process group; it ends with this process, even if that is killed.
///
/// It has a pre_exec function, and so it is started by fork, not vfork. The kernel counts as a program's peak also what
/// the process held before exec; after vfork that would be all of snug, after fork it is only the little that snug has
/// written to, less than any program needs to start.
pub fn run_watched(command: &mut Command, look: &mut dyn FnMut(u32, Duration) -> Next) -> io::Result<Sample> {
    end_with_this_process(command);
    let (halts, start) = (halts::count(), Instant::now());
    let child = command.spawn()?;
    let group = halts::with_group(child.id() as i32);
    let watched = watch(child.id(), start, look);
    if watched.is_err() {
        kill_group(child.id());
    }
    let wall = start.elapsed();
    drop(group);
    let (status, usage) = wait(child.id() as libc::pid_t)?;
    watched.map(|()| Sample { halted: halts::count() != halts, ..sample(wall, status, &usage) })
}

/// The kernel ends it when the thread that started it ends, which waits for it.
fn end_with_this_process(command: &mut Command) {
    let parent = std::process::id() as libc::pid_t;
    // SAFETY: the function only makes async-signal-safe calls.
    unsafe {
        command.pre_exec(move || match (libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL), libc::getppid()) {
            (0, now) if now != parent => Err(io::Error::from_raw_os_error(libc::ESRCH)),
            _ => Ok(()),
        });
    }
}

/// Returns when the process has ended, not yet waited for, or was killed.
fn watch(pid: u32, mut start: Instant, look: &mut dyn FnMut(u32, Duration) -> Next) -> io::Result<()> {
    let ended = open_process(pid)?;
    let mut halts = halts::count();
    loop {
        if halts::count() != halts {
            (halts, start) = (halts::count(), Instant::now());
        }
        let pause = match look(pid, start.elapsed()) {
            Next::LookAgainIn(pause) => pause,
            Next::Kill => {
                kill_group(pid);
                return Ok(());
            }
        };
        let mut poll = libc::pollfd { fd: ended.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: poll gets one valid entry, and writes only to it.
        let ready = unsafe { libc::poll(&mut poll, 1, pause.as_millis().max(1) as libc::c_int) };
        if ready > 0 {
            return Ok(());
        }
        if ready < 0 && io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return Err(io::Error::last_os_error());
        }
    }
}

/// A descriptor that becomes readable when the process ends (Linux 5.3).
fn open_process(pid: u32) -> io::Result<OwnedFd> {
    // SAFETY: the call makes a new descriptor, which is owned from here on.
    unsafe {
        match libc::syscall(libc::SYS_pidfd_open, pid, 0) {
            -1 => Err(io::Error::last_os_error()),
            descriptor => Ok(OwnedFd::from_raw_fd(descriptor as RawFd)),
        }
    }
}

fn kill_group(pid: u32) {
    // SAFETY: the child was not waited for yet, so the number is still its own, and that of its group.
    unsafe {
        libc::kill(-(pid as libc::pid_t), libc::SIGKILL);
        libc::kill(pid as libc::pid_t, libc::SIGKILL);
    }
}

fn sample(wall: Duration, status: ExitStatus, usage: &libc::rusage) -> Sample {
    Sample {
        wall: wall.as_secs_f64(),
        cpu: seconds(usage.ru_utime) + seconds(usage.ru_stime),
        peak_kib: usage.ru_maxrss as u64,
        minor_faults: usage.ru_minflt as u64,
        major_faults: usage.ru_majflt as u64,
        status,
        halted: false,
    }
}

fn wait(pid: libc::pid_t) -> io::Result<(ExitStatus, libc::rusage)> {
    loop {
        // SAFETY: wait4 writes only to the two variables; the child is ours and nothing else waits for it.
        let (ended, status, usage) = unsafe {
            let mut status = 0;
            let mut usage: libc::rusage = std::mem::zeroed();
            (libc::wait4(pid, &mut status, 0, &mut usage), status, usage)
        };
        if ended == pid {
            return Ok((ExitStatus::from_raw(status), usage));
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

fn seconds(time: libc::timeval) -> f64 {
    (Duration::from_secs(time.tv_sec as u64) + Duration::from_micros(time.tv_usec as u64)).as_secs_f64()
}

/// Where runs that are repeated read from.
pub enum Input {
    /// A file given with `<`: opened anew, so that each run reads it from the start.
    File(PathBuf),
    Empty,
}

impl Input {
    /// What can be read only once, a pipe or a terminal, cannot be given to every run.
    pub fn of_this_process() -> Input {
        let own = PathBuf::from("/proc/self/fd/0");
        match std::fs::metadata(&own) {
            Ok(found) if found.is_file() => Input::File(own),
            _ => Input::Empty,
        }
    }

    pub fn open(&self) -> io::Result<Stdio> {
        match self {
            Input::File(path) => Ok(File::open(path)?.into()),
            Input::Empty => Ok(Stdio::null()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleeper(seconds: &str) -> Command {
        let mut command = Command::new("sleep");
        command.arg(seconds).process_group(0);
        command
    }

    #[test]
    fn a_program_is_looked_at_until_it_ends() {
        let mut looks = Vec::new();
        let look = &mut |_, since| {
            looks.push(since);
            Next::LookAgainIn(Duration::from_millis(5))
        };
        let sample = run_watched(&mut sleeper("0.1"), look).unwrap();
        assert!(sample.status.success() && sample.wall >= 0.1);
        assert!(looks.len() >= 2 && looks.windows(2).all(|pair| pair[0] < pair[1]), "{looks:?}");
    }

    #[test]
    fn a_program_that_is_killed() {
        let sample = run_watched(&mut sleeper("100"), &mut |_, _| Next::Kill).unwrap();
        assert_eq!(sample.status.signal(), Some(libc::SIGKILL));
        assert!(sample.wall < 50.0);
    }
}
