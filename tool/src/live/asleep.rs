//! Which threads of a process sleep where they can be interrupted without their program seeing it, and which of those
//! are not on their way through snug.

use std::collections::HashMap;
use std::ops::Range;

use super::memory::Memory;
use crate::proc;

/// Calls that wait, and that the kernel goes on with after a stop by a tracer: it restarts them with what is left of
/// their time (signal(7)).
const GO_ON: [i64; 19] = [
    libc::SYS_readv,
    libc::SYS_pread64,
    libc::SYS_preadv,
    libc::SYS_writev,
    libc::SYS_poll,
    libc::SYS_ppoll,
    libc::SYS_select,
    libc::SYS_pselect6,
    libc::SYS_pause,
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_futex,
    449, // futex_waitv
    libc::SYS_rt_sigsuspend,
    libc::SYS_wait4,
    libc::SYS_waitid,
    libc::SYS_flock,
    libc::SYS_fcntl,
    libc::SYS_restart_syscall,
];

/// Calls that end with EINTR when their thread is stopped, and that can simply be made again: nothing has come of them.
/// Their time, if they have one, begins anew.
const MADE_AGAIN: [i64; 7] = [
    libc::SYS_epoll_wait,
    libc::SYS_epoll_pwait,
    441, // epoll_pwait2
    libc::SYS_rt_sigtimedwait,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_io_getevents,
];

/// Calls that the kernel goes on with or ends with EINTR, by what they wait for.
const EITHER: [i64; 8] = [
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
];

/// The kernel's own results of a call that was interrupted, never seen by programs.
const RESTARTS: [i64; 3] = [-512, -513, RESTART_UNLESS_HANDLED];
const RESTART_UNLESS_HANDLED: i64 = -514;
const RESTART_BLOCK: i64 = -516;

/// A thread of which this is more is not looked through: its stack is a part of something else.
const STACK_MOST: usize = 16 << 20;

/// `mov $15, %rax; syscall`: what a signal handler returns to, on x86-64, with any libc.
const RETURN_FROM_SIGNAL: [u8; 9] = [0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05];

/// Whether a thread waits in one of those calls now.
pub fn is_asleep(process: i32, tid: i32) -> bool {
    let line = proc::text(format!("/proc/{process}/task/{tid}/syscall")).unwrap_or_default();
    let number = line.split(' ').next().and_then(|word| word.trim().parse().ok());
    number.is_some_and(|number: i64| [&GO_ON[..], &MADE_AGAIN, &EITHER].iter().any(|calls| calls.contains(&number)))
}

/// Whether a thread stands still as its whole process does, as after SIGSTOP or Ctrl-Z.
pub fn is_stopped(tid: i32) -> bool {
    let stat = proc::text(format!("/proc/{tid}/stat")).unwrap_or_default();
    // Behind a name that may contain anything.
    stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('T'))
}

/// Whether a stopped thread was interrupted in one of those calls, and is sure to go on with it. A result that the program
/// would see is changed into the kernel's own: an EINTR that there would not have been.
pub fn goes_on(registers: &mut libc::user_regs_struct) -> bool {
    let (number, result) = (registers.orig_rax as i64, registers.rax as i64);
    let is_either = EITHER.contains(&number);
    if result == i64::from(-libc::EINTR) && (is_either || MADE_AGAIN.contains(&number)) {
        registers.rax = RESTART_UNLESS_HANDLED as u64;
        return true;
    }
    (is_either || GO_ON.contains(&number)) && (result == RESTART_BLOCK || RESTARTS.contains(&result))
}

/// The registers of a thread that goes on with its call by itself, without the kernel: in the order of struct borrow.
pub fn by_itself(now: &libc::user_regs_struct) -> [u64; 20] {
    let result = now.rax as i64;
    let number = if result == RESTART_BLOCK { libc::SYS_restart_syscall as u64 } else { now.orig_rax };
    let (rax, rip) = (number, now.rip - 2);
    [
        now.r15, now.r14, now.r13, now.r12, now.rbp, now.rbx, now.r11, now.r10, now.r9, now.r8, rax, now.rcx, now.rdx,
        now.rsi, now.rdi, rip, now.cs, now.eflags, now.rsp, now.ss,
    ]
}

/// The mappings of a process, as far as this needs them.
pub struct Mappings {
    all: Vec<(Range<usize>, bool)>,
    snug: Range<usize>,
    /// Of words that lead into code: whether it is what signal handlers return to.
    known: HashMap<usize, bool>,
}

impl Mappings {
    /// `work` is an address in snug's code.
    pub fn of(process: i32, work: usize) -> Option<Mappings> {
        let text = proc::text(format!("/proc/{process}/maps")).ok()?;
        let all: Vec<(Range<usize>, bool)> = text.lines().filter_map(mapping).collect();
        let snug = all.iter().find(|(range, _)| range.contains(&work))?.0.clone();
        Some(Mappings { all, snug, known: HashMap::new() })
    }

    fn around(&self, address: usize) -> Option<&(Range<usize>, bool)> {
        let at = self.all.partition_point(|(range, _)| range.end <= address);
        self.all.get(at).filter(|(range, _)| range.contains(&address))
    }

    /// Whether a stopped thread is outside of snug, and in no signal handler, which might have interrupted snug anywhere.
    /// All words of its stack are looked at: one that leads into snug's code may be where snug goes on. What is left from
    /// earlier calls looks the same; so the answer may be no where yes is true.
    pub fn is_clear_of_snug(&mut self, memory: &Memory, registers: &libc::user_regs_struct) -> bool {
        let (rip, rsp) = (registers.rip as usize, registers.rsp as usize);
        let Some((stack, _)) = self.around(rsp) else { return false };
        let mut words = vec![0; (stack.end - rsp) & !7];
        if self.snug.contains(&rip) || words.len() > STACK_MOST || !memory.read(rsp, &mut words) {
            return false;
        }
        !words.chunks_exact(8).any(|word| {
            let word = word.try_into().map_or(0, u64::from_le_bytes) as usize;
            self.snug.contains(&word) || self.is_return_from_signal(memory, word)
        })
    }

    fn is_return_from_signal(&mut self, memory: &Memory, word: usize) -> bool {
        if let Some(&known) = self.known.get(&word) {
            return known;
        }
        if !self.around(word).is_some_and(|&(_, is_code)| is_code) {
            return false;
        }
        let mut code = [0; RETURN_FROM_SIGNAL.len()];
        let is = !memory.read(word, &mut code) || code == RETURN_FROM_SIGNAL;
        self.known.insert(word, is);
        is
    }
}

/// A line of /proc/PID/maps, and whether code is there.
fn mapping(line: &str) -> Option<(Range<usize>, bool)> {
    let mut words = line.split_ascii_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let number = |text| usize::from_str_radix(text, 16).ok();
    Some((number(start)?..number(end)?, words.next()?.contains('x')))
}
