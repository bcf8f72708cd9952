//! Heaps in files, for a whole tree of processes: `snug run SNUG_PROVIDER=file SNUG_FILE_DIR=... COMMAND`.

use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;
use std::process::Output;

use crate::common::{assert_clean, stderr, stdout, text, Place};

/// A shell with a child of fork (the parentheses), make with two compilers at a time, and what they made. Each of the
/// three shows where its heap is: the shell and its child by their process ids, and grep itself.
const BUILD: &str = r#"
set -e
shown() { grep "$PAGES/" "/proc/$1/maps" | sed "s/^/$2 /"; }
shown $$ shell
( read -r child rest < /proc/self/stat; shown "$child" child; : )
grep "$PAGES/" /proc/self/maps | sed 's/^/grep /'
make -s -j2 CC="$CC"
./hello
"#;

const MAKEFILE: &str = "hello: main.o words.o\n\t$(CC) -o hello main.o words.o\n%.o: %.c\n\t$(CC) -O2 -c $<\n";
const MAIN: &str = "#include <stdio.h>\nconst char *word(int i);\nint main(void)\n{\n    char *text = word(1) ? \
                    \"hello\" : \"\";\n    return printf(\"%s %s\\n\", text, word(1)) < 0;\n}\n";
const WORDS: &str =
    "const char *word(int i) { static const char *const all[] = {\"no\", \"world\"}; return all[i]; }\n";

/// A directory for the files that is on a disk, as /tmp need not be.
struct Pages {
    place: Place,
    dir: tempfile::TempDir,
}

impl Pages {
    fn new() -> Pages {
        Pages { place: Place::new(), dir: tempfile::TempDir::new_in("/var/tmp").unwrap() }
    }

    fn run(&self, settings: &[&str], command: &[&str]) -> Output {
        let place = format!("SNUG_FILE_DIR={}", text(self.dir.path()));
        let common = ["run", "SNUG_PROVIDER=file", &place, "SNUG_PROVIDER_SIZE=4M"];
        let mut run = self.place.snug(&[&common, settings, command].concat());
        run.env("PAGES", self.dir.path()).env("CC", std::env::var_os("CC").unwrap_or("cc".into())).output().unwrap()
    }

    /// What is left there.
    fn left(&self) -> Vec<PathBuf> {
        fs::read_dir(self.dir.path()).unwrap().map(|entry| entry.unwrap().path()).collect()
    }
}

/// The inodes of the files in the lines of /proc/PID/maps that begin with a word.
fn inodes(output: &Output, word: &str) -> HashSet<String> {
    let said = stdout(output);
    let lines = said.lines().filter(|line| line.split(' ').next() == Some(word));
    lines.map(|line| line.split_whitespace().nth(5).unwrap().to_string()).collect()
}

#[test]
fn a_shell_and_a_build_have_a_file_for_each_process() {
    let pages = Pages::new();
    for (name, source) in [("Makefile", MAKEFILE), ("main.c", MAIN), ("words.c", WORDS)] {
        pages.place.write(name, source, 0o644);
    }
    let output = pages.run(&["SNUG_FILE_GROW=1"], &["sh", "-c", BUILD]);
    assert_clean(&output);
    assert_eq!(stdout(&output).lines().last(), Some("hello world"));
    let (shell, child, grep) = (inodes(&output, "shell"), inodes(&output, "child"), inodes(&output, "grep"));
    // The shell lives as long as both; an inode of the child's may be used again for grep.
    for (one, another) in [(&shell, &child), (&shell, &grep)] {
        assert!(!one.is_empty() && !another.is_empty(), "{}", stdout(&output));
        assert!(one.is_disjoint(another), "{}", stdout(&output));
    }
    assert_eq!(pages.left(), [] as [PathBuf; 0]);
}

#[test]
fn what_is_killed_leaves_nothing() {
    let pages = Pages::new();
    let output = pages.run(&["SNUG_FILE_GROW=1"], &["sh", "-c", "sh -c 'kill -9 $$'; echo $?; kill -9 $$"]);
    assert_eq!(stdout(&output), "137\n");
    assert_eq!(pages.left(), [] as [PathBuf; 0]);
}

#[test]
fn a_missing_directory_is_said_in_a_line() {
    let pages = Pages::new();
    let missing = ["SNUG_FILE_DIR=/no/such/directory", "SNUG_PROVIDER_FALLBACK=1"];
    let output = pages.run(&missing, &["cat", "/dev/null"]);
    let line = "snug: no file of 4 MiB for the heap in /no/such/directory: there is no such directory; using memory\n";
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), line));
    let output = pages.run(&missing[..1], &["sort", "/dev/null"]);
    assert_ne!(output.status.code(), Some(0));
    assert!(stderr(&output).starts_with(&line.replace("; using memory", "")), "{}", stderr(&output));
    assert_eq!(stderr(&output).matches("snug:").count(), 1, "{}", stderr(&output));
}
