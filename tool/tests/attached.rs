//! `snug profile PID`, over and over, of a program under load: it is not harmed, does not grow, and what is said is right.
//! 10 times, 1,000 in a full run.

use std::fs;

use crate::common::{assert_clean, is_full, stderr, text, Place};
use serde_json::Value;

/// KiB: what a program of this kind moves up and down by.
const GROWN_MOST: u64 = 16384;

fn resident_kib(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse().unwrap()
}

/// The bytes that were allocated in a function, and what is live of them.
fn bytes_of(profile: &Value, function: &str) -> (f64, f64) {
    let is_in =
        |site: &&Value| site["stack"].as_array().unwrap().iter().any(|place| place["lines"][0]["function"] == function);
    let sites = profile["sites"].as_array().unwrap().iter().filter(is_in);
    sites.fold((0.0, 0.0), |sum, site| {
        let number = |name: &str| site["numbers"][name].as_f64().unwrap();
        (sum.0 + number("allocated_bytes"), sum.1 + number("live_bytes"))
    })
}

#[test]
fn a_program_under_load() {
    let place = Place::new();
    let times = if is_full() { 1000 } else { 10 };
    let plugin = place.compile("plugin.so", include_str!("../../tests/profile/plugin.c"), &["-shared", "-fPIC"]);
    let program = place.compile("attached", include_str!("attached.c"), &["-O1", "-g", "-pthread"]);
    let mut command = place.snug(&["run", "SNUG_PROFILE_BYTES=1", text(&program), text(&plugin)]);
    let mut child = command.spawn().unwrap();
    let pid = child.id().to_string();
    std::thread::sleep(std::time::Duration::from_millis(300));
    let (mut resident, mut seen) = (0, 0.0);
    for time in 0..times {
        if time == times / 2 {
            resident = resident_kib(child.id());
        }
        assert_clean(&place.output(&["profile", "-o", "p.json", "--for", "50ms", &pid]));
        let profile: Value = serde_json::from_slice(&fs::read(place.path("p.json")).unwrap()).unwrap();
        let ((one, one_live), (three, three_live)) =
            (bytes_of(&profile, "a_thousand"), bytes_of(&profile, "three_thousand"));
        assert!((3.0 * one - three).abs() <= 2.0 * 3000.0, "{time}: {one} and {three}");
        assert!(one_live <= 1000.0 && three_live <= 3000.0, "{time}: {one_live} and {three_live} are live");
        seen += one;
    }
    assert!(seen >= 1000.0 * f64::from(times), "{seen}");
    let grown = resident_kib(child.id()).saturating_sub(resident);
    assert!(grown < GROWN_MOST, "{grown} KiB more");
    let done = std::process::Command::new("kill").arg(&pid).output().unwrap();
    assert!(done.status.success(), "{}", stderr(&done));
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
