//! The lab as it is used: the real workloads on the allocators of this machine, and its page of HTML in a browser.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::browser::{self, browse, colours_of, screenshot, DARK};
use crate::common::{is_full, stderr, stdout, text, Place, Tests};
use libtest_mimic::{Completion, Failed};
use serde_json::Value;

/// One row of each family, and all that is special in one.
const ROWS: &str = "pairs/freed-at-once,pairs/producer-consumer,churn/64-one-page,random-mixed/257-768,\
    calloc/16-256,sized-delete/*,realloc-small/1-256,large-pairs/128K*,same-thread/500/1,same-thread/500/2,\
    separate-thread/500/2,larson/2,producer-consumer/2,cells/holes,many-threads/*,realloc-growth/*,aligned/*,big/*,\
    sparse/*,fragmented/*,cold/*,trees/*,bursts/2,overhead/16-1024,fragment/drift,peak-idle/*,latency/1,replace-large/*,\
    large-buffers/*,moving-sizes/*";

pub fn tests() -> Tests {
    vec![
        ("workloads_run_on_every_allocator", workloads_run_on_every_allocator),
        ("system_calls_and_instructions", system_calls_and_instructions),
        ("the_page_in_a_browser", the_page_in_a_browser),
    ]
}

/// Where `./dev build` leaves them.
fn workloads() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../build/bench");
    folder.join("pairs").is_file().then_some(folder)
}

/// Measures and returns the JSON, and writes the page.
fn measure(place: &Place, workloads: &Path, rows: &str, more: &[&str]) -> Value {
    let (json, html) = (place.path("lab.json"), place.path("lab.html"));
    let mut command = place.snug(&["bench", "--quick", "--rounds", "1", "--only", rows]);
    command.args(["--workloads", text(workloads), "--json", text(&json), "--html", text(&html)]).args(more);
    let output = command.output().unwrap();
    assert!(json.is_file(), "{}{}", stdout(&output), stderr(&output));
    serde_json::from_slice(&fs::read(json).unwrap()).unwrap()
}

/// What is run on all allocators where there is no time for each row on each.
const FEW_ROWS: &str = "pairs/freed-at-once,larson/2,many-threads/*";

/// Each row has figures on each allocator; in a short run all rows on the system's and snug, and a few on all others.
fn workloads_run_on_every_allocator(place: &Place) -> Result<Completion, Failed> {
    let Some(workloads) = workloads() else {
        return Ok(Completion::ignored_with("the workloads are not built; ./dev build does it"));
    };
    let lab = if is_full() {
        measure(place, &workloads, ROWS, &["--no-system-calls"])
    } else {
        let few = measure(place, &workloads, FEW_ROWS, &["--no-system-calls"]);
        assert!(assert_measured(&few) >= 3);
        measure(place, &workloads, ROWS, &["--no-system-calls", "--peers", "none"])
    };
    assert!(assert_measured(&lab) >= 23);
    let rows = lab["rows"].as_array().unwrap();
    let has = |family: &str, figure: &str| {
        let row = rows.iter().find(|row| row["row"]["family"] == family).unwrap_or_else(|| panic!("no {family}"));
        row["series"][1]["figures"][0]["further"][figure].as_f64().unwrap_or_else(|| panic!("no {figure} in {family}"))
    };
    assert!(has("latency", "malloc_p50_ns") <= has("latency", "malloc_max_ns"));
    assert!(has("peak-idle", "idle_rss_kib") > 0.0 && has("many-threads", "waiting_kib") > 0.0);
    Ok(Completion::Completed)
}

/// Returns how many rows have figures. A peer may fail, and some do; then it says why.
fn assert_measured(lab: &Value) -> usize {
    let names: Vec<&str> =
        lab["allocators"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    let rows = lab["rows"].as_array().unwrap();
    assert!(names.len() >= 2, "{names:?}");
    for row in rows {
        for (name, series) in names.iter().zip(row["series"].as_array().unwrap()) {
            let (row, figures) = (row["row"]["name"].as_str().unwrap(), series["figures"].as_array().unwrap());
            if let Some(why) = series["failure"].as_str() {
                assert!(!["system", "snug"].contains(name), "{row} on {name}: {why}");
                eprintln!("{row} fails on {name}: {why}");
                continue;
            }
            assert_eq!(figures.len(), 1, "{row} on {name}");
            assert!(figures[0]["time"].as_f64().unwrap() > 0.0 && figures[0]["peak_bytes"].as_u64().unwrap() > 500_000);
            // Small sizes of these rows may be over before the first look.
            let looked_at = !series["curve"].as_array().unwrap().is_empty() || row.starts_with("large-pairs/");
            assert!(looked_at, "{row} on {name} has no curve");
        }
    }
    rows.len()
}

/// By strace and callgrind, where they are there.
fn system_calls_and_instructions(place: &Place) -> Result<Completion, Failed> {
    let Some(workloads) = workloads() else {
        return Ok(Completion::ignored_with("the workloads are not built; ./dev build does it"));
    };
    if let Some(absent) = ["strace", "valgrind"].into_iter().find(|name| !runs(name)) {
        return Ok(Completion::ignored_with(format!("there is no {absent} (apt-get install {absent})")));
    }
    let lab = measure(place, &workloads, "churn/64-one-page", &["--peers", "none"]);
    let mapped = lab["rows"][0]["series"][1]["system_calls"]["mmap"].as_u64().unwrap();
    assert!((1..1000).contains(&mapped), "{mapped} calls of mmap");

    // Of a twentieth of the operations, which callgrind makes slow, in a short run.
    let row = if is_full() { "churn/64-one-page" } else { "random-mixed/256-100k" };
    let count = || {
        let lab = measure(place, &workloads, row, &["--peers", "none", "--count"]);
        lab["rows"][0]["series"][1]["instructions"].as_f64().unwrap()
    };
    let (once, again) = (count(), count());
    assert!((20.0..200.0).contains(&once) && (once - again).abs() < 0.1, "{once} and {again} instructions for each");
    Ok(Completion::Completed)
}

/// Light, dark and as narrow as a phone: the plots are there, in the colours that the page says, and fit.
fn the_page_in_a_browser(place: &Place) -> Result<Completion, Failed> {
    let Some(workloads) = workloads() else {
        return Ok(Completion::ignored_with("the workloads are not built; ./dev build does it"));
    };
    let Some(browser) = browser::find() else {
        return Ok(Completion::ignored_with("there is no chromium (apt-get install chromium)"));
    };
    measure(place, &workloads, "same-thread/500/*,larson/*,peak-idle", &["--no-system-calls", "--peers", "none"]);

    for (settings, page, snug) in
        [(&[][..], [255, 255, 255], [0xcf, 0x22, 0x2e]), (&[DARK][..], [13, 17, 23], [0xff, 0x6a, 0x69])]
    {
        let colours = colours_of(&screenshot(place, browser, &place.path("lab.html"), "1200,1600", settings));
        assert_eq!(*colours.iter().max_by_key(|(_, count)| **count).unwrap().0, page, "the colour of the page");
        let of_snug = colours.get(&snug).copied().unwrap_or(0);
        assert!(of_snug > 300, "{of_snug} pixels have the colour of snug's lines");
    }
    let said = said_on_a_phone(place, browser);
    assert!(said.contains("plots fit: true, page fits: true") && !said.contains("0 plots"), "{said}");
    Ok(Completion::Completed)
}

fn runs(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

/// A headless window is never as narrow as a phone, a frame in it is. Whether all is as wide as it at most.
fn said_on_a_phone(place: &Place, browser: &str) -> String {
    let script =
        "<p id=said>nothing</p><iframe src=lab.html style='width:390px;height:800px;border:0'></iframe><script>
        onload = () => {
            const page = frames[0].document.documentElement, plots = [...page.querySelectorAll('svg')];
            const fits = plots.every(plot => plot.getBoundingClientRect().right <= page.clientWidth);
            document.getElementById('said').textContent =
                `${plots.length} plots fit: ${fits}, page fits: ${page.scrollWidth <= page.clientWidth}`;
        };
    </script>";
    place.write("phone.html", script, 0o644);
    let mut command = browse(place, browser);
    command.args(["--dump-dom", "--virtual-time-budget=5000", &format!("file://{}", text(&place.path("phone.html")))]);
    stdout(&command.output().unwrap())
}
