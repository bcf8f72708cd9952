//! `snug profile`: what it says about programs of which is known what they allocate, and in which functions.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::common::{assert_clean, assert_refused, browser, is_full, stderr, stdout, text, Place, Tests};
use libtest_mimic::{Completion, Failed};
use serde_json::Value;

pub fn tests() -> Tests {
    vec![
        ("every_block_is_exact", every_block_is_exact),
        ("samples_come_to_what_there_is", samples_come_to_what_there_is),
        ("gos_pprof_reads_it", gos_pprof_reads_it),
        ("a_flame_graph_has_the_calls", a_flame_graph_has_the_calls),
        ("the_page_is_searched_and_clicked", the_page_is_searched_and_clicked),
        ("profiles_are_shown_merged_and_compared", profiles_are_shown_merged_and_compared),
        ("a_running_program_is_looked_at", a_running_program_is_looked_at),
        ("what_survivors_pin", what_survivors_pin),
        ("a_program_that_is_killed", a_program_that_is_killed),
        ("what_cannot_be_is_refused", what_cannot_be_is_refused),
    ]
}

/// Three sites below one function; half of the small blocks are freed. With an argument: that how often it does it,
/// freeing all again, and without end if that is 0; or `die`.
const PROGRAM: &str = r#"
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static void *kept[2000];
static int count;
#define APART __attribute__((noinline, noclone))
#define STAY() __asm__ volatile("" ::: "memory")
APART void *leaf(size_t bytes) { void *block = malloc(bytes); __asm__ volatile("" : "+r"(block)); return block; }
APART void small(void) { for (int i = 0; i < 1000; i++) kept[count++] = leaf(100); STAY(); }
APART void medium(void) { for (int i = 0; i < 100; i++) kept[count++] = leaf(5000); STAY(); }
APART void large(void) { for (int i = 0; i < 3; i++) kept[count++] = leaf(1000000); STAY(); }
APART void all(void) { small(); medium(); large(); STAY(); }
int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "die") != 0)
        for (int i = 0, times = atoi(argv[1]); times == 0 || i < times; i++) {
            all();
            while (count > 0) free(kept[--count]);
        }
    all();
    for (int i = 0; i < 500; i++) free(kept[i]);
    if (argc > 1 && strcmp(argv[1], "die") == 0)
        raise(SIGKILL);
    _exit(7);
}
"#;

const SITES: [&str; 3] = ["small", "medium", "large"];

fn program(place: &Place) -> PathBuf {
    place.compile("planted", PROGRAM, &["-O2", "-g", "-fomit-frame-pointer"])
}

/// What the sites have, by the function that called `leaf`, wherever `main` called `all`.
fn sites(place: &Place, file: &str) -> HashMap<String, Value> {
    let json: Value = serde_json::from_slice(&fs::read(place.path(file)).unwrap()).unwrap();
    let mut sites: HashMap<String, Value> = HashMap::new();
    for site in json["sites"].as_array().unwrap() {
        let lines = site["stack"].as_array().unwrap().iter().flat_map(|place| place["lines"].as_array().unwrap());
        let names: Vec<&str> = lines.map(|line| line["function"].as_str().unwrap()).collect();
        if names[0] == "leaf" {
            assert_eq!(names[2..4], ["all", "main"], "{names:?}");
            match sites.get_mut(names[1]) {
                Some(sum) => add(sum, site),
                None => assert!(sites.insert(names[1].to_string(), site.clone()).is_none()),
            }
        }
    }
    sites
}

fn add(sum: &mut Value, site: &Value) {
    for (name, number) in sum["numbers"].as_object_mut().unwrap() {
        let (Some(one), Some(other)) = (number.as_f64(), site["numbers"][name].as_f64()) else {
            continue; // what is pinned is not known
        };
        let is_error = name.ends_with("error_bytes");
        *number = Value::from(if is_error { one.hypot(other) } else { one + other });
    }
}

fn number(site: &Value, name: &str) -> f64 {
    site["numbers"][name].as_f64().unwrap()
}

fn every_block_is_exact(place: &Place) -> Result<Completion, Failed> {
    let program = program(place);
    let output = place.output(&["profile", "-o", "p.json", "SNUG_PROFILE_BYTES=1", text(&program)]);
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(7), ""));
    let sites = sites(place, "p.json");
    let expected = [(1000, 100, 500), (100, 5000, 100), (3, 1_000_000, 3)];
    for (name, (blocks, bytes, live)) in SITES.iter().zip(expected) {
        let of = |what| number(&sites[*name], what) as i64;
        assert_eq!((of("allocated_blocks"), of("allocated_bytes")), (blocks, blocks * bytes), "{name}");
        assert_eq!((of("live_blocks"), of("live_bytes")), (live, live * bytes), "{name}");
        assert_eq!((of("peak_blocks"), of("peak_bytes")), (blocks, blocks * bytes), "{name}");
        assert_eq!(of("live_error_bytes"), 0);
        let line = &sites[*name]["stack"][1]["lines"][0];
        assert!(line["file"].as_str().unwrap().ends_with("planted.c") && line["line"].as_i64().unwrap() > 10, "{line}");
    }
    Ok(Completion::Completed)
}

/// Of one run; that many come within three standard errors is a test of the library's (tests/unit/sampler.c).
fn samples_come_to_what_there_is(place: &Place) -> Result<Completion, Failed> {
    let program = program(place);
    let output = place.output(&["profile", "-o", "p.json", "SNUG_PROFILE_BYTES=65536", text(&program), "50"]);
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(7), ""));
    let sites = sites(place, "p.json");
    for (name, once) in SITES.iter().zip([100e3, 500e3, 3e6]) {
        let (bytes, error) = (number(&sites[*name], "allocated_bytes"), number(&sites[*name], "allocated_error_bytes"));
        assert!((bytes - 51.0 * once).abs() <= 5.0 * error + 1.0, "{name}: {bytes} ± {error}");
        assert!(error < 0.5 * bytes, "{name}: {bytes} ± {error}");
    }
    Ok(Completion::Completed)
}

fn gos_pprof_reads_it(place: &Place) -> Result<Completion, Failed> {
    // Newer releases of go make their pprof when it is first called, which takes a minute, and keep it in their cache.
    let cache = concat!(env!("CARGO_TARGET_TMPDIR"), "/go");
    let mut pprof = Command::new("go");
    pprof.args(["tool", "pprof"]).env("GOCACHE", cache).env("HOME", place.dir.path());
    pprof.current_dir(place.dir.path()).stdin(Stdio::null());
    if Command::new("go").arg("version").output().is_err() {
        return Ok(Completion::ignored_with("go, whose pprof would read it, is not installed"));
    }
    if !Path::new(cache).exists() && !is_full() {
        return Ok(Completion::ignored_with("go would have to make its pprof first; ./dev test --full does it"));
    }
    let program = program(place);
    place.output(&["profile", "-o", "p.pb.gz", "SNUG_PROFILE_BYTES=1", text(&program)]);
    let top = pprof
        .args(["-top", "-cum", "-unit=B", "-nodefraction=0", "-sample_index=inuse_space", "p.pb.gz"])
        .output()
        .unwrap();
    let said = stdout(&top);
    assert!(top.status.success(), "{}", stderr(&top));
    for (name, bytes) in [("small", "50000B"), ("medium", "500000B"), ("large", "3000000B"), ("all", "3550000B")] {
        let line = said.lines().find(|line| line.ends_with(&format!("  {name}"))).unwrap_or_else(|| panic!("{said}"));
        assert!(line.contains(bytes), "{line}");
    }
    Ok(Completion::Completed)
}

fn a_flame_graph_has_the_calls(place: &Place) -> Result<Completion, Failed> {
    let program = program(place);
    place.output(&["profile", "-o", "p.svg", "SNUG_PROFILE_BYTES=1", text(&program)]);
    let svg = fs::read_to_string(place.path("p.svg")).unwrap();
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
    let svg = roxmltree::Document::parse_with_options(&svg, options).unwrap();
    let titles: Vec<&str> =
        svg.descendants().filter(|node| node.has_tag_name("title")).filter_map(|node| node.text()).collect();
    for part in ["small (50,000 bytes", "medium (500,000 bytes", "large (3,000,000 bytes", "main (3,"] {
        assert!(titles.iter().any(|title| title.starts_with(part)), "{part}: {titles:?}");
    }
    place.output(&["profile", "-o", "p.html", "SNUG_PROFILE_BYTES=1", text(&program)]);
    let html = fs::read_to_string(place.path("p.html")).unwrap();
    assert!(html.contains("&lt;svg") && !html.contains("<script src") && !html.contains("href=\"http"));
    Ok(Completion::Completed)
}

/// A reader chooses what was allocated, searches in it, and zooms into a frame; each time the page says what it shows.
const READER: &str = r#"<script>
const says = [];
function wait() { return new Promise(done => setTimeout(done, 100)); }
function shown() { return [...document.querySelectorAll('#frames > g')].filter(g => !g.classList.contains('hide')); }
async function read() {
  await wait();
  document.querySelector('button[value=allocated]').click();
  await wait();
  says.push(document.querySelector('#title').textContent);
  window.prompt = () => 'medium';
  document.querySelector('#search').dispatchEvent(new MouseEvent('click', { bubbles: true }));
  says.push(document.querySelector('#matched').textContent);
  const frame = shown().find(g => g.textContent.startsWith('small'));
  frame.querySelector('rect').dispatchEvent(new MouseEvent('click', { bubbles: true }));
  const width = frame.querySelector('rect').getAttribute('width');
  says.push(Math.round(parseFloat(width)) + '%', shown().some(g => g.textContent.startsWith('large')));
  document.body.dataset.says = says.join('|');
}
read().catch(error => { document.body.dataset.says = error; });
</script>"#;

fn the_page_is_searched_and_clicked(place: &Place) -> Result<Completion, Failed> {
    let Some(browser) = browser::find() else {
        return Ok(Completion::ignored_with("chromium, which would show it, is not installed"));
    };
    let program = program(place);
    place.output(&["profile", "-o", "p.html", "SNUG_PROFILE_BYTES=1", text(&program)]);
    let page = fs::read_to_string(place.path("p.html")).unwrap();
    place.write("read.html", page.replace("</body>", &format!("{READER}</body>")), 0o644);
    let mut chromium = browser::browse(place, browser);
    chromium.args(["--virtual-time-budget=5000", "--window-size=390,800", "--dump-dom"]);
    let dom = chromium.arg(format!("file://{}", text(&place.path("read.html")))).output().unwrap();
    let dom = String::from_utf8_lossy(&dom.stdout).into_owned();
    let says = dom.split_once("data-says=\"").and_then(|(_, rest)| rest.split_once('"')).map(|(says, _)| says);
    assert_eq!(says, Some("Memory allocated|Matched: 13.9%|100%|false"));

    // What the reader prefers dark is dark.
    let image = browser::screenshot(place, browser, &place.path("p.html"), "500,500", &[browser::DARK]);
    let colours = browser::colours_of(&image);
    let bright = colours.get(&[255, 255, 255]).copied().unwrap_or(0);
    assert!(colours[&[0x16, 0x18, 0x1c]] > 50_000 && bright < 5_000, "{bright}");
    Ok(Completion::Completed)
}

fn profiles_are_shown_merged_and_compared(place: &Place) -> Result<Completion, Failed> {
    let program = program(place);
    for (file, times) in [("a.pb.gz", "2"), ("b.pb.gz", "5")] {
        place.output(&["profile", "-o", file, "SNUG_PROFILE_BYTES=1", text(&program), times]);
    }
    let shown = place.output(&["profile", "show", "a.pb.gz", "--by", "allocated", "--top", "1"]);
    assert_clean(&shown);
    assert!(stdout(&shown).contains("5.72 MiB") && stdout(&shown).contains("large  "), "{}", stdout(&shown));
    assert_clean(&place.output(&["profile", "merge", "a.pb.gz", "b.pb.gz", "-o", "sum.json"]));
    assert_clean(&place.output(&["profile", "diff", "a.pb.gz", "b.pb.gz", "-o", "grown.json"]));
    let grown = stdout(&place.output(&["profile", "diff", "a.pb.gz", "b.pb.gz"]));
    assert!(grown.starts_with("a difference: ") && grown.contains("\nallocated: "), "{grown}");
    assert_clean(&place.output(&["profile", "diff", "a.pb.gz", "b.pb.gz", "-o", "grown.pb.gz"]));
    assert_eq!(stdout(&place.output(&["profile", "show", "grown.pb.gz"])), grown);
    let same = place.output(&["profile", "diff", "a.pb.gz", "a.pb.gz"]);
    assert_clean(&same);
    assert_eq!(stdout(&same), "no difference: each site has as much in the one profile as in the other\n");
    assert_clean(&place.output(&["profile", "show", "b.pb.gz", "--by", "allocated", "-o", "b.folded"]));
    for (file, times) in [("sum.json", 9.0), ("grown.json", 3.0)] {
        let sites = sites(place, file);
        for (name, once) in SITES.iter().zip([100e3, 500e3, 3e6]) {
            assert_eq!(number(&sites[*name], "allocated_bytes"), times * once, "{file}: {name}");
        }
    }
    let folded = fs::read_to_string(place.path("b.folded")).unwrap();
    assert!(folded.lines().any(|line| line.ends_with("main;all;large;leaf 18000000")), "{folded}");
    Ok(Completion::Completed)
}

/// Again and again, and the program is as it was.
fn a_running_program_is_looked_at(place: &Place) -> Result<Completion, Failed> {
    let program = program(place);
    let mut child = place.snug(&["run", "SNUG_PROFILE_BYTES=1", text(&program), "0"]).spawn().unwrap();
    let pid = child.id().to_string();
    sleep(Duration::from_millis(300));
    for _ in 0..5 {
        let output = place.output(&["profile", "-o", "p.json", "--for", "0.2", &pid]);
        assert_clean(&output);
        let sites = sites(place, "p.json");
        for name in SITES {
            assert!(number(&sites[name], "allocated_blocks") >= 3.0, "{name}");
        }
        assert!(child.try_wait().unwrap().is_none());
    }
    child.kill().unwrap();
    child.wait().unwrap();
    Ok(Completion::Completed)
}

/// Of 20,000 blocks the few that stay are apart from each other in one site, and together in another.
const PINNING: &str = r#"
#include <stdlib.h>
#include <unistd.h>
#define APART __attribute__((noinline, noclone))
#define KEEP(p) __asm__ volatile("" : "+r"(p) : : "memory")
static void *gone[20000];
APART void *temporary(void) { void *p = malloc(100); KEEP(p); return p; }
APART void *survivor(void) { void *p = malloc(100); KEEP(p); return p; }
APART void *dense(void) { void *p = malloc(200); KEEP(p); return p; }
int main(void)
{
    for (int i = 0; i < 20000; i++) { gone[i] = temporary(); if (i % 40 == 0) survivor(); }
    for (int i = 0; i < 20000; i++) free(gone[i]);
    for (int i = 0; i < 500; i++) dense();
    _exit(0);
}
"#;

fn what_survivors_pin(place: &Place) -> Result<Completion, Failed> {
    let program = place.compile("pinning", PINNING, &["-O1", "-g"]);
    place.output(&["profile", "-o", "p.json", "SNUG_PROFILE_BYTES=1", text(&program)]);
    let json: Value = serde_json::from_slice(&fs::read(place.path("p.json")).unwrap()).unwrap();
    let pinned = |function: &str| {
        let sites = json["sites"].as_array().unwrap();
        let site = sites.iter().find(|site| site["stack"][0]["lines"][0]["function"] == function).unwrap();
        number(site, "pinned_bytes")
    };
    // 20,500 blocks of 100 bytes take 513 pages and more, and every page keeps a survivor or nearly.
    assert!(pinned("survivor") > 1.5e6 && pinned("survivor") < 2.2e6, "{}", pinned("survivor"));
    assert!(pinned("dense").abs() < 20_000.0 && pinned("temporary") == 0.0, "{}", pinned("dense"));
    let shown = place.output(&["profile", "--by", "pinned", "--top", "1", "SNUG_PROFILE_BYTES=65536", text(&program)]);
    assert!(stderr(&shown).contains("known only of profiles of every block"), "{}", stderr(&shown));
    Ok(Completion::Completed)
}

fn a_program_that_is_killed(place: &Place) -> Result<Completion, Failed> {
    use std::os::unix::process::ExitStatusExt;
    let program = program(place);
    let output = place.output(&["profile", "-o", "p.json", "SNUG_PROFILE_BYTES=1", text(&program), "die"]);
    assert_eq!(output.status.signal(), Some(libc::SIGKILL));
    assert_eq!(number(&sites(place, "p.json")["small"], "live_bytes"), 50_000.0);
    Ok(Completion::Completed)
}

fn what_cannot_be_is_refused(place: &Place) -> Result<Completion, Failed> {
    place.write("none.pb.gz", "no profile", 0o644);
    assert_refused(&place.output(&["profile", "show", "none.pb.gz"]), 1, &["none.pb.gz", "no profile"]);
    assert_refused(&place.output(&["profile", "show", "missing.pb.gz"]), 1, &["missing.pb.gz", "cannot be read"]);
    assert_refused(&place.output(&["profile", "-o", "p.doc", "true"]), 125, &["p.doc", ".pb.gz", ".html"]);
    assert!(!place.path("p.doc").exists());
    let mut sleeper = place.snug(&["run", "sleep", "100"]).spawn().unwrap();
    sleep(Duration::from_millis(500));
    let begun = Instant::now();
    let quiet = place.output(&["profile", "--for", "0.3", &sleeper.id().to_string()]);
    assert!(begun.elapsed() < Duration::from_millis(1900), "it looks as long as it is told to: {:?}", begun.elapsed());
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    assert_refused(
        &quiet,
        1,
        &["has asked for no memory in 0.3 s: there is nothing to be seen; a longer --for waits longer"],
    );
    place.write("empty.pb.gz", "", 0o644);
    assert_refused(&place.output(&["profile", "show", "empty.pb.gz"]), 1, &["it is empty"]);
    assert_refused(&place.output(&["profile", "--for", "1", "4194304"]), 1, &["no process 4194304"]);
    Ok(Completion::Completed)
}
