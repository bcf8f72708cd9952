//! Looking at running programs: `snug stats`, `snug trim`, `snug top`, and `snug run --plot`.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::common::running::{holder, json_of, no_terminals, Running, Terminal, HOLDER};
use crate::common::{assert_clean, assert_refused, stderr, stdout, text, without_surroundings, Place, Tests, SNUG};
use libtest_mimic::{Completion, Failed};

pub fn tests() -> Tests {
    vec![
        ("statistics_from_outside", statistics_from_outside),
        ("all_ways_to_be_linked", all_ways_to_be_linked),
        ("a_first_thread_that_has_ended", a_first_thread_that_has_ended),
        ("large_blocks_by_size", large_blocks_by_size),
        ("heaps_of_the_programs_own", heaps_of_the_programs_own),
        ("what_was_live_at_the_peak", what_was_live_at_the_peak),
        ("what_is_free_and_why", what_is_free_and_why),
        ("what_was_never_touched_is_not_in_memory", what_was_never_touched_is_not_in_memory),
        ("what_a_trim_gives_back_is_known_before", what_a_trim_gives_back_is_known_before),
        ("what_only_begins_is_waited_for", what_only_begins_is_waited_for),
        ("an_exec_is_no_end", an_exec_is_no_end),
        ("what_cannot_be_looked_at", what_cannot_be_looked_at),
        ("without_a_page_map_one_look_will_do", without_a_page_map_one_look_will_do),
        ("a_busy_program_is_looked_at", a_busy_program_is_looked_at),
        ("top_in_a_terminal", top_in_a_terminal),
        ("a_plot_is_drawn", a_plot_is_drawn),
    ]
}

fn statistics_from_outside(place: &Place) -> Result<Completion, Failed> {
    let program = holder(place);
    let found = json_of(place, &program.pid());
    let memory = found["memory"].as_object().unwrap();
    let parts: u64 =
        memory.iter().filter(|(name, _)| *name != "mapped").map(|(_, bytes)| bytes.as_u64().unwrap()).sum();
    assert_eq!(parts, memory["mapped"].as_u64().unwrap());
    assert_eq!(found["pid"].to_string(), program.pid());
    assert_eq!(found["requested"]["requested_large"], 5000000);
    let class = found["classes"].as_array().unwrap().iter().find(|class| class["size"] == 112).unwrap();
    assert!((3000..3020).contains(&class["live"].as_u64().unwrap()), "{class}");
    // The program rests: another look sees the same.
    assert_eq!(json_of(place, &program.pid())["memory"], found["memory"]);

    let csv = stdout(&place.output(&["stats", &program.pid(), "--format", "csv"]));
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let (names, row) = (reader.headers().unwrap().clone(), reader.records().next().unwrap().unwrap());
    assert_eq!(names.len(), row.len());
    assert!(stdout(&place.output(&["stats", &program.pid(), "--format", "openmetrics"])).ends_with("# EOF\n"));
    let lines = |detail: &[&str]| {
        let pid = program.pid();
        stdout(&place.output(&[&["stats", pid.as_str()], detail].concat())).lines().count()
    };
    // A screen of the library's, and the tool's own words on what is free.
    assert!(lines(&[]) <= 40 && lines(&["--detail"]) > 60);
    Ok(Completion::Completed)
}

/// Then the first thread has no memory, though the others go on with it: it is looked at, and borrowed, through them.
fn a_first_thread_that_has_ended(place: &Place) -> Result<Completion, Failed> {
    let source = HOLDER.replace("int main(void)", "#include <pthread.h>\nstatic int hold(void)")
        + "static void *holds(void *unused) { exit(hold()); return unused; }
           int main(void) { pthread_t id; pthread_create(&id, NULL, holds, NULL); pthread_exit(NULL); }";
    let program = place.compile("holder", &source, &["-O1", "-w", "-fno-builtin", "-pthread"]);
    let program = Running::start(place.snug(&["run", text(&program)]));
    let pid = program.pid();
    while !fs::read_to_string(format!("/proc/{pid}/stat")).unwrap().contains(") Z ") {
        sleep(Duration::from_millis(10));
    }
    let found = json_of(place, &pid);
    assert_eq!((found["pid"].to_string(), &found["requested"]["requested_large"]), (pid.clone(), &5000000.into()));
    assert!(found["process"]["resident_snug"].as_u64().unwrap() > 5000000, "{found}");
    let trimmed = stdout(&place.output(&["trim", &pid]));
    assert!(trimmed.starts_with(&format!("process {pid} gave back ")), "{trimmed}");
    assert_eq!(json_of(place, &pid)["memory"]["purge_pending"], 0);
    assert_clean(&place.output(&["check", &pid]));
    Ok(Completion::Completed)
}

/// Threads begin and end in it, and spans and large blocks come and go, so that lists change while they are followed.
fn a_busy_program_is_looked_at(place: &Place) -> Result<Completion, Failed> {
    let program = place.compile("busy", BUSY, &["-O1", "-w", "-fno-builtin", "-pthread"]);
    let program = Running::start(place.snug(&["run", text(&program)]));
    for _ in 0..40 {
        let begun = Instant::now();
        assert!(json_of(place, &program.pid())["memory"]["mapped"].as_u64().unwrap() > 0);
        assert!(begun.elapsed() < Duration::from_secs(20));
    }
    Ok(Completion::Completed)
}

const BUSY: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static void *works(void *seed)
{
    unsigned random = (unsigned)(size_t)seed * 7919 + 1;
    void *blocks[300] = {0};
    for (;;) {
        random = random * 1664525u + 1013904223u;
        unsigned i = (random >> 8) % 300;
        free(blocks[i]);
        blocks[i] = malloc(random % 4999 == 0 ? 3000000 : random % 997 == 0 ? 200000 : (random >> 16) % 3000 + 1);
        *(char *)blocks[i] = 1;
    }
}
static void *ends(void *unused)
{
    for (int i = 0; i < 300; i++)
        free(malloc(i * 10 + 1));
    return unused;
}
int main(void)
{
    pthread_t thread, threads[20];
    for (size_t i = 0; i < 3; i++)
        pthread_create(&thread, NULL, works, (void *)i);
    puts("ready");
    fflush(stdout);
    for (;;) {
        for (int i = 0; i < 20; i++)
            pthread_create(&threads[i], NULL, ends, NULL);
        for (int i = 0; i < 20; i++)
            pthread_join(threads[i], NULL);
    }
}
"#;

/// Preloaded, linked, static without position, and stripped: the note is found in all of them.
fn all_ways_to_be_linked(place: &Place) -> Result<Completion, Failed> {
    let Some(library) = std::env::var_os("SNUG_LIBRARY").map(|path| Path::new(&path).with_file_name("libsnug.a"))
    else {
        return Ok(Completion::ignored_with("SNUG_LIBRARY is not set"));
    };
    if !library.exists() {
        return Ok(Completion::ignored_with("there is no libsnug.a beside the library"));
    }
    for flags in [&["-static", "-no-pie", "-s"][..], &["-pie", "-fPIE", "-s"], &["-Wl,--gc-sections"]] {
        let flags: Vec<&str> =
            ["-w", "-fno-builtin", text(&library), "-pthread"].iter().chain(flags).copied().collect();
        let mut command = Command::new(place.compile("linked", HOLDER, &flags));
        without_surroundings(&mut command);
        let program = Running::start(command);
        assert_eq!(json_of(place, &program.pid())["requested"]["requested_large"], 5000000, "{flags:?}");
    }
    Ok(Completion::Completed)
}

/// One survivor in so many pins nearly all slabs; six large blocks of five sizes.
const SPARSE: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(void)
{
    static void *volatile kept[200000];
    static void *volatile large[6];
    size_t sizes[6] = {300000, 1000000, 1000000, 3000000, 100 << 20, 300 << 20};
    char line[8];
    for (int i = 0; i < 200000; i++) kept[i] = malloc(200);
    for (int i = 0; i < 200000; i++) if (i % 50 != 0) free(kept[i]);
    for (int i = 0; i < 6; i++) large[i] = malloc(sizes[i]);
    puts("ready");
    fflush(stdout);
    return read(0, line, sizeof(line)) < 0;
}"#;

fn sparse(place: &Place) -> Running {
    let program = place.compile("sparse", SPARSE, &["-O1", "-w", "-fno-builtin"]);
    Running::start(place.snug(&["run", text(&program)]))
}

fn large_blocks_by_size(place: &Place) -> Result<Completion, Failed> {
    let program = sparse(place);
    let said = stdout(&place.output(&["stats", &program.pid()]));
    let rows: Vec<Vec<&str>> = said
        .lines()
        .filter(|line| line.starts_with("to ") && !line.starts_with("to   4 KiB"))
        .map(|line| line.split_whitespace().take(6).collect())
        .collect();
    let expected = [
        ["to", "512", "MiB", "1", "300.0", "MiB"],
        ["to", "128", "MiB", "1", "100.0", "MiB"],
        ["to", "4", "MiB", "1", "2.9", "MiB"],
        ["to", "1", "MiB", "2", "1.9", "MiB"],
        ["to", "512", "KiB", "1", "293.0", "KiB"],
    ];
    assert_eq!(rows, expected, "{said}");
    let found: Vec<[u64; 3]> = json_of(place, &program.pid())["large"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| ["up_to", "blocks", "bytes"].map(|name| row[name].as_u64().unwrap()))
        .collect();
    let (kib, mib) = (1 << 10, 1 << 20);
    let expected = [
        [512 * kib, 1, 300000],
        [mib, 2, 2000000],
        [4 * mib, 1, 3000000],
        [128 * mib, 1, 100 * mib],
        [512 * mib, 1, 300 * mib],
    ];
    assert_eq!(found, expected);
    // Of a program that has ended, too.
    let ended = place.output(&["run", "--stats", text(&place.path("sparse"))]);
    assert!(stderr(&ended).contains("\nto 128 MiB               1  100.0 MiB  "), "{}", stderr(&ended));
    Ok(Completion::Completed)
}

/// A program with nothing in malloc's heap, and 58 MiB in two of its own.
const HEAPS: &str = r#"
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <snug/snug.h>
int main(void)
{
    struct snug_heap_config left = {.size = sizeof(left), .name = "left", .quota = 64 << 20};
    struct snug_heap_config right = {.size = sizeof(right), .name = "right"};
    snug_heap *heaps[2] = {snug_heap_create(&left), snug_heap_create(&right)};
    for (int i = 0; i < 58; i++) memset(snug_heap_malloc(heaps[i >= 40], 1 << 20), 1, 1 << 20);
    char line[8];
    puts("ready");
    fflush(stdout);
    return read(0, line, sizeof(line)) < 0;
}"#;

fn heaps_of_the_programs_own(place: &Place) -> Result<Completion, Failed> {
    let include = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/../include");
    let Some(library) = std::env::var_os("SNUG_LIBRARY") else {
        return Ok(Completion::ignored_with("SNUG_LIBRARY is not set"));
    };
    let program = place.compile("heaps", HEAPS, &["-w", include, text(Path::new(&library))]);
    let running = Running::start(place.snug(&["run", text(&program)]));
    let pid = running.pid();
    let found = json_of(place, &pid);
    let heap =
        |name: &str| found["heaps"].as_array().unwrap().iter().find(|heap| heap["name"] == name).unwrap().clone();
    let mib = |value: &serde_json::Value| value.as_u64().unwrap() >> 20;
    let (left, right) = (heap("left"), heap("right"));
    assert_eq!((mib(&left["live"]), mib(&left["quota"]), &left["provider"]), (40, 64, &"system".into()), "{left}");
    assert_eq!((mib(&right["live"]), right["quota"].is_null()), (18, true), "{right}");
    assert!(mib(&left["peak"]) >= 40 && mib(&right["peak"]) < 40, "{left} {right}");
    assert!(mib(&found["process"]["resident_heaps"]) >= 58 && mib(&found["process"]["resident_other"]) < 20);
    let metrics = stdout(&place.output(&["stats", &pid, "--openmetrics"]));
    assert!(
        metrics.contains("\nsnug_heap_quota_bytes{heap=\"left\",provider=\"system\",quota=\"67108864\"} 67108864\n")
    );
    let exported = stdout(&place.output(&["export"]));
    let line =
        exported.lines().find(|line| line.starts_with("snug_heap_live_bytes{") && line.contains("heap=\"right\""));
    assert!(line.is_some_and(|line| line.contains(&format!("pid=\"{pid}\",program=\"heaps\""))), "{exported}");
    // As one who looks at it would see it: by itself, at its end, and in the picture.
    let said = stdout(&place.output(&["stats", &pid]));
    assert!(said.contains("\n  in malloc's heap ") && said.contains("  system    left\n"), "{said}");
    let verdict = |said: &str| {
        let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
        words.split("snug: statistics of").nth(1).unwrap().to_string()
    };
    let now = verdict(&said);
    assert!(now.contains(" Now at most 58.") && now.contains(" MiB of it in heaps of the program's own"), "{said}");
    let top = stdout(&place.output(&["top", &pid, "--once"]));
    let row = |name: &str| {
        let line = top.lines().find(|line| line.ends_with(name)).unwrap_or_else(|| panic!("{name} is not in {top}"));
        line.split_whitespace().map(str::to_string).collect::<Vec<_>>()
    };
    assert_eq!(row("  left")[8..], ["64.00", "MiB", "system", "left"], "{top}");
    assert!(row("  right").contains(&"none".to_string()) && row("  right")[2].starts_with("18."), "{top}");
    assert!(top.contains("; 2 heaps of its own: 58."), "{top}");
    assert!(top.lines().any(|line| line.starts_with("in heaps of its own  ") && line.ends_with(" MiB")), "{top}");
    let all = stdout(&place.output(&["top", "--once"]));
    let own = all.lines().find(|line| line.trim_start().starts_with(&pid)).unwrap_or_else(|| panic!("{all}"));
    assert!(own.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() >= 58.0, "{all}");
    drop(running);
    let mut ended = place.snug(&["run", "--stats", "--plot=heaps.svg", text(&program)]);
    let said = stderr(&ended.stdin(Stdio::null()).output().unwrap());
    assert!(said.contains("  h in heaps of its own ") && said.contains("  system    right\n"), "{said}");
    let end = verdict(&said);
    assert!(end.contains(" At the end at most 58.") && !end.contains("(0 %)"), "{said}");
    assert!(
        end.contains(" were in use, beside pages of ") && end.matches("in heaps of the program's own").count() == 2,
        "{said}"
    );
    let svg = fs::read_to_string(place.path("heaps.svg")).unwrap();
    let live = svg.split("<title>").filter(|part| part.starts_with("granted"));
    let most =
        live.filter_map(|part| part.split(": ").nth(1)?.split(" MiB").next()?.parse::<f64>().ok()).fold(0.0, f64::max);
    assert!((58.0..90.0).contains(&most), "{most} {svg}");
    Ok(Completion::Completed)
}

/// It has most in the middle: a million small blocks, 200 medium ones, one of 3 MiB; at its end a thousandth of that.
const PEAK: &str = r#"
#include <stdlib.h>
#include <unistd.h>
static void *volatile kept[1000000];
static void *volatile more[60];
int main(int count, char **arguments)
{
    for (int i = 0; i < 1000000; i++) kept[i] = malloc(60);
    for (int i = 0; i < 200; i++) kept[i] = realloc(kept[i], 5000);
    void *volatile large = malloc(3 << 20);
    for (int i = 0; i < 60; i++) more[i] = malloc(90);
    free(large);
    for (int i = 0; i < 1000000; i++) if (i % 1000) free(kept[i]);
    _exit(0);
}"#;

fn what_was_live_at_the_peak(place: &Place) -> Result<Completion, Failed> {
    place.compile("peak", PEAK, &["-O1", "-w", "-fno-builtin"]);
    let said = stderr(&place.output(&["run", "--stats", "./peak"]));
    let lines: Vec<&str> = said.lines().skip_while(|line| !line.starts_with("snug: statistics of")).collect();
    assert!(
        lines[1].starts_with("At the peak 64.9") && lines[1].contains(" were in use (99 %). At the end "),
        "{said}"
    );
    let peak = lines.iter().find(|line| line.starts_with("at the peak, after ")).unwrap_or_else(|| panic!("{said}"));
    assert!(peak.ends_with(" s: in use 65.0 MiB, of 1 thread"), "{said}");
    let row = |name: &str| -> Vec<String> {
        let line = lines.iter().find(|line| line.trim_start().starts_with(name)).unwrap_or_else(|| panic!("{said}"));
        line.split_whitespace().map(str::to_string).collect()
    };
    assert_eq!(row("64 B")[5..], ["999,800", "61.0", "MiB"], "{said}");
    assert_eq!(row("to   4 MiB")[6..], ["1", "3.0", "MiB"], "{said}");
    assert!(lines.iter().all(|line| line.len() <= 80), "{said}");

    assert_eq!(place.output(&["run", "--stats=peak.json", "./peak"]).status.code(), Some(0));
    let found: serde_json::Value = serde_json::from_str(&fs::read_to_string(place.path("peak.json")).unwrap()).unwrap();
    let (peaks, number) = (&found["peaks"], |value: &serde_json::Value| value.as_u64().unwrap());
    assert_eq!(number(&peaks["peak_large"]), 3 << 20, "{peaks}");
    assert!((1000000..1030000).contains(&number(&peaks["peak_medium"])), "{peaks}");
    let sum: u64 = ["peak_small", "peak_medium", "peak_large"].iter().map(|name| number(&peaks[name])).sum();
    assert_eq!(number(&peaks["peak_live"]), sum);
    assert!(number(&peaks["peak_live"]) <= number(&peaks["used_peak"]), "{peaks}");
    assert!(number(&found["requested"]["live"]) < number(&peaks["peak_live"]) / 100, "{found}");
    assert_eq!((number(&peaks["peak_threads"]), number(&peaks["peak_heaps"])), (1, 0));
    let class = found["classes"].as_array().unwrap().iter().find(|class| class["size"] == 64).unwrap();
    assert!((999_000..=999_800).contains(&number(&class["peak"])) && number(&class["live"]) < 2000, "{class}");
    assert_eq!(found["large_at_peak"], serde_json::json!([{"up_to": 4 << 20, "blocks": 1, "bytes": 3 << 20}]));
    assert_eq!(found["large"], serde_json::json!([]));
    // Nothing was ever worth a copy.
    assert_eq!(place.output(&["run", "--stats=small.json", "/bin/true"]).status.code(), Some(0));
    let found: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(place.path("small.json")).unwrap()).unwrap();
    assert!(found["peaks"]["peak_live"].is_null() && found["large_at_peak"].is_null(), "{found}");
    Ok(Completion::Completed)
}

fn what_is_free_and_why(place: &Place) -> Result<Completion, Failed> {
    let program = sparse(place);
    let said = stdout(&place.output(&["stats", &program.pid()]));
    let why =
        said.split("what is free, and why (the words: snug man glossary)\n").nth(1).unwrap_or_else(|| panic!("{said}"));
    let why = why.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        why.contains("are pinned by few objects: ") && why.contains("slabs are at most a quarter in use"),
        "{said}"
    );
    let pinned: f64 = why.split(" MiB of it are pinned").next().unwrap().rsplit(' ').next().unwrap().parse().unwrap();
    // 200,000 objects of 208 bytes are 39.7 MiB, of which a fiftieth lives; magazines and depots have some.
    assert!((30.0..39.7).contains(&pinned), "{said}");
    assert!(why.contains("(208 B: "), "{said}");
    let json = json_of(place, &program.pid());
    let class = json["classes"].as_array().unwrap().iter().find(|class| class["size"] == 208).unwrap().clone();
    let number = |name: &str| class[name].as_u64().unwrap();
    assert!(number("sparse_slabs") > 100 && number("sparse_slabs") <= number("slabs"), "{class}");
    assert!((number("sparse_bytes") as f64 / 1048576.0 - pinned).abs() < 0.2, "{class} {pinned}");
    let all: u64 =
        json["classes"].as_array().unwrap().iter().map(|class| class["sparse_bytes"].as_u64().unwrap()).sum();
    assert_eq!(json["other"]["pinned"], all);
    let metrics = stdout(&place.output(&["stats", &program.pid(), "--openmetrics"]));
    assert!(metrics.contains(&format!("\nsnug_class_sparse_bytes{{size=\"208\"}} {}\n", number("sparse_bytes"))));
    let ended = stderr(&place.output(&["run", "--stats", text(&place.path("sparse"))]));
    assert!(ended.contains("what is free, and why") && ended.contains("pinned by few objects"), "{ended}");
    let little = stderr(&place.output(&["run", "--stats", "true"]));
    assert!(little.contains("It has taken no memory from snug.\n"), "{little}");
    // A malloc of its own in the program comes before snug's.
    let own = r#"
        #include <string.h>
        static char all[32 << 20], *next = all;
        void *malloc(unsigned long size) { next += 4096; return next + size < all + sizeof(all) ? next : 0; }
        void free(void *block) { }
        void *calloc(unsigned long count, unsigned long size) { return malloc(count * size); }
        void *realloc(void *block, unsigned long size) { return malloc(size); }
        int main(void) { for (int i = 0; i < 5000; i++) memset(malloc(4096), 1, 4096); return 0; }"#;
    let own = place.compile("own", own, &["-O1", "-w", "-fno-builtin-malloc", "-rdynamic"]);
    for command in [&["run", "--stats", text(&own)][..], &["compare", "--rounds=1", "--warmup=0", text(&own)]] {
        let output = place.output(command);
        let said = (stdout(&output) + &stderr(&output)).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            said.contains("taken no memory from snug, though 2") && said.contains("malloc of the program's own"),
            "{said}"
        );
    }
    let little = stderr(&place.output(&["run", "--stats", "ls", "/"]));
    assert!(!little.contains("malloc of the program's own"), "{little}");
    let bare = little.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(bare.contains("; there is little to gain.") && !little.contains("what is free, and why"), "{little}");
    Ok(Completion::Completed)
}

/// Every 20th of 3,000 medium blocks stays, and every 50th of 100,000 objects.
const FRAGMENTED: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(void)
{
    static void *small[100000], *medium[3000];
    for (int i = 0; i < 100000; i++) small[i] = malloc(208);
    for (int i = 0; i < 100000; i++) if (i % 50) free(small[i]);
    for (int i = 0; i < 3000; i++) { medium[i] = malloc(8000); memset(medium[i], 1, 8000); }
    for (int i = 0; i < 3000; i++) if (i % 20) free(medium[i]);
    puts("ready");
    fflush(stdout);
    pause();
}
"#;

/// 64 MiB that are never touched, and 20 MB of small objects that are all freed.
const UNTOUCHED: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(void)
{
    static void *volatile kept[200000];
    void *volatile large = malloc(64 << 20);
    for (int i = 0; i < 200000; i++) kept[i] = memset(malloc(100), 1, 100);
    for (int i = 0; i < 200000; i++) free(kept[i]);
    puts("ready");
    fflush(stdout);
    pause();
}
"#;

/// What is in use and what goes back are no more than there is; and where nothing is in use, nothing is pinned.
fn what_was_never_touched_is_not_in_memory(place: &Place) -> Result<Completion, Failed> {
    let source = place.compile("untouched", UNTOUCHED, &["-O1", "-w", "-fno-builtin"]);
    let program = Running::start(place.snug(&["run", "SNUG_DIRTY=64MiB", text(&source)]));
    let said = stdout(&place.output(&["stats", &program.pid()]));
    let bare = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(bare.contains(", of 64.00 MiB that the program has, touched or not; "), "{said}");
    let mib = |before: &str| -> f64 {
        let rest = bare.split(before).nth(1).unwrap_or_else(|| panic!("{before} is not in {said}"));
        let words: Vec<&str> = rest.split_whitespace().take(2).collect();
        let unit = if words[1].starts_with("KiB") { 1024.0 } else { 1.0 };
        words[0].parse::<f64>().unwrap() / unit
    };
    let (used, occupied, back) = (mib(" Now at most "), mib(" of the "), mib("gives back "));
    assert!(back > 5.0 && used + back <= occupied + 0.02, "{said}");
    assert!(!bare.contains("pinned by few objects"), "{said}");
    assert_eq!(json_of(place, &program.pid())["other"]["pinned"], 0, "{said}");
    Ok(Completion::Completed)
}

/// What is said before a trim is what the system counts after it; how full slabs are is what the program did.
fn what_a_trim_gives_back_is_known_before(place: &Place) -> Result<Completion, Failed> {
    let source = place.compile("fragmented", FRAGMENTED, &["-O1", "-w", "-fno-builtin"]);
    // How much is kept beyond a bound depends on the time that the program took: so none is reached.
    let program = Running::start(place.snug(&["run", "SNUG_DIRTY=64MiB", text(&source)]));
    let said = stdout(&place.output(&["stats", &program.pid()]));
    let verdict: Vec<&str> = said.lines().skip(1).take(4).collect();
    let verdict = verdict.join(" ");
    assert!(
        verdict.starts_with("Now ") && verdict.contains(&format!("snug trim {} gives back", program.pid())),
        "{said}"
    );
    assert!(verdict.contains("stay pinned by few objects (208 B)"), "{said}");
    let slabs = said.split("half-empty slabs").nth(1).unwrap_or_else(|| panic!("{said}"));
    let row: Vec<&str> = slabs.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!((row[0], row[3], row[4]), ("208", "1", "%"), "{said}");
    assert!(said.lines().all(|line| line.chars().count() <= 80), "{said}");
    let foretold = json_of(place, &program.pid())["other"]["trimmable"].as_u64().unwrap();
    let resident = || {
        let text = fs::read_to_string(format!("/proc/{}/smaps_rollup", program.pid())).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("Rss:")).unwrap().to_string();
        line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() << 10
    };
    let before = resident();
    assert_clean(&place.output(&["trim", &program.pid()]));
    let given = before - resident();
    assert!(foretold > 20 << 20, "{foretold}");
    // Magazines and depots add a little, and system calls touch a page or two.
    assert!((foretold * 95 / 100..foretold + (1 << 20)).contains(&given), "{foretold} foretold, {given} given back");
    // What is left is no longer promised.
    let after = json_of(place, &program.pid())["other"]["trimmable"].as_u64().unwrap();
    assert!(after < 128 << 10, "{after}");
    Ok(Completion::Completed)
}

/// As after `snug run ... &` and `snug stats $!`.
fn what_only_begins_is_waited_for(place: &Place) -> Result<Completion, Failed> {
    let mut begins = Command::new("sh");
    let begins = begins.args(["-c", "sleep 0.2; exec \"$0\" run cat", SNUG]).env("XDG_CACHE_HOME", place.cache());
    let mut begins = without_surroundings(begins).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let found = place.output(&["stats", &begins.id().to_string(), "--json"]);
    begins.kill().unwrap();
    begins.wait().unwrap();
    assert_clean(&found);
    Ok(Completion::Completed)
}

/// Whoever names a process while it becomes one program after the other sees one of them.
fn an_exec_is_no_end(place: &Place) -> Result<Completion, Failed> {
    let source = r#"
        #include <stdio.h>
        #include <stdlib.h>
        #include <unistd.h>
        int main(int count, char **words)
        {
            int left = atoi(words[1]);
            char next[16], *again[] = {words[0], next, NULL};
            void *volatile kept = malloc(5000000 + left);
            for (int i = 0; i < 1000; i++) { void *volatile p = malloc(i); }
            snprintf(next, sizeof(next), "%d", left - 1);
            if (left > 0)
                execv(words[0], again);
            pause();
            return kept == NULL;
        }"#;
    let program = place.compile("execs", source, &["-O1", "-w", "-fno-builtin"]);
    for look in
        [["stats", "--json"], ["export", "--output=/proc/self/fd/1"], ["top", "--once"], ["trim", "--wait=5"]].repeat(3)
    {
        let mut execs = place.snug(&["run", text(&program), "300"]).stdout(Stdio::null()).spawn().unwrap();
        let found = place.output(&[look[0], look[1], &execs.id().to_string()]);
        execs.kill().unwrap();
        execs.wait().unwrap();
        assert_clean(&found);
    }
    Ok(Completion::Completed)
}

fn what_cannot_be_looked_at(place: &Place) -> Result<Completion, Failed> {
    let mut plain = Command::new("cat");
    let mut plain = without_surroundings(&mut plain).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let pid = plain.id().to_string();
    for command in ["stats", "trim", "check", "top"] {
        assert_refused(&place.output(&[command, &pid]), 1, &["does not run on snug", "snug run"]);
        assert_refused(&place.output(&[command, "999999999"]), 1, &["no process 999999999"]);
        for wrong in ["0", "x"] {
            let output = place.output(&[command, wrong]);
            assert_eq!(output.status.code(), Some(2));
            assert!(stderr(&output).contains("not the number of a process"), "{}", stderr(&output));
        }
    }
    plain.kill().unwrap();
    plain.wait().unwrap();
    let program = holder(place);
    assert_refused(&place.output(&["top", &program.pid()]), 1, &["needs a terminal"]);
    let mut closed = place.snug(&["stats", &program.pid()]);
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    assert_refused(
        &closed.stdout(full).stderr(Stdio::piped()).output().unwrap(),
        1,
        &["cannot write to the standard output", "No space left on device"],
    );
    Ok(Completion::Completed)
}

/// What is in the page map alone is not looked for again where there is none: that would take 0.3 s.
fn without_a_page_map_one_look_will_do(place: &Place) -> Result<Completion, Failed> {
    let program = holder(place);
    let without = |words: &str| {
        let script = format!("mount --bind /dev/null /proc/{}/pagemap && {words}", program.pid());
        Command::new("unshare").args(["-m", "sh", "-c", &script]).output()
    };
    if !without("true").is_ok_and(|output| output.status.success()) {
        return Ok(Completion::ignored_with("no namespace of mounts can be made"));
    }
    let times = (0..5).map(|_| {
        let begun = Instant::now();
        let output = without(&format!("{SNUG} stats {} --json", program.pid())).unwrap();
        let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(found["memory"]["mapped"].as_u64().unwrap() > 0 && found["memory"].get("resident_snug").is_none());
        begun.elapsed()
    });
    let fastest = times.min().unwrap();
    assert!(fastest < Duration::from_millis(290), "{fastest:?}");
    let said = stdout(&without(&format!("{SNUG} stats {}", program.pid())).unwrap());
    assert!(said.contains("\nNow 5.09 MiB are in use, and how much of it occupies memory is not known; "), "{said}");
    Ok(Completion::Completed)
}

fn top_in_a_terminal(place: &Place) -> Result<Completion, Failed> {
    if let Some(reason) = no_terminals() {
        return Ok(Completion::ignored_with(reason));
    }
    let mut program = holder(place);
    let terminal = Terminal(place);
    let command = format!("{SNUG} top {} --every 0.2; echo ended $?; sleep 60", program.pid());
    terminal.tmux(&["-f", "/dev/null", "new-session", "-d", "-x", "90", "-y", "30", &command]);
    let screen = terminal.screen_with("handed out 0 B/s");
    assert!(screen.contains(&format!("snug: process {}", program.pid())), "{screen}");
    for part in
        ["in use", "waiting for threads", "resident", "peaks: segments", "to 8 MiB", "4.77 MiB", "112 B", "q quit"]
    {
        assert!(screen.contains(part), "{part} is not in {screen}");
    }
    assert!(screen.lines().all(|line| line.chars().count() <= 90), "{screen}");
    terminal.tmux(&["send-keys", "t"]);
    terminal.screen_with("gave back");
    program.work();
    terminal.tmux(&["resize-window", "-x", "60", "-y", "12"]);
    terminal.screen_with("q quit");
    terminal.tmux(&["send-keys", "q"]);
    terminal.screen_with("ended 0");
    // A process that ends while it is shown: one line, and the terminal as it was.
    let command = format!("{SNUG} top {} --every 0.1; echo ended $?; sleep 60", program.pid());
    terminal.tmux(&["new-window", &command]);
    terminal.screen_with("q quit");
    drop(program);
    let screen = terminal.screen_with("ended 1");
    assert!(screen.contains("has ended"), "{screen}");
    Ok(Completion::Completed)
}

fn a_plot_is_drawn(place: &Place) -> Result<Completion, Failed> {
    let program = place.compile("holder", HOLDER, &["-O1", "-w", "-fno-builtin"]);
    let output = place.output(&["run", "--plot=memory.svg", text(&program)]);
    assert_eq!((output.status.code(), stderr(&output).as_str(), stdout(&output).as_str()), (Some(0), "", "ready\n"));
    let svg = fs::read_to_string(place.path("memory.svg")).unwrap();
    let document = roxmltree::Document::parse(&svg).unwrap();
    let texts: Vec<&str> = document.descendants().filter_map(|node| node.text()).map(str::trim).collect();
    for wanted in
        ["Memory of holder on snug", "time since the start (s)", "memory (MiB)", "resident, the whole process"]
    {
        assert!(texts.contains(&wanted), "{wanted} is not in {texts:?}");
    }
    let lines = document
        .descendants()
        .filter(|node| node.has_tag_name("polyline") && node.attribute("stroke-width") == Some("2"));
    assert!(lines.count() >= 4);
    assert_eq!(place.output(&["run", "--plot=b.svg", "sh", "-c", "exit 7"]).status.code(), Some(7));
    assert_refused(&place.output(&["run", "--plot=/nonexistent/a.svg", "true"]), 125, &["cannot be written"]);
    // What was there stays until there is something better, and what was not there is not left empty.
    let before = place.write("a.svg", "before", 0o640);
    for name in ["a.svg", "new.svg"] {
        let output = place.snug(&["run", &format!("--plot={name}"), "no-such-program"]).output().unwrap();
        assert_refused(&output, 127, &["no-such-program"]);
    }
    assert!(!place.path("new.svg").exists());
    assert_eq!(fs::read_to_string(before).unwrap(), "before");
    Ok(Completion::Completed)
}
