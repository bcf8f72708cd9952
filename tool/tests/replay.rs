//! `snug replay`: a replay asks for what the program asked for, and finds allocators out that are wrong.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::common::{assert_refused, stderr, stdout, text, Place, SNUG};

/// Three threads, one after the other and together, that free each other's blocks; 17 blocks stay.
const PROGRAM: &str = r#"
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
enum { BLOCKS = 20000 };
void *block[BLOCKS];
static void *fill(void *from)
{
    for (long i = (long)from; i < BLOCKS; i += 2)
        block[i] = i % 5 == 0 ? realloc(calloc(1, 50 + i % 300), 3000 + i % 500)
                 : i % 5 == 1 ? aligned_alloc(64, 6400) : malloc(1000 + i % 977);
    return NULL;
}
static void *empty(void *unused)
{
    for (int i = 17; i < BLOCKS; i++)
        free(block[i]);
    return unused;
}
int main(void)
{
    pthread_t thread[2];
    for (int round = 0; round < 3; round++) {
        pthread_create(&thread[0], NULL, fill, (void *)0);
        pthread_create(&thread[1], NULL, fill, (void *)1);
        pthread_join(thread[0], NULL);
        pthread_join(thread[1], NULL);
        pthread_create(&thread[0], NULL, empty, NULL);
        pthread_join(thread[0], NULL);
        if (round < 2)
            for (int i = 0; i < 17; i++)
                free(block[i]);
    }
}
"#;

fn trace_of(place: &Place, name: &str, words: &[&str]) -> PathBuf {
    let trace = place.path(name);
    let output = place.output(&[&["record", "-q", "-o", text(&trace), "--"], words].concat());
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
    trace
}

fn recorded(place: &Place) -> PathBuf {
    let program = place.compile("program", PROGRAM, &["-O0", "-pthread", "-w"]);
    trace_of(place, "a.trace", &[text(&program)])
}

fn replayer() -> PathBuf {
    PathBuf::from(std::env::var_os("SNUG_LIBRARY").unwrap_or_else(|| "../build/lib/libsnug.so".into()))
        .with_file_name("snugreplay")
}

#[derive(Debug, PartialEq)]
struct Contents {
    sizes: BTreeMap<u64, i64>,
    live: i64,
    live_bytes: i64,
    threads: u64,
}

fn contents(place: &Place, trace: &std::path::Path) -> Contents {
    let output = place.output(&["replay", "--info=json", text(trace)]);
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
    let info: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let totals = &info["totals"];
    assert_eq!(totals["missing_frees"], 0);
    let pairs = info["sizes"].as_array().unwrap().iter();
    Contents {
        sizes: pairs.map(|pair| (pair[0].as_u64().unwrap(), pair[1].as_i64().unwrap())).collect(),
        live: totals["end_live_blocks"].as_i64().unwrap(),
        live_bytes: totals["end_live_bytes"].as_i64().unwrap(),
        threads: totals["threads"].as_u64().unwrap(),
    }
}

/// A trace, its replay recorded, and that once more: what the replayer itself and libc allocate is added each time, and
/// everything else is the same.
#[test]
fn a_replay_asks_for_the_same_sizes_and_leaves_the_same_live() {
    let place = Place::new();
    let first = recorded(&place);
    let operations = place.path("operations");
    let export = |from: &PathBuf| {
        let output = place.output(&["replay", "--export", text(&operations), text(from)]);
        assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
    };
    export(&first);
    let replayer = replayer();
    let second = trace_of(&place, "b.trace", &[text(&replayer), text(&operations)]);
    let (asked, again) = (contents(&place, &first), contents(&place, &second));
    assert_eq!(asked.threads, 10);
    assert_eq!(again.threads, asked.threads);

    // What is more in the second is what an empty replay takes: a thread's start and stdout.
    let mut more = 0;
    for (size, times) in &again.sizes {
        let before = asked.sizes.get(size).copied().unwrap_or(0);
        assert!(*times >= before, "{size} bytes: {before} times, then {times}");
        more += times - before;
    }
    assert!(asked.sizes.keys().all(|size| again.sizes.contains_key(size)));
    assert!(more <= 3 * 9 + 5, "{more} more");
    assert!((0..40).contains(&(again.live - asked.live)), "{asked:?}\n{again:?}");
    assert!((0..20_000).contains(&(again.live_bytes - asked.live_bytes)), "{asked:?}\n{again:?}");
    assert_eq!(asked.sizes[&6400], 12_000);
}

#[test]
fn an_export_that_fails_leaves_what_was_there() {
    let place = Place::new();
    let trace = trace_of(&place, "a.trace", &["ls"]);
    let before = std::fs::read(&trace).unwrap();
    std::fs::hard_link(&trace, place.path("same")).unwrap();
    for to in ["a.trace", "same"] {
        assert_refused(&place.output(&["replay", "--export", to, "a.trace"]), 2, &["is the trace itself"]);
    }
    assert_eq!(std::fs::read(&trace).unwrap(), before);
    place.write("out.bin", "old", 0o644);
    let output = place.output(&["replay", "--export", "out.bin", "--pace", "recorded", "a.trace"]);
    assert_refused(&output, 1, &["--export out.bin: a.trace: it has no times"]);
    assert_eq!(std::fs::read(place.path("out.bin")).unwrap(), b"old");
}

/// What is wrong is said once and with the name, and what is damaged is no event.
#[test]
fn a_damaged_trace_is_told() {
    let place = Place::new();
    let trace = trace_of(&place, "a.trace", &["ls"]);
    let mut bytes = std::fs::read(&trace).unwrap();
    let chosen =
        |output: &std::process::Output| stdout(output).lines().find(|line| line.contains("* ")).map(str::to_string);
    assert!(!chosen(&place.output(&["replay", "--info", "a.trace"])).unwrap().ends_with(" 0 B of events"));
    let events = bytes.len() - 100; // behind it is the end's block
    bytes[events] ^= 1;
    std::fs::write(&trace, &bytes).unwrap();
    let output = place.output(&["replay", "--info", "a.trace"]);
    assert_refused(&output, 1, &["snug: a.trace: the block at byte"]);
    assert_eq!(stderr(&output).matches("a.trace").count(), 1, "{}", stderr(&output));
    let output = place.output(&["replay", "--info", "--whole", "a.trace"]);
    assert!(chosen(&output).unwrap().ends_with(" 0 B of events"), "{}", stdout(&output));
}

/// What is replayed can be large, and a replay that is killed leaves nothing of it.
#[test]
fn a_replay_that_is_killed_leaves_no_operations() {
    let place = Place::new();
    let trace = recorded(&place);
    std::fs::create_dir(place.path("tmp")).unwrap();
    let mut command = place.snug(&["replay", "--rounds", "10000", "--peers", "none", text(&trace)]);
    let mut replay = command.env("TMPDIR", place.path("tmp")).stdout(Stdio::null()).spawn().unwrap();
    let tasks = format!("/proc/{0}/task/{0}/children", replay.id());
    while !std::fs::read_to_string(&tasks).unwrap().split(' ').any(|pid| {
        std::fs::read(format!("/proc/{pid}/cmdline"))
            .is_ok_and(|words| words.starts_with(b"/") && !words.ends_with(b"true\0"))
    }) {
        sleep(Duration::from_millis(5));
    }
    replay.kill().unwrap();
    replay.wait().unwrap();
    let left = std::fs::read_dir(place.path("tmp")).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len());
    assert!(left.sum::<u64>() < 100_000, "the operations of the trace take more");
}

/// The line of figures that snugreplay prints.
fn replayed(place: &Place, options: &[&str]) -> BTreeMap<String, String> {
    let output = Command::new(replayer()).args(options).arg(place.path("operations")).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let line = stdout(&output).lines().last().unwrap().to_string();
    let words = line.split(' ').map(|word| word.split_once('=').unwrap());
    words.map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

#[test]
fn in_one_thread_or_in_many_it_is_the_same() {
    let place = Place::new();
    let trace = recorded(&place);
    let operations = place.path("operations");
    let expected = contents(&place, &trace);
    let mut hashes = Vec::new();
    for option in [&["--one-thread"][..], &[]] {
        let output = place.output(&[&["replay", "--export", text(&operations), text(&trace)], option].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        for touch in ["--touch=all", "--touch=pages", "--touch=none"] {
            let found = replayed(&place, &[touch]);
            assert_eq!(found["live"], expected.live.to_string());
            assert_eq!(found["live_bytes"], expected.live_bytes.to_string());
            assert_eq!(found["threads"], if option.is_empty() { "10" } else { "1" });
            hashes.push(found["sizes"].clone());
        }
    }
    hashes.dedup();
    assert_eq!(hashes.len(), 1);
}

#[test]
fn a_table_of_all_allocators_and_its_figures_as_json() {
    let place = Place::new();
    let trace = recorded(&place);
    let json = place.path("out.json");
    let args = ["replay", "--rounds", "2", "--peers", "none", "--json", text(&json), text(&trace)];
    let output = place.output(&args);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).contains("replay/a"), "{}", stdout(&output));
    let lab: serde_json::Value = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
    let row = &lab["rows"][0];
    assert_eq!((&row["row"]["threads"], row["series"].as_array().unwrap().len()), (&10.into(), 2));
    assert_eq!(row["series"][1]["figures"].as_array().unwrap().len(), 2);
    assert_eq!(row["series"][0]["figures"][0]["further"]["live"], contents(&place, &trace).live as f64);
}

#[test]
fn a_footprint_is_the_same_each_time() {
    let place = Place::new();
    let trace = recorded(&place);
    let (json, html) = (place.path("footprint.json"), place.path("footprint.html"));
    let runs = [(); 2].map(|()| {
        let files = ["--json", text(&json), "--html", text(&html), text(&trace)];
        let output = place.output(&[&["replay", "--footprint", "--peers", "none"], &files[..]].concat());
        assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
        assert!(stdout(&output).contains("a: overhead"), "{}", stdout(&output));
        let found: serde_json::Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
        found["traces"][0]["footprints"].clone()
    });
    assert!(std::fs::read_to_string(html).unwrap().contains("a: resident memory by operations"));
    for (place, name) in ["system", "snug"].into_iter().enumerate() {
        let of = |run: &serde_json::Value, what: &str| run[place][what].as_f64().unwrap();
        let (first, second) = (of(&runs[0], "peak_kib"), of(&runs[1], "peak_kib"));
        // 20,000 blocks of 1 to 6.4 KB. A page or two may differ, and in what snug keeps, which
        // depends on the time that passes too, a span of 1 MiB or two.
        assert!(first > 30_000.0 && of(&runs[0], "overhead") > 1.0, "{name}: {first}");
        assert!((first - second).abs() <= if name == "snug" { 2112.0 } else { 64.0 }, "{name}: {first} {second}");
        let samples = runs[0][place]["samples"].as_array().unwrap();
        let most = samples.iter().map(|sample| sample["resident_kib"].as_f64().unwrap()).fold(0.0, f64::max);
        assert!(samples.len() >= 200 && most == first, "{} samples, {most}", samples.len());
    }
}

/// A malloc that is wrong in one way, by a preloaded library.
fn faulty(place: &Place, name: &str, source: &str) -> String {
    let head = "#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <stddef.h>\n#include <string.h>\n";
    let library = place.compile(name, &format!("{head}{source}"), &["-shared", "-fPIC", "-O1", "-w", "-fno-builtin"]);
    format!("{name}={}", text(&library))
}

/// While an allocator that never ends is looked at.
#[test]
fn a_replay_that_is_stopped_before_it_has_figures_says_so() {
    let place = Place::new();
    trace_of(&place, "a.trace", &["ls"]);
    let source = "#include <fcntl.h>\n#include <unistd.h>\n\
        void *__libc_malloc(size_t); void *malloc(size_t s) { return __libc_malloc(s); }\
        __attribute__((constructor)) static void hang(void) { open(\"hangs\", O_CREAT | O_WRONLY, 0600); pause(); }";
    let peer = faulty(&place, "hangs-here", source);
    let words = ["replay", "--footprint", "--peers", "none", "--peer", &peer, "a.trace"];
    let child = place.snug(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    for _ in 0..1000 {
        if place.path("hangs").exists() {
            break;
        }
        sleep(Duration::from_millis(10));
    }
    // SAFETY: the child was not waited for.
    unsafe { libc::kill(child.id() as i32, libc::SIGINT) };
    assert_refused(&child.wait_with_output().unwrap(), 1, &["stopped before anything was replayed"]);
}

#[test]
fn allocators_that_are_wrong_are_found_out() {
    let place = Place::new();
    let trace = recorded(&place);
    let faults = [
        // The 5,000th large block is handed out a second time, as the next one that fits into it.
        (
            "twice",
            "void *__libc_malloc(size_t); static void *kept; static size_t most; static int n;\
          void *malloc(size_t s) { if (s < 900) return __libc_malloc(s); int i = __sync_add_and_fetch(&n, 1);\
          if (i > 5000 && kept && s <= most) { void *p = kept; kept = 0; return p; }\
          void *p = __libc_malloc(s); if (i == 5000) { kept = p; most = s; } return p; }",
            "another wrote into the block",
        ),
        (
            "dirty",
            "void *__libc_malloc(size_t);\
          void *calloc(size_t a, size_t b) { void *p = __libc_malloc(a * b); memset(p, 1, a * b); return p; }",
            "calloc did not clear",
        ),
        (
            "forgets",
            "void *__libc_malloc(size_t); void *__libc_realloc(void *, size_t);\
          void *realloc(void *p, size_t s) { return s < 3000 ? __libc_realloc(p, s) : __libc_malloc(s); }",
            "realloc did not keep",
        ),
        (
            "crooked",
            "void *__libc_malloc(size_t); void *memalign(size_t a, size_t s) { return __libc_malloc(s); }",
            "not aligned",
        ),
        (
            "fails",
            "void *__libc_malloc(size_t); static int n;\
          void *malloc(size_t s) { return s > 900 && __sync_add_and_fetch(&n, 1) > 5000 ? 0 : __libc_malloc(s); }",
            "an allocation failed",
        ),
    ];
    let peers = faults.map(|(name, source, _)| ["--peer".to_string(), faulty(&place, name, source)]);
    let mut words = vec!["replay", "--rounds", "1", "--peers", "none", "--one-thread", text(&trace)];
    words.extend(peers.iter().flatten().map(String::as_str));
    let output = place.output(&words);
    let said = stdout(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    for (name, _, expected) in faults {
        let failure = format!(" on {name}: ");
        let line = said.lines().find(|line| line.contains(&failure)).unwrap_or_else(|| panic!("{name}: {said}"));
        assert!(line.contains(expected), "{name}: {said}");
    }
    assert!(!said.contains("on system:") && !said.contains("on snug:"), "{said}");
}

#[test]
fn what_cannot_be_replayed() {
    let place = Place::new();
    let bad = place.write("operations", "not operations, but long enough to be a header of them, and more", 0o644);
    let output = Command::new(replayer()).arg(&bad).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).starts_with("snugreplay: ") && stderr(&output).lines().count() == 1);
    for wrong in [&["--touch=some", "x"][..], &[], &["x", "y"]] {
        assert_eq!(Command::new(replayer()).args(wrong).output().unwrap().status.code(), Some(2), "{wrong:?}");
    }
    assert!(Command::new(SNUG).args(["replay"]).output().unwrap().status.code() == Some(2));
}
