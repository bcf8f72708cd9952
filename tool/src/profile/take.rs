//! Taking a profile: of a command, until it ends, or of a program that runs.

use std::collections::HashMap;
use std::process::ExitStatus;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{bail, Context, Result};

use super::model::{Module, Numbers, Place, Profile, Sample};
use super::symbols;
use crate::cache;
use crate::launch;
use crate::live::profile::{Call, Object, Raw, Site, COUNT_UNIT};
use crate::live::Program;
use crate::settings::Setting;
use crate::watch::{self, Children};

/// How often is looked whether a program has begun.
const STEP: Duration = Duration::from_millis(10);

/// A program that asks for nothing has nothing to be seen; one that works begins within this time.
const BEGIN_MOST: Duration = Duration::from_secs(2);

/// Runs a command to its end, and the processes that it starts.
pub fn of_command(
    words: &[std::ffi::OsString],
    settings: &[Setting],
    children: &Children,
) -> Result<(Profile, ExitStatus)> {
    let mut command = launch::command_for(words)?;
    launch::set_up(&mut command, &cache::library()?, settings);
    command.env("SNUG_PROFILE", "1");
    let watched = watch::run(command, children, false)?;
    watched.notes.iter().for_each(|note| eprintln!("snug: {note}"));
    let raws: Vec<&Raw> = watched.processes.iter().filter_map(|process| process.profile.as_ref()).collect();
    let mut profile = Profile::default();
    raws.iter().for_each(|raw| profile.add(&profile_of(raw, &HashMap::new()), 1));
    if raws.len() > 1 {
        profile.notes.push(format!("{} processes together; the peak is the sum of their peaks", raws.len()));
    }
    symbols::resolve(&mut profile);
    Ok((profile, watched.status))
}

/// Has a running program take one for some time. What was allocated before that is not known; what was, in an earlier
/// profile of the same process, counts as live, but not as allocated.
pub fn of_process(pid: i32, time: Duration) -> Result<Profile> {
    let program = Program::find(pid)?;
    let before = program.profile();
    let running = program.is_profiled()?;
    if !running {
        program.request_profile(true).with_context(|| format!("process {pid} must not be written to"))?;
    }
    let begun = Instant::now();
    while !program.is_profiled()? && begun.elapsed() < BEGIN_MOST.max(time) {
        sleep(STEP);
    }
    if !program.is_profiled()? {
        let _ = program.request_profile(false); // whether it can be written to was seen above
        bail!("process {pid} has asked for no memory in {} s: there is nothing to be seen", begun.elapsed().as_secs());
    }
    sleep(time.saturating_sub(begun.elapsed()));
    let raw = program.profile();
    if !running {
        let _ = program.request_profile(false); // if it has ended, so has the profile
    }
    let raw = raw.with_context(|| format!("process {pid} has ended, or allocated too little for a sample"))?;
    let before = before.map(|before| before.sites.into_iter().map(|site| (site.stack, site)).collect());
    let mut profile = profile_of(&raw, &before.unwrap_or_default());
    symbols::resolve(&mut profile);
    Ok(profile)
}

/// `before`: what the sites had when it began, by their stacks.
fn profile_of(raw: &Raw, before: &HashMap<u64, Site>) -> Profile {
    let mut profile = Profile { mean: raw.mean as i64, ..Profile::default() };
    let mut numbers: Vec<u32> = raw.objects.keys().copied().collect();
    numbers.sort_unstable();
    let modules: HashMap<u32, usize> = numbers.iter().enumerate().map(|(at, &number)| (number, at)).collect();
    profile.modules = numbers.iter().map(|number| module_of(&raw.objects[number])).collect();
    let mut places = HashMap::new();
    for site in &raw.sites {
        let mut stack = Vec::new();
        let mut number = site.stack as u32;
        while let Some(call) = raw.calls.get(&number) {
            let next = places.len();
            let place = *places.entry((call.code, call.object)).or_insert(next);
            if place == next {
                profile.places.push(place_of(call, raw, &modules));
            }
            stack.push(place);
            number = call.parent;
        }
        profile.samples.push(Sample { stack, numbers: numbers_of(site, before.get(&site.stack)) });
    }
    if raw.lost != 0 {
        profile.notes.push(format!("{} samples were lost in process {}", raw.lost, raw.process));
    }
    profile
}

fn module_of(object: &Object) -> Module {
    Module {
        path: object.path.to_string_lossy().into_owned(),
        build_id: symbols::build_id(&object.path),
        start: object.start.wrapping_sub(object.bias),
        end: object.end.wrapping_sub(object.bias),
    }
}

fn place_of(call: &Call, raw: &Raw, modules: &HashMap<u32, usize>) -> Place {
    let bias = raw.objects.get(&call.object).map_or(0, |object| object.bias);
    Place { module: modules.get(&call.object).copied(), address: call.code.wrapping_sub(bias), lines: Vec::new() }
}

fn numbers_of(site: &Site, before: Option<&Site>) -> Numbers {
    let whole = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let blocks = |count: u64| (count as f64 / COUNT_UNIT).round() as i64;
    let kib2 = |variance: f64| (variance.max(0.0) / (1024.0 * 1024.0)).round() as i64;
    let old = before.copied().unwrap_or_default();
    [
        blocks(site.count - old.count),
        whole(site.bytes - old.bytes),
        blocks(site.live_count),
        whole(site.live_bytes),
        blocks(site.peak_count),
        whole(site.peak_bytes),
        kib2(site.variance - old.variance),
        kib2(site.live_variance),
        whole(site.samples - old.samples),
        whole(site.live_samples),
    ]
}
