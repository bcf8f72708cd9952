//! A profile as text: a table for people, collapsed stacks and JSON for programs.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

use anyhow::Result;
use indicatif::BinaryBytes;
use serde_json::json;

use super::model::{self, Numbers, Profile, Sample, What, DIFFERENCE};
use crate::output::{counted, grouped, shown};

/// Frames of a site that the table shows: the libraries of C++ and Rust take ten before the code that calls them.
const FRAMES: usize = 16;

/// The largest sites, each with its numbers and the calls that led there. Those that look alike are one: two calls in one
/// line, or in a function of which no lines are known.
pub fn table(profile: &Profile, by: What, top: usize) -> String {
    let profile = &joined(profile);
    let mut out = String::new();
    let totals = profile.totals();
    let all = by.of(&totals);
    let samples = profile.sorted(by);
    if profile.samples.is_empty() {
        return format!("{NOTHING}\n");
    }
    if ![What::Allocated, What::AllocatedBlocks, What::Live, What::Peak].into_iter().any(|what| profile.has(what)) {
        return format!("{SAME}\n");
    }
    if profile.is_difference {
        let _ = writeln!(out, "{DIFFERENCE}");
    }
    let _ = match by == What::Pinned && !profile.knows_pinned() {
        true => writeln!(out, "{UNKNOWN}"),
        false => writeln!(out, "{}: {}{}", by.words(), amount(by, all), error(by, by.error_of(&totals))),
    };
    let _ = writeln!(out, "{}", others(&totals, by));
    let sites = match samples.len() {
        0 => "no site has any of it: --by=allocated, peak or freed shows others".to_string(),
        count => format!("{}, largest first", counted(count, "site")),
    };
    let _ = writeln!(out, "{sites}; {} was looked at", rate(profile));
    for note in &profile.notes {
        let _ = writeln!(out, "{}", shown(note));
    }
    let whole = profile.whole(by);
    for sample in samples.iter().take(top) {
        site(&mut out, profile, sample, by, whole);
    }
    if samples.len() > top {
        let rest: i64 = samples[top..].iter().map(|sample| by.of(&sample.numbers)).fold(0, i64::saturating_add);
        let _ = writeln!(out, "\n{} at {}", amount(by, rest), counted(samples.len() - top, "more site"));
    }
    out
}

fn joined(profile: &Profile) -> Profile {
    let mut joined = Profile { samples: Vec::new(), ..profile.clone() };
    let mut known: HashMap<Vec<String>, usize> = HashMap::new();
    for sample in &profile.samples {
        let at = *known.entry(frames(profile, &sample.stack)).or_insert(joined.samples.len());
        match joined.samples.get_mut(at) {
            Some(alike) => model::add(&mut alike.numbers, &sample.numbers, 1),
            None => joined.samples.push(sample.clone()),
        }
    }
    joined
}

/// What is said of a profile in which nothing is.
pub const NOTHING: &str =
    "no sample was taken: too little was allocated; SNUG_PROFILE_BYTES=1 before the command looks at every block";

/// What is said of what is pinned where it is not known.
const UNKNOWN: &str = "what live blocks pin is known only of profiles of every block, with SNUG_PROFILE_BYTES=1";

/// What is said of a difference in which nothing is.
pub const SAME: &str = "no difference: each site has as much in the one profile as in the other";

/// What of all was looked at.
pub fn rate(profile: &Profile) -> String {
    match profile.mean {
        0 | 1 => "every block".to_string(),
        mean => format!("one byte in {}", BinaryBytes(mean.unsigned_abs())),
    }
}

/// So many blocks have a size on the average that their rounded number tells.
const BLOCKS_WITH_SIZE: i64 = 10;

/// What else there is to say about a site, or about all of them.
pub fn others(numbers: &Numbers, by: What) -> String {
    let part = |what: What| format!("{} {}", what.words(), amount(what, what.of(numbers)));
    let others = [What::Live, What::Peak, What::Allocated].into_iter().filter(|&what| what != by);
    let pinned = Some(What::Pinned).filter(|&what| what != by && what.of(numbers) != 0);
    let others = others.chain(pinned);
    let mut words: Vec<String> = others.map(part).collect();
    // The number of blocks is rounded: of fewer it says little of their size. A difference may have less of the one.
    let has_size = numbers[0] >= BLOCKS_WITH_SIZE && numbers[1] > 0;
    let size = if has_size { format!(" of about {} B", numbers[1] / numbers[0]) } else { String::new() };
    let blocks = if numbers[0] == 1 { "block" } else { "blocks" };
    let number = |count: i64| grouped(count as f64, 0);
    words.push(format!("{} {blocks} allocated{size}, {} live", number(numbers[0]), number(numbers[2])));
    words.join("; ")
}

fn site(out: &mut String, profile: &Profile, sample: &Sample, by: What, whole: f64) {
    let numbers = &sample.numbers;
    let value = by.of(numbers);
    let share = if whole == 0.0 { 0.0 } else { 100.0 * value as f64 / whole };
    let _ = writeln!(out, "\n{}{}  {share:.1} %", amount(by, value), error(by, by.error_of(numbers)));
    let _ = writeln!(out, "    {}", others(numbers, by));
    stack(out, profile, sample);
}

/// The calls that led to a site, a line each.
pub fn stack(out: &mut String, profile: &Profile, sample: &Sample) {
    let frames = frames(profile, &sample.stack);
    for frame in frames.iter().take(FRAMES) {
        let _ = writeln!(out, "    {frame}");
    }
    if frames.len() > FRAMES {
        let _ = writeln!(out, "    ... {} more calls", frames.len() - FRAMES);
    }
}

/// `name  file:line` for each frame, the innermost first.
pub fn frames(profile: &Profile, stack: &[usize]) -> Vec<String> {
    let mut frames = Vec::new();
    for &place in stack {
        let lines = &profile.places[place].lines;
        if lines.is_empty() {
            frames.extend(profile.names(&[place]));
        }
        for line in lines {
            let at = match (line.file.is_empty(), line.line) {
                (true, _) => String::new(),
                (false, 0) => format!("  {}", shown(&line.file)),
                (false, number) => format!("  {}:{number}", shown(&line.file)),
            };
            frames.push(format!("{}{at}", shown(&line.function)));
        }
    }
    frames
}

pub fn amount(what: What, number: i64) -> String {
    let sign = if number < 0 { "-" } else { "" };
    match what.is_bytes() {
        true => format!("{sign}{}", BinaryBytes(number.unsigned_abs())),
        false => grouped(number as f64, 0),
    }
}

pub fn error(what: What, error: Option<f64>) -> String {
    match error {
        Some(error) if error >= 1.0 && what.is_bytes() => format!(" ± {}", BinaryBytes(error as u64)),
        _ => String::new(),
    }
}

/// A line for each stack, `outermost;...;innermost number`, stacks with the same names together. What became less is
/// left out: pictures of such stacks have no room for it.
pub fn folded(profile: &Profile, by: What) -> String {
    let lines = by_names(profile, by);
    lines.iter().filter(|(_, &number)| number > 0).map(|(names, number)| format!("{names} {number}\n")).collect()
}

/// That some stacks are left out there, if they are.
pub fn left_out(profile: &Profile, by: What) -> Option<String> {
    match by_names(profile, by).values().filter(|&&number| number < 0).count() {
        0 => None,
        count => Some(format!("without {} that became less: {LEFT_OUT}", counted(count, "stack"))),
    }
}

const LEFT_OUT: &str = "this format has no place for them; .txt, .json and .pb.gz do";

fn by_names(profile: &Profile, by: What) -> BTreeMap<String, i64> {
    let mut lines: BTreeMap<String, i64> = BTreeMap::new();
    for sample in &profile.samples {
        let names: Vec<String> = profile.names(&sample.stack).iter().rev().map(|name| name.replace(';', ",")).collect();
        let all = lines.entry(names.join(";")).or_default();
        *all = all.saturating_add(by.of(&sample.numbers));
    }
    lines
}

pub fn json(profile: &Profile) -> Result<Vec<u8>> {
    let numbers = |of: &Numbers| {
        json!({
            "allocated_blocks": of[0], "allocated_bytes": of[1], "live_blocks": of[2], "live_bytes": of[3],
            "peak_blocks": of[4], "peak_bytes": of[5],
            "allocated_error_bytes": What::Allocated.error_of(of), "live_error_bytes": What::Live.error_of(of),
            "allocated_samples": of[8], "live_samples": of[9],
            "pinned_bytes": profile.knows_pinned().then(|| What::Pinned.of(of)),
        })
    };
    let place = |&place: &usize| {
        let place = &profile.places[place];
        let lines: Vec<_> = place
            .lines
            .iter()
            .map(|line| json!({"function": line.function, "file": line.file, "line": line.line}))
            .collect();
        json!({
            "address": place.address,
            "module": place.module.map(|module| &profile.modules[module].path),
            "lines": lines,
        })
    };
    let sites: Vec<_> = profile
        .sorted(What::Allocated)
        .into_iter()
        .map(|sample| {
            let stack: Vec<_> = sample.stack.iter().map(place).collect();
            json!({"numbers": numbers(&sample.numbers), "stack": stack})
        })
        .collect();
    let whole = json!({
        "mean_bytes": profile.mean, "notes": profile.notes, "totals": numbers(&profile.totals()), "sites": sites,
    });
    let mut bytes = serde_json::to_vec_pretty(&whole)?;
    bytes.push(b'\n');
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::super::model::{Line, Module, Place};
    use super::*;

    #[test]
    fn a_difference_without_any_is_a_sentence() {
        let sample = |stack, numbers| Sample { stack, numbers };
        let mut one = Profile {
            places: vec![Place { module: None, address: 1, lines: Vec::new() }],
            samples: vec![sample(vec![0], [1; 11])],
            ..Profile::default()
        };
        let other = Profile { places: one.places.clone(), samples: one.samples.clone(), ..Profile::default() };
        one.add(&other, -1);
        assert_eq!(table(&one, What::Live, 9), format!("{SAME}\n"));
        // What was allocated meanwhile and freed again is no growth, but a difference.
        one.samples[0].numbers[0..2].copy_from_slice(&[5, 500]);
        let text = table(&one, What::Live, 9);
        assert!(text.contains("no site has any of it: --by=allocated") && !text.contains("0 sites"), "{text}");
        assert!(table(&one, What::Allocated, 9).contains("1 site, largest first"), "{text}");
    }

    #[test]
    fn sites_that_look_alike_are_one() {
        let line = |function: &str, line| Line { function: function.into(), file: String::new(), line };
        let place = |address, name| Place { module: None, address, lines: vec![line(name, 0)] };
        let sample = |at: usize| Sample { stack: vec![at], numbers: [1, 100, 1, 100, 0, 0, 0, 0, 0, 0, 0] };
        let profile = Profile {
            places: vec![place(10, "take"), place(20, "take"), place(30, "other")],
            samples: vec![sample(0), sample(2), sample(1)],
            ..Profile::default()
        };
        let text = table(&profile, What::Live, 9);
        assert!(text.contains("2 sites, largest first") && text.contains("200 B  66.7 %"), "{text}");
        assert_eq!(text.matches("    take\n").count(), 1, "{text}");
    }

    #[test]
    fn what_is_not_known_is_no_number() {
        let place = Place { module: None, address: 4096, lines: Vec::new() };
        let numbers = [1, 100, 1, 100, 0, 0, 0, 0, 0, 0, 0];
        let mut profile =
            Profile { places: vec![place], samples: vec![Sample { stack: vec![0], numbers }], ..Profile::default() };
        let text = table(&profile, What::Pinned, 9);
        assert!(text.starts_with(UNKNOWN) && !text.contains("pinned by live blocks"), "{text}");
        assert!(String::from_utf8(json(&profile).unwrap()).unwrap().contains("\"pinned_bytes\": null"));
        profile.samples[0].numbers[model::PINNED] = 3996;
        assert!(table(&profile, What::Pinned, 9).starts_with("pinned by live blocks: 3.90 KiB\n"));
    }

    #[test]
    fn shares_of_a_difference_are_of_all_changes() {
        let place = |address| Place { module: None, address, lines: Vec::new() };
        let sample = |at, live| Sample { stack: vec![at], numbers: [0, 0, 0, live, 0, 0, 0, 0, 0, 0, 0] };
        let profile = Profile {
            places: vec![place(4096), place(8192)],
            samples: vec![sample(0, 10_000_500), sample(1, -9_999_500)],
            ..Profile::default()
        };
        let text = table(&profile, What::Live, 9);
        assert!(text.contains("  50.0 %") && text.contains("  -50.0 %"), "{text}");
        assert_eq!(folded(&profile, What::Live), "0x1000 10000500\n");
        assert!(left_out(&profile, What::Live).unwrap().starts_with("without 1 stack that became less"));
        assert_eq!(left_out(&profile, What::Peak), None);
    }

    #[test]
    fn names_that_a_terminal_would_obey_are_spelled_out() {
        let bad = "\u{1b}[2J\u{9b}1m\r\u{202e}";
        let line = Line { function: bad.into(), file: bad.into(), line: 3 };
        let profile = Profile {
            modules: vec![Module { path: format!("/bin/{bad}"), build_id: String::new(), start: 0, end: 9 }],
            places: vec![
                Place { module: None, address: 1, lines: vec![line] },
                Place { module: Some(0), address: 2, lines: Vec::new() },
            ],
            samples: vec![
                Sample { stack: vec![0, 1], numbers: [i64::MAX; 11] },
                Sample { stack: vec![0], numbers: [i64::MIN; 11] },
            ],
            notes: vec![bad.into()],
            ..Profile::default()
        };
        for text in [table(&profile, What::Live, 1), table(&profile, What::Freed, 9), folded(&profile, What::Live)] {
            assert!(
                !text.is_empty() && !text.chars().any(|one| one != '\n' && (one.is_control() || one == '\u{202e}')),
                "{text:?}"
            );
        }
        assert!(table(&profile, What::Live, 9).contains("\\u{1b}[2J\\u{9b}1m\\r\\u{202e}+0x2"));
    }
}
