//! What a lab found: the figures of every run, by row and allocator, and where they come from. It is what the JSON file
//! holds, and all that reports are made of.

use std::collections::BTreeMap;

use anyhow::{ensure, Context, Result};
use serde::{Deserialize, Serialize};

use super::allocators::{self, Allocator, SNUG, SYSTEM};
use super::machine::Machine;
use super::runner::Measured;
use super::stats::{self, Estimate};

/// Raised when a reader of older files could misunderstand one.
pub const FORMAT: u32 = 1;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Lab {
    pub format: u32,
    /// The command that made it, as its title.
    pub title: String,
    /// The tool and the library inside it.
    pub version: String,
    /// UTC, RFC 3339.
    pub date: String,
    pub machine: Machine,
    pub settings: Settings,
    pub allocators: Vec<Allocator>,
    /// One line for each allocator, program or measure that is not here, and how to get it.
    pub missing: Vec<String>,
    pub rows: Vec<RowResult>,
    /// Why not all rounds are complete, if so.
    pub ended_early: Option<String>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Settings {
    /// The rounds that were begun.
    pub rounds: u32,
    pub quick: bool,
    /// Operations follow each other as they did in the program: then times say nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paced: bool,
}

/// One workload with its arguments.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// `family/variant`
    pub name: String,
    pub family: String,
    /// What it imitates, in a line.
    pub about: String,
    pub threads: u32,
    pub unit: Unit,
}

/// What `Figures::time` is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unit {
    /// Nanoseconds for each operation, by the workload's own clock.
    NsPerOperation,
    /// Seconds of the whole program.
    Seconds,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RowResult {
    pub row: Row,
    /// One for each allocator, in their order.
    pub series: Vec<Series>,
}

/// One row on one allocator.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Series {
    pub figures: Vec<Figures>,
    /// Of the last run.
    pub curve: Vec<Point>,
    /// From a run of its own, under strace: calls by name.
    pub system_calls: Option<BTreeMap<String, u64>>,
    /// For each operation, from runs of their own under callgrind.
    pub instructions: Option<f64>,
    pub failure: Option<String>,
}

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    pub round: u32,
    /// In the row's unit.
    pub time: f64,
    /// Of user and system together, in seconds, of the whole process.
    pub cpu_seconds: f64,
    /// Resident memory of the (largest) process.
    pub peak_bytes: u64,
    pub page_faults: u64,
    /// Resident bytes over requested ones, over the whole run; where at least MiB were requested.
    pub overhead: Option<f64>,
    /// What the workload measured besides, by name.
    pub further: BTreeMap<String, f64>,
}

/// Memory at a moment of a run. Without the program's own tables.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Point {
    pub ms: f64,
    pub resident_bytes: u64,
    /// What the program had asked for and not given back.
    pub live_bytes: u64,
}

impl Lab {
    /// Of snug, of the system's malloc or of an allocator that was named by --peer. That one of those cannot run a row
    /// that happen to be installed is a fact about it, and shown as one.
    pub fn has_failures(&self) -> bool {
        let failed = |row: &RowResult| {
            let mut pairs = row.series.iter().zip(&self.allocators);
            pairs.any(|(series, allocator)| series.failure.is_some() && !allocators::is_known(&allocator.name))
        };
        self.rows.iter().any(failed)
    }

    /// One more than the number of the last round.
    pub fn rounds_begun(&self) -> u32 {
        let figures = self.rows.iter().flat_map(|row| &row.series).flat_map(|series| &series.figures);
        figures.map(|figures| figures.round + 1).max().unwrap_or(0)
    }

    /// The rounds of the row with the fewest, and of that with the most. A row without any, as after --count, is left
    /// out.
    pub fn rounds_of_rows(&self) -> (usize, usize) {
        let rounds = |row: &RowResult| row.series.iter().map(|series| series.figures.len()).max().unwrap_or(0);
        let found = || self.rows.iter().map(rounds).filter(|&rounds| rounds > 0);
        (found().min().unwrap_or(0), found().max().unwrap_or(0))
    }

    pub fn take(&mut self, measured: Measured) {
        self.settings.rounds = measured.rounds;
        self.rows = measured.rows;
        self.ended_early = measured.ended_early;
    }

    /// Whether figures of another lab can stand beside those of this one.
    pub fn ensure_comparable(&self, other: &Lab) -> Result<()> {
        let names = |lab: &Lab| lab.allocators.iter().map(|allocator| allocator.name.clone()).collect::<Vec<_>>();
        ensure!(names(self) == names(other), "the results do not have the same allocators");
        ensure!(self.machine == other.machine, "the results are of different machines or systems");
        ensure!(self.version == other.version, "the results are of different versions of snug");
        ensure!(self.settings.quick == other.settings.quick, "one of the results is a quick run and one is not");
        ensure!(self.settings.paced == other.settings.paced, "one of the results is at a recorded pace and one is not");
        Ok(())
    }

    pub fn place_of(&self, name: &str) -> Option<usize> {
        self.allocators.iter().position(|allocator| allocator.name == name)
    }

    /// The allocator that others are compared with: snug, else the system's, else the first.
    pub fn reference(&self) -> usize {
        self.place_of(SNUG).or_else(|| self.place_of(SYSTEM)).unwrap_or(0)
    }
}

/// Labs that were made one after the other, of different rows, as one. They must be of one machine, version and set of
/// allocators, or their figures could not stand beside each other.
impl Lab {
    pub fn join(labs: Vec<Lab>) -> Result<Lab> {
        let mut labs = labs.into_iter();
        let mut all = labs.next().context("there is nothing to report")?;
        for lab in labs {
            all.ensure_comparable(&lab)?;
            for row in lab.rows {
                match all.rows.iter_mut().find(|other| other.row.name == row.row.name) {
                    None => all.rows.push(row),
                    Some(known) => known.take_in(row)?,
                }
            }
            all.missing.extend(lab.missing);
            all.settings.rounds = all.settings.rounds.min(lab.settings.rounds);
            all.ended_early = all.ended_early.or(lab.ended_early);
        }
        all.missing.sort();
        all.missing.dedup();
        Ok(all)
    }
}

impl RowResult {
    /// Adds instructions that were counted apart; a row that was measured twice is refused.
    fn take_in(&mut self, other: RowResult) -> Result<()> {
        for (mine, theirs) in self.series.iter_mut().zip(other.series) {
            let twice = !mine.figures.is_empty() && !theirs.figures.is_empty();
            ensure!(!twice, "{} is in more than one of the files", self.row.name);
            if mine.figures.is_empty() {
                let instructions = mine.instructions.or(theirs.instructions);
                *mine = Series { instructions, failure: mine.failure.take().or(theirs.failure.clone()), ..theirs };
            } else {
                mine.instructions = mine.instructions.or(theirs.instructions);
            }
        }
        Ok(())
    }
}

impl Series {
    pub fn times(&self) -> Vec<f64> {
        self.figures.iter().map(|figures| figures.time).collect()
    }

    /// The median of a figure over the rounds, if there is one.
    pub fn median_of(&self, value: impl Fn(&Figures) -> Option<f64>) -> Option<f64> {
        let values: Vec<f64> = self.figures.iter().filter_map(value).collect();
        (!values.is_empty()).then(|| stats::median(&values))
    }

    pub fn time(&self) -> Option<f64> {
        self.median_of(|figures| Some(figures.time))
    }

    pub fn peak_bytes(&self) -> Option<f64> {
        self.median_of(|figures| Some(figures.peak_bytes as f64))
    }

    pub fn overhead(&self) -> Option<f64> {
        self.median_of(|figures| figures.overhead)
    }

    pub fn page_faults(&self) -> Option<f64> {
        self.median_of(|figures| Some(figures.page_faults as f64))
    }

    /// A figure of this series over that of `ours` in the same round; nothing if they share no round.
    pub fn ratio_to(&self, ours: &Series, value: impl Fn(&Figures) -> Option<f64>) -> Option<Estimate> {
        let mut pairs = (Vec::new(), Vec::new());
        for their in &self.figures {
            let Some(our) = ours.figures.iter().find(|our| our.round == their.round) else { continue };
            if let (Some(their), Some(our)) = (value(their), value(our)) {
                pairs.0.push(their);
                pairs.1.push(our);
            }
        }
        let sound = !pairs.0.is_empty() && pairs.1.iter().all(|&value| value > 0.0);
        sound.then(|| stats::estimate(&stats::ratios(&pairs.0, &pairs.1)))
    }

    pub fn time_ratio(&self, ours: &Series) -> Option<Estimate> {
        self.ratio_to(ours, |figures| Some(figures.time))
    }

    pub fn peak_ratio(&self, ours: &Series) -> Option<Estimate> {
        self.ratio_to(ours, |figures| Some(figures.peak_bytes as f64))
    }

    pub fn system_call_count(&self) -> Option<u64> {
        Some(self.system_calls.as_ref()?.values().fold(0, |sum, &count| sum.saturating_add(count)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::samples::lab;
    use super::*;

    #[test]
    fn what_counts_as_a_failure() {
        let mut lab = lab();
        assert!(lab.has_failures(), "of an allocator that was named");
        lab.allocators[2].name = "mimalloc2".into();
        assert!(!lab.has_failures());
        lab.rows[0].series[1].failure = Some("signal: 6".into());
        assert!(lab.has_failures(), "of snug");
    }

    #[test]
    fn labs_of_different_rows_are_joined() {
        let (mut first, mut second) = (lab(), lab());
        first.rows.pop();
        second.rows.remove(0);
        second.settings.rounds = 2;
        let joined = Lab::join(vec![first, second]).unwrap();
        let names: Vec<&str> = joined.rows.iter().map(|row| row.row.name.as_str()).collect();
        assert_eq!((names, joined.settings.rounds), (vec!["pairs/lifo", "larson/2"], 2));
        assert_eq!(joined.missing.len(), 1);
    }

    #[test]
    fn counted_instructions_are_added_to_their_row() {
        let mut counted = lab();
        for series in counted.rows.iter_mut().flat_map(|row| &mut row.series) {
            *series = Series { instructions: Some(51.0), ..Series::default() };
        }
        for labs in [vec![lab(), counted.clone()], vec![counted, lab()]] {
            let joined = Lab::join(labs).unwrap();
            let series = &joined.rows[0].series[1];
            assert_eq!((series.instructions, series.figures.len(), series.curve.len()), (Some(51.0), 3, 3));
        }
    }

    #[test]
    fn what_cannot_stand_beside_each_other_is_refused() {
        let changed = |change: fn(&mut Lab)| {
            let mut other = lab();
            other.rows.iter_mut().for_each(|row| row.row.name.push('x'));
            change(&mut other);
            Lab::join(vec![lab(), other]).map_err(|error| error.to_string())
        };
        assert!(changed(|_| ()).is_ok());
        assert!(changed(|lab| lab.machine.kernel.push('x')).unwrap_err().contains("different machines"));
        assert!(changed(|lab| lab.version.push('x')).unwrap_err().contains("versions"));
        assert!(changed(|lab| lab.settings.quick = true).unwrap_err().contains("quick"));
        assert!(changed(|lab| lab.allocators[2].name.push('x')).unwrap_err().contains("same allocators"));
        assert!(Lab::join(vec![lab(), lab()]).unwrap_err().to_string().contains("more than one"));
    }
}
