//! `snug options`: what is in force, with units, beside the presets; the page of a group; JSON.

use crate::common::{assert_clean, assert_refused, stderr, stdout, Place};
use serde_json::Value;

#[test]
fn an_overview_with_units_and_presets() {
    let place = Place::new();
    let output = place.output(&["options"]);
    assert_clean(&output);
    let all = stdout(&output);
    let line = |name: &str| {
        let line = all.lines().find(|line| line.split_whitespace().next() == Some(name));
        line.unwrap_or_else(|| panic!("{name}: {all}")).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(line("SNUG_DIRTY"), "SNUG_DIRTY 4 MiB 4 MiB 1 MiB 64 MiB");
    assert_eq!(line("SNUG_PURGE_DELAY"), "SNUG_PURGE_DELAY 10 s 10 s 1 s 60 s");
    assert_eq!(line("SNUG_HUGE_PAGES"), "SNUG_HUGE_PAGES auto auto never always");
    assert_eq!(line("SNUG_MISUSE"), "SNUG_MISUSE abort abort");
    assert!(all.lines().count() < 60 && all.lines().all(|line| line.chars().count() <= 80), "{all}");
    assert!(!all.contains("\n* SNUG_"), "nothing is changed: {all}");
}

#[test]
fn what_is_changed() {
    let place = Place::new();
    let mut command = place.snug(&["options", "--changed", "SNUG_DIRTY=1M"]);
    let changed = stdout(&command.env("SNUG_MISUSE", "warn").output().unwrap());
    let lines: Vec<&str> = changed.lines().filter(|line| line.starts_with("* SNUG_")).collect();
    assert_eq!(lines.len(), 2, "{changed}");
    assert!(lines[0].contains("SNUG_MISUSE") && lines[0].contains("warn") && lines[1].contains("1 MiB"), "{changed}");
    assert_eq!(stdout(&place.output(&["options", "--changed"])), "all options are at their default\n");
    // A preset changes others.
    let preset = stdout(&place.output(&["options", "--changed", "SNUG_PRESET=lean"]));
    assert!(preset.contains("* SNUG_DIRTY") && preset.contains("* SNUG_PRESET"), "{preset}");
    assert_refused(&place.output(&["options", "SNUG_DIRTI=1"]), 2, &["did you mean SNUG_DIRTY?"]);
    assert_refused(
        &place.output(&["options", "SNUG_DIRTY=1M", "nonsense"]),
        2,
        &["nonsense is no setting", "giving-back"],
    );
    let warned = place.snug(&["options"]).env("SNUG_DIRTI", "1").output().unwrap();
    assert!(stderr(&warned).contains("did you mean SNUG_DIRTY?"));
}

#[test]
fn pages_of_groups_and_options() {
    let place = Place::new();
    let page = stdout(&place.output(&["options", "threads"]));
    for part in ["SNUG_ARENAS = 0", "SNUG_DEPOT = 1 MiB", "0 to 1 GiB; default 2 MiB; lean 256 KiB; fast 8 MiB"] {
        assert!(page.contains(part), "{part} is not in {page}");
    }
    assert!(!page.contains("SNUG_DIRTY =") && page.lines().all(|line| line.chars().count() <= 80), "{page}");
    for name in ["preset", "PRESET", "snug_preset", "purge-delay"] {
        let whole = if name == "purge-delay" { "SNUG_PURGE_DELAY" } else { "SNUG_PRESET" };
        assert_eq!(place.output(&["options", name]).stdout, place.output(&["options", whole]).stdout, "{name}");
    }
    // Alone, without the overview, a page speaks of nothing that stands elsewhere in it.
    assert!(!stdout(&place.output(&["options", "SNUG_PRESET"])).contains("below"));
    let one = stdout(&place.output(&["options", "SNUG_STATS_ON"]));
    assert!(one.starts_with("SNUG_STATS_ON = exit\n") && one.contains("any of exit, interval, bytes, signal"), "{one}");
}

#[test]
fn as_json() {
    let place = Place::new();
    let all: Value = serde_json::from_str(&stdout(&place.output(&["options", "--json", "SNUG_DIRTY=1M"]))).unwrap();
    let dirty = all.as_array().unwrap().iter().find(|option| option["name"] == "SNUG_DIRTY").unwrap();
    assert_eq!((&dirty["value"], &dirty["changed"]), (&"1 MiB".into(), &true.into()));
    assert_eq!((&dirty["group"], &dirty["allowed"]), (&"giving-back".into(), &"0 to 1 TiB".into()));
    // The table is that of the documentation: nothing is missing.
    let documented = include_str!("../../docs/options.md").lines().filter(|line| line.starts_with("| `SNUG_")).count();
    let presets = all.as_array().unwrap().iter().filter(|option| !option["lean"].is_null()).count();
    assert_eq!(all.as_array().unwrap().len(), documented - presets);
}
