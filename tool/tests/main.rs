//! The tests of the tool, in one program: what they share is compiled once, and they run beside each other over the
//! processors. Those that may find out while they run that they must be skipped are in skippable.rs.

mod common;

mod attached;
mod bench;
mod cache;
mod compare;
mod exits;
mod export;
mod files;
mod hostile;
mod options;
mod passthrough;
mod profile_cases;
mod profile_names;
mod profile_order;
mod profile_series;
mod record;
mod replay;
mod settings;
mod shown;
mod signals;
mod stops;
mod targets;
mod traces;
mod tree;
mod trim;
mod tune;
mod written;

/// What no program names would be compiled by nobody, and its tests would be missed by nobody.
#[test]
fn every_file_is_in_a_program() {
    let programs = concat!(include_str!("main.rs"), include_str!("skippable.rs"));
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests");
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let files: Vec<String> = names.filter_map(|name| Some(name.strip_suffix(".rs")?.to_string())).collect();
    assert!(files.len() > 30, "{files:?}");
    for file in files.iter().filter(|file| !["main", "skippable"].contains(&file.as_str())) {
        assert_eq!(programs.matches(&format!("\nmod {file};\n")).count(), 1, "{file}");
    }
}
