//! `snug bench`, on a stand-in for a workload that prints times by the allocator that is preloaded.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::{assert_refused, stderr, stdout, text, Place};

const WORKLOAD: &str = r#"#!/bin/sh
case "$1" in reverse-100) if [ -e "$HANG" ]; then echo $$ > "$HANG"; exec sleep 1000; fi; esac
case "$LD_PRELOAD" in
    "") ns=4.5;;
    *libsnug*) ns=3.0;;
    *libbroken*) echo "it broke" >&2; exit 9;;
    *) ns=6.0;;
esac
echo "$1 ${LD_PRELOAD##*/}" >> "$RUNS"
echo "row=$1 ops=1000 ns_per_op=$ns peak_rss_kib=2048"
"#;

fn bench(place: &Place, args: &[&str]) -> Command {
    place.write("pairs", WORKLOAD, 0o755);
    let mut command = place.snug(&[&["bench", "--no-system-calls"], args].concat());
    command.env("SNUG_WORKLOADS", place.dir.path()).env("RUNS", place.path("runs"));
    command.env("COLUMNS", "300"); // all allocators in one piece of a table
    command.env("HANG", place.path("hang"));
    command
}

#[test]
fn settings_of_the_environment_are_written_down() {
    let place = Place::new();
    let options = ["--rounds", "1", "--only", "pairs/reverse-100", "--peers", "snug-lean", "--json", "-"];
    let output = bench(&place, &options).env("SNUG_PRESET", "fast").env("SNUG_DIRTY", "0").output().unwrap();
    assert!(stderr(&output).contains("which hold for what is measured: SNUG_DIRTY=0 SNUG_PRESET=fast\n"));
    let lab: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let settings = |place: usize| lab["allocators"][place]["settings"].to_string();
    assert_eq!(settings(0), "[]");
    assert_eq!(settings(1), r#"[["SNUG_DIRTY","0"],["SNUG_PRESET","fast"]]"#);
    assert_eq!(settings(2), r#"[["SNUG_PRESET","lean"],["SNUG_DIRTY","0"]]"#);
}

/// Says thrice what each of its threads has live, three of them by one number in turn.
const METERED: &str = r#"
#include <pthread.h>
#include "meter.h"
static void *run(void *number)
{
    for (int i = 0; i < 3; i++) meter_set((unsigned)(long)number, 1000 + i);
    return NULL;
}
int main(int count, char **words)
{
    pthread_t thread[METER_THREADS];
    for (int turn = 0; turn < 3; turn++) {
        for (long i = 0; i < METER_THREADS; i++) pthread_create(&thread[i], NULL, run, (void *)i);
        for (long i = 0; i < METER_THREADS; i++) pthread_join(thread[i], NULL);
    }
    return 0;
}"#;

#[test]
fn more_threads_than_the_meter_has_slots_are_counted() {
    let place = Place::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../bench");
    let meter = folder.join("meter.c");
    let flags = ["-O1", "-w", "-D_GNU_SOURCE", "-pthread", "-I", text(&folder), text(&meter)];
    let program = place.compile("metered", METERED, &flags);
    let file = place.write("meter", [0; 16384], 0o644);
    assert!(Command::new(program).env("BENCH_METER", &file).status().unwrap().success());
    let bytes = std::fs::read(file).unwrap();
    let word = |at: usize| i64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap());
    assert_eq!((64..bytes.len()).step_by(64).map(word).sum::<i64>(), 1024 * 1002);
}

/// The least that is an allocator: libc's own, by another name.
const MALLOC: &str = "void *__libc_malloc(unsigned long); void __libc_free(void *);\n\
    void *malloc(unsigned long size) { return __libc_malloc(size); }\n\
    void free(void *block) { __libc_free(block); }\n";

fn peer(place: &Place, name: &str) -> String {
    let library = place.compile(&format!("lib{name}.so"), MALLOC, &["-shared", "-fPIC", "-w"]);
    format!("{name}={}", text(&library))
}

/// The cell of an allocator in the first line of the table of times.
fn time_of(text: &str, name: &str) -> String {
    cell_of(text, "Time", name)
}

/// The same beside snug.
fn ratio_of(text: &str, name: &str) -> String {
    cell_of(text, "Time beside snug", name)
}

fn cell_of(text: &str, title: &str, name: &str) -> String {
    let cells = |line: &str| line.trim_matches('│').split('┆').map(|cell| cell.trim().to_string()).collect::<Vec<_>>();
    let table = text.lines().skip_while(|line| *line != title);
    let mut lines = table.skip_while(|line| !line.starts_with('│'));
    let names = cells(lines.next().unwrap_or_else(|| panic!("{text}")));
    let first = cells(lines.nth(1).unwrap());
    let place = names.iter().position(|other| other == name).unwrap_or_else(|| panic!("no {name} in {text}"));
    first[place].clone()
}

#[test]
fn ratios_to_snug() {
    let place = Place::new();
    let json = place.path("out.json");
    let peer = peer(&place, "mine");
    let args = ["--rounds", "3", "--only", "pairs/reverse-100", "--peer", &peer, "--json", text(&json)];
    let output = bench(&place, &args).output().unwrap();
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
    let table = stdout(&output);
    for (name, time) in [("system", "4.50 ±0.00"), ("snug", "3.00 ±0.00*"), ("mine", "6.00 ±0.00")] {
        assert_eq!(time_of(&table, name), time, "{table}");
    }
    for (name, ratio) in [("system", "1.50 ±0.00"), ("snug", "1.00*"), ("mine", "2.00 ±0.00")] {
        assert_eq!(ratio_of(&table, name), ratio, "{table}");
    }
    assert!(table.contains("│ pairs/reverse-100, ns ┆"), "{table}");
    assert!(!table.contains("in-order"), "{table}");

    let values: serde_json::Value = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
    assert_eq!(values["settings"]["rounds"], 3);
    assert_eq!(values["rows"][0]["series"][1]["figures"].as_array().unwrap().len(), 3);
    assert_eq!(values["rows"][0]["series"][1]["figures"][2]["time"], 3.0);
}

#[test]
fn allocators_take_turns() {
    let place = Place::new();
    let output =
        bench(&place, &["--rounds", "2", "--only", "pairs/reverse-100,pairs/in-order-10000"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let runs = std::fs::read_to_string(place.path("runs")).unwrap();
    let runs: Vec<&str> = runs.lines().collect();
    let count = runs.len() / 4; // 2 rows, 2 rounds
    assert!(count >= 2 && runs.len() == 4 * count, "{runs:?}");
    assert!(runs[0] == "reverse-100 " && runs[1].starts_with("reverse-100 libsnug"), "{runs:?}");
    assert!(runs[count] == "in-order-10000 ", "{runs:?}");
    // The second round begins with the second allocator.
    assert!(runs[2 * count].starts_with("reverse-100 libsnug") && runs[3 * count - 1] == "reverse-100 ", "{runs:?}");
}

#[test]
fn a_failing_allocator_is_shown_as_failed() {
    let place = Place::new();
    let peer = peer(&place, "broken");
    let output = bench(&place, &["--rounds", "2", "--only", "pairs/in-order-10000", "--peer", &peer]).output().unwrap();
    // It was named by --peer. That one of those fails that happen to be installed is a fact, and no failure.
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(time_of(&stdout(&output), "broken"), "failed", "{}", stdout(&output));
    assert!(
        stdout(&output).contains("FAILED: pairs/in-order-10000 on broken: exit status: 9; it broke"),
        "{}",
        stdout(&output)
    );
    assert_eq!(ratio_of(&stdout(&output), "system"), "1.50");
}

#[test]
fn snug_failing_is_a_failure() {
    let place = Place::new();
    let mut command = bench(&place, &["--rounds", "1", "--peers", "none", "--only", "pairs/in-order-10000"]);
    place.write("pairs", WORKLOAD.replace("ns=3.0", "echo 'it broke' >&2; exit 9"), 0o755);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = stdout(&output);
    assert!(said.contains("FAILED: pairs/in-order-10000 on snug: exit status: 9; it broke"), "{said}");
}

#[test]
fn an_earlier_run_is_continued() {
    let place = Place::new();
    let json = place.path("all.json");
    let measure = |more: &[&str]| {
        let args = ["--peers", "none", "--json", text(&json)];
        bench(&place, &[&args, more].concat()).output().unwrap()
    };
    assert_clean_status(&measure(&["--rounds", "2", "--only", "pairs/reverse-100"]));
    let resume = ["--resume", text(&json)];
    assert_clean_status(&measure(&[&resume[..], &["--rounds", "1", "--only", "pairs/reverse-100"]].concat()));
    let output = measure(&[&resume[..], &["--rounds", "1", "--only", "pairs/in-order-10000"]].concat());
    assert!(stdout(&output).contains("pairs/reverse-100") && stdout(&output).contains("pairs/in-order-10000"));

    let lab: serde_json::Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    let rounds = |name: &str| -> Vec<u64> {
        let row = lab["rows"].as_array().unwrap().iter().find(|row| row["row"]["name"] == name).unwrap();
        let figures = row["series"][1]["figures"].as_array().unwrap().iter();
        figures.map(|figures| figures["round"].as_u64().unwrap()).collect()
    };
    assert_eq!((rounds("pairs/reverse-100"), rounds("pairs/in-order-10000")), (vec![0, 1, 2], vec![3]));

    let peer = peer(&place, "mine");
    let output = measure(&[&resume[..], &["--only", "pairs/reverse-100", "--peer", &peer]].concat());
    assert_refused(&output, 1, &["the results do not have the same allocators"]);
    let output = measure(&["--resume", "/no/such", "--only", "pairs"]);
    assert_refused(&output, 1, &["/no/such cannot be read: No such file or directory\n"]);
}

#[test]
fn a_peer_that_does_not_load_is_refused() {
    let place = Place::new();
    let gone = place.compile("libgone.so", "int nothing;", &["-shared", "-fPIC"]);
    let library = place.compile("libtext.so", MALLOC, &["-shared", "-fPIC", "-w", "-Wl,--no-as-needed", text(&gone)]);
    std::fs::remove_file(gone).unwrap();
    let output = bench(&place, &["--only", "pairs", "--peer", &format!("text={}", text(&library))]).output().unwrap();
    assert_refused_by_loader(&stderr(&output), output.status.code());
    assert!(!place.path("runs").exists(), "it ran all the same");
}

fn assert_refused_by_loader(said: &str, status: Option<i32>) {
    assert_eq!(status, Some(1), "{said}");
    assert!(said.starts_with("snug: text cannot be preloaded"), "{said}");
}

#[test]
fn what_is_not_there() {
    let place = Place::new();
    let output = bench(&place, &["--only", "filo"]).output().unwrap();
    assert_refused(&output, 2, &["there is no row filo; the families are: pairs, "]);
    let output = bench(&place, &["--workloads", "/no/such"]).output().unwrap();
    assert_refused(&output, 1, &["there are no workloads in /no/such", "./dev build"]);
}

#[test]
fn an_interrupt_prints_what_there_is() {
    let place = Place::new();
    let (hang, json) = (place.write("hang", "", 0o644), place.path("out.json"));
    // The row that hangs runs last: rows have the order of the catalog.
    let args =
        ["--rounds", "1", "--peers", "none", "--only", "pairs/freed-at-once,pairs/reverse-100", "--json", text(&json)];
    let child = bench(&place, &args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let hanging = (0..600).find_map(|_| {
        std::thread::sleep(Duration::from_millis(50));
        std::fs::read_to_string(&hang).unwrap().trim().parse::<i32>().ok()
    });
    let hanging = hanging.expect("the row that hangs did not begin");
    // SAFETY: only sends a signal to a child that was not waited for yet.
    unsafe { libc::kill(child.id() as i32, libc::SIGINT) };
    let output = child.wait_with_output().unwrap();
    let table = stdout(&output);
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
    assert_eq!(time_of(&table, "snug"), "3.00*", "{table}");
    assert!(table.contains("NOT COMPLETE: stopped in round 1, at pairs/reverse-100"), "{table}");
    assert!(json.is_file());
    // SAFETY: signal 0 only asks whether there is such a process.
    assert_eq!(unsafe { libc::kill(hanging, 0) }, -1, "the workload was left behind");
}

#[test]
fn a_command_of_ones_own() {
    let place = Place::new();
    let program = place.write("mine", "#!/bin/sh\necho chatter; sleep 0.1; exit ${1-0}\n", 0o755);
    let args = ["bench", "--no-system-calls", "--rounds", "1", "--peers", "none", "--"];
    let output = place.output(&[&args[..], &[text(&program)]].concat());
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
    let table = stdout(&output);
    assert!(table.contains("command/mine") && time_of(&table, "snug").starts_with("0.1"), "{table}");
    assert!(!table.contains("chatter"), "{table}");

    let output = place.output(&[&args[..], &[text(&program), "7"]].concat());
    assert!(stdout(&output).contains("FAILED: command/mine on snug: exit status: 7"), "{}", stdout(&output));
    assert_refused(&place.output(&[&args[..], &["no-such-program"]].concat()), 127, &["no-such-program was not found"]);
}

#[test]
fn changes_from_one_file_to_another() {
    let place = Place::new();
    let (old, new) = (place.path("old.json"), place.path("new.json"));
    let measure = |json: &Path, ns: &str| {
        place.write("pairs", WORKLOAD.replace("ns=3.0", &format!("ns={ns}")), 0o755);
        let mut command = place.snug(&["bench", "--no-system-calls", "--rounds", "3", "--peers", "none"]);
        command.args(["--only", "pairs/freed-at-once", "--json", text(json)]);
        command.env("SNUG_WORKLOADS", place.dir.path()).env("RUNS", place.path("runs")).env("HANG", "/no/such");
        assert_clean_status(&command.output().unwrap());
    };
    measure(&old, "3.0");
    measure(&new, "4.0");
    let compare = |from: &Path, to: &Path| place.output(&["bench", "--compare", text(from), text(to)]);
    let output = compare(&old, &new);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stdout(&output).contains("slower ┆ 1.33 (1.33 to 1.33)"), "{}", stdout(&output));
    let output = compare(&new, &old);
    assert_eq!(output.status.code(), Some(0));
    assert!(stdout(&output).contains("faster ┆ 0.75"), "{}", stdout(&output));
    let text_file = place.write("text", "no json", 0o644);
    assert_refused(&compare(&old, &text_file), 1, &["holds no results of snug bench --json"]);
    assert_refused(&compare(&old, Path::new("/no/such")), 1, &["/no/such cannot be read: No such file or directory\n"]);
}

fn assert_clean_status(output: &std::process::Output) {
    assert_eq!(output.status.code(), Some(0), "{}", stderr(output));
}

/// docs/benchmarks.md and the plot in README.md are what the tool makes of the results beside them.
#[test]
fn the_kept_reports_are_of_the_kept_results() {
    let place = Place::new();
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let (table, plot) = (place.path("benchmarks.md"), place.path("frontier.svg"));
    let mut command = place.snug(&["bench", "--report-of", text(&docs.join("benchmarks.json.zst"))]);
    let output = command.args(["--markdown", text(&table), "--frontier", text(&plot)]).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    for made in [table, plot] {
        let kept = docs.join(made.file_name().unwrap());
        let read = |path: &Path| std::fs::read_to_string(path).unwrap();
        assert!(read(&made) == read(&kept), "{} is to be made again", kept.display());
    }
}

#[test]
fn a_library_without_a_malloc_is_no_allocator() {
    let place = Place::new();
    let nothing = place.compile("libnothing.so", "int nothing;", &["-shared", "-fPIC"]);
    let peer = format!("x={}", text(&nothing));
    let output = bench(&place, &["--rounds", "1", "--only", "pairs/reverse-100", "--peer", &peer]).output().unwrap();
    assert_refused(&output, 1, &["--peer x", "libnothing.so has no malloc of its own"]);
    assert!(!place.path("runs").exists());
    let output = bench(&place, &["--rounds", "1", "--only", "pairs/reverse-100", "--peer", "x=/etc/passwd"]).output();
    assert_refused(&output.unwrap(), 1, &["--peer x", "not a shared library"]);
}

#[test]
fn files_that_have_nothing_in_common_are_not_compared() {
    let place = Place::new();
    let measure = |row: &str, file: &str| {
        let args = ["--peers", "none", "--rounds", "1", "--only", row, "--json", file];
        assert_clean_status(&bench(&place, &args).output().unwrap());
    };
    measure("pairs/reverse-100", "one.json");
    measure("pairs/in-order-10000", "two.json");
    let output = place.output(&["bench", "--compare", "one.json", "two.json"]);
    assert_refused(&output, 2, &["have no figures in common"]);
    assert_eq!(place.output(&["bench", "--compare", "one.json", "one.json"]).status.code(), Some(0));
}
