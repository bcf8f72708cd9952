//! Builds the C library into one object whose internal names are local, so that they cannot meet those of other C code.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What CMake builds, in four lists of which the last names the others: they are the only ones.
fn sources(library: &Path) -> io::Result<Vec<PathBuf>> {
    let text = fs::read_to_string(library.join("CMakeLists.txt"))?;
    let mut sources = Vec::new();
    for name in ["SNUG_COLD_SOURCES", "SNUG_SELDOM_SOURCES", "SNUG_SMALL_SOURCES", "SNUG_SOURCES"] {
        let list = text.split_once(&format!("set({name}")).and_then(|(_, rest)| rest.split_once(')'));
        let (list, _) = list.ok_or_else(|| io::Error::other(format!("there is no {name} in CMakeLists.txt")))?;
        let words = list.lines().flat_map(|line| line.split('#').next().unwrap_or_default().split_whitespace());
        sources.extend(words.filter(|word| !word.starts_with('$')).map(|name| library.join(name)));
    }
    Ok(sources)
}

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=c");
    if env::var("CARGO_CFG_TARGET_OS").as_deref() != Ok("linux")
        || env::var("CARGO_CFG_TARGET_POINTER_WIDTH").as_deref() != Ok("64")
    {
        println!("cargo::error=snug is for 64-bit Linux");
        return;
    }
    if let Err(error) = build(Path::new("c/src")) {
        println!("cargo::error=the C library cannot be built: {error}");
    }
}

fn build(library: &Path) -> io::Result<()> {
    let mut build = cc::Build::new();
    build.std("c17").opt_level(2).warnings(false).include(library).include("c/include").define("_GNU_SOURCE", None);
    build.flag("-fvisibility=hidden");
    // A compiler that knows malloc would turn malloc and memset in calloc into a call of calloc.
    for name in ["malloc", "calloc", "realloc", "free"] {
        build.flag(format!("-fno-builtin-{name}"));
    }
    if env::var_os("CARGO_FEATURE_OVERRIDE").is_some() {
        build.define("SNUG_OVERRIDE", None);
    }
    if env::var_os("CARGO_FEATURE_HARDENED").is_some() {
        build.define("SNUG_HARDENED", None);
    }
    #[cfg(feature = "stats")]
    build.define("ANCHOR_LAYOUT", layout(library)?.as_str());
    build.files(sources(library)?);
    let objects = build.compile_intermediates();

    let whole = PathBuf::from(env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?).join("snug_all.o");
    let script = format!("-Wl,-T,{}", library.join("static.ld").display());
    run(build.get_compiler().to_command().args(["-nostdlib", "-r", &script, "-o"]).arg(&whole).args(&objects))?;
    let objcopy = env::var_os("OBJCOPY").unwrap_or_else(|| "objcopy".into());
    run(Command::new(objcopy).arg("--localize-hidden").arg(&whole))?;
    cc::Build::new().object(&whole).compile("snug");
    Ok(())
}

fn run(command: &mut Command) -> io::Result<()> {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(io::Error::other(format!("{command:?} ended with {status}"))),
        Err(error) => Err(io::Error::other(format!("{command:?}: {error}"))),
    }
}

/// The fingerprint of the library's headers and tables, as src/layout.cmake computes it.
#[cfg(feature = "stats")]
fn layout(library: &Path) -> io::Result<String> {
    use sha2::{Digest, Sha256};
    let hexadecimal = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let mut names = Vec::new();
    for folder in fs::read_dir(library)? {
        let folder = folder?.path();
        for file in fs::read_dir(&folder).into_iter().flatten() {
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
