//! A profile as the tool has it: stacks of named code, and what each of them allocated.
//!
//! Addresses are those in the files, not where the loader put these: so profiles of several processes, and of other days,
//! are added and compared by them.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::time::SystemTime;

use crate::output::shown;

/// What a site is asked for: each is a number of every sample. The first four are those of Go's heap profiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum What {
    /// How many blocks were ever allocated
    #[value(name = "allocated-blocks")]
    AllocatedBlocks,
    /// All that was ever allocated
    Allocated,
    /// How many blocks are not freed
    #[value(name = "live-blocks")]
    LiveBlocks,
    /// What is not freed
    Live,
    /// How many blocks were live at the peak
    #[value(name = "peak-blocks")]
    PeakBlocks,
    /// What was live when all together was most
    Peak,
    /// What was freed again: the most churn
    Freed,
    /// How many blocks were freed again: what a pool would spare
    #[value(name = "freed-blocks")]
    FreedBlocks,
    /// What live blocks keep from going, as it is on their pages, beyond their size; SNUG_PROFILE_BYTES=1 must have been set
    Pinned,
}

/// The numbers that a profile keeps for a stack: name, unit.
pub const KEPT: [(&str, &str); 11] = [
    ("alloc_objects", "count"),
    ("alloc_space", "bytes"),
    ("inuse_objects", "count"),
    ("inuse_space", "bytes"),
    ("peak_objects", "count"),
    ("peak_space", "bytes"),
    ("alloc_variance", "KiB^2"),
    ("inuse_variance", "KiB^2"),
    ("alloc_samples", "count"),
    ("inuse_samples", "count"),
    ("pinned_space", "bytes"),
];
const ALLOC_VARIANCE: usize = 6;
const INUSE_VARIANCE: usize = 7;
pub const PINNED: usize = 10;

/// What is said of a difference; a file of one has it among its notes.
pub const DIFFERENCE: &str = "a difference: what the later profile has more, and with - what it has less";

pub type Numbers = [i64; KEPT.len()];

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Module {
    pub path: String,
    pub build_id: String,
    /// Its code, by the addresses in its file.
    pub start: u64,
    pub end: u64,
}

/// A function that code is part of; of inlined ones there are several for one place.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Line {
    pub function: String,
    pub file: String,
    pub line: i64,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// Of `modules`.
    pub module: Option<usize>,
    pub address: u64,
    /// The innermost first; empty: nobody knows its name.
    pub lines: Vec<Line>,
}

#[derive(Debug, Clone)]
pub struct Sample {
    /// Of `places`; the innermost first.
    pub stack: Vec<usize>,
    pub numbers: Numbers,
}

#[derive(Debug, Clone, Default)]
pub struct Profile {
    pub modules: Vec<Module>,
    pub places: Vec<Place>,
    pub samples: Vec<Sample>,
    /// Bytes between two marks; 0 or 1: every allocation was looked at.
    pub mean: i64,
    /// When it was taken, if that is known.
    pub taken: Option<SystemTime>,
    /// Whether it is what one profile has more than another.
    pub is_difference: bool,
    /// Samples for which there was no room, and all else that a reader should know.
    pub notes: Vec<String>,
}

impl What {
    pub fn of(self, numbers: &Numbers) -> i64 {
        match self {
            What::AllocatedBlocks => numbers[0],
            What::Allocated => numbers[1],
            What::LiveBlocks => numbers[2],
            What::Live => numbers[3],
            What::PeakBlocks => numbers[4],
            What::Peak => numbers[5],
            What::Freed => numbers[1].saturating_sub(numbers[3]),
            What::FreedBlocks => numbers[0].saturating_sub(numbers[2]),
            What::Pinned => numbers[PINNED],
        }
    }

    /// The standard error of that, as far as it is known. Sums of numbers have the sum of variances.
    pub fn error_of(self, numbers: &Numbers) -> Option<f64> {
        let variance = match self {
            What::Allocated => numbers[ALLOC_VARIANCE],
            What::Live => numbers[INUSE_VARIANCE],
            _ => return None,
        };
        Some((variance.unsigned_abs() as f64).sqrt() * 1024.0)
    }

    pub fn is_bytes(self) -> bool {
        matches!(self, What::Allocated | What::Live | What::Peak | What::Freed | What::Pinned)
    }

    pub fn words(self) -> &'static str {
        match self {
            What::AllocatedBlocks => "blocks allocated",
            What::Allocated => "allocated",
            What::LiveBlocks => "live blocks",
            What::Live => "live",
            What::PeakBlocks => "blocks at the peak",
            What::Peak => "live at the peak",
            What::Freed => "allocated and freed",
            What::FreedBlocks => "blocks allocated and freed",
            What::Pinned => "pinned by live blocks",
        }
    }
}

impl Profile {
    /// Whether any site has some of it. In a difference the sum of all may be 0 although sites differ.
    pub fn has(&self, what: What) -> bool {
        self.samples.iter().any(|sample| what.of(&sample.numbers) != 0)
    }

    /// Whether all that is pinned is in it: of samples nobody knows, and what is live pins something, so where nothing is
    /// pinned it was not looked at.
    pub fn knows_pinned(&self) -> bool {
        self.mean <= 1 && (self.has(What::Pinned) || !self.has(What::Live))
    }

    /// What shares are of: all that sites have of it, or in a difference, in which some have less, all changes.
    pub fn whole(&self, what: What) -> f64 {
        self.samples.iter().map(|sample| (what.of(&sample.numbers) as f64).abs()).sum()
    }

    pub fn totals(&self) -> Numbers {
        let mut totals = Numbers::default();
        self.samples.iter().for_each(|sample| add(&mut totals, &sample.numbers, 1));
        totals
    }

    /// Adds another profile, `times` over: 1, or -1 for what grew since it.
    pub fn add(&mut self, other: &Profile, times: i64) {
        let knows_pinned = self.knows_pinned() && other.knows_pinned();
        for (sample, at) in other.samples.iter().zip(self.join(other)) {
            add(&mut self.samples[at].numbers, &sample.numbers, times);
        }
        if !knows_pinned {
            self.samples.iter_mut().for_each(|sample| sample.numbers[PINNED] = 0);
        }
        self.is_difference |= times < 0;
        self.mean = self.mean.max(other.mean);
        self.taken = self.taken.max(other.taken);
        self.notes.extend(other.notes.iter().filter(|note| !self.notes.contains(note)).cloned().collect::<Vec<_>>());
    }

    /// Takes in the stacks of another profile, those that are new with zeros. Where each of its samples is now.
    pub fn join(&mut self, other: &Profile) -> Vec<usize> {
        let mut modules: HashMap<Module, usize> = number(&self.modules);
        let mut places: HashMap<Place, usize> = number(&self.places);
        let mut stacks: HashMap<Vec<usize>, usize> =
            self.samples.iter().enumerate().map(|(place, sample)| (sample.stack.clone(), place)).collect();
        let new_modules: Vec<usize> =
            other.modules.iter().map(|module| put(&mut modules, &mut self.modules, module.clone())).collect();
        let mut put_place = |place: &Place| {
            let module = place.module.map(|module| new_modules[module]);
            put(&mut places, &mut self.places, Place { module, ..place.clone() })
        };
        let new_places: Vec<usize> = other.places.iter().map(&mut put_place).collect();
        let mut place_of = |sample: &Sample| {
            let stack: Vec<usize> = sample.stack.iter().map(|&place| new_places[place]).collect();
            let place = *stacks.entry(stack.clone()).or_insert(self.samples.len());
            if place == self.samples.len() {
                self.samples.push(Sample { stack, numbers: Numbers::default() });
            }
            place
        };
        other.samples.iter().map(&mut place_of).collect()
    }

    /// A name for each frame of a stack, the innermost first, inlined ones included; as it may be shown, for code and
    /// files have the names that others gave them.
    pub fn names(&self, stack: &[usize]) -> Vec<String> {
        stack.iter().flat_map(|&place| self.names_at(place)).collect()
    }

    fn names_at(&self, place: usize) -> Vec<String> {
        let Place { module, address, lines } = &self.places[place];
        if !lines.is_empty() {
            return lines.iter().map(|line| shown(&line.function)).collect();
        }
        match module.map(|module| self.modules[module].path.as_str()) {
            Some(path) => vec![format!("{}+{address:#x}", shown(path.rsplit('/').next().unwrap_or(path)))],
            None if *address <= 1 => vec!["[deeper]".to_string()],
            None => vec![format!("{address:#x}")],
        }
    }

    /// Samples with their numbers, the largest first.
    pub fn sorted(&self, what: What) -> Vec<&Sample> {
        let mut samples: Vec<&Sample> = self.samples.iter().filter(|sample| what.of(&sample.numbers) != 0).collect();
        samples.sort_by_key(|sample| (Reverse(what.of(&sample.numbers)), sample.stack.clone()));
        samples
    }
}

/// The variances of a difference add up, all else is taken off.
pub fn add(numbers: &mut Numbers, more: &Numbers, times: i64) {
    for (place, (number, more)) in numbers.iter_mut().zip(more).enumerate() {
        let variance = place == ALLOC_VARIANCE || place == INUSE_VARIANCE;
        *number = number.saturating_add(if variance { *more } else { more.saturating_mul(times) });
    }
}

fn number<T: Clone + Eq + std::hash::Hash>(list: &[T]) -> HashMap<T, usize> {
    list.iter().enumerate().map(|(place, entry)| (entry.clone(), place)).collect()
}

fn put<T: Clone + Eq + std::hash::Hash>(known: &mut HashMap<T, usize>, list: &mut Vec<T>, entry: T) -> usize {
    *known.entry(entry.clone()).or_insert_with(|| {
        list.push(entry);
        list.len() - 1
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(functions: &[&str], numbers: &[i64]) -> Profile {
        let line = |name: &&str| Line { function: name.to_string(), file: String::new(), line: 0 };
        let place = |name| Place { module: None, address: 4096, lines: vec![line(name)] };
        let sample = |(place, &bytes)| {
            let mut numbers = Numbers::default();
            (numbers[1], numbers[3], numbers[7]) = (2 * bytes, bytes, 16);
            Sample { stack: vec![place], numbers }
        };
        Profile {
            places: functions.iter().map(place).collect(),
            samples: numbers.iter().enumerate().map(sample).collect(),
            ..Profile::default()
        }
    }

    #[test]
    fn what_one_profile_does_not_know_their_sum_does_not_know() {
        let mut exact = profile(&["a", "b"], &[10, 20]);
        exact.samples[0].numbers[PINNED] = 4000;
        assert!(exact.knows_pinned() && !profile(&["b"], &[30]).knows_pinned());
        let mut sum = Profile::default();
        sum.add(&exact, 1);
        assert_eq!((sum.knows_pinned(), What::Pinned.of(&sum.totals())), (true, 4000));
        sum.add(&profile(&["b"], &[30]), 1);
        assert_eq!((sum.knows_pinned(), What::Pinned.of(&sum.totals())), (false, 0));
    }

    #[test]
    fn profiles_add_up_and_differ() {
        let mut sum = profile(&["a", "b"], &[10, 20]);
        sum.add(&profile(&["c", "b"], &[5, 7]), 1);
        let seen: Vec<_> =
            sum.sorted(What::Live).iter().map(|s| (sum.names(&s.stack).concat(), What::Live.of(&s.numbers))).collect();
        assert_eq!(seen, [("b".to_string(), 27), ("a".to_string(), 10), ("c".to_string(), 5)]);
        sum.add(&profile(&["b"], &[30]), -1);
        let b = sum.samples.iter().find(|sample| sum.names(&sample.stack) == ["b"]).unwrap();
        assert_eq!((What::Live.of(&b.numbers), What::Freed.of(&b.numbers)), (-3, -3));
        assert!(sum.is_difference && !profile(&["b"], &[30]).is_difference);
        assert_eq!(What::Live.error_of(&b.numbers), Some(48f64.sqrt() * 1024.0));
    }
}
