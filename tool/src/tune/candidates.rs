//! What is tried: the default, each preset, each option that matters with a value well below and one well above its
//! default, and later what helped, together.

use std::collections::BTreeMap;
use std::path::Path;

use crate::bench::allocators::{Allocator, SNUG};
use crate::live::options;

/// One option each. Those that say what is reported or checked are left out, and those whose effect is a limit.
const SINGLE: [(&str, &str); 15] = [
    ("SNUG_PRESET", "lean"),
    ("SNUG_PRESET", "fast"),
    ("SNUG_THREAD_CACHE", "256K"),
    ("SNUG_THREAD_CACHE", "16M"),
    ("SNUG_DEPOT", "64K"),
    ("SNUG_DEPOT", "16M"),
    ("SNUG_DIRTY", "0"),
    ("SNUG_DIRTY", "64M"),
    ("SNUG_PURGE_DELAY", "0"),
    ("SNUG_PURGE_DELAY", "-1"),
    ("SNUG_CACHE_SEGMENTS", "0"),
    ("SNUG_ARENAS", "1"),
    ("SNUG_HUGE_PAGES", "always"),
    ("SNUG_HUGE_PAGES", "never"),
    ("SNUG_PREFAULT", "1M"),
];

const PRESET: &str = "SNUG_PRESET";

/// Settings of snug; none are the default. Sorted by name, one value each.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Candidate(pub BTreeMap<String, String>);

impl Candidate {
    fn of(name: &str, value: &str) -> Candidate {
        Candidate(BTreeMap::from([(name.into(), value.into())]))
    }

    /// As it is written before a command.
    pub fn words(&self) -> String {
        let words: Vec<String> = self.0.iter().map(|(name, value)| format!("{name}={value}")).collect();
        words.join(" ")
    }

    /// What it is called in tables; the default has the name of snug itself.
    pub fn name(&self) -> String {
        if self.0.is_empty() {
            return SNUG.into();
        }
        self.words()
    }

    pub fn allocator(&self, library: &Path) -> Allocator {
        Allocator {
            name: self.name(),
            library: Some(library.to_path_buf()),
            version: String::new(),
            settings: self.0.clone().into_iter().collect(),
        }
    }

    /// The settings of all, the first's where they differ.
    pub fn together<'a>(candidates: impl IntoIterator<Item = &'a Candidate>) -> Candidate {
        let mut all = BTreeMap::new();
        for (name, value) in candidates.into_iter().flat_map(|candidate| &candidate.0) {
            all.entry(name.clone()).or_insert_with(|| value.clone());
        }
        Candidate(all).without_idle()
    }

    /// Without options that change nothing, such as those that the preset implies.
    fn without_idle(mut self) -> Candidate {
        let effect = |candidate: &Candidate| {
            options::effect(candidate.0.iter().map(|(name, value)| (name.into(), value.into())))
        };
        let whole = effect(&self);
        for name in self.0.keys().filter(|&name| name != PRESET).cloned().collect::<Vec<_>>() {
            let mut less = self.clone();
            less.0.remove(&name);
            // The preset itself is an option, too: it stays, and so the values are what is compared.
            if effect(&less) == whole {
                self = less;
            }
        }
        self
    }
}

/// The default first, then what this library knows; and what it does not know, for a word about it.
pub fn singles() -> (Vec<Candidate>, Vec<String>) {
    let (mut known, mut unknown) = (vec![Candidate::default()], Vec::new());
    for (name, value) in SINGLE {
        let candidate = Candidate::of(name, value);
        if candidate.clone().without_idle() != candidate {
            continue; // the default already
        }
        match options::is_known(name, value) {
            true => known.push(candidate),
            false => unknown.push(candidate.words()),
        }
    }
    (known, unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_what_can_be_written_before_a_command() {
        assert_eq!(Candidate::default().name(), "snug");
        let two = Candidate::together(&[Candidate::of("SNUG_DIRTY", "1"), Candidate::of("SNUG_ARENAS", "2")]);
        assert_eq!(two.name(), "SNUG_ARENAS=2 SNUG_DIRTY=1");
    }

    #[test]
    fn of_two_values_the_first_counts() {
        let of = Candidate::of;
        let all = [of("SNUG_DEPOT", "1"), of("SNUG_DIRTY", "3"), of("SNUG_DEPOT", "2")];
        assert_eq!(Candidate::together(&all).name(), "SNUG_DEPOT=1 SNUG_DIRTY=3");
    }

    #[test]
    fn what_the_preset_implies_is_left_out() {
        let of = Candidate::of;
        let all = [of("SNUG_PRESET", "fast"), of("SNUG_DIRTY", "64M"), of("SNUG_DEPOT", "16M")];
        assert_eq!(Candidate::together(&all).name(), "SNUG_DEPOT=16M SNUG_PRESET=fast");
        let all = [of("SNUG_PRESET", "lean"), of("SNUG_DIRTY", "64M")];
        assert_eq!(Candidate::together(&all).name(), "SNUG_DIRTY=64M SNUG_PRESET=lean");
    }
}
