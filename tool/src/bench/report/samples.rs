//! A small lab for the tests of reports.

use std::collections::BTreeMap;

use crate::bench::allocators::Allocator;
use crate::bench::machine::Machine;
use crate::bench::results::{Figures, Lab, Point, Row, RowResult, Series, Settings, Unit, FORMAT};

pub fn series(times: &[f64], peak_mib: u64) -> Series {
    let figures = times.iter().enumerate().map(|(round, &time)| Figures {
        round: round as u32,
        time,
        cpu_seconds: 0.5,
        peak_bytes: peak_mib << 20,
        page_faults: 100,
        overhead: Some(1.5),
        further: BTreeMap::from([("idle_rss_kib".to_string(), 2048.0), ("ops".to_string(), 7.0)]),
    });
    let point = |ms: f64| Point { ms, resident_bytes: 3 << 20, live_bytes: 2 << 20 };
    Series { figures: figures.collect(), curve: [1.0, 2.0, 3.0].map(point).to_vec(), ..Series::default() }
}

fn row(name: &str, threads: u32) -> Row {
    let family = name.split('/').next().unwrap_or_default().to_string();
    Row { name: name.into(), family, about: "imitates <something>".into(), threads, unit: Unit::NsPerOperation }
}

/// Two rows, three allocators, three rounds; the last allocator fails in the second row.
pub fn lab() -> Lab {
    let allocator = |name: &str| Allocator { name: name.into(), version: "1.0".into(), ..Allocator::default() };
    let failed = Series { failure: Some("signal: 6".into()), ..Series::default() };
    let pairs = RowResult {
        row: row("pairs/lifo", 1),
        series: vec![series(&[8.0, 6.0, 4.0], 3), series(&[4.0, 3.0, 2.0], 3), series(&[4.0, 2.0, 3.0], 3)],
    };
    let larson = RowResult {
        row: row("larson/2", 2),
        series: vec![series(&[10.0, 10.1, 9.9], 8), series(&[20.0, 20.2, 19.8], 16), failed],
    };
    Lab {
        format: FORMAT,
        title: "snug bench".into(),
        version: "0.1".into(),
        date: "2026-01-02T03:04:05Z".into(),
        machine: Machine { processor: "a processor".into(), processors: 2, ..Machine::default() },
        settings: Settings { rounds: 3, quick: false, paced: false },
        allocators: ["system", "snug", "mine"].map(allocator).to_vec(),
        missing: vec!["other (get it)".into()],
        rows: vec![pairs, larson],
        ended_early: None,
    }
}
