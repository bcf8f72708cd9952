//! Signals that come for snug alone, while it stands beside a command.

use std::fs;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::Child;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::common::running::Running;
use crate::common::{text, Place};

/// Says which signals come, until it is SIGTERM.
const LISTENER: &str = r#"
#include <signal.h>
#include <stdio.h>
static void listen(int signal) { (void)signal; }
int main(void)
{
    sigset_t all;
    int number = 0;
    for (int i = 1; i < 65; i++) signal(i, listen);
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    puts("ready");
    fflush(stdout);
    while (number != SIGTERM) {
        sigwait(&all, &number);
        printf("%d ", number);
        fflush(stdout);
    }
    return 7;
}
"#;

fn send(child: &Child, signal: i32) {
    // SAFETY: the child was not waited for yet, so its number is still its own.
    unsafe { libc::kill(child.id() as i32, signal) };
}

#[test]
fn the_command_gets_them() {
    let place = Place::new();
    place.compile("listener", LISTENER, &["-w"]);
    let signals = [
        libc::SIGINT,
        libc::SIGQUIT,
        libc::SIGWINCH,
        libc::SIGALRM,
        libc::SIGHUP,
        libc::SIGUSR1,
        libc::SIGCONT,
        libc::SIGRTMIN(),
        libc::SIGTERM,
    ];
    for words in [&["run", "--stats=a.txt", "./listener"][..], &["record", "-q", "./listener"]] {
        let mut command = place.snug(words);
        command.process_group(0);
        let mut listener = Running::start(command);
        for signal in signals {
            send(&listener.child, signal);
            let wanted = format!("{signal} ");
            let mut said = vec![0; wanted.len()];
            listener.output.read_exact(&mut said).unwrap();
            assert_eq!(String::from_utf8(said).unwrap(), wanted, "{words:?}");
        }
        assert_eq!(listener.child.wait().unwrap().code(), Some(7), "{words:?}");
    }
}

/// Whether something still works in this place.
fn somebody_is_left(place: &Place) -> bool {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let mut folders = entries.filter_map(|entry| fs::read_link(entry.path().join("cwd")).ok());
    folders.any(|folder| folder == place.dir.path())
}

/// Whenever a signal comes, nothing stays: neither the command nor what was to become it.
#[test]
fn in_the_first_moments() {
    let place = Place::new();
    place.output(&["run", "true"]); // the library is there then
    for (signal, words) in [(libc::SIGTERM, ["sleep", "66"]), (libc::SIGKILL, ["true", ""])] {
        for after in 0..20 {
            let mut child = place.snug(&[&["run", "--stats=/dev/null"], &words[..]].concat()).spawn().unwrap();
            sleep(Duration::from_micros(500 * after));
            send(&child, signal);
            child.wait().unwrap();
        }
    }
    let begun = Instant::now();
    while somebody_is_left(&place) {
        assert!(begun.elapsed() < Duration::from_secs(5), "something is left in {}", text(place.dir.path()));
        sleep(Duration::from_millis(10));
    }
}
