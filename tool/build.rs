//! Finds the files that the tool carries inside itself, and hands them to src/carried.rs.
//!
//! The library is the file that the environment variable SNUG_LIBRARY names (`./dev build` sets it), else the one that
//! `./dev build` leaves in ../build/lib; the others stand beside it. The copies in OUT_DIR keep the place of the build
//! out of the binary.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha256};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=SNUG_LIBRARY");
    if let Err(message) = carry() {
        println!("cargo::error={message}");
    }
    compile_shared_code();
}

/// The library's own code for reading statistics and writing them, which the tool uses on other processes.
const SHARED: [&str; 25] = [
    "base/bits.c",
    "base/peek.c",
    "hardened/hard_totals.c",
    "heap/totals.c",
    "magazine/arena_totals.c",
    "magazine/cache_totals.c",
    "options/options.c",
    "platform/clock.c",
    "platform/memory.c",
    "platform/output.c",
    "platform/process.c",
    "platform/thread.c",
    "report/formats.c",
    "report/heaps.c",
    "report/medium.c",
    "report/numbers.c",
    "report/peak.c",
    "report/report_csv.c",
    "report/report_json.c",
    "report/report_metrics.c",
    "report/report_text.c",
    "report/resident.c",
    "report/values.c",
    "report/writer.c",
    "stats/stats.c",
];

fn compile_shared_code() {
    let library = Path::new("../src");
    let mut build = cc::Build::new();
    build.std("c17").flag("-fvisibility=hidden").flag("-ffunction-sections").opt_level_str("s").warnings(false);
    build.include(library).include("../include").include("src").define("_GNU_SOURCE", None);
    build.define("ANCHOR_LAYOUT", layout(library).expect("../src can be read").as_str());
    build
        .file("src/live/borrow.c")
        .file("src/live/outside.c")
        .file("src/live/walk.c")
        .file("src/live/profile.c")
        .file(library.join("slab/size_class.c"));
    for file in SHARED {
        build.file(library.join(file));
    }
    build.compile("snug_outside");
    println!("cargo::rerun-if-changed=src/live/borrow.c");
    println!("cargo::rerun-if-changed=src/live/outside.c");
    println!("cargo::rerun-if-changed=src/live/walk.c");
    println!("cargo::rerun-if-changed=src/live/profile.c");
    println!("cargo::rerun-if-changed={}", library.display());
}

/// The fingerprint of the library's headers and tables, as src/layout.cmake computes it.
fn layout(library: &Path) -> io::Result<String> {
    let mut names = Vec::new();
    for folder in fs::read_dir(library)? {
        let folder = folder?.path();
        if !folder.is_dir() {
            continue;
        }
        for file in fs::read_dir(folder)? {
            let path = file?.path();
            if path.extension().is_some_and(|suffix| suffix == "h" || suffix == "def") {
                names.push(path.strip_prefix(library).map_err(io::Error::other)?.to_string_lossy().into_owned());
            }
        }
    }
    names.sort();
    let mut lines = Sha256::new();
    for name in names {
        lines.update(format!("{name} {}\n", hexadecimal(&Sha256::digest(fs::read(library.join(&name))?))));
    }
    Ok(format!("0x{}u", hexadecimal(&lines.finalize()[..4])))
}

/// What stands beside the library.
const OTHERS: [&str; 2] = ["libsnugrecord.so", "snugreplay"];

fn carry() -> Result<(), String> {
    let library = find_library()?;
    carry_file(&library, "libsnug.so")?;
    for name in OTHERS {
        carry_file(&library.with_file_name(name), name)?;
    }
    TEXTS.iter().try_for_each(|path| carry_text(path))?;
    Ok(())
}

fn carry_file(source: &Path, name: &str) -> Result<(), String> {
    println!("cargo::rerun-if-changed={}", source.display());
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?).join(name);
    let bytes = plain(source, &out)?;
    if !bytes.starts_with(b"\x7fELF") {
        return Err(format!("{} is not a shared library or program", source.display()));
    }

    let packed = zstd::bulk::compress(&bytes, LEVEL).map_err(|e| format!("cannot compress {name}: {e}"))?;
    fs::write(out, packed).map_err(|e| format!("cannot copy {name}: {e}"))?;
    let name = name.replace('.', "_");
    println!("cargo::rustc-env=ID_OF_{name}={}", identity(&bytes));
    println!("cargo::rustc-env=CHECKSUM_OF_{name}={}", crc32fast::hash(&bytes));
    Ok(())
}

/// Texts that are seldom read, and which a fifth of the room is enough for.
const TEXTS: [&str; 2] = ["include/snug/snug.h", "docs/dashboard.json"];

fn carry_text(path: &str) -> Result<(), String> {
    let source = Path::new("..").join(path);
    println!("cargo::rerun-if-changed={}", source.display());
    let bytes = fs::read(&source).map_err(|e| format!("cannot read {}: {e}", source.display()))?;
    let packed = zstd::bulk::compress(&bytes, LEVEL).map_err(|e| format!("cannot compress {path}: {e}"))?;
    let name = source.file_name().unwrap_or_default();
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?).join(name);
    fs::write(out, packed).map_err(|e| format!("cannot copy {path}: {e}"))
}

/// Of zstd: the smallest file, in a second.
const LEVEL: i32 = 19;

/// The same file with its debug information as it is: compressed section by section, as it was linked, all of it together
/// would hardly become smaller. Without objcopy it stays so.
fn plain(source: &Path, out: &Path) -> Result<Vec<u8>, String> {
    let mut objcopy = Command::new("objcopy");
    let done = objcopy.arg("--decompress-debug-sections").arg(source).arg(out).status();
    let from = if done.is_ok_and(|status| status.success()) { out } else { source };
    fs::read(from).map_err(|e| format!("cannot read {}: {e}", from.display()))
}

fn find_library() -> Result<PathBuf, String> {
    if let Some(named) = env::var_os("SNUG_LIBRARY").filter(|v| !v.is_empty()) {
        let named = PathBuf::from(named);
        return match named.is_file() {
            true => Ok(named),
            false => Err(format!("SNUG_LIBRARY names {}, which is no file", named.display())),
        };
    }
    let built = Path::new("../build/lib/libsnug.so");
    println!("cargo::rerun-if-changed={}", built.display());
    match built.is_file() {
        true => Ok(built.to_path_buf()),
        false => Err("the tool carries libsnug.so inside itself, and there is none: run `./dev build` in the \
                      repository's root, or set SNUG_LIBRARY to a built libsnug.so"
            .to_string()),
    }
}

/// The first 16 hexadecimal digits of the SHA-256 of a file: the part of its file name that tells versions apart.
fn identity(bytes: &[u8]) -> String {
    hexadecimal(&Sha256::digest(bytes)[..8])
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
