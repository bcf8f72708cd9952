//! The tests of the tool that may find out while they run that they must be skipped, in one program. Its harness is another
//! one than Rust's, which knows no such tests; the others are in main.rs.

mod common;

mod ends;
mod lab;
mod live;
mod privileged;
mod profile;
mod terminals;
mod top;
mod watched;

use common::{Place, Tests};
use libtest_mimic::{Arguments, Trial};

fn main() {
    let files: [(&str, Tests); 8] = [
        ("ends", ends::tests()),
        ("lab", lab::tests()),
        ("live", live::tests()),
        ("privileged", privileged::tests()),
        ("profile", profile::tests()),
        ("terminals", terminals::tests()),
        ("top", top::tests()),
        ("watched", watched::tests()),
    ];
    let mut trials = Vec::new();
    for (file, tests) in files {
        for (name, test) in tests {
            trials.push(Trial::ignorable_test(format!("{file}::{name}"), move || test(&Place::new())));
        }
    }
    let mut arguments = Arguments::from_args();
    let threads = || std::env::var("RUST_TEST_THREADS").ok()?.parse().ok(); // as Rust's own harness has it
    arguments.test_threads = arguments.test_threads.or_else(threads);
    libtest_mimic::run(&arguments, trials).exit();
}
