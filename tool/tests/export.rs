//! `snug export`: metrics of all programs on snug, once, as a file, over a Unix socket, and the dashboard for them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::common::running::{holder, Running};
use crate::common::{
    assert_clean, assert_refused, nobody_lies, stderr, stdout, text, without_surroundings, Place, SNUG,
};

/// Samples by name and labels; asserts what OpenMetrics asks of the whole.
fn samples(text: &str) -> BTreeMap<String, f64> {
    assert!(text.ends_with("\n# EOF\n") && text.matches("# EOF").count() == 1, "{text}");
    let types: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
    let families: BTreeSet<&str> = types.iter().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(types.len(), families.len(), "a family is there twice");
    let sample = |line: &str| {
        let (name, value) = line.rsplit_once(' ').unwrap();
        (name.to_string(), value.parse().unwrap())
    };
    text.lines().filter(|line| !line.starts_with('#')).map(sample).collect()
}

fn of(samples: &BTreeMap<String, f64>, metric: &str, pid: &str) -> f64 {
    let start = format!("{metric}{{pid=\"{pid}\",program=\"holder\"}}");
    *samples.get(&start).unwrap_or_else(|| panic!("{start} is not in {:?}", samples.keys()))
}

fn two() -> (Place, Place, Running, Running) {
    let (one, two) = (Place::new(), Place::new());
    let programs = (holder(&one), holder(&two));
    (one, two, programs.0, programs.1)
}

#[test]
fn programs_are_told_apart_by_labels() {
    let _truth = nobody_lies();
    let (place, _other, one, two) = two();
    let output = place.output(&["export"]);
    assert_clean(&output);
    let all = samples(&stdout(&output));
    for program in [&one, &two] {
        assert_eq!(of(&all, "snug_requested_large_bytes", &program.pid()), 5000000.0);
        assert!(of(&all, "snug_resident_snug_bytes", &program.pid()) > 5e6);
    }
    assert!(all["snug_programs"] >= 2.0);
    let only = samples(&stdout(&place.output(&["export", &one.pid()])));
    assert_eq!(only["snug_programs"], 1.0);
    assert_eq!(of(&only, "snug_requested_large_bytes", &one.pid()), 5000000.0);
    assert_refused(&place.output(&["export", "999999999"]), 1, &["no process"]);
    assert_refused(&place.output(&["export", "999999998", "999999999"]), 1, &["none of these"]);
    // Prometheus's own parser, where it is.
    let script = "import sys\nfrom prometheus_client.openmetrics.parser import text_string_to_metric_families as p\n\
                  print(len(list(p(sys.stdin.read()))))";
    fs::write(place.path("all.om"), output.stdout).unwrap();
    let mut parser = Command::new("/usr/bin/python3");
    parser.args(["-c", script]).stdin(fs::File::open(place.path("all.om")).unwrap());
    let parsed = parser.output().unwrap();
    if !stderr(&parsed).contains("ModuleNotFoundError") {
        assert!(parsed.status.success(), "{}", stderr(&parsed));
        assert!(stdout(&parsed).trim().parse::<u32>().unwrap() > 50);
    }
}

#[test]
fn as_a_textfile_that_is_kept_up_to_date() {
    let place = Place::new();
    let program = holder(&place);
    let file = place.path("snug.prom");
    assert_clean(&place.output(&["export", "--output", text(&file), &program.pid()]));
    assert_eq!(samples(&fs::read_to_string(&file).unwrap())["snug_programs"], 1.0);
    fs::remove_file(&file).unwrap();
    let mut row = place.snug(&["export", "--output", text(&file), "--every", "50ms", &program.pid()]);
    let mut row = row.spawn().unwrap();
    let time = || fs::metadata(&file).and_then(|found| found.modified()).ok();
    wait_until(|| time().is_some());
    let first = time();
    wait_until(|| time() != first);
    for _ in 0..200 {
        samples(&fs::read_to_string(&file).unwrap()); // never a part of it
    }
    row.kill().unwrap();
    row.wait().unwrap();
    assert_eq!(place.output(&["export", "--every", "1"]).status.code(), Some(2));
}

fn wait_until(done: impl Fn() -> bool) {
    for _ in 0..400 {
        if done() {
            return;
        }
        sleep(Duration::from_millis(10));
    }
    panic!("it does not come");
}

fn ask(path: &Path, request: &str) -> String {
    let mut stream = UnixStream::connect(path).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    reply
}

struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[track_caller]
fn assert_answers(path: &Path, pid: &str) {
    let reply = ask(path, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    let (head, body) = reply.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.contains("application/openmetrics-text"), "{head}");
    assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "{head}");
    assert_eq!(of(&samples(body), "snug_requested_large_bytes", pid), 5000000.0);
    // Who says nothing gets it plain.
    assert_eq!(of(&samples(&ask(path, "")), "snug_requested_large_bytes", pid), 5000000.0);
    assert!(ask(path, "GET /x HTTP/1.0\r\n\r\n").starts_with("HTTP/1.1 404 "));
    assert!(ask(path, "POST / HTTP/1.0\r\n\r\n").starts_with("HTTP/1.1 405 "));
}

#[test]
fn over_a_socket() {
    use std::os::unix::process::ExitStatusExt;
    let _truth = nobody_lies();
    let place = Place::new();
    let program = holder(&place);
    let path = place.path("socket");
    drop(UnixListener::bind(&path).unwrap()); // left behind by somebody
    let mut command = place.snug(&["export", "--socket", text(&path)]);
    let mut server = Ended(command.stderr(Stdio::piped()).spawn().unwrap());
    wait_until(|| UnixStream::connect(&path).is_ok());
    assert_answers(&path, &program.pid());
    // It is in use, so it is not taken away.
    assert_refused(&place.output(&["export", "--socket", text(&path)]), 1, &["cannot listen at"]);
    assert_answers(&path, &program.pid());
    // A signal ends it, and nothing is left.
    // SAFETY: the child was not waited for.
    unsafe { libc::kill(server.0.id() as i32, libc::SIGTERM) };
    assert_eq!(server.0.wait().unwrap().signal(), Some(libc::SIGTERM));
    assert!(!path.exists());
}

/// Who sends a byte now and then holds up the next no longer than who sends none.
#[test]
fn a_reader_that_drips_is_left() {
    let place = Place::new();
    let path = place.path("socket");
    let _server = Ended(place.snug(&["export", "--socket", text(&path), "1"]).stderr(Stdio::null()).spawn().unwrap());
    wait_until(|| UnixStream::connect(&path).is_ok());
    let mut drip = UnixStream::connect(&path).unwrap();
    let begun = Instant::now();
    let dripping = std::thread::spawn(move || {
        while begun.elapsed() < Duration::from_secs(4) && drip.write_all(b"x").is_ok() {
            sleep(Duration::from_millis(200));
        }
    });
    sleep(Duration::from_millis(50));
    ask(&path, "GET /x HTTP/1.0\r\n\r\n");
    assert!(begun.elapsed() < Duration::from_millis(2500), "{:?}", begun.elapsed());
    dripping.join().unwrap();
}

/// As systemd does it: the socket is descriptor 3, and variables say so.
#[test]
fn over_a_socket_that_is_handed_over() {
    let _truth = nobody_lies();
    let place = Place::new();
    let program = holder(&place);
    let path = place.path("socket");
    let listener = UnixListener::bind(&path).unwrap();
    let handed = listener.as_raw_fd();
    let mut command = Command::new("sh");
    command.args(["-c", "LISTEN_PID=$$ LISTEN_FDS=1 exec \"$0\" export", SNUG]);
    // SAFETY: both calls are async-signal-safe; what is 3 already would be closed on exec.
    unsafe {
        command.pre_exec(move || match (libc::dup2(handed, 3), libc::fcntl(3, libc::F_SETFD, 0)) {
            (3, 0) => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        });
    }
    let _server = Ended(without_surroundings(&mut command).spawn().unwrap());
    assert_answers(&path, &program.pid());
    // What was handed to another process is not for this one.
    let mut command = place.snug(&["export", &program.pid()]);
    let output = command.env("LISTEN_PID", "1").env("LISTEN_FDS", "1").output().unwrap();
    assert_clean(&output);
}

/// Each metric that the dashboard asks for is one that a program has.
#[test]
fn the_dashboard_asks_for_metrics_that_there_are() {
    let place = Place::new();
    let program = holder(&place);
    let printed = stdout(&place.output(&["export", "--dashboard"]));
    assert_eq!(printed, include_str!("../../docs/dashboard.json"));
    let dashboard: serde_json::Value = serde_json::from_str(&printed).unwrap();
    let there: BTreeSet<String> = samples(&stdout(&place.output(&["export", &program.pid()])))
        .into_keys()
        .map(|name| name.split('{').next().unwrap().to_string())
        .collect();
    let mut asked = BTreeSet::new();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().unwrap());
    let queries = dashboard["templating"]["list"].as_array().unwrap().iter().map(|list| &list["query"]["query"]);
    for text in targets.map(|target| &target["expr"]).chain(queries).filter_map(|text| text.as_str()) {
        let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
        asked.extend(words.filter(|word| word.starts_with("snug_")).map(str::to_string));
    }
    assert!(asked.len() > 20, "{asked:?}");
    let missing: Vec<_> = asked.difference(&there).collect();
    assert!(missing.is_empty(), "the dashboard asks for {missing:?}");
    // Panels stand beside each other, not over.
    let places: BTreeSet<_> = panels.iter().map(|panel| panel["gridPos"].to_string()).collect();
    assert_eq!(places.len(), panels.len());
}
