//! The sites of a running program, the largest first, as `snug top` shows them; and names for some of one that has ended,
//! for its picture.

use std::collections::HashMap;

use super::gather::{profile_of, profile_of_sites, Before};
use super::model::What;
use super::symbols::Symbols;
use crate::live::profile::{self, Raw};
use crate::live::Program;

/// So many have names; further ones are too small to be looked for.
const SITES_MOST: usize = 200;

/// Calls in a site's name: what a line has room for.
const CALLS: usize = 8;

pub struct Site {
    /// By which it is known again in the next look.
    pub key: u64,
    pub live_bytes: u64,
    pub live_blocks: u64,
    pub allocated_bytes: u64,
    /// The innermost call first.
    pub calls: String,
}

/// What gives them names, kept from look to look.
pub struct Sites(Symbols);

impl Sites {
    pub fn new() -> Sites {
        Sites(Symbols::new())
    }

    /// None: the program has no profile.
    pub fn look(&mut self, program: &Program) -> Option<Vec<Site>> {
        let raw = program.profile()?;
        let keys: Vec<u64> = raw.sites.iter().map(|site| site.stack).collect();
        let mut profile = profile_of(&raw, &Before::new());
        let mut order: Vec<usize> = (0..profile.samples.len()).collect();
        order.sort_by_key(|&at| std::cmp::Reverse(What::Live.of(&profile.samples[at].numbers)));
        order.truncate(SITES_MOST);
        self.0.resolve(&mut profile);
        let whole = |number: i64| u64::try_from(number).unwrap_or(0);
        let site = |at: usize| {
            let sample = &profile.samples[at];
            let mut calls = profile.names(&sample.stack);
            calls.truncate(CALLS);
            Site {
                key: keys[at],
                live_bytes: whole(What::Live.of(&sample.numbers)),
                live_blocks: whole(What::LiveBlocks.of(&sample.numbers)),
                allocated_bytes: whole(What::Allocated.of(&sample.numbers)),
                calls: calls.join(" < "),
            }
        };
        Some(order.into_iter().map(site).collect())
    }
}

/// By their stacks: the functions of these sites, the innermost first.
pub fn names_of(raw: &Raw, stacks: &[u64]) -> HashMap<u64, Vec<String>> {
    let sites: Vec<profile::Site> = raw.sites.iter().filter(|site| stacks.contains(&site.stack)).copied().collect();
    let mut symbols = Symbols::new();
    let mut profile = profile_of_sites(raw, &sites, &Before::new());
    symbols.resolve(&mut profile);
    sites.iter().zip(&profile.samples).map(|(site, sample)| (site.stack, profile.names(&sample.stack))).collect()
}
