//! Which sites grow: what one might be leaking, from snapshots of a program over time.
//!
//! A site grows steadily if three things hold. Its last number is above its first by more than three standard errors. Of
//! any two snapshots between which it changed, in nine of ten cases the later one has more: what goes up and down with
//! the program's work does not. And since the middle one it has grown at least half as fast as on the whole: what is
//! filled once and stays has not.
//!
//! The standard error of a difference is that of both numbers together. Samples that are live in both are the same ones,
//! so it is less in truth: the rule keeps silent rather than cry wolf.

use std::cmp::Reverse;
use std::fmt::Write;
use std::time::{Duration, SystemTime};

use indicatif::BinaryBytes;

use super::model::{Profile, Sample, What};
use super::show::{self, amount};
use crate::output::counted;

/// Fewer have no middle.
pub const SNAPSHOTS_LEAST: usize = 3;

/// What is proposed to who looks for less: one byte in so many.
pub const FINE: i64 = 4096;

/// Parts of a site's life that its line shows.
const SHOWN: usize = 6;

struct Growing<'a> {
    sample: &'a Sample,
    /// Live bytes at each snapshot.
    bytes: Vec<i64>,
    error: f64,
}

impl Growing<'_> {
    fn growth(&self) -> i64 {
        self.bytes.last().unwrap_or(&0).saturating_sub(*self.bytes.first().unwrap_or(&0))
    }
}

/// `times`: of the snapshots, in any unit.
fn is_steady(bytes: &[i64], times: &[f64], error: f64) -> bool {
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else { return false };
    let growth = last.saturating_sub(*first);
    let (mut more, mut less) = (0, 0);
    for (at, one) in bytes.iter().enumerate() {
        more += bytes[at + 1..].iter().filter(|later| *later > one).count();
        less += bytes[at + 1..].iter().filter(|later| *later < one).count();
    }
    let (middle, end) = ((bytes.len() - 1) / 2, bytes.len() - 1);
    let of_time = (times[end] - times[middle]) / (times[end] - times[0]).max(f64::MIN_POSITIVE);
    let goes_on = last.saturating_sub(bytes[middle]) as f64 >= 0.5 * of_time * growth as f64;
    growth > 0 && growth as f64 > 3.0 * error && more >= 9 * less && goes_on
}

/// What the snapshots, the earliest first, say about growth.
pub fn text(snapshots: &[Profile], top: usize) -> String {
    let mut all = Profile::default();
    let places: Vec<Vec<usize>> = snapshots.iter().map(|snapshot| all.join(&by_lines(snapshot))).collect();
    let mut bytes = vec![vec![0i64; snapshots.len()]; all.samples.len()];
    let mut variances = vec![0.0; all.samples.len()];
    for (at, (snapshot, places)) in snapshots.iter().zip(&places).enumerate() {
        for (sample, &place) in snapshot.samples.iter().zip(places) {
            bytes[place][at] = bytes[place][at].saturating_add(What::Live.of(&sample.numbers));
            if at == 0 || at + 1 == snapshots.len() {
                variances[place] += What::Live.error_of(&sample.numbers).unwrap_or(0.0).powi(2);
            }
        }
    }
    let of_site = all.samples.iter().zip(bytes).zip(variances);
    let of_site = of_site.map(|((sample, bytes), variance)| Growing { sample, bytes, error: variance.sqrt() });
    let times = times_of(snapshots);
    let mut growing: Vec<Growing> = of_site.filter(|site| is_steady(&site.bytes, &times, site.error)).collect();
    growing.sort_by_key(|site| Reverse(site.growth()));
    written(&all, &growing, snapshots, top)
}

/// Calls on one line are one site, as in the table: a compiler makes several of one that stands in a loop, and each of them
/// has a part of what the site has.
fn by_lines(snapshot: &Profile) -> Profile {
    let mut named = snapshot.clone();
    for place in named.places.iter_mut().filter(|place| !place.lines.is_empty()) {
        place.address = 0;
    }
    named
}

/// Seconds since the first; where that is not known, as if they were evenly apart.
fn times_of(snapshots: &[Profile]) -> Vec<f64> {
    let first = snapshots.first().and_then(|first| first.taken);
    let since = |snapshot: &Profile| Some(snapshot.taken?.duration_since(first?).ok()?.as_secs_f64());
    let known: Option<Vec<f64>> = snapshots.iter().map(since).collect();
    known.unwrap_or_else(|| (0..snapshots.len()).map(|at| at as f64).collect())
}

fn written(all: &Profile, growing: &[Growing], snapshots: &[Profile], top: usize) -> String {
    let time = snapshots.first().zip(snapshots.last()).and_then(|(first, last)| time_between(first.taken, last.taken));
    let over = time.map_or(String::new(), |time| format!(" over {}", humantime::format_duration(time)));
    let mut out = format!("{}{over}: ", counted(snapshots.len(), "snapshot"));
    let _ = match growing.len() {
        0 => writeln!(out, "no site grows steadily"),
        1 => writeln!(out, "1 site grows steadily"),
        count => writeln!(out, "{count} sites grow steadily, the fastest first"),
    };
    if let (true, Some(hidden)) = (growing.is_empty(), hidden_growth(snapshots)) {
        let _ = writeln!(out, "{hidden}");
    }
    for site in growing.iter().take(top) {
        let growth = site.growth();
        let error = if site.error >= 1.0 { format!(" ± {}", BinaryBytes(site.error as u64)) } else { String::new() };
        let speed = time.filter(|time| !time.is_zero()).map_or(String::new(), |time| {
            let speed = growth as f64 / time.as_secs_f64();
            format!("; {} more each hour", BinaryBytes((3600.0 * speed) as u64))
        });
        let _ = writeln!(out, "\n+{}{error}{speed}", amount(What::Live, growth));
        let last = site.bytes.len() - 1;
        let mut shown: Vec<usize> = (0..SHOWN).map(|part| part * last / (SHOWN - 1)).collect();
        shown.dedup();
        let shown: Vec<String> = shown.into_iter().map(|at| amount(What::Live, site.bytes[at])).collect();
        let _ = writeln!(out, "    live {}", shown.join(", "));
        show::stack(&mut out, all, site.sample);
    }
    out
}

/// That none is named is no proof that nothing grows. Of a site that has grown from nothing by `n` samples the error is the
/// root of `n`, so with nine or fewer it is within three of them, however steadily they came.
fn hidden_growth(snapshots: &[Profile]) -> Option<String> {
    let coarsest = snapshots.iter().max_by_key(|snapshot| snapshot.mean).filter(|coarsest| coarsest.mean > 1)?;
    let least = BinaryBytes(coarsest.mean.unsigned_abs().saturating_mul(9));
    let finer = if coarsest.mean > FINE { FINE } else { 1 };
    let rate = show::rate(coarsest);
    Some(format!(
        "{rate} was looked at, so growth of less than about {least} in small blocks is not told \
         from chance: a leak may be slower; with SNUG_PROFILE_BYTES={finer} before the command smaller growth is seen"
    ))
}

fn time_between(first: Option<SystemTime>, last: Option<SystemTime>) -> Option<Duration> {
    let time = last?.duration_since(first?).ok()?;
    Some(Duration::from_secs_f64((time.as_secs_f64() * 10.0).round() / 10.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_steady_evenly(bytes: &[i64], error: f64) -> bool {
        is_steady(bytes, &(0..bytes.len()).map(|at| at as f64).collect::<Vec<_>>(), error)
    }

    #[test]
    fn calls_on_one_line_are_one_site() {
        use super::super::model::{Line, Numbers, Place};
        let line = || Line { function: "leak".to_string(), file: "leak.c".to_string(), line: 7 };
        let snapshot = |bytes: i64| {
            let place = |address| Place { module: None, address, lines: vec![line()] };
            let mut numbers = Numbers::default();
            numbers[3] = bytes;
            let samples = (0..3).map(|at| Sample { stack: vec![at], numbers }).collect();
            Profile { places: [4096, 4100, 4104].map(place).to_vec(), samples, ..Profile::default() }
        };
        let said = text(&[snapshot(100), snapshot(200), snapshot(300), snapshot(400)], 10);
        assert!(said.contains("1 site grows steadily") && said.contains("+900 B"), "{said}");
    }

    #[test]
    fn what_samples_are_too_few_for_is_said() {
        let said = |mean| text(&[0, 1, 2].map(|_| Profile { mean, ..Profile::default() }), 10);
        let coarse = said(512 * 1024);
        assert!(coarse.contains("no site grows steadily\none byte in 512.00 KiB was looked at"), "{coarse}");
        assert!(coarse.contains("less than about 4.50 MiB") && coarse.contains("SNUG_PROFILE_BYTES=4096 "), "{coarse}");
        let fine = said(4096);
        assert!(fine.contains("less than about 36.00 KiB") && fine.contains("SNUG_PROFILE_BYTES=1 "), "{fine}");
        assert!(said(1).ends_with("no site grows steadily\n"), "every block was looked at");
    }

    #[test]
    fn what_grows_and_what_does_not() {
        assert!(is_steady_evenly(&[0, 10, 20, 30, 40], 0.0));
        assert!(is_steady_evenly(&[0, 0, 10, 10, 20, 20, 30], 9.0));
        assert!(!is_steady_evenly(&[0, 0, 10, 10, 20, 20, 30], 11.0), "it may be chance");
        assert!(!is_steady_evenly(&[0, 40, 40, 40, 40, 40], 0.0), "it is filled once");
        assert!(!is_steady_evenly(&[0, 30, 5, 35, 10, 40], 0.0), "it goes up and down");
        assert!(!is_steady_evenly(&[40, 30, 20, 10], 0.0), "it shrinks");
        assert!(!is_steady_evenly(&[7, 7, 7], 0.0) && !is_steady_evenly(&[], 0.0));
        let late = [0.0, 9.0, 10.0];
        assert!(is_steady(&[0, 90, 100], &late, 0.0), "most of the time was before the middle one");
        assert!(!is_steady(&[0, 98, 99], &late, 0.0) && !is_steady(&[0, 99, 100], &[0.0, 1.0, 10.0], 0.0));
    }
}
