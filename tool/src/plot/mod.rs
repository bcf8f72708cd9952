//! `snug run --plot=FILE.svg`: a command's memory over time as a picture, from what was seen of it from outside (watch).
//!
//! Above stands the process whose details are wanted, or of several the one with the highest peak; below, if there were
//! others, the resident memory of all of them, one upon the other.

mod draw;
mod stack;

use std::collections::HashMap;
use std::path::Path;

use anyhow::{bail, Result};

use crate::live::profile::Raw;
use crate::watch::{Children, Watched};

/// What says, by their stacks, which functions these sites of a profile are in, the innermost first.
pub type SiteNames = fn(&Raw, &[u64]) -> HashMap<u64, Vec<String>>;

/// Pictures are SVG, which any browser shows and most programs for pictures read; a name that promises another format
/// would make a file that nothing opens.
pub fn ensure_svg(plot: &Path) -> Result<()> {
    match plot.extension() {
        Some(ending) if ending.eq_ignore_ascii_case("svg") => Ok(()),
        None if !plot.is_file() && plot.exists() => Ok(()), // such as /dev/stdout
        _ => bail!("--plot={}: pictures are SVG, so the name must end in .svg", plot.display()),
    }
}

/// The picture.
pub fn svg(watched: &Watched, children: &Children, names: SiteNames) -> Result<String> {
    let chosen = watched.chosen(children).into_iter().max_by_key(|process| process.peak);
    // Where snug is in none, there is still what the kernel says.
    let Some(process) = chosen.or(watched.processes.iter().max_by_key(|process| process.peak)) else {
        bail!("there is nothing to draw");
    };
    draw::svg(process, &watched.processes, names)
}
