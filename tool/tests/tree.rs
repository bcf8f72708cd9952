//! `snug run --stats` and `--plot` watch from outside: the command and its children as a tree, whatever ends them.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::common::{assert_refused, browser, is_full, stderr, stdout, text, Place, SNUG};
use serde_json::Value;

/// Holds so many MiB, then ends as it is told; with a further word all of that is done by another thread, so many
/// microseconds after the first began to end.
const HOLD: &str = r#"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static const char *how;
static size_t size;
static int pause_for;
static void end(void)
{
    if (strcmp(how, "_exit") == 0) _exit(5);
    if (strcmp(how, "kill") == 0) raise(SIGKILL);
    if (strcmp(how, "abort") == 0) abort();
    if (strcmp(how, "wait") == 0) { puts("ready"); fflush(stdout); pause(); }
    exit(0);
}
static void *thread(void *unused)
{
    usleep(pause_for);
    memset(malloc(size), 1, size);
    end();
    return unused;
}
int main(int count, char **words)
{
    size = (size_t)atoi(words[1]) << 20;
    how = words[2];
    if (count > 3) {
        pause_for = atoi(words[3]);
        pthread_t id;
        pthread_create(&id, NULL, thread, NULL);
        pthread_exit(NULL);
    }
    memset(malloc(size), 1, size);
    end();
}
"#;

fn place_with_hold() -> Place {
    let place = Place::new();
    place.compile("hold", HOLD, &["-O1", "-w", "-fno-builtin", "-pthread"]);
    place
}

/// The lines of the tree, heading and all.
fn tree(output: &Output) -> Vec<String> {
    let said = stderr(output);
    said.lines()
        .skip_while(|line| !line.contains("ended by"))
        .take_while(|line| line.contains(" s  ") || line.contains("ended by"))
        .map(str::to_string)
        .collect()
}

fn json(place: &Place, name: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(place.path(name)).unwrap()).unwrap()
}

#[test]
fn the_process_with_the_highest_peak_is_shown() {
    let place = place_with_hold();
    let script = "./hold 3 exit; ./hold 40 exit & wait; ./hold 8 exit; exit 7";
    let output = place.output(&["run", "--stats", "--plot=a.svg", "sh", "-c", script]);
    assert_eq!(output.status.code(), Some(7));
    let lines = tree(&output);
    assert_eq!(lines.len(), 5, "{}", stderr(&output));
    assert!(lines[1].starts_with("  sh (") && lines[1].ends_with("exit 7"), "{lines:?}");
    assert!(lines[2].starts_with("  ├─ hold (") && lines[3].starts_with("* ├─ hold ("), "{lines:?}");
    assert!(lines[3].contains("4") && lines[3].contains("MiB") && lines[4].starts_with("  └─ hold ("), "{lines:?}");
    assert!(lines.iter().all(|line| line.chars().count() <= 80), "{lines:?}");
    let said = stderr(&output);
    assert_eq!(said.matches("snug: statistics of process").count(), 1, "{said}");
    assert!(said.contains("peaks: segments 4") && said.starts_with("snug: 4 processes; hold ("), "{said}");

    let svg = fs::read_to_string(place.path("a.svg")).unwrap();
    let document = roxmltree::Document::parse(&svg).unwrap();
    let texts: Vec<&str> = document.descendants().filter_map(|node| node.text()).map(str::trim).collect();
    assert!(texts.contains(&"Memory of hold on snug"), "{texts:?}");
    assert!(texts.contains(&"Resident memory of all 4 processes"), "{texts:?}");
    assert!(texts.iter().any(|text| text.starts_with("peak 4")), "{texts:?}");
    assert_eq!(document.descendants().filter(|node| node.has_tag_name("polygon")).count(), 4);
}

#[test]
fn whose_details_are_shown() {
    let place = place_with_hold();
    place.copy(place.path("hold"), "other");
    let shown = |children: &str| {
        let script = "./hold 3 exit; ./other 9 exit; ./hold 5 exit; true";
        let output = place.output(&["run", "--stats", children, "sh", "-c", script]);
        let said = stderr(&output);
        (said.matches("snug: statistics of process").count(), said)
    };
    assert_eq!(shown("--children=all").0, 4);
    assert_eq!(shown("--children=hold").0, 2);
    assert_eq!(shown("--children=o*r").0, 1);
    let (count, said) = shown("--children=none");
    assert!(count == 1 && said.starts_with("snug: 1 process\n") && said.contains("  sh ("), "{said}");
    let (count, said) = shown("--children=nobody");
    assert!(count == 0 && said.contains("none on snug is called nobody"), "{said}");
    assert_refused(&place.output(&["run", "--children=all", "true"]), 125, &["--children is for --stats"]);
}

#[test]
fn files_of_several_processes() {
    let place = place_with_hold();
    let run = |flags: &[&str]| {
        let output = place.output(&[&["run"], flags, &["sh", "-c", "./hold 3 exit; ./hold 9 exit; true"]].concat());
        assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""), "{flags:?}");
    };
    run(&["--stats=one.json"]);
    assert!(json(&place, "one.json")["peaks"]["used_peak"].as_u64().unwrap() >= 9 << 20);
    run(&["--stats=all.csv", "--children=all"]);
    let rows = csv::Reader::from_path(place.path("all.csv")).unwrap().records().count();
    assert_eq!(rows, 3);
    run(&["--stats=each-%p.prom"]);
    let files = fs::read_dir(place.dir.path()).unwrap().flatten();
    let each: Vec<_> = files.filter(|file| file.file_name().to_string_lossy().starts_with("each-")).collect();
    assert_eq!(each.len(), 3);
    assert!(each.iter().all(|file| fs::read_to_string(file.path()).unwrap().ends_with("# EOF\n")));
    let output = place.output(&["run", "--stats=all.prom", "--children=all", "true"]);
    assert_refused(&output, 125, &["need a file each: put %p into the name"]);
}

/// None of these lets code of the library's run at its end.
#[test]
fn whatever_ends_a_program_it_leaves_its_statistics() {
    let place = place_with_hold();
    let ends = [("_exit", Some(5), None, "exit"), ("kill", None, Some(libc::SIGKILL), "SIGKILL")];
    for (how, code, signal, reason) in ends {
        for more in [&[][..], &["0"], &["500"], &["20000"]] {
            let hold = [&["run", "--stats=%p.json", "./hold", "20", how], more].concat();
            let output = place.output(&hold);
            assert_eq!((output.status.code(), output.status.signal()), (code, signal), "{how} {more:?}");
            assert_eq!(stderr(&output), "");
            let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
            let mut names = fs::read_dir(place.dir.path()).unwrap().map(|entry| name(entry.unwrap()));
            let file = names.find(|name| name.ends_with(".json")).unwrap();
            let found = json(&place, &file);
            fs::remove_file(place.path(&file)).unwrap();
            assert_eq!(file, format!("{}.json", found["pid"]));
            assert_eq!(found["reason"], reason, "{how} {more:?}");
            assert!(found["requested"]["requested_large"].as_u64().unwrap() == 20 << 20, "{how} {more:?}: {found}");
            assert!(found["process"]["resident_snug"].as_u64().unwrap() > 20 << 20, "{how} {more:?}: {found}");
        }
    }
    let output = place.output(&["run", "--stats", "sh", "-c", "exit 3"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains("exit 3") && stderr(&output).contains("snug: statistics of process"));
}

#[test]
fn an_interrupted_program_leaves_its_statistics() {
    let place = place_with_hold();
    let mut command = place.snug(&["run", "--stats=s.json", "./hold", "30", "wait"]);
    let mut child = command.process_group(0).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    // SAFETY: the group is that of the child, which was not waited for. As Ctrl-C does.
    unsafe { libc::kill(-(child.id() as i32), libc::SIGINT) };
    assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGINT));
    let found = json(&place, "s.json");
    assert_eq!((&found["reason"], found["requested"]["requested_large"].as_u64()), (&"SIGINT".into(), Some(30 << 20)));
}

/// Stop signals, and what is sent to snug alone, reach the program as if nobody watched.
#[test]
fn signals_pass() {
    let place = Place::new();
    let script = "trap 'echo usr1; exit 9' USR1; echo $$; while :; do sleep 0.02; done";
    let mut command = place.snug(&["run", "--stats=s.txt", "sh", "-c", script]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = || {
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        line
    };
    let shell: i32 = line().trim().parse().unwrap();
    let state = || {
        let stat = fs::read_to_string(format!("/proc/{shell}/stat")).unwrap();
        stat.rsplit_once(") ").unwrap().1.chars().next().unwrap()
    };
    // SAFETY: both are processes that this test started, and that were not waited for.
    unsafe { libc::kill(shell, libc::SIGSTOP) };
    sleep(Duration::from_millis(100));
    assert!(matches!(state(), 't' | 'T'), "{}", state());
    sleep(Duration::from_millis(100));
    assert!(matches!(state(), 't' | 'T'), "it does not stay stopped: {}", state());
    // SAFETY: as above.
    unsafe {
        libc::kill(shell, libc::SIGCONT);
        libc::kill(child.id() as i32, libc::SIGUSR1);
    }
    assert_eq!(line(), "usr1\n");
    assert_eq!(child.wait().unwrap().code(), Some(9));
}

#[test]
fn what_is_left_behind_goes_on() {
    let place = Place::new();
    let begun = Instant::now();
    let output = place.output(&["run", "--stats", "sh", "-c", "sleep 30 >&- 2>&- & echo $!"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(begun.elapsed() < Duration::from_secs(20));
    assert!(stderr(&output).contains("(still runs)"), "{}", stderr(&output));
    let pid: i32 = stdout(&output).trim().parse().unwrap();
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    assert!(status.contains("TracerPid:\t0\n") && status.contains("State:\tS"), "{status}");
    // SAFETY: the test started it.
    unsafe { libc::kill(pid, libc::SIGKILL) };
}

/// Inside another that traces, the program cannot be traced again: it is looked at, and that is said.
#[test]
fn who_cannot_trace_says_so() {
    let place = place_with_hold();
    let inner = [SNUG, "run", "--stats", "./hold", "10", "wait"];
    let mut command = place.snug(&[&["run", "--stats=outer.txt"], &inner[..]].concat());
    let mut child = command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    sleep(Duration::from_millis(400));
    // SAFETY: the group is that of the child, which was not waited for.
    unsafe { libc::kill(-(child.id() as i32), libc::SIGINT) };
    let output = child.wait_with_output().unwrap();
    let said = stderr(&output);
    assert!(said.contains("was not traced (Operation not permitted") && said.contains("hold ("), "{said}");
    assert!(said.contains("the end of hold") && said.contains("snug: statistics of process"), "{said}");
}

/// Many processes and threads at once, all of which are seen, and none is held up.
#[test]
fn a_crowd() {
    let place = place_with_hold();
    let source = r#"
        #include <pthread.h>
        #include <stdlib.h>
        #include <sys/wait.h>
        #include <unistd.h>
        static void *work(void *unused) { for (int i = 0; i < 1000; i++) free(malloc(100)); return unused; }
        int main(void)
        {
            for (int i = 0; i < 60; i++) {
                if (fork() != 0) continue;
                pthread_t id[4];
                for (int j = 0; j < 4; j++) pthread_create(&id[j], NULL, work, NULL);
                for (int j = 0; j < 4; j++) pthread_join(id[j], NULL);
                if (i == 7) execl("./hold", "hold", "25", "exit", (char *)NULL);
                _exit(0);
            }
            int ended = 0;
            while (wait(NULL) > 0) ended++;
            return ended == 60 ? 0 : 1;
        }"#;
    place.compile("crowd", source, &["-O1", "-w", "-fno-builtin", "-pthread"]);
    let output = place.output(&["run", "--stats", "--plot=a.svg", "./crowd"]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.starts_with("snug: 61 processes; hold (") && said.contains("  and 37 more, none"), "{said}");
}

/// A program without snug, as those that are linked statically: what the kernel knows is told all the same.
#[test]
fn a_program_that_is_not_on_snug() {
    let place = place_with_hold();
    place.compile("fixed", HOLD, &["-O1", "-w", "-fno-builtin", "-pthread", "-static"]);
    let output =
        place.output(&["run", "--stats", "--plot=a.svg", "--children=fixed", "sh", "-c", "./fixed 12 exit; true"]);
    let said = stderr(&output);
    assert!(said.starts_with("snug: 2 processes; none on snug is called fixed\n"), "{said}");
    let line = said.lines().find(|line| line.contains("fixed (")).unwrap();
    assert!(line.contains("12.") && line.contains("MiB"), "{line}");
    assert!(place.path("a.svg").exists());
}

/// What is asked of the library stays with the library: the program prints by itself.
#[test]
fn options_of_the_librarys_own_printing() {
    let place = place_with_hold();
    let words = ["run", "--stats=s.csv", "SNUG_STATS_ON=exit,interval", "SNUG_STATS_EVERY=1ms", "./hold", "4", "exit"];
    assert_eq!(place.output(&words).status.code(), Some(0));
    assert!(fs::read_to_string(place.path("s.csv")).unwrap().lines().count() >= 2);
    let mut plain = Command::new("sh");
    plain.args(["-c", &format!("exec {SNUG} run --stats=s.csv SNUG_STATS_ON=exit sh -c 'echo $$'")]);
    let child = plain.env("XDG_CACHE_HOME", place.cache()).current_dir(place.dir.path()).stdout(Stdio::piped()).spawn();
    let child = child.unwrap();
    let pid = child.id().to_string();
    assert_eq!(stdout(&child.wait_with_output().unwrap()).trim(), pid);
    let _ = text(&place.path("s.csv"));
}

/// The picture follows the reader's light or dark, fits a phone, marks the peak, and has its legend beside the plot.
#[test]
fn the_picture_in_a_browser() {
    let Some(browser) = browser::find() else { return };
    let place = place_with_hold();
    let script = "for i in 1 2 3; do ./hold 20 exit; ./hold 40 exit; done; true";
    assert_eq!(place.output(&["run", "--plot=a.svg", "sh", "-c", script]).status.code(), Some(0));
    let svg = fs::read_to_string(place.path("a.svg")).unwrap();
    let document = roxmltree::Document::parse(&svg).unwrap();
    let root = document.root_element();
    assert!(root.attribute("width").is_none() && root.attribute("viewBox") == Some("0 0 1000 800"), "{root:?}");
    // Values under the pointer.
    let titles: Vec<&str> =
        document.descendants().filter(|node| node.has_tag_name("title")).filter_map(|node| node.text()).collect();
    assert!(
        titles.iter().any(|title| title.starts_with("resident, the whole process: ") && title.ends_with(" s")),
        "{titles:?}"
    );
    // Names of lines stand to the right of all points.
    let number = |node: &roxmltree::Node, name: &str| node.attribute(name).and_then(|text| text.parse::<f64>().ok());
    let right = document
        .descendants()
        .filter(|node| node.has_tag_name("circle"))
        .filter_map(|node| number(&node, "cx"))
        .fold(0.0, f64::max);
    let names = document
        .descendants()
        .filter(|node| node.text().is_some_and(|text| text.contains("(estimate)") || text.contains("sh (")));
    let left = names.filter_map(|node| number(&node, "x")).fold(f64::INFINITY, f64::min);
    assert!(left > right && left < 1000.0, "{left} {right}");

    // The page that shows it says nothing of a size; light and dark, on a desktop and on a phone.
    place.write(
        "page.html",
        "<meta name=viewport content='width=device-width'><body style='margin:0'><img src=a.svg style='width:100%'>",
        0o644,
    );
    let (desktop, phone) = (("1000,800", 1000), ("390,800", 390));
    let (light, dark) = ((&[][..], [255, 255, 255]), (&[browser::DARK][..], [0x16, 0x18, 0x1c]));
    // In a short run each once.
    let all = [(desktop, light), (phone, dark), (desktop, dark), (phone, light)];
    for ((size, width), (settings, ground)) in all.into_iter().take(if is_full() { 4 } else { 2 }) {
        let page = place.path("page.html");
        let colours = browser::colours_of(&browser::screenshot(&place, browser, &page, size, settings));
        let enough = width * width / 4;
        assert!(colours.get(&ground).copied().unwrap_or(0) > enough, "{size} {settings:?}");
        // The line of resident memory, and the layers of the stack.
        for colour in [[214, 39, 40], [31, 119, 180]] {
            // On a phone lines are thinner than a pixel; the legend has the colour still.
            let least = if width == 1000 { 125 } else { 10 };
            assert!(colours.get(&colour).copied().unwrap_or(0) > least, "{size} {settings:?} {colour:?}");
        }
    }
}
