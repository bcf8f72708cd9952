//! Programs that cannot run on snug: each is refused with one line and its status, and none that can is.

use std::fs;

use crate::common::{assert_clean, assert_refused, stderr, stdout, text, Place};

const NOTHING: &str = "int main(void) { return 0; }\n";
/// Without a C library, so that it can be linked statically everywhere.
const NOTHING_AT_ALL: &str = "void _start(void) { for (;;) { } }\n";
const STATIC: [&str; 3] = ["-static", "-nostdlib", "-ffreestanding"];

#[test]
fn not_found() {
    let place = Place::new();
    assert_refused(&place.output(&["run", "no-such-program"]), 127, &["no-such-program was not found"]);
    assert_refused(&place.output(&["run", "./no/such"]), 127, &["./no/such was not found"]);
    assert_refused(&place.output(&["run", ""]), 127, &["was not found"]);
}

#[test]
fn not_executable() {
    let place = Place::new();
    place.write("plain", "text", 0o644);
    assert_refused(&place.output(&["run", "./plain"]), 126, &["./plain may not be executed"]);
    assert_refused(&place.output(&["run", "./"]), 126, &["./ is a folder"]);
    // Found in PATH only in a form that may not be executed.
    let output = place.snug(&["run", "plain"]).env("PATH", place.dir.path()).output().unwrap();
    assert_refused(&output, 126, &["/plain may not be executed"]);
}

#[test]
fn found_in_path_as_execvp_does() {
    let place = Place::new();
    fs::create_dir(place.path("first")).unwrap();
    fs::create_dir(place.path("second")).unwrap();
    place.write("first/tool", "#!/bin/sh\necho first", 0o644);
    place.write("second/tool", "#!/bin/sh\necho second", 0o755);
    place.write("here", "#!/bin/sh\necho here", 0o755);
    let list = format!("{}:{}:", text(&place.path("first")), text(&place.path("second")));
    for (name, expected) in [("tool", "second\n"), ("here", "here\n")] {
        let output = place.snug(&["run", name]).env("PATH", &list).output().unwrap();
        assert_eq!(stdout(&output), expected, "{}", stderr(&output));
    }
}

#[test]
fn statically_linked() {
    let place = Place::new();
    place.compile("still", NOTHING_AT_ALL, &STATIC);
    assert_refused(&place.output(&["run", "./still"]), 126, &["./still is statically linked"]);
    place.compile("still-pie", NOTHING_AT_ALL, &["-static-pie", "-fPIE", "-nostdlib", "-ffreestanding"]);
    assert_refused(&place.output(&["run", "./still-pie"]), 126, &["statically linked"]);
    assert_refused(&place.output(&["compare", "./still"]), 126, &["statically linked"]);
}

#[test]
fn linked_with_musl() {
    let place = Place::new();
    place.compile("musl", NOTHING, &["-Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1"]);
    assert_refused(&place.output(&["run", "./musl"]), 126, &["./musl is linked with musl"]);
}

#[test]
fn loader_that_is_not_there() {
    let place = Place::new();
    place.compile("lost", NOTHING, &["-Wl,--dynamic-linker=/no/such/loader.so"]);
    assert_refused(&place.output(&["run", "./lost"]), 127, &["needs the loader /no/such/loader.so"]);
}

#[test]
fn for_another_machine() {
    let place = Place::new();
    let mut bytes = fs::read(place.compile("own", NOTHING, &[])).unwrap();
    let other: u8 = if cfg!(target_arch = "s390x") { 62 } else { 22 }; // x86-64, or S/390
    let machine = bytes[18..20].iter().position(|&byte| byte != 0).unwrap();
    bytes[18 + machine] = other;
    place.write("other", &bytes, 0o755);
    assert_refused(&place.output(&["run", "./other"]), 126, &["./other is a program for", "this snug is for"]);
}

#[test]
fn for_32_bit() {
    let place = Place::new();
    let mut header = b"\x7fELF\x01\x01\x01".to_vec(); // 32-bit, little-endian
    header.resize(52, 0);
    (header[16], header[18], header[20]) = (2, 3, 1); // a program for i386
    place.write("narrow", &header, 0o755);
    assert_refused(&place.output(&["run", "./narrow"]), 126, &["./narrow is a program for i386 (32-bit)"]);
}

#[test]
fn damaged() {
    let place = Place::new();
    place.write("torn", "\x7fELF", 0o755);
    assert_refused(&place.output(&["run", "./torn"]), 126, &["./torn is a damaged program file"]);
}

#[test]
fn scripts_run() {
    let place = Place::new();
    place.write("plain.sh", "#!/bin/sh\necho \"$0 $1\"", 0o755);
    place.write("env.sh", "#!/usr/bin/env sh\necho \"$0 $1\"", 0o755);
    place.write("bare.sh", "echo \"$0 $1\"", 0o755); // execvp gives it to /bin/sh
    for name in ["./plain.sh", "./env.sh", "./bare.sh"] {
        let output = place.output(&["run", name, "x"]);
        assert_clean(&output);
        assert_eq!(stdout(&output), format!("{name} x\n"));
    }
}

#[test]
fn scripts_for_what_cannot_run() {
    let place = Place::new();
    let still = place.compile("still", NOTHING_AT_ALL, &STATIC);
    place.write("script", format!("#!{} -x\n", text(&still)), 0o755);
    place.write("outer", format!("#! {}\n", text(&place.path("script"))), 0o755);
    for (name, interpreter) in [("./script", "still"), ("./outer", "still")] {
        let parts = [&format!("{interpreter}, the interpreter of {name}, is statically linked")[..]];
        assert_refused(&place.output(&["run", name]), 126, &parts);
    }
    place.write("by-env", "#!/usr/bin/env still\n", 0o755);
    let output = place.snug(&["run", "./by-env"]).env("PATH", place.dir.path()).output().unwrap();
    assert_refused(&output, 126, &["the interpreter of ./by-env, is statically linked"]);
    place.write("orphan", "#!/no/such/shell\n", 0o755);
    assert_refused(
        &place.output(&["run", "./orphan"]),
        127,
        &["/no/such/shell, the interpreter of ./orphan, was not found"],
    );
}

#[test]
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn the_loader_itself_is_a_program() {
    let place = Place::new();
    let loader =
        if cfg!(target_arch = "x86_64") { "/lib64/ld-linux-x86-64.so.2" } else { "/lib/ld-linux-aarch64.so.1" };
    assert_clean(&place.output(&["run", loader, "/bin/true"]));
}
