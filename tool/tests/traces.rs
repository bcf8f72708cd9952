//! The traces in bench/traces: they are whole, every replay of them is right, and snug's memory for them stays within
//! what it was. A footprint is the same each time in the same surroundings, so a few percent more are a fact. But what
//! the loader asks for before the trace begins moves all that follows, and with it chance: 1 % of most traces' peaks,
//! 5 % of those of cc1 and sqlite, over 24 sizes and numbers of blocks in front. So programs of tests get no path for
//! libraries from cargo, for which the loader makes blocks. Machines differ all the same: on one sqlite's peak is 1.26
//! times the system's, and 1.21 there with one more library loaded, with code that had at most 1.22 on others.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{stderr, stdout, text, Place};

/// Snug's peak over the system's, by trace: what it was when this was written, and a little more. Since a program that
/// takes no memory has no heap, the memory of its first use is in it. The little is 1 %, and sqlite's chance.
const PEAK_LIMITS: [(&str, f64); 6] =
    [("cc1", 1.28), ("cpython", 1.18), ("git", 1.17), ("node", 1.09), ("perl", 0.98), ("sqlite", 1.27)];

fn traces() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../bench/traces");
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|e| e == "trace")).collect();
    found.sort();
    found
}

#[test]
fn they_are_whole_and_small() {
    let place = Place::new();
    let names: Vec<String> = traces().iter().map(|path| path.file_stem().unwrap().to_str().unwrap().into()).collect();
    assert_eq!(names, PEAK_LIMITS.map(|(name, _)| name));
    for path in traces() {
        assert!(fs::metadata(&path).unwrap().len() < 2 << 20, "{path:?} is too large for test data");
        let output = place.output(&["replay", "--info=json", text(&path)]);
        assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
        let info: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((&info["lost"], &info["totals"]["missing_frees"]), (&0.into(), &0.into()), "{path:?}");
        assert!(info["totals"]["operations"].as_u64().unwrap() > 200_000, "{path:?}");
    }
}

#[test]
fn snug_needs_no_more_memory_for_them_than_it_did() {
    let place = Place::new();
    let paths = traces();
    let json = place.path("footprints.json");
    let words: Vec<&str> = ["replay", "--footprint", "--peers", "none", "--json", text(&json)]
        .into_iter()
        .chain(paths.iter().map(|p| text(p)))
        .collect();
    let output = place.output(&words);
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
    let table = stdout(&output);
    let found: serde_json::Value = serde_json::from_slice(&fs::read(json).unwrap()).unwrap();
    let names = found["allocators"].as_array().unwrap();
    let peak = |trace: &str, allocator: &str| -> f64 {
        let of_trace = found["traces"].as_array().unwrap().iter().find(|one| one["trace"] == trace).unwrap();
        let place = names.iter().position(|one| one["name"] == allocator).unwrap();
        of_trace["footprints"][place]["peak_kib"].as_f64().unwrap()
    };
    for (trace, limit) in PEAK_LIMITS {
        let ratio = peak(trace, "snug") / peak(trace, "system");
        assert!(ratio <= limit, "{trace}: {ratio:.3} times the system's, more than {limit}\n{table}");
        assert!(ratio > 0.5, "{trace}: too good to be true\n{table}");
    }
}

/// With their threads, on snug and on the system's malloc, with all marks checked.
#[test]
fn they_are_replayed() {
    let place = Place::new();
    let paths = traces();
    let words: Vec<&str> =
        ["replay", "--rounds", "1", "--peers", "none"].into_iter().chain(paths.iter().map(|p| text(p))).collect();
    let output = place.output(&words);
    assert_eq!(output.status.code(), Some(0), "{}\n{}", stdout(&output), stderr(&output));
}
