//! What a process has of a profile, as the library keeps it, becomes one that people can read.

use std::collections::HashMap;

use super::model::{Line, Module, Numbers, Place, Profile, Sample};
use super::pages;
use crate::live::objects::Object;
use crate::live::profile::{Call, Raw, Site, COUNT_UNIT, DEPTH_MOST};

/// Sites by their stacks: what they had when a profile began.
pub type Before = HashMap<u64, Site>;

/// Without names, but for code that is in no file, whose names end with the process.
pub fn profile_of(raw: &Raw, before: &Before) -> Profile {
    profile_of_sites(raw, &raw.sites, before)
}

/// The same of some of its sites.
pub fn profile_of_sites(raw: &Raw, sites: &[Site], before: &Before) -> Profile {
    let mut profile = Profile { mean: raw.mean as i64, taken: Some(raw.taken), ..Profile::default() };
    let mut numbers: Vec<u32> = raw.objects.keys().copied().collect();
    // Readers of pprof's format take the first for the program, and what follows for its libraries.
    numbers.sort_unstable_by_key(|number| (raw.objects[number].path != raw.program, *number));
    let modules: HashMap<u32, usize> = numbers.iter().enumerate().map(|(at, &number)| (number, at)).collect();
    profile.modules = numbers.iter().map(|number| module_of(&raw.objects[number])).collect();
    let pinned = raw.blocks.as_deref().map(pages::pinned).unwrap_or_default();
    let mut places = HashMap::new();
    for site in sites {
        let mut stack = Vec::new();
        let mut number = site.stack as u32;
        while let Some(call) = raw.calls.get(&number).filter(|_| stack.len() < DEPTH_MOST) {
            let next = places.len();
            let place = *places.entry((call.code, call.object)).or_insert(next);
            if place == next {
                profile.places.push(place_of(call, raw, &modules));
            }
            stack.push(place);
            number = call.parent;
        }
        profile
            .samples
            .push(Sample { stack, numbers: numbers_of(site, before.get(&site.stack), pinned.get(&site.stack)) });
    }
    if raw.lost != 0 {
        profile.notes.push(format!("{} samples were lost in process {}", raw.lost, raw.process));
    }
    profile
}

fn module_of(object: &Object) -> Module {
    Module {
        path: object.path.to_string_lossy().into_owned(),
        build_id: object.build_id.clone(),
        start: object.start.wrapping_sub(object.bias),
        end: object.end.wrapping_sub(object.bias),
    }
}

fn place_of(call: &Call, raw: &Raw, modules: &HashMap<u32, usize>) -> Place {
    let bias = raw.objects.get(&call.object).map_or(0, |object| object.bias);
    let made = if call.object == 0 { raw.made.find(call.code) } else { None };
    let line =
        made.map(|made| Line { function: made.function.clone(), file: made.file.clone(), line: i64::from(made.line) });
    Place {
        module: modules.get(&call.object).copied(),
        address: call.code.wrapping_sub(bias),
        lines: line.into_iter().collect(),
    }
}

fn numbers_of(site: &Site, before: Option<&Site>, pinned: Option<&f64>) -> Numbers {
    let whole = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let blocks = |count: u64| (count as f64 / COUNT_UNIT).round() as i64;
    let kib2 = |variance: f64| (variance.max(0.0) / (1024.0 * 1024.0)).round() as i64;
    // What has less than it had is not what it was.
    let is_older = |old: &&Site| old.count <= site.count && old.bytes <= site.bytes && old.samples <= site.samples;
    let old = before.filter(is_older).copied().unwrap_or_default();
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
        pinned.copied().unwrap_or(0.0).round() as i64,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::jit::MadeCode;

    #[test]
    fn a_site_that_shrank_is_new() {
        let site = |count: u64, bytes, samples| Site { count: count << 16, bytes, samples, ..Site::default() };
        let counted = |old: Site| numbers_of(&site(5, 500, 2), Some(&old), None);
        assert_eq!((counted(site(3, 300, 1))[1], counted(site(3, 300, 1))[8]), (200, 1));
        for old in [site(6, 300, 1), site(3, 501, 1), site(3, 300, 3)] {
            assert_eq!(counted(old), numbers_of(&site(5, 500, 2), None, None));
        }
    }

    #[test]
    fn stacks_that_lead_in_a_circle_end() {
        let call = |parent| Call { code: 4096, parent, ..Call::default() };
        let raw = Raw {
            mean: 1.0,
            lost: 0,
            sites: vec![Site { stack: 1, ..Site::default() }],
            blocks: None,
            calls: HashMap::from([(1, call(2)), (2, call(1))]),
            objects: HashMap::new(),
            made: MadeCode::default(),
            process: 1,
            program: "/bin/a".into(),
            taken: std::time::UNIX_EPOCH,
        };
        let profile = profile_of(&raw, &Before::new());
        assert_eq!(profile.samples[0].stack.len(), DEPTH_MOST);
    }

    #[test]
    fn the_program_comes_before_its_libraries() {
        let object = |path: &str| Object { path: path.into(), build_id: String::new(), start: 0, end: 9, bias: 0 };
        let raw = Raw {
            mean: 1.0,
            lost: 0,
            sites: vec![],
            blocks: None,
            calls: HashMap::new(),
            objects: HashMap::from([(1, object("/lib/c")), (2, object("/bin/a")), (3, object("/lib/d"))]),
            made: MadeCode::default(),
            process: 1,
            program: "/bin/a".into(),
            taken: std::time::UNIX_EPOCH,
        };
        let paths: Vec<String> =
            profile_of(&raw, &Before::new()).modules.into_iter().map(|module| module.path).collect();
        assert_eq!(paths, ["/bin/a", "/lib/c", "/lib/d"]);
    }
}
