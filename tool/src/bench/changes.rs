//! `snug bench --compare OLD NEW`: what became slower or larger from one lab to another, beyond noise.
//!
//! The two were measured at different times, and a machine is faster at one time than at another. The system's malloc
//! ran in both, beside each of the others: so it is the times in units of the system's, of the same round, that are
//! compared. Memory does not depend on the hour and is compared as it is.

use std::fmt::Write;
use std::process::ExitCode;

use anyhow::{bail, Result};
use comfy_table::presets::UTF8_FULL_CONDENSED;

use super::allocators::{SNUG, SYSTEM};
use super::report::tables::with_interval;
use super::results::{Figures, Lab, RowResult, Series};
use super::stats::{self, Estimate};
use crate::output;
use crate::refusal::Refusal;

/// Changes smaller than this are not reported, however sure.
const LEAST: f64 = 0.02;

#[derive(Debug)]
struct Change {
    row: String,
    allocator: String,
    verdict: &'static str,
    /// New over old.
    ratio: Estimate,
}

pub fn run(old: &Lab, new: &Lab) -> Result<ExitCode> {
    let (changes, compared) = find(old, new);
    if compared == 0 {
        let message = "the two have no figures in common: no row and allocator of the one is in the other".to_string();
        bail!(Refusal::misuse(message));
    }
    let mut out = String::new();
    for warning in warnings(old, new) {
        let _ = writeln!(out, "Note: {warning}");
    }
    if !changes.is_empty() {
        let _ = writeln!(out, "{}", table(&changes));
    }
    let _ = writeln!(
        out,
        "{} of {compared} figures changed by more than {:.0} % and beyond chance (95 %). Ratios are new over old; times \
         are in units of the system's malloc of the same round.",
        changes.len(),
        LEAST * 100.0
    );
    output::print(out.as_bytes())?;
    let worse = changes.iter().any(|change| change.allocator.starts_with(SNUG) && change.ratio.median > 1.0);
    Ok(if worse { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn table(changes: &[Change]) -> comfy_table::Table {
    let mut table = comfy_table::Table::new();
    table.load_preset(UTF8_FULL_CONDENSED);
    table.set_header(["row", "allocator", "became", "new / old"]);
    for change in changes {
        table.add_row([&change.row, &change.allocator, change.verdict, &with_interval(&change.ratio)]);
    }
    table
}

/// What makes the comparison weaker than it looks.
fn warnings(old: &Lab, new: &Lab) -> Vec<String> {
    let mut said = Vec::new();
    if old.machine != new.machine {
        said.push("the two were measured on different machines or systems".to_string());
    }
    if old.settings.quick != new.settings.quick {
        said.push("one of the two is a quick run, whose sizes are smaller".to_string());
    }
    if old.settings.rounds.min(new.settings.rounds) < stats::LEAST_FOR_INTERVAL as u32 {
        said.push(format!("with fewer than {} rounds, nothing is beyond chance", stats::LEAST_FOR_INTERVAL));
    }
    let absent = |from: &Lab, to: &Lab| from.rows.iter().filter(|row| row_of(to, row).is_none()).count();
    let (gone, added) = (absent(old, new), absent(new, old));
    if gone + added > 0 {
        said.push(format!("{gone} rows are in the old one only, {added} in the new one only"));
    }
    said
}

fn row_of<'a>(lab: &'a Lab, row: &RowResult) -> Option<&'a RowResult> {
    lab.rows.iter().find(|other| other.row.name == row.row.name)
}

/// The changes, and how many figures were compared.
fn find(old: &Lab, new: &Lab) -> (Vec<Change>, usize) {
    let mut changes = Vec::new();
    let mut compared = 0;
    for new_row in &new.rows {
        let Some(old_row) = row_of(old, new_row) else { continue };
        for (place, allocator) in new.allocators.iter().enumerate() {
            let Some(old_place) = old.place_of(&allocator.name) else { continue };
            let pair = [(old, old_row, old_place), (new, new_row, place)];
            for (kind, verdicts) in [("time", ["slower", "faster"]), ("peak", ["larger", "smaller"])] {
                let [before, after] = pair.map(|(lab, row, place)| values(lab, row, place, kind));
                let (Some(before), Some(after)) = (before, after) else { continue };
                compared += 1;
                let ratio = stats::estimate_quotient(&after, &before);
                if let Some(verdict) = judge(&ratio, verdicts) {
                    let row = new_row.row.name.clone();
                    changes.push(Change { row, allocator: allocator.name.clone(), verdict, ratio });
                }
            }
        }
    }
    (changes, compared)
}

fn judge(ratio: &Estimate, [worse, better]: [&'static str; 2]) -> Option<&'static str> {
    match ratio.median {
        median if median > 1.0 + LEAST && ratio.is_above(1.0) => Some(worse),
        median if median < 1.0 - LEAST && ratio.is_below(1.0) => Some(better),
        _ => None,
    }
}

fn values(lab: &Lab, row: &RowResult, place: usize, kind: &str) -> Option<Vec<f64>> {
    let series = &row.series[place];
    let values = match (kind, lab.place_of(SYSTEM)) {
        ("time", Some(system)) if system != place => in_units_of(series, &row.series[system]),
        ("time", _) => series.times(),
        _ => series.figures.iter().map(|figures| figures.peak_bytes as f64).collect(),
    };
    (!values.is_empty()).then_some(values)
}

fn in_units_of(series: &Series, system: &Series) -> Vec<f64> {
    let same_round = |ours: &Figures| system.figures.iter().find(|figures| figures.round == ours.round);
    series.figures.iter().filter_map(|figures| Some(figures.time / same_round(figures)?.time)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::report::samples::{lab, series};
    use super::*;

    #[test]
    fn the_same_has_not_changed() {
        let (changes, compared) = find(&lab(), &lab());
        assert!(changes.is_empty(), "{changes:?}");
        assert_eq!(compared, 2 * 3 + 2 * 2);
        assert!(warnings(&lab(), &lab()).is_empty());
    }

    #[test]
    fn a_slower_and_larger_snug_is_found() {
        let mut new = lab();
        new.rows[1].series[1] = series(&[30.0, 30.3, 29.7], 32);
        let (changes, _) = find(&lab(), &new);
        let found: Vec<_> = changes.iter().map(|change| (change.allocator.as_str(), change.verdict)).collect();
        assert_eq!(found, [("snug", "slower"), ("snug", "larger")]);
        assert!((changes[0].ratio.median - 1.5).abs() < 0.01);
        let (back, _) = find(&new, &lab());
        assert_eq!(back.iter().map(|change| change.verdict).collect::<Vec<_>>(), ["faster", "smaller"]);
    }

    #[test]
    fn a_slower_machine_is_no_slower_snug() {
        let mut new = lab();
        for series in &mut new.rows[1].series {
            series.figures.iter_mut().for_each(|figures| figures.time *= 2.0);
        }
        let (changes, _) = find(&lab(), &new);
        assert_eq!(changes.iter().map(|change| change.allocator.as_str()).collect::<Vec<_>>(), ["system"]);
    }

    #[test]
    fn noise_is_no_change() {
        let (mut old, mut new) = (lab(), lab());
        old.rows[1].series[1] = series(&[20.0, 30.0, 10.0, 22.0], 16);
        new.rows[1].series[1] = series(&[21.0, 14.0, 33.0, 25.0], 16);
        assert!(find(&old, &new).0.is_empty());
    }

    #[test]
    fn what_weakens_a_comparison_is_said() {
        let mut new = lab();
        new.machine.kernel = "another".into();
        new.settings.quick = true;
        new.settings.rounds = 1;
        new.rows.pop();
        let text = warnings(&lab(), &new).join("\n");
        for part in ["different machines", "quick", "fewer than 3 rounds", "1 rows are in the old one only"] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
    }
}
