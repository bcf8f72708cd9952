//! Taking a profile: of a command, until it ends, or of a program that runs.

use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use anyhow::{bail, Context, Result};

use super::gather::{profile_of, Before};
use super::growth::FINE;
use super::model::Profile;
use super::snapshots::{Descendants, Wanted, STEP};
use super::symbols::Symbols;
use crate::cache;
use crate::launch;
use crate::live::list::{name_of, parent_of};
use crate::live::profile::Raw;
use crate::live::Program;
use crate::output;
use crate::period::seconds;
use crate::settings::Setting;
use crate::watch::{self, Children, Watched};

/// So often a running program is looked at in case that it ends, and seldom enough that looks take one part in ten.
const LOOK: Duration = Duration::from_secs(1);
const SHARE: u32 = 10;

/// What there was to see.
pub struct Taken {
    pub profile: Profile,
    /// The earliest first.
    pub snapshots: Vec<Profile>,
    /// How the command ended.
    pub status: Option<ExitStatus>,
}

/// Runs a command to its end, and the processes that it starts.
pub fn of_command(
    words: &[std::ffi::OsString],
    settings: &[Setting],
    children: &Children,
    wanted: &Wanted,
) -> Result<Taken> {
    let mut command = launch::command_for(words)?;
    launch::set_up(&mut command, &cache::library()?, settings);
    command.env("SNUG_PROFILE", "1");
    let over = AtomicBool::new(false);
    let (watched, snapshots) = scope(|scope| {
        let snapshots = wanted.is_any().then(|| scope.spawn(|| snapshots_of(children, wanted, &over)));
        let watched = watch::run(command, children, false);
        over.store(true, Ordering::Relaxed);
        (watched, snapshots.and_then(|thread| thread.join().ok()).unwrap_or_default())
    });
    let watched = watched?;
    watched.notes.iter().for_each(|note| eprintln!("snug: {note}"));
    let profile = profile_of_all(&watched, children);
    Ok(Taken { profile, snapshots, status: Some(watched.status) })
}

fn snapshots_of(children: &Children, wanted: &Wanted, over: &AtomicBool) -> Vec<Profile> {
    let mut descendants = Descendants::default();
    let is_wanted = |pid: i32| match children {
        Children::Named(pattern) => name_of(pid).is_some_and(|name| pattern.matches(&name)),
        Children::None => parent_of(pid) == Some(std::process::id() as i32),
        Children::All | Children::Highest => true,
    };
    wanted.follow(over, || descendants.profile(is_wanted))
}

fn profile_of_all(watched: &Watched, children: &Children) -> Profile {
    let is_wanted = |name: &str| match children {
        Children::Named(pattern) => pattern.matches(name),
        _ => true,
    };
    let processes = watched.processes.iter().filter(|process| is_wanted(&process.name));
    let raws: Vec<&Raw> = processes.filter_map(|process| process.profile.as_ref()).collect();
    let (mut profile, mut symbols) = (Profile::default(), Symbols::new());
    raws.iter().for_each(|raw| profile.add(&profile_of(raw, &Before::new()), 1));
    if raws.len() > 1 {
        profile.notes.push(format!("{} processes together; the peak is the sum of their peaks", raws.len()));
    }
    symbols.resolve(&mut profile);
    profile
}

/// Has a running program take one for some time. What was allocated before that is not known; what was, in an earlier
/// profile of the same process, counts as live, but not as allocated. A signal that would end the tool ends the time, and
/// so does the end of the process: what was seen until then is the profile.
pub fn of_process(pid: i32, time: Duration, wanted: &Wanted) -> Result<Taken> {
    let over = Arc::new(AtomicBool::new(false));
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&over))?;
    }
    let (program, (before, running, begun)) = Program::with_named(pid, |program| {
        let begun = Instant::now();
        let before = program.profile();
        let running = program.is_profiled()?;
        if !running {
            begin(program, pid, time, &over)?;
        }
        Ok((before, running, begun))
    })?;
    let before: Before =
        before.map(|raw| raw.sites.into_iter().map(|site| (site.stack, site)).collect()).unwrap_or_default();
    let (last, snapshots) = look_until(&program, begun + time, &over, &before, wanted);
    if !running {
        let _ = program.request_profile(false); // if it has ended, so has the profile
    }
    let raw = last.with_context(|| match program.has_ended() {
        true => format!("process {pid} has ended before there was a sample"),
        false => format!(
            "process {pid} has asked for too little for a sample; a longer --for sees more, and so does \
             `snug run SNUG_PROFILE_BYTES={FINE}`, if it is started so"
        ),
    })?;
    let mut symbols = Symbols::new();
    let mut profile = profile_of(&raw, &before);
    if program.has_ended() {
        profile.notes.push("the process has ended meanwhile; this is what was seen last".to_string());
    }
    symbols.resolve(&mut profile);
    Ok(Taken { profile, snapshots, status: None })
}

/// A program that asks for nothing has nothing to be seen; one that works begins within the time.
fn begin(program: &Program, pid: i32, time: Duration, over: &AtomicBool) -> Result<()> {
    program.request_profile(true).with_context(|| format!("process {pid} must not be written to"))?;
    let begun = Instant::now();
    let progress = output::bar(time.as_millis() as u64, &format!("waiting until process {pid} asks for memory"));
    while !program.is_profiled()? && begun.elapsed() < time && !over.load(Ordering::Relaxed) {
        progress.set_position(begun.elapsed().as_millis() as u64);
        sleep(STEP.min(time));
    }
    progress.finish_and_clear();
    if !program.is_profiled()? {
        let _ = program.request_profile(false); // whether it can be written to was seen above
        let waited = seconds(begun.elapsed().min(time));
        bail!("process {pid} has asked for no memory in {waited}: there is nothing to be seen; a longer --for waits longer");
    }
    Ok(())
}

fn snapshots_of_process(pid: i32, over: &AtomicBool, before: &Before, wanted: &Wanted) -> Vec<Profile> {
    let Ok(program) = Program::find(pid) else { return Vec::new() };
    wanted.follow(over, || Some(profile_of(&program.profile()?, before)))
}

/// The last look that there was, and the snapshots.
fn look_until(
    program: &Program,
    end: Instant,
    over: &Arc<AtomicBool>,
    before: &Before,
    wanted: &Wanted,
) -> (Option<Raw>, Vec<Profile>) {
    let has_ended = AtomicBool::new(false);
    scope(|scope| {
        let pid = program.pid();
        let has_ended = &has_ended;
        let follow = move || snapshots_of_process(pid, has_ended, before, wanted);
        let snapshots = wanted.is_any().then(|| scope.spawn(follow));
        let mut last = program.profile();
        let time = end.saturating_duration_since(Instant::now());
        let progress = output::bar(time.as_millis() as u64, &format!("looking at process {pid}"));
        let mut due = Instant::now() + LOOK;
        while Instant::now() < end && !over.load(Ordering::Relaxed) {
            sleep(STEP.min(end.saturating_duration_since(Instant::now())));
            let left = end.saturating_duration_since(Instant::now());
            progress.set_position((time - left.min(time)).as_millis() as u64);
            if Instant::now() >= due {
                let begun = Instant::now();
                match program.profile() {
                    Some(raw) => last = Some(raw),
                    None if program.has_ended() => break,
                    None => {}
                }
                due = Instant::now() + LOOK.max(SHARE * begun.elapsed());
            }
        }
        progress.finish_and_clear();
        let last = program.profile().or(last);
        has_ended.store(true, Ordering::Relaxed);
        (last, snapshots.and_then(|thread| thread.join().ok()).unwrap_or_default())
    })
}
