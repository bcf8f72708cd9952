//! One run of a program, with what it cost.

use std::fs::File;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

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
}

/// Runs `command` to its end.
///
/// The command must have a pre_exec function, as those of launch::command_for do: then it is started by fork, not
/// vfork. The kernel counts as a program's peak also what the process held before exec; after vfork that would be all
/// of snug, after fork it is only the little that snug has written to, less than any program needs to start.
pub fn run(command: &mut Command) -> io::Result<Sample> {
    let start = Instant::now();
    let child = command.spawn()?;
    let (status, usage) = wait(child.id() as libc::pid_t)?;
    let wall = start.elapsed().as_secs_f64();
    Ok(Sample {
        wall,
        cpu: seconds(usage.ru_utime) + seconds(usage.ru_stime),
        peak_kib: usage.ru_maxrss as u64,
        minor_faults: usage.ru_minflt as u64,
        major_faults: usage.ru_majflt as u64,
        status,
    })
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
