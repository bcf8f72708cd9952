//! `snug trim PID`: has a running program give back its free memory, and measures what that gave.
//! `snug check PID`: has it walk through its heap.

use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{bail, Context, Result};
use clap::Args;
use indicatif::HumanBytes;

use crate::live::lent::{Done, Outcome, What};
use crate::live::{thread_with_memory, Depth, Program};
use crate::output::{self, counted};
use crate::period::period;
use crate::proc;
use crate::process_id::process_id;

/// Where the words of a message are explained.
const WORDS: &str = " (the words: snug man glossary)";

/// What a process may have more of after a trim because of it: pages of code and of a stack that were not there before.
const TOUCHED: u64 = 256 << 10;

/// The longest pause before it is tried again.
const STEP: Duration = Duration::from_millis(10);

/// Have a running program give back its free memory
///
/// A thread of it that sleeps is stopped for a moment, does it, and goes on as if nothing had been; magazines of threads
/// that sleep are emptied as well. If none sleeps, or the program is being traced, it does it itself when a thread next
/// needs more than its magazines have.
///
/// Exit status: 0 if it was done in time, 1 if not yet.
#[derive(Debug, Args)]
pub struct TrimArgs {
    #[command(flatten)]
    asked: AskedArgs,
}

/// Whom a thread is borrowed from, and for how long.
#[derive(Debug, Args)]
struct AskedArgs {
    /// The process
    #[arg(value_parser = process_id)]
    pid: i32,

    /// How long to try: 2, 0.5, 500ms
    #[arg(long, value_name = "TIME", default_value = "2", value_parser = period)]
    wait: Duration,

    /// How long a thread may be at it once it has begun; a walk through a hundred GiB of heap takes some seconds
    #[arg(long, value_name = "TIME", default_value = "60", value_parser = period)]
    work: Duration,
}

/// Walk through a running program's heap, and say what is damaged
///
/// As for snug trim, a thread of it that sleeps is stopped for a moment and does it. Objects in magazines are looked at if
/// their threads sleep.
///
/// Exit status: 0 if all is well, 1 if something is damaged, or it could not be looked at in time.
#[derive(Debug, Args)]
pub struct CheckArgs {
    #[command(flatten)]
    asked: AskedArgs,
}

/// How a trim was done.
pub enum Trimmed {
    By(Done),
    /// By a thread of the program, which came by.
    Itself,
    NotYet(String),
}

pub fn run(TrimArgs { asked: args }: &TrimArgs) -> Result<ExitCode> {
    let waiting = output::waiting(&format!("process {} gives back", args.pid), args.wait + args.work);
    let trimmed = |program: &Program| Ok((resident(args.pid)?, trim(program, args.wait, args.work)?));
    let (program, (before, done)) = Program::with_named(args.pid, trimmed)?;
    drop(waiting);
    let after = resident(args.pid).with_context(|| format!("process {} has ended", args.pid))?;
    let how = match done {
        Trimmed::NotYet(why) => {
            let later = "it will do it when a thread of it next needs more than its magazines have";
            bail!("process {} was asked, but {why}; {later}{WORDS}", args.pid);
        }
        Trimmed::By(done) => said(&done, &program),
        Trimmed::Itself => "a thread of it did it in a call of malloc's".to_string(),
    };
    let back = match before.checked_sub(after) {
        Some(back) if back > 0 => format!("gave back {}", HumanBytes(back)),
        None if after - before > TOUCHED => {
            format!("took {} more meanwhile than it gave back", HumanBytes(after - before))
        }
        _ => "had nothing to give back".to_string(),
    };
    let (pid, before, after) = (args.pid, HumanBytes(before), HumanBytes(after));
    output::say(&format!("process {pid} {back}: {before} resident before, {after} after\n{how}\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// Now, if a thread of it sleeps; else it is asked to do it itself, and both are tried until then.
pub fn trim(program: &Program, wait: Duration, work: Duration) -> Result<Trimmed> {
    let begun = Instant::now();
    let trims = program.trims()?;
    let mut pause = Duration::from_millis(1);
    let mut asked = false;
    loop {
        let why = match program.call(What::Trim, work)? {
            Outcome::Done(done) => return Ok(Trimmed::By(done)),
            Outcome::NotNow(why) => why.to_string(),
            Outcome::Never(why) => why,
        };
        if !asked {
            program.request_trim()?;
            asked = true;
        }
        sleep(pause);
        if program.trims()? != trims {
            return Ok(Trimmed::Itself);
        }
        if begun.elapsed() >= wait {
            return Ok(Trimmed::NotYet(why));
        }
        pause = (2 * pause).min(STEP);
    }
}

/// Who did it, and what was left.
fn said(done: &Done, program: &Program) -> String {
    let left = program.values(Depth::Quick).ok().map_or(0, |values| {
        ["cached_small", "cached_cells"].iter().filter_map(|gauge| values.get(gauge)).fold(0, u64::saturating_add)
    });
    let by = format!(
        "thread {} did it, in {:.1} ms; {} stopped meanwhile, {} emptied",
        done.thread,
        done.took.as_secs_f64() * 1e3,
        counted(done.stopped, "thread"),
        match done.emptied {
            1 => "the magazines of 1".to_string(),
            count => format!("the magazines of {count}"),
        }
    );
    match left {
        0 => by + WORDS,
        left => {
            format!("{by}\n{} stay in magazines of threads that work, or may be within snug{WORDS}", HumanBytes(left))
        }
    }
}

pub fn check(CheckArgs { asked: args }: &CheckArgs) -> Result<ExitCode> {
    let waiting = output::waiting(&format!("process {} looks at its heap", args.pid), args.wait + args.work);
    let (_, done) = Program::with_named(args.pid, |program| walked(program, args))?;
    drop(waiting);
    if let Some(wrong) = done.wrong {
        output::say(&format!("process {}: its heap is damaged: {wrong}\n", args.pid))?;
        return Ok(ExitCode::FAILURE);
    }
    let said = format!(
        "process {}: its heap is as it should be; thread {} looked at it in {:.1} ms, and at the magazines of {}{WORDS}\n",
        args.pid,
        done.thread,
        done.took.as_secs_f64() * 1e3,
        counted(done.emptied, "thread")
    );
    output::say(&said)?;
    Ok(ExitCode::SUCCESS)
}

/// A thread of the program has walked through the heap.
fn walked(program: &Program, args: &AskedArgs) -> Result<Done> {
    let begun = Instant::now();
    loop {
        match program.call(What::Check, args.work)? {
            Outcome::Done(done) => return Ok(done),
            Outcome::Never(why) => bail!("the heap of process {} cannot be checked: {why}", args.pid),
            Outcome::NotNow(why) if begun.elapsed() >= args.wait => {
                bail!("the heap of process {} could not be checked in time: {why}", args.pid)
            }
            Outcome::NotNow(_) => sleep(STEP),
        }
    }
}

/// Bytes of the whole process, as the system counts them in smaps: exactly, unlike the sum that it keeps for all.
fn resident(process: i32) -> Result<u64> {
    let thread = thread_with_memory(process);
    let text =
        proc::text(format!("/proc/{thread}/smaps_rollup")).or_else(|_| proc::text(format!("/proc/{thread}/smaps")))?;
    let kib =
        text.lines().filter_map(|line| line.strip_prefix("Rss:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    Ok(kib.sum::<u64>() * 1024)
}
