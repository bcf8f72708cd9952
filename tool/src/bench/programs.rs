//! Real programs as rows: time from start to end, and the peak of the largest process.
//!
//! Their input is made from generators that the tool carries, once, in a folder that is removed at the end. A program
//! that is not on the machine is named, with the package that brings it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{ensure, Context, Result};
use tempfile::TempDir;

use super::child::Job;
use super::results::{Row, Unit};

/// A program and what it is given to do.
#[derive(Debug)]
pub struct Program {
    pub name: &'static str,
    pub about: &'static str,
    /// What must be there to run it.
    needs: &'static [&'static str],
    /// What brings them on Debian.
    package: &'static str,
    /// A script for sh that makes its input; `$size` is the size, `$input` the folder of the generators.
    prepare: &'static str,
    /// A script for sh that becomes the program.
    run: &'static str,
    /// In quick runs, and in long ones. 0: not in quick runs.
    sizes: [u32; 2],
}

pub const PROGRAMS: [Program; 14] = [
    Program {
        name: "cpython-json",
        about: "CPython parses, changes and writes a JSON document",
        needs: &["python3"],
        package: "python3",
        prepare: PYTHON,
        run: r#"PYTHONHASHSEED=0 exec ./python "$input/rewrite_json.py" "$size""#,
        sizes: [3000, 15000],
    },
    Program {
        name: "cpython-objects",
        about: "CPython with a graph of objects, all of them blocks of malloc's (PYTHONMALLOC=malloc)",
        needs: &["python3"],
        package: "python3",
        prepare: PYTHON,
        run: r#"PYTHONHASHSEED=0 PYTHONMALLOC=malloc exec ./python "$input/many_objects.py" "$size""#,
        sizes: [0, 12000],
    },
    Program {
        name: "gcc",
        about: "gcc -O2 on one C file",
        needs: &["gcc", "awk"],
        package: "gcc",
        prepare: r#"awk -f "$input/make_c.awk" -v functions="$size" >large.c"#,
        run: "exec gcc -std=c17 -O2 -c large.c -o large.o",
        sizes: [8, 25],
    },
    Program {
        name: "g++",
        about: "g++ reads a C++ file that includes much of the standard library, its front end alone",
        needs: &["g++"],
        package: "g++",
        prepare: "",
        run: r#"exec g++ -std=c++17 -fsyntax-only "$input/words.cpp""#,
        sizes: [0, 1],
    },
    Program {
        name: "rust",
        about: "rustc -O on one crate with many generic types",
        needs: &["/usr/bin/rustc", "awk"], // not rustup's, which has an allocator of its own inside
        package: "rustc",
        prepare: r#"awk -f "$input/make_rust.awk" -v types="$size" >large.rs"#,
        run: "exec /usr/bin/rustc -O -C codegen-units=2 --crate-type lib large.rs --out-dir .",
        sizes: [0, 1],
    },
    Program {
        name: "git-log",
        about: "git log of all patches, with renames",
        needs: &["git", "awk"],
        package: "git",
        prepare: REPOSITORY,
        run: "exec git -C repository --no-pager log --all -p --stat -M --output=../log.txt",
        sizes: [0, 800],
    },
    Program {
        name: "git-repack",
        about: "git repack, which looks for deltas anew",
        needs: &["git", "awk"],
        package: "git",
        // Once beforehand, as what the first run finds is not what later runs find.
        prepare: REPACKED,
        run: REPACK,
        sizes: [0, 400],
    },
    Program {
        name: "sqlite",
        about: "sqlite3 fills, indexes and asks a database in memory",
        needs: &["sqlite3", "awk"],
        package: "sqlite3",
        prepare: r#"awk -f "$input/make_sql.awk" -v rows="$size" >script.sql"#,
        run: "exec sqlite3 -batch :memory: '.output answers.txt' '.read script.sql'",
        sizes: [4000, 30000],
    },
    Program {
        name: "redis",
        about: "redis-server, filled and asked by redis-benchmark, which runs on the system's malloc",
        needs: &["redis-server", "redis-benchmark", "redis-cli"],
        package: "redis-server redis-tools",
        prepare: "",
        run: REDIS,
        sizes: [0, 25_000],
    },
    Program {
        name: "ghostscript",
        about: "gs makes a PDF of a PostScript document with text, curves and pictures",
        needs: &["gs", "awk"],
        package: "ghostscript",
        prepare: r#"awk -f "$input/make_ps.awk" -v pages="$size" >pages.ps"#,
        run: "exec gs -q -dNOPAUSE -dBATCH -dSAFER -sDEVICE=pdfwrite -o pages.pdf pages.ps",
        sizes: [0, 200],
    },
    Program {
        name: "node",
        about: "node with objects, buffers and worker threads",
        needs: &["node"],
        package: "nodejs",
        prepare: "",
        run: r#"exec node "$input/objects.js" "$size""#,
        sizes: [0, 2500],
    },
    Program {
        name: "perl",
        about: "perl with hashes, strings and lists",
        needs: &["perl"],
        package: "perl",
        prepare: "",
        run: r#"PERL_HASH_SEED=0 exec perl "$input/lists.pl" "$size""#,
        sizes: [4000, 15000],
    },
    Program {
        name: "awk",
        about: "awk with a large array of strings",
        needs: &["awk"],
        package: "mawk",
        prepare: "",
        run: r#"exec awk -v lines="$size" 'BEGIN {
            for (seed = 5; line++ < lines;) {
                seed = (seed * 16807) % 2147483647
                key[seed % 300000] = key[seed % 300000] substr(seed, 1, 4)
                if (seed % 5 == 0) delete key[seed % 70000]
            }
            for (k = 0; k < 300000; k++) sum += length(key[k])
            print sum }'"#,
        sizes: [0, 250_000],
    },
    Program {
        name: "bash",
        about: "bash with arrays, substitutions and functions",
        needs: &["bash"],
        package: "bash",
        prepare: "",
        run: r#"exec bash "$input/shell_work.sh" "$size""#,
        sizes: [0, 12000],
    },
];

/// The interpreter itself: what is called python3 may be a script that looks for one.
const PYTHON: &str = r#"ln -s "$(python3 -c 'import sys; print(sys.executable)')" python"#;

const REPOSITORY: &str = r#"git init -q --bare repository
awk -f "$input/make_history.awk" -v commits="$size" -v files=200 | git -C repository fast-import --quiet --done"#;

/// With one thread, as several share the work differently in every run.
const REPACK: &str = "exec git -C repository -c pack.threads=1 repack -q -a -d -f --depth=40 --window=30";

const REPACKED: &str = r#"git init -q --bare repository
awk -f "$input/make_history.awk" -v commits="$size" -v files=200 | git -C repository fast-import --quiet --done
git -C repository -c pack.threads=1 repack -q -a -d -f --depth=40 --window=30"#;

/// The server must not stay, whatever happens: it is given a time, and it is killed with the group of this script.
const REDIS: &str = r#"timeout 100 redis-server --port 0 --unixsocket ./redis.sock --save '' --logfile server.log &
ask() { LD_PRELOAD= redis-cli -s ./redis.sock "$@"; }
until ask ping >/dev/null 2>&1; do sleep 0.02; kill -0 $! || exit 1; done
LD_PRELOAD= redis-benchmark -s ./redis.sock -q -c 20 -P 8 -n "$size" -r 50000 -d 300 \
    -t set,get,lpush,sadd,hset,zadd >/dev/null
ask shutdown nosave
wait"#;

/// The generators, by their names.
const INPUT: [(&str, &str); 11] = [
    ("rewrite_json.py", include_str!("../../../tests/programs/input/rewrite_json.py")),
    ("many_objects.py", include_str!("../../../bench/input/many_objects.py")),
    ("make_ps.awk", include_str!("../../../bench/input/make_ps.awk")),
    ("make_rust.awk", include_str!("../../../bench/input/make_rust.awk")),
    ("make_c.awk", include_str!("../../../tests/programs/input/make_c.awk")),
    ("words.cpp", include_str!("../../../tests/programs/input/words.cpp")),
    ("make_history.awk", include_str!("../../../tests/programs/input/make_history.awk")),
    ("make_sql.awk", include_str!("../../../tests/programs/input/make_sql.awk")),
    ("objects.js", include_str!("../../../tests/programs/input/objects.js")),
    ("shell_work.sh", include_str!("../../../tests/programs/input/shell_work.sh")),
    ("lists.pl", include_str!("../../../tests/programs/input/lists.pl")),
];

/// The family of all of them.
const FAMILY: &str = "programs";

/// The rows of all programs that a quick run, or a long one, has.
pub fn rows(quick: bool) -> Vec<(Row, &'static Program)> {
    let wanted = PROGRAMS.iter().filter(|program| program.size(quick) > 0);
    let row = |program: &Program| Row {
        name: format!("{FAMILY}/{}", program.name),
        family: FAMILY.into(),
        about: program.about.into(),
        threads: 1,
        unit: Unit::Seconds,
    };
    wanted.map(|program| (row(program), program)).collect()
}

/// The folder of the programs' input; it is removed with this.
pub struct Workshop {
    folder: TempDir,
    quick: bool,
}

impl Workshop {
    pub fn new(quick: bool) -> Result<Workshop> {
        let folder = tempfile::Builder::new().prefix("snug-bench-").tempdir().context("no folder for the programs")?;
        let input = folder.path().join("input");
        fs::create_dir(&input)?;
        for (name, text) in INPUT {
            fs::write(input.join(name), text)?;
        }
        Ok(Workshop { folder, quick })
    }

    /// Makes the input of a program; an error is why it cannot be measured here.
    pub fn job(&self, row: &Row, program: &Program) -> Result<Job> {
        if let Some(absent) = program.needs.iter().find(|need| !is_there(need)) {
            anyhow::bail!("{} needs {absent} (apt-get install {})", row.name, program.package);
        }
        ensure!(!calls_jemalloc(program), "{}: this redis-server calls jemalloc's own functions", row.name);
        let folder = self.folder.path().join(program.name);
        fs::create_dir(&folder)?;
        let mut job = Job {
            row: row.clone(),
            words: ["sh", "-c", program.run].map(Into::into).to_vec(),
            folder: Some(folder.clone()),
            variables: self.variables(program),
            doubled: None,
        };
        job.variables.push(("LC_ALL".into(), "C".into()));
        self.prepare(program, &folder).with_context(|| format!("{}: cannot make its input", row.name))?;
        Ok(job)
    }

    fn variables(&self, program: &Program) -> Vec<(std::ffi::OsString, std::ffi::OsString)> {
        let input = self.folder.path().join("input");
        vec![("input".into(), input.into()), ("size".into(), program.size(self.quick).to_string().into())]
    }

    fn prepare(&self, program: &Program, folder: &Path) -> Result<()> {
        let mut command = Command::new("sh");
        command.args(["-e", "-c", program.prepare]).current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null());
        command.envs(self.variables(program)).env_remove("LD_PRELOAD");
        let status = command.status()?;
        ensure!(status.success(), "{status}");
        Ok(())
    }
}

impl Program {
    fn size(&self, quick: bool) -> u32 {
        self.sizes[usize::from(!quick)]
    }
}

/// A program's path, or a name that is found along PATH.
fn is_there(program: &str) -> bool {
    find(program).is_some()
}

fn find(program: &str) -> Option<PathBuf> {
    crate::target::find(program.as_ref()).ok()
}

/// Debian 13's redis-server does; its blocks are jemalloc's then, whatever is preloaded.
fn calls_jemalloc(program: &Program) -> bool {
    let server = program.needs.iter().find(|need| **need == "redis-server").and_then(|need| find(need));
    server.and_then(|path| fs::read(path).ok()).is_some_and(|bytes| {
        ["mallocx", "sdallocx"].iter().any(|name| bytes.windows(name.len()).any(|part| part == name.as_bytes()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_quick_and_long_runs() {
        assert_eq!(rows(false).len(), PROGRAMS.len());
        assert!((3..6).contains(&rows(true).len()));
    }

    #[test]
    fn input_is_made_and_removed() {
        let workshop = Workshop::new(true).unwrap();
        let place = workshop.folder.path().to_path_buf();
        let (row, program) = rows(true).into_iter().find(|(_, program)| program.name == "perl").unwrap();
        let job = workshop.job(&row, program).unwrap();
        assert!(job.folder.unwrap().is_dir() && place.join("input/lists.pl").is_file());
        drop(workshop);
        assert!(!place.exists());
    }

    #[test]
    fn what_is_not_there_is_named_with_its_package() {
        let workshop = Workshop::new(true).unwrap();
        let (row, program) = &rows(true)[0];
        let absent = Program { needs: &["no-such-program"], prepare: "", run: "", ..**program };
        let error = workshop.job(row, &absent).unwrap_err().to_string();
        assert!(error.contains("no-such-program (apt-get install python3)"), "{error}");
    }
}
