//! `snug record`: what a program did is in the trace, whatever way it ends, forks or starts others; and what is wrong
//! with a trace is said.

use std::fs;
use std::path::Path;
use std::process::Output;
use std::thread::sleep;
use std::time::Duration;

use crate::common::{assert_clean, assert_refused, is_full, stderr, stdout, text, Place};

/// Takes 1,000 blocks of 7,777 bytes, frees 300, and ends as it is told.
const ENDING: &str = r#"
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
void *block[1000];
int main(int count, char **words)
{
    for (int i = 0; i < 1000; i++)
        block[i] = malloc(7777);
    for (int i = 0; i < 300; i++)
        free(block[i]);
    for (int fd = 0; fd < 256; fd++)
        close(fd);
    if (strcmp(words[1], "exit") == 0)
        _exit(7);
    if (strcmp(words[1], "return") == 0)
        return 8;
    raise(atoi(words[1]));
}
"#;

/// Four threads with blocks of all kinds; each frees what its neighbour took. It says nothing.
const THREADS: &str = r#"
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
enum { THREADS = 4, BLOCKS = 5000 };
void *block[THREADS][BLOCKS];
int pairs;
pthread_barrier_t all;
static void *run(void *argument)
{
    long own = (long)argument, next = (own + 1) % THREADS;
    for (int i = 0; i < BLOCKS; i++)
        switch (i % 4) {
        case 0: block[own][i] = malloc(100001 + i % 7); break;
        case 1: block[own][i] = calloc(3, 33337); break;
        case 2: block[own][i] = aligned_alloc(256, 102400); break;
        case 3: block[own][i] = realloc(malloc(100013), 100021); break;
        }
    pthread_barrier_wait(&all);
    for (int i = 0; i < BLOCKS; i++) /* 10 of each thread stay */
        if (i % 500 != 0)
            free(block[next][i]);
    for (int i = 0; i < pairs; i++)
        free(malloc(100031));
    return NULL;
}
int main(int count, char **words)
{
    pairs = atoi(words[1]);
    pthread_t thread[THREADS];
    pthread_barrier_init(&all, NULL, THREADS);
    for (long i = 0; i < THREADS; i++)
        pthread_create(&thread[i], NULL, run, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
}
"#;

const FORKS: &str = r#"
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
    void *before = malloc(11111);
    pid_t child = fork();
    if (child == 0) {
        free(before);
        for (int i = 0; i < 5; i++)
            malloc(22222);
        _exit(0);
    }
    for (int i = 0; i < 3; i++)
        malloc(33333);
    waitpid(child, NULL, 0);
}
"#;

fn record(place: &Place, options: &[&str], words: &[&str]) -> Output {
    let trace = place.path("a.trace");
    place.output(&[&["record", "-o", text(&trace)], options, &["--"], words].concat())
}

fn info(place: &Place, options: &[&str]) -> serde_json::Value {
    let trace = place.path("a.trace");
    let output = place.output(&[&["replay", "--info=json", text(&trace)], options].concat());
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// How often a size was asked for.
fn times(info: &serde_json::Value, size: u64) -> u64 {
    let sizes = info["sizes"].as_array().unwrap();
    sizes.iter().find(|pair| pair[0] == size).map_or(0, |pair| pair[1].as_u64().unwrap())
}

fn recorded(place: &Place, source: &str, options: &[&str], words: &[&str]) -> Output {
    let program = place.compile("program", source, &["-O0", "-pthread", "-w"]);
    let output = record(place, options, &[&[text(&program)], words].concat());
    assert!(stderr(&output).starts_with("snug: ") && stderr(&output).lines().count() == 1, "{}", stderr(&output));
    output
}

#[test]
fn everything_is_there_whatever_way_a_program_ends() {
    let place = Place::new();
    for (ending, status) in [("exit", 7), ("return", 8), ("9", 128 + 9), ("11", 128 + 11), ("6", 128 + 6)] {
        let output = recorded(&place, ENDING, &[], &[ending]);
        assert_eq!(output.status.code(), Some(status), "{ending}");
        let info = info(&place, &[]);
        assert_eq!(times(&info, 7777), 1000, "{ending}");
        let live = &info["totals"]["end_live_bytes"];
        assert!((700 * 7777..700 * 7777 + 50_000).contains(&live.as_u64().unwrap()), "{ending}: {live}");
        assert_eq!(info["totals"]["missing_frees"], 0);
    }
}

#[test]
fn threads_and_all_kinds_of_blocks() {
    let place = Place::new();
    let output = recorded(&place, THREADS, &[], &["50000"]);
    assert!(stderr(&output).contains("5 threads"), "{}", stderr(&output));
    let info = info(&place, &[]);
    for (size, expected) in [(100_013, 5000), (100_021, 5000), (100_031, 200_000), (3 * 33337, 5000), (102_400, 5000)] {
        assert_eq!(times(&info, size), expected, "{size}");
    }
    assert_eq!((100_001..100_008).map(|size| times(&info, size)).sum::<u64>(), 5000);
    let totals = &info["totals"];
    assert_eq!((&totals["missing_frees"], &totals["unknown_frees"]), (&0.into(), &0.into()), "{totals}");
    assert_eq!((&totals["threads"], &info["lost"]), (&5.into(), &0.into()));
    let live = totals["end_live_bytes"].as_u64().unwrap();
    assert!((40 * 100_000..40 * 100_000 + 50_000).contains(&live), "{live}");
}

#[test]
fn a_program_that_outruns_the_buffer_is_held_up_and_not_lost() {
    let place = Place::new();
    let source = "#include <stdlib.h>\nint main(void) { for (int i = 0; i < 3000000; i++) free(malloc(777)); }";
    let program = place.compile("program", source, &["-O0", "-w"]);
    let trace = place.path("a.trace");
    let mut child =
        place.snug(&["record", "--buffer", "1", "-q", "-o", text(&trace), "--", text(&program)]).spawn().unwrap();
    // Not what the kernel tells of a child that has ended: of it, the memory of this process was a part when it began.
    let mut peak_kib = 0;
    while child.try_wait().unwrap().is_none() {
        peak_kib = peak_kib.max(peak_kib_of(child.id()).unwrap_or(0));
        sleep(Duration::from_millis(2));
    }
    assert!(child.wait().unwrap().success() && peak_kib > 0);
    // 20 MB of events went through one of 1 MiB, and the tool needs little besides.
    assert!(peak_kib < 32 * 1024, "{peak_kib} KiB");
    let info = info(&place, &[]);
    assert!(info["processes"][0]["bytes"].as_u64().unwrap() > 15_000_000);
    assert_eq!((times(&info, 777), &info["lost"]), (3_000_000, &0.into()));
}

/// Nothing, once it has ended.
fn peak_kib_of(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}

/// The status, and what the child used, and what it waited for.
fn wait(child: &mut std::process::Child) -> (i32, libc::rusage) {
    // SAFETY: wait4 writes only to the two variables; the child is ours.
    unsafe {
        let mut status = 0;
        let mut usage: libc::rusage = std::mem::zeroed();
        assert_eq!(libc::wait4(child.id() as libc::pid_t, &mut status, 0, &mut usage), child.id() as libc::pid_t);
        (libc::WEXITSTATUS(status), usage)
    }
}

#[test]
fn more_threads_than_slots_lose_events_and_it_is_said() {
    let place = Place::new();
    let source = r#"
        #include <pthread.h>
        #include <stdlib.h>
        pthread_barrier_t all;
        static void *run(void *unused) { malloc(5555); pthread_barrier_wait(&all); return unused; }
        int main(void)
        {
            pthread_t thread[40];
            pthread_barrier_init(&all, NULL, 40);
            for (int i = 0; i < 40; i++) pthread_create(&thread[i], NULL, run, NULL);
            for (int i = 0; i < 40; i++) pthread_join(thread[i], NULL);
        }"#;
    let output = recorded(&place, source, &["--buffer", "1"], &[]);
    assert!(stderr(&output).contains("events were lost"), "{}", stderr(&output));
    let info = info(&place, &[]);
    assert!(info["lost"].as_u64().unwrap() >= 20 && times(&info, 5555) < 40, "{}", info["lost"]);
    recorded(&place, source, &[], &[]);
    assert_eq!(times(&self::info(&place, &[]), 5555), 40);
}

#[test]
fn a_forked_child_is_left_out_or_has_a_stream_of_its_own() {
    let place = Place::new();
    recorded(&place, FORKS, &[], &[]);
    let alone = info(&place, &[]);
    assert_eq!((times(&alone, 33333), times(&alone, 22222)), (3, 0));
    assert_eq!(alone["processes"].as_array().unwrap().len(), 1);

    recorded(&place, FORKS, &["--children"], &[]);
    let (parent, child) = (info(&place, &["--process", "1"]), info(&place, &["--process", "2"]));
    assert_eq!((times(&parent, 33333), times(&parent, 22222)), (3, 0));
    assert_eq!((times(&child, 33333), times(&child, 22222)), (0, 5));
    assert_eq!((&child["processes"][1]["forked_from"], &child["totals"]["unknown_frees"]), (&1.into(), &1.into()));
}

#[test]
fn a_program_that_becomes_another() {
    let place = Place::new();
    let program = place.compile("program", ENDING, &["-O0", "-w"]);
    let script = format!("exec {} return", text(&program));
    let output = record(&place, &[], &["sh", "-c", &script]);
    assert_eq!(output.status.code(), Some(8));
    let info = info(&place, &[]);
    let processes = info["processes"].as_array().unwrap();
    assert_eq!((processes.len(), &processes[0]["pid"]), (2, &processes[1]["pid"]));
    assert!(processes[1]["program"].as_str().unwrap().ends_with("/program"), "{processes:?}");
    assert_eq!(times(&info, 7777), 1000, "the one that allocated most is chosen");
}

#[test]
fn many_processes_need_no_more_slots_than_run_at_once() {
    let place = Place::new();
    let script = "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do ls / >/dev/null; sleep 0.1; done";
    let output = record(&place, &["--children", "--buffer", "1"], &["sh", "-c", script]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let info = info(&place, &[]);
    assert_eq!(info["lost"], 0);
    assert_eq!(info["processes"].as_array().unwrap().len(), 41);
}

#[test]
fn a_process_that_cannot_be_recorded_says_so() {
    let place = Place::new();
    // What is shared is larger than all that it may map.
    let script = "(ulimit -v 1000000; exec true); true";
    let said = |options: &[&str]| stderr(&record(&place, options, &["sh", "-c", script]));
    let lines = said(&["--buffer", "2048", "--children", "-q"]);
    assert!(lines.starts_with("snug record: process ") && lines.lines().count() == 1, "{lines}");
    assert!(lines.contains(" is not recorded: it cannot open the memory"), "{lines}");
    assert_eq!(said(&["--buffer", "2048", "-q"]), "", "children are not wanted");
    // One that outlives the recording is none of those.
    let later = "(sleep 0.5; /bin/true; echo done >later) </dev/null >/dev/null 2>error &";
    assert_eq!(stderr(&record(&place, &["--children", "-q"], &["sh", "-c", later])), "");
    while !place.path("later").exists() {
        sleep(Duration::from_millis(20));
    }
    assert_eq!(fs::read_to_string(place.path("error")).unwrap(), "");
}

#[test]
fn streams_arguments_and_signals_are_the_programs_own() {
    let place = Place::new();
    let output = record(&place, &["-q"], &["sh", "-c", "echo \"$0 $*\"; echo said >&2; exit 5", "a b", "-c"]);
    assert_eq!((output.status.code(), stdout(&output), stderr(&output)), (Some(5), "a b -c\n".into(), "said\n".into()));
    let fds = record(&place, &["-q"], &["sh", "-c", "ls /proc/self/fd | wc -l"]);
    let without = place.output(&["run", "sh", "-c", "ls /proc/self/fd | wc -l"]);
    assert_eq!(stdout(&fds), stdout(&without));
    // A signal that comes to snug alone ends the program, and the trace is whole.
    let trace = place.path("a.trace");
    let mut child = place.snug(&["record", "-q", "-o", text(&trace), "sleep", "100"]).spawn().unwrap();
    while !has_children(child.id()) {
        sleep(Duration::from_millis(20));
    }
    sleep(Duration::from_millis(200));
    // SAFETY: the child was not waited for yet.
    unsafe { libc::kill(child.id() as libc::pid_t, libc::SIGTERM) };
    assert_eq!(child.wait().unwrap().code(), Some(128 + libc::SIGTERM));
    info(&place, &[]);
}

fn has_children(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).is_ok_and(|list| !list.trim().is_empty())
}

#[test]
fn what_cannot_be_recorded() {
    let place = Place::new();
    assert_refused(&record(&place, &[], &["no-such-program"]), 127, &["no-such-program"]);
    let output = place.output(&["record", "-o", "/no/such/folder/x.trace", "true"]);
    assert_refused(&output, 125, &["/no/such/folder/x.trace cannot be written: No such file or directory\n"]);
}

// ---- Traces that are damaged ----

/// The trace of a program that ended well, with several blocks.
fn good_trace(place: &Place) -> Vec<u8> {
    recorded(place, THREADS, &[], &["0"]);
    fs::read(place.path("a.trace")).unwrap()
}

fn replay_info(place: &Place, trace: &Path, options: &[&str]) -> Output {
    place.output(&[&["replay", "--info=json", text(trace)], options].concat())
}

#[test]
fn a_trace_that_is_cut_short() {
    let place = Place::new();
    let bytes = good_trace(&place);
    for length in [0, 10, 16, 17, 100, bytes.len() / 2, bytes.len() - 1] {
        let cut = place.write("cut.trace", &bytes[..length], 0o644);
        let output = replay_info(&place, &cut, &[]);
        let expected = if length < 16 { "is not a trace of snug record" } else { "it is cut short" };
        assert_refused(&output, 1, &["cut.trace", expected]);
        if length > 16 {
            assert!(stderr(&output).contains("--whole"), "{}", stderr(&output));
        }
    }
    let half = place.write("cut.trace", &bytes[..bytes.len() / 2], 0o644);
    let output = replay_info(&place, &half, &["--whole"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let info: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let allocations = info["totals"]["allocations"].as_u64().unwrap();
    assert!((1000..24_000).contains(&allocations), "{allocations}");
    assert!(info["faults"][0].as_str().unwrap().contains("cut short"));
}

#[test]
fn a_flipped_bit_is_always_seen() {
    let place = Place::new();
    let bytes = good_trace(&place);
    let step = bytes.len() / 20;
    for at in (0..bytes.len()).step_by(step).chain([8, 12, 16, 20, 24, 60]) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        let file = place.write("bad.trace", &damaged, 0o644);
        let output = replay_info(&place, &file, &[]);
        assert_refused(&output, 1, &["bad.trace"]);
        if at >= 16 {
            let output = replay_info(&place, &file, &["--whole"]);
            assert_eq!(output.status.code(), Some(0), "byte {at}: {}", stderr(&output));
            let info: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            assert!(!info["faults"].as_array().unwrap().is_empty(), "byte {at}");
            assert!(info["totals"]["allocations"].as_u64().unwrap() > 10_000, "byte {at}");
        }
    }
}

#[test]
fn a_block_that_was_taken_out_is_missed() {
    let place = Place::new();
    let bytes = good_trace(&place);
    let stored = |at: usize| u32::from_le_bytes(bytes[at + 36..at + 40].try_into().unwrap()) as usize;
    let first = 16 + 48 + stored(16);
    let second = first + 48 + stored(first);
    let file = place.write("less.trace", [&bytes[..first], &bytes[second..]].concat(), 0o644);
    assert_refused(&replay_info(&place, &file, &[]), 1, &["blocks are there"]);
}

#[test]
fn what_is_no_trace() {
    let place = Place::new();
    let file = place.write("x.trace", "#!/bin/sh\necho hello\n", 0o644);
    assert_refused(&replay_info(&place, &file, &[]), 1, &["x.trace is not a trace of snug record"]);
    assert_refused(
        &replay_info(&place, Path::new("/no/such"), &[]),
        1,
        &["/no/such cannot be read: No such file or directory\n"],
    );
    assert_refused(&replay_info(&place, place.dir.path(), &[]), 1, &["is not a file"]);
    recorded(&place, FORKS, &[], &[]);
    let trace = place.path("a.trace");
    assert_refused(&replay_info(&place, &trace, &["--process", "9"]), 1, &["has no process 9; it has 1"]);
}

/// Takes and frees 100 blocks twenty times, and sleeps for 10 ms after each.
const SLEEPER: &str = r#"
#include <stdlib.h>
#include <unistd.h>
int main(void)
{
    for (int turn = 0; turn < 20; turn++) {
        void *block[100];
        for (int i = 0; i < 100; i++) block[i] = malloc(1000 + i);
        for (int i = 0; i < 100; i++) free(block[i]);
        usleep(10000);
    }
    return 0;
}"#;

#[test]
fn times_are_kept_and_replayed_if_asked() {
    let place = Place::new();
    recorded(&place, SLEEPER, &["--times"], &[]);
    let nanoseconds = |pace: &str| {
        let options = ["replay", "--rounds", "1", "--peers", "none", "--pace", pace, "--json", "-", "a.trace"];
        let output = place.output(&options);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let found: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
        found["rows"][0]["series"][0]["figures"][0]["time"].as_f64().unwrap() * 4000.0
    };
    // After the last sleep nothing is allocated.
    let (fast, recorded_pace) = (nanoseconds("fast"), nanoseconds("recorded"));
    assert!((180e6..600e6).contains(&recorded_pace) && fast < recorded_pace / 3.0, "{fast} {recorded_pace}");
    recorded(&place, SLEEPER, &[], &[]);
    let refused = place.output(&["replay", "--pace", "recorded", "a.trace"]);
    assert_refused(&refused, 1, &["a.trace", "has no times", "snug record --times"]);
    assert_refused(&place.output(&["record", "-o", "-", "true"]), 125, &["a file of that name is ./-"]);
    assert_refused(&place.output(&["replay", "--export", "-", "a.trace"]), 2, &["a file of that name is ./-"]);
}

/// A loop that does nothing but allocate, in so many threads.
const LOOP: &str = r#"
#include <pthread.h>
#include <stdlib.h>
static long count;
static void *run(void *argument)
{
    for (long i = 0; i < count; i++) { void *volatile p = malloc(64); free(p); }
    return argument;
}
int main(int words, char **word)
{
    pthread_t thread[8];
    int threads = atoi(word[2]);
    count = atol(word[1]) / threads;
    for (int i = 0; i < threads; i++) pthread_create(&thread[i], NULL, run, NULL);
    for (int i = 0; i < threads; i++) pthread_join(thread[i], NULL);
    return 0;
}"#;

/// Instructions that a program takes, as valgrind counts them; None where there is none.
fn instructions(command: &mut std::process::Command) -> Option<f64> {
    let said = stderr(&command.output().ok()?);
    said.lines().find_map(|line| line.split_once("Collected : ")?.1.trim().parse().ok())
}

/// What an event costs in the program itself, whatever else the machine does.
#[test]
fn an_event_takes_few_instructions() {
    if std::process::Command::new("valgrind").arg("--version").output().is_err() {
        return;
    }
    let place = Place::new();
    place.compile("loop", LOOP, &["-O2", "-fno-builtin", "-pthread"]);
    let line = |pairs: u32| format!("exec valgrind --tool=callgrind --callgrind-out-file=/dev/null ./loop {pairs} 1");
    let counted = |pairs: u32| {
        let mut plain = std::process::Command::new("sh");
        plain.args(["-c", &line(pairs)]).current_dir(place.dir.path());
        let recorded = ["record", "-q", "-o", "a.trace", "sh", "-c", &line(pairs)];
        Some((instructions(&mut plain)?, instructions(&mut place.snug(&recorded))?))
    };
    let (few, many) = (counted(50_000).unwrap(), counted(150_000).unwrap());
    let each = ((many.1 - few.1) - (many.0 - few.0)) / 100_000.0;
    // A malloc and a free: 117 here, and 147 when each saved registers and called what writes an event.
    assert!((50.0..140.0).contains(&each), "{each}");
}

/// Seconds of the processor in user mode that a command took, and what it waited for.
fn user_seconds(command: &mut std::process::Command) -> f64 {
    let (status, usage) = wait(&mut command.spawn().unwrap());
    assert_eq!(status, 0);
    usage.ru_utime.tv_sec as f64 + usage.ru_utime.tv_usec as f64 / 1e6
}

/// 2.8 here, and 4 when each allocation drew a ticket.
const MOST_SLOWER: f64 = 3.5;

/// In user mode, what the tool needs to compress and write included: times of the clock are those of the machine's load.
#[test]
fn recording_a_loop_that_only_allocates() {
    let place = Place::new();
    let program = place.compile("loop", LOOP, &["-O2", "-fno-builtin", "-pthread"]);
    let (mut plain, mut slower) = (f64::MAX, f64::MAX);
    for round in 0..7 {
        // The least of three does, if it does.
        if round >= 3 && !is_full() && slower <= MOST_SLOWER * plain {
            break;
        }
        plain = plain.min(user_seconds(std::process::Command::new(&program).args(["12000000", "1"])));
        let arguments = ["record", "-q", "-o", "a.trace", "./loop", "12000000", "1"];
        slower = slower.min(user_seconds(&mut place.snug(&arguments)));
    }
    assert!(slower <= MOST_SLOWER * plain, "{slower} s instead of {plain}");
    // More threads than processors take turns at one counter, which costs what the machine's caches cost: all is there.
    let pairs = if is_full() { "12000000" } else { "4000000" };
    let done = place.output(&["record", "-q", "-o", "a.trace", "./loop", pairs, "8"]);
    assert_eq!((done.status.code(), stderr(&done).as_str()), (Some(0), ""));
    let info = info(&place, &[]);
    let (bytes, operations) =
        (info["processes"][0]["bytes"].as_f64().unwrap(), info["totals"]["operations"].as_f64().unwrap());
    assert!(
        operations > 2.0 * pairs.parse::<f64>().unwrap() - 1.0 && bytes < 8.0 * operations,
        "{bytes} of {operations}"
    );
    assert_eq!((&info["totals"]["missing_frees"], &info["totals"]["unknown_frees"]), (&0.into(), &0.into()));
}

#[test]
fn what_is_no_trace_is_not_written_over() {
    let place = Place::new();
    let refused = |path: &str| {
        let before = fs::read(path).unwrap();
        let output = place.output(&["record", "-o", path, "touch", "ran"]);
        assert_refused(&output, 125, &[path, "no trace", "nothing was run"]);
        assert!(fs::read(path).unwrap() == before && !place.path("ran").exists());
    };
    refused(text(&place.write("program", "#!/bin/sh\n", 0o755)));
    refused(text(&place.write("short", "SNUG", 0o644)));
    let empty = place.write("empty", "", 0o644);
    // Twice: the second time there is a trace.
    for path in [text(&empty), text(&empty), "/dev/null", "/proc/self/fd/1"] {
        assert_clean(&place.output(&["record", "-q", "-o", path, "true"]));
    }
}
