//! `snug profile`: whose names it finds. C, C++ and Rust with what is inlined, files without symbols, with symbols apart
//! from them or on another machine, and code made while the program runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::running::Running;
use crate::common::{assert_clean, assert_refused, stderr, stdout, text, Place};
use serde_json::Value;

/// A function that is inlined, in one that is not; the program then ends at once, with its blocks live.
const INLINED: &str = r#"
#include <stdlib.h>
#include <unistd.h>
#define KEEP(p) __asm__ volatile("" : "+r"(p))
struct Store { static inline __attribute__((always_inline)) void *inner(unsigned long n) {
    void *p = malloc(n);
    KEEP(p);
    return p;
} };
namespace outer { __attribute__((noinline, noclone)) void *allocate(unsigned long n) {
    void *p = Store::inner(n);
    KEEP(p);
    return p;
} }
int main() { outer::allocate(70000); outer::allocate(70001); _exit(0); }
"#;

const PLAIN: &str = r#"
#include <stdlib.h>
#include <unistd.h>
__attribute__((noinline, noclone)) void *named(unsigned long n) { void *p = malloc(n); __asm__ volatile("" : "+r"(p)); return p; }
int main(void) { named(70000); named(70001); _exit(0); }
"#;

const RUST: &str = r#"
use std::hint::black_box;
#[inline(always)]
fn inner(bytes: usize) -> Vec<u8> { Vec::with_capacity(bytes) }
#[inline(never)]
fn allocate(bytes: usize) -> Vec<u8> { black_box(inner(black_box(bytes))) }
fn main() {
    black_box(std::mem::ManuallyDrop::new(allocate(70000)));
    std::process::exit(0);
}
"#;

/// Makes two functions that call what they are given: one has its name in the list that perf reads, one in a jitdump.
const MADE: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
__attribute__((noinline, noclone)) void leaf(void) { void *p = malloc(70000); __asm__ volatile("" : "+r"(p)); }
static void word(FILE *f, uint32_t w) { fwrite(&w, 4, 1, f); }
static void wide(FILE *f, uint64_t w) { fwrite(&w, 8, 1, f); }
static void dump(const char *path, uint64_t code)
{
    FILE *f = fopen(path, "w");
    word(f, 0x4a695444); word(f, 1); word(f, 40); word(f, 62); word(f, 0); word(f, getpid()); wide(f, 0); wide(f, 0);
    word(f, 2); word(f, 16 + 16 + 16 + 5); wide(f, 0); wide(f, code); wide(f, 1); wide(f, code); word(f, 77); word(f, 0);
    fwrite("a.js", 5, 1, f);
    word(f, 0); word(f, 16 + 40 + 7 + 8); wide(f, 0);
    word(f, getpid()); word(f, getpid()); wide(f, code); wide(f, code); wide(f, 8); wide(f, 1);
    fwrite("dumped", 7, 1, f); wide(f, 0);
    fclose(f);
    mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, open(path, O_RDONLY), 0);
}
int main(void)
{
    /* push rbp; mov rbp, rsp; call rdi; pop rbp; ret */
    static const unsigned char body[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
    char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(code, body, sizeof(body));
    memcpy(code + 64, body, sizeof(body));
    char path[64];
    snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
    FILE *map = fopen(path, "w");
    fprintf(map, "%lx 8 py::listed:/srv/app.py\n", (unsigned long)code);
    fclose(map);
    snprintf(path, sizeof(path), "jit-%d.dump", getpid());
    dump(path, (uint64_t)(code + 64));
    ((void (*)(void (*)(void)))code)(leaf);
    ((void (*)(void (*)(void)))(code + 64))(leaf);
    printf("%d", getpid());
    fflush(stdout);
    _exit(0);
}
"#;

/// `function file:line` of each frame of each site with a block of about this size, the innermost first.
fn stacks(file: &Path, bytes: u64) -> Vec<Vec<String>> {
    let json: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    let is_wanted = |site: &&Value| {
        let number = |name: &str| site["numbers"][name].as_u64().unwrap();
        number("live_bytes") / number("live_blocks").max(1) / 1000 == bytes / 1000
    };
    let frames = |place: &Value| {
        let lines = place["lines"].as_array().unwrap();
        let line = |line: &Value| {
            let file = line["file"].as_str().unwrap().rsplit('/').next().unwrap().to_string();
            format!("{} {file}:{}", line["function"].as_str().unwrap(), line["line"])
        };
        let module = place["module"].as_str().unwrap_or_default().rsplit('/').next().unwrap();
        let nameless = lines.is_empty().then(|| format!("{module}+"));
        lines.iter().map(line).chain(nameless).collect::<Vec<_>>()
    };
    let sites = json["sites"].as_array().unwrap().iter().filter(is_wanted);
    sites.map(|site| site["stack"].as_array().unwrap().iter().flat_map(frames).collect()).collect()
}

fn profile(place: &Place, program: &Path, to: &str) {
    assert_clean(&place.output(&["profile", "-o", to, "SNUG_PROFILE_BYTES=1", text(program)]));
}

#[track_caller]
fn assert_stack(place: &Place, file: &str, wanted: &[&str]) {
    let stacks = stacks(&place.path(file), 70000);
    assert!(!stacks.is_empty(), "there is none of that size");
    for stack in &stacks {
        let begins = wanted.iter().zip(stack).all(|(wanted, frame)| frame.starts_with(wanted));
        assert!(begins && stack.len() >= wanted.len(), "{stack:?} does not begin with {wanted:?}");
    }
}

fn tool(name: &str, words: &[&str], folder: &Path) {
    let done = Command::new(name).args(words).current_dir(folder).output().unwrap();
    assert!(done.status.success(), "{name}: {}", stderr(&done));
}

#[test]
fn inlined_functions_of_cxx() {
    let place = Place::new();
    place.write("inlined.cc", INLINED, 0o644);
    tool("c++", &["-O2", "-g", "-o", "inlined", "inlined.cc"], place.dir.path());
    profile(&place, &place.path("inlined"), "p.json");
    assert_stack(
        &place,
        "p.json",
        &[
            "Store::inner(unsigned long) inlined.cc:6",
            "outer::allocate(unsigned long) inlined.cc:11",
            "main inlined.cc:15",
        ],
    );
}

#[test]
fn inlined_functions_of_rust() {
    let place = Place::new();
    place.write("prog.rs", RUST, 0o644);
    tool("rustc", &["-O", "-g", "--edition", "2021", "prog.rs"], place.dir.path());
    profile(&place, &place.path("prog"), "p.json");
    let stacks = stacks(&place.path("p.json"), 70000);
    let names: Vec<&str> = stacks[0].iter().map(|frame| frame.rsplit_once(' ').unwrap_or_default().0).collect();
    let at =
        |name: &str| names.iter().position(|function| *function == name).unwrap_or_else(|| panic!("{name}: {names:?}"));
    assert_eq!((at("prog::allocate") - at("prog::inner"), at("prog::main") - at("prog::inner")), (1, 2));
    assert!(stacks[0][at("prog::inner")].ends_with("prog.rs:4"), "{stacks:?}");
}

/// Debug information apart from the program: beside it by name, and on another machine by its build id.
#[test]
fn symbols_apart_from_the_program() {
    let place = Place::new();
    let program = place.compile("apart", PLAIN, &["-O1", "-g", "-Wl,--build-id"]);
    let folder = place.dir.path();
    tool("objcopy", &["--only-keep-debug", "apart", "apart.debug"], folder);
    tool("strip", &["apart"], folder);
    profile(&place, &program, "nameless.json");
    assert_stack(&place, "nameless.json", &["apart+", "apart+"]);
    profile(&place, &program, "p.pb.gz");

    tool("objcopy", &["--add-gnu-debuglink=apart.debug", "apart"], folder);
    profile(&place, &program, "linked.json");
    assert_stack(&place, "linked.json", &["named apart.c:4", "main apart.c:5"]);

    // The other machine has neither the program nor its folder.
    fs::create_dir_all(place.path("symbols/deep")).unwrap();
    fs::rename(place.path("apart.debug"), place.path("symbols/deep/file")).unwrap();
    fs::remove_file(&program).unwrap();
    fs::write(place.path("symbols/other"), "no program").unwrap();
    let done = place.output(&["profile", "symbolize", "p.pb.gz", "--symbols", "symbols"]);
    assert_clean(&done);
    assert!(stdout(&done).contains("got one"), "{}", stdout(&done));
    assert_clean(&place.output(&["profile", "show", "p.pb.gz", "-o", "p.json"]));
    assert_stack(&place, "p.json", &["named apart.c:4", "main apart.c:5"]);
    assert_refused(&place.output(&["profile", "symbolize", "p.pb.gz", "--symbols", "none"]), 1, &["none is no folder"]);
}

/// A program that is another one by now gives no names: they would be wrong.
#[test]
fn another_program_in_its_place() {
    let place = Place::new();
    let program = place.compile("first", PLAIN, &["-O1", "-g", "-Wl,--build-id", "-Wl,-s"]);
    profile(&place, &program, "p.pb.gz");
    place.compile("first", &PLAIN.replace("named", "another"), &["-O1", "-g", "-Wl,--build-id"]);
    let symbols = place.path("empty");
    fs::create_dir(&symbols).unwrap();
    assert_clean(&place.output(&["profile", "symbolize", "p.pb.gz", "--symbols", "empty", "-o", "p.json"]));
    assert_stack(&place, "p.json", &["first+", "first+"]);
}

#[test]
#[cfg(target_arch = "x86_64")]
fn code_made_while_it_runs() {
    let place = Place::new();
    let program: PathBuf = place.compile("made", MADE, &["-O1", "-w"]);
    let done = place.output(&["profile", "-o", "p.json", "SNUG_PROFILE_BYTES=1", text(&program)]);
    let _ = fs::remove_file(format!("/tmp/perf-{}.map", stdout(&done)));
    assert_clean(&done);
    let mut stacks = stacks(&place.path("p.json"), 70000);
    stacks.sort();
    let frames: Vec<[&str; 2]> = stacks.iter().map(|stack| [stack[0].as_str(), stack[1].as_str()]).collect();
    assert_eq!(frames, [["leaf :0", "dumped a.js:77"], ["leaf :0", "listed app.py:0"]]);
    assert!(stacks.iter().all(|stack| stack[2].starts_with("main")), "{stacks:?}");
}

/// Its path is longer than what the library keeps of one; then there is another file under it.
#[test]
fn a_library_that_is_replaced() {
    let place = Place::new();
    let folder = format!("{0}/{0}", "long".repeat(40));
    fs::create_dir_all(place.path(&folder)).unwrap();
    let made = |name: &str, function: &str| {
        let source = format!("#include <stdlib.h>\nvoid *{function}(int n) {{ void *p = malloc(n); __asm__ volatile(\"\" : \"+r\"(p)); return p; }}\n");
        place.write("source.c", source, 0o644);
        tool("cc", &["-O1", "-shared", "-fPIC", "-Wl,--build-id", "-o", name, "source.c"], place.dir.path());
    };
    let name = format!("{folder}/libx.so");
    made(&name, "first_one");
    made("other.so", "other_one");
    let source = "#include <stdio.h>\n#include <unistd.h>\nvoid *first_one(int);\n\
        int main(void) { puts(\"ready\"); fflush(stdout); for (;;) { first_one(100000); usleep(10000); } }\n";
    let program = place.compile("program", source, &["-O1", text(&place.path(&name))]);
    let program = Running::start(place.snug(&["run", "SNUG_PROFILE_BYTES=1", text(&program)]));
    let look = || stdout(&place.output(&["profile", "--for", "0.2", &program.pid()]));
    assert!(look().contains("    first_one"), "{}", look());
    fs::rename(place.path("other.so"), place.path(&name)).unwrap();
    let said = look();
    assert!(!said.contains("other_one") && !said.contains("frame_dummy"), "{said}");
    // Not everybody may open what has no name any more.
    assert!(said.contains("    first_one") || said.contains("libx.so (deleted)+"), "{said}");
}
