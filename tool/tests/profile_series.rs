//! `snug profile`: looks while a program runs. Snapshots, growth, and how the time of a look ends.

use std::fs;
use std::process::{Child, Command};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::common::{assert_clean, assert_refused, stderr, stdout, text, Place};

/// For three seconds, or for as many hundredths as it is told: keeps every session, no request, and a store that is filled
/// at first.
const SERVER: &str = r#"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define APART __attribute__((noinline, noclone))
static void *volatile last;
APART void session(void) { last = malloc(4000); __asm__ volatile("" ::: "memory"); }
APART void request(void) { void *p = malloc(9000); __asm__ volatile("" : "+r"(p)); free(p); }
APART void store(void) { last = malloc(300000); __asm__ volatile("" ::: "memory"); }
int main(int count, char **words)
{
    store();
    for (int i = 0, times = count > 2 ? atoi(words[2]) : 300; i < times; i++) { session(); request(); usleep(10000); }
    _exit(count == 1 ? 0 : 7);
}
"#;

fn server(place: &Place) -> std::path::PathBuf {
    place.compile("server", SERVER, &["-O1", "-g"])
}

fn start(place: &Place, hundredths: &str) -> Child {
    start_with(place, "SNUG_PROFILE_BYTES=1", hundredths)
}

fn start_with(place: &Place, setting: &str, hundredths: &str) -> Child {
    let program = server(place);
    let words = ["run", setting, text(&program), "for", hundredths];
    let child = place.snug(&words).spawn().unwrap();
    sleep(Duration::from_millis(300));
    child
}

#[track_caller]
fn assert_grows(said: &str) {
    let growth = &said[said.find("snapshot").unwrap_or_else(|| panic!("{said}"))..];
    assert!(growth.contains("1 site grows steadily") && growth.contains("    session  "), "{said}");
    assert!(!growth.contains("    store  ") && !growth.contains("    request  "), "{said}");
}

#[test]
fn a_command_that_leaks() {
    let place = Place::new();
    let program = server(&place);
    let words = ["profile", "-o", "p.pb.gz", "--every", "0.4", "SNUG_PROFILE_BYTES=1", text(&program)];
    let output = place.output(&words);
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(0), ""));
    assert_grows(&stderr(&output));
    let files: Vec<String> = (1..=3).map(|number| format!("p.{number}.pb.gz")).collect();
    // In any order: they have their times.
    let output = place.output(&["profile", "growth", &files[2], &files[0], &files[1]]);
    assert_clean(&output);
    assert_grows(&stdout(&output));
    assert_refused(&place.output(&["profile", "growth", &files[0], &files[1]]), 125, &["3 profiles or more"]);
}

#[test]
fn a_command_too_short_to_be_sampled_or_to_grow() {
    let place = Place::new();
    let output = place.output(&["profile", "-o", "p.pb.gz", "--every", "60", "true"]);
    let said = stderr(&output);
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(0), ""), "{said}");
    assert!(said.contains("no sample was taken"), "{said}");
    assert!(said.contains("0 snapshots had samples; what grows is seen in 3 or more"), "{said}");
    assert!(said.contains("a shorter --every") && said.contains("SNUG_PROFILE_BYTES=4096"), "{said}");
}

#[test]
fn a_running_program_that_leaks_and_options_behind_its_number() {
    let place = Place::new();
    let mut child = start(&place, "12000"); // until it is killed
    let pid = child.id().to_string();
    let output = place.output(&["profile", &pid, "--for", "1.5s", "--every=0.3"]);
    assert!(child.try_wait().unwrap().is_none());
    child.kill().unwrap();
    child.wait().unwrap();
    assert_clean(&output);
    assert!(stdout(&output).contains("session  "), "{}", stdout(&output));
    assert_grows(&stdout(&output));
}

#[test]
fn a_running_program_that_asks_for_too_little() {
    let place = Place::new();
    let mut child = start_with(&place, "SNUG_PROFILE_BYTES=1TiB", "12000"); // until it is killed
    let output = place.output(&["profile", &child.id().to_string(), "--for", "0.2s"]);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_refused(&output, 1, &["too little for a sample", "longer --for", "SNUG_PROFILE_BYTES=4096"]);
}

#[test]
fn a_snapshot_when_a_signal_comes() {
    let place = Place::new();
    let program = server(&place);
    let words = ["profile", "-o", "p.json", "--on-signal", "SNUG_PROFILE_BYTES=1", text(&program)];
    let mut snug = place.snug(&words).spawn().unwrap();
    sleep(Duration::from_millis(1000));
    // SAFETY: the tool is ours and has not ended.
    unsafe { libc::kill(snug.id() as i32, libc::SIGURG) };
    assert_eq!(snug.wait().unwrap().code(), Some(0));
    assert!(fs::read_to_string(place.path("p.1.json")).unwrap().contains("\"session\""));
    assert!(place.path("p.json").exists() && !place.path("p.2.json").exists());
}

/// Ctrl-C ends the time, not the profile; and the program takes none any more.
#[test]
fn an_interrupted_look() {
    let place = Place::new();
    let mut child = start(&place, "12000"); // until it is killed
    let pid = child.id().to_string();
    let snug = place.snug(&["profile", "-o", "p.txt", "--for", "1m", &pid]).spawn().unwrap();
    sleep(Duration::from_millis(700));
    let begun = Instant::now();
    // SAFETY: as above.
    unsafe { libc::kill(snug.id() as i32, libc::SIGINT) };
    let output = snug.wait_with_output().unwrap();
    assert!(begun.elapsed() < Duration::from_secs(20));
    let stats = place.output(&["profile", "--for", "0.1", &pid]);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(fs::read_to_string(place.path("p.txt")).unwrap().contains("session  "));
    assert_clean(&stats);
}

#[test]
fn a_program_that_ends_meanwhile() {
    let place = Place::new();
    let mut child = start(&place, "300");
    let output = place.output(&["profile", "--for", "1m", &child.id().to_string()]);
    child.wait().unwrap();
    assert_clean(&output);
    let said = stdout(&output);
    assert!(said.contains("session  ") && said.contains("has ended meanwhile"), "{said}");
}

/// Of a shell's children only those of one name; and where nothing was allocated, that is said.
#[test]
fn children_by_name_and_nothing_at_all() {
    let place = Place::new();
    let program = server(&place);
    place.copy(&program, "other");
    let both = "./server & ./other x & wait";
    let output =
        place.output(&["profile", "-o", "p.folded", "--children=other", "SNUG_PROFILE_BYTES=1", "sh", "-c", both]);
    assert_clean(&output);
    let folded = fs::read_to_string(place.path("p.folded")).unwrap();
    let line = folded.lines().find(|line| line.contains(";store ")).unwrap();
    assert!(line.ends_with(" 300000"), "{folded}");
    let nothing = place.output(&["profile", "-o", "p.html", "true"]);
    assert!(stderr(&nothing).contains("no sample was taken") && !place.path("p.html").exists());
    let done: Command = place.snug(&["profile", "true"]);
    assert!(stderr(&{ done }.output().unwrap()).contains("SNUG_PROFILE_BYTES=1"));
}

/// Holds 4,000,000 bytes of one site in the end, and 3,000,000 of another.
const HOLDER: &str = r#"
#include <stdlib.h>
#include <unistd.h>
#define APART __attribute__((noinline, noclone))
static void *volatile last;
APART void session(void) { last = malloc(40000); __asm__ volatile("" ::: "memory"); }
APART void store(void) { last = malloc(3000000); __asm__ volatile("" ::: "memory"); }
int main(void)
{
    store();
    for (int i = 0; i < 100; i++) { session(); usleep(3000); }
    return 0;
}
"#;

/// Of each area, from the top down: the colour, and how high it is where the program ended.
fn areas(document: &roxmltree::Document) -> Vec<(String, f64)> {
    let area = |node: roxmltree::Node| {
        let points: Vec<&str> = node.attribute("points").unwrap().split_ascii_whitespace().collect();
        let height = |at: usize| points[at].split_once(',').unwrap().1.parse::<f64>().unwrap();
        let ending = points.len() - 2;
        (node.attribute("fill").unwrap().to_string(), height(ending) - height(ending - 1))
    };
    document.descendants().filter(|node| node.has_tag_name("polygon")).map(area).collect()
}

#[test]
fn a_picture_has_the_sites_that_hold_most() {
    let place = Place::new();
    let program = place.compile("held", HOLDER, &["-O1", "-g"]);
    let picture = |settings: &[&str]| {
        let output = place.output(&[&["run", "--plot=a.svg"], settings, &[text(&program)]].concat());
        assert_clean(&output);
        fs::read_to_string(place.path("a.svg")).unwrap()
    };
    assert!(areas(&roxmltree::Document::parse(&picture(&[])).unwrap()).is_empty());
    let svg = picture(&["SNUG_PROFILE=1", "SNUG_PROFILE_BYTES=1"]);
    let document = roxmltree::Document::parse(&svg).unwrap();
    let areas = areas(&document);
    // The largest at the bottom, all others on top.
    let [(_, all), (_, both), (_, session)] = areas.as_slice() else { panic!("{areas:?}") };
    assert!((session / (both - session) - 4.0 / 3.0).abs() < 0.05, "{areas:?}");
    assert!((all / both - 1.0).abs() < 0.02, "{areas:?}");
    let texts: Vec<&str> = document.descendants().filter_map(|node| node.text()).map(str::trim).collect();
    let place_of = |name: &str| texts.iter().position(|text| text.starts_with(name)).unwrap();
    assert!(texts.contains(&"other sites"), "{texts:?}");
    // Each name has the colour of its area.
    let swatches: Vec<String> = document
        .descendants()
        .filter(|node| node.has_tag_name("rect"))
        .filter_map(|node| node.attribute("fill").map(str::to_string))
        .filter(|color| areas.iter().any(|area| area.0 == *color))
        .collect();
    assert_eq!(swatches, areas.iter().map(|area| area.0.clone()).collect::<Vec<_>>());
    assert!(
        place_of("other sites") < place_of("store < main") && place_of("store < main") < place_of("session < main")
    );
}

/// Of the command alone, in snapshots too.
#[test]
fn snapshots_without_children() {
    let place = Place::new();
    let program = server(&place);
    let script = format!("{} for 60; exit 0", text(&program));
    for (children, is_there) in [("--children=none", false), ("--children=all", true)] {
        let words =
            ["profile", children, "-o", "c.folded", "--every", "0.2", "SNUG_PROFILE_BYTES=1", "sh", "-c", &script];
        assert_eq!(place.output(&words).status.code(), Some(0));
        let snapshot = fs::read_to_string(place.path("c.1.folded")).unwrap();
        assert_eq!(snapshot.contains(";store "), is_there, "{children}: {snapshot}");
    }
}
