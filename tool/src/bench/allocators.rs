//! The allocators that snug is measured beside: the system's, and those whose libraries are found.
//!
//! An allocator is a name, a library to preload, and variables that are set with it: so a preset of snug, or any choice
//! of its options, is an allocator of its own.

use std::env::consts::ARCH;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{bail, ensure, Context, Result};
use clap::Args;
use object::{Object, ObjectSymbol};
use serde::{Deserialize, Serialize, Serializer};

use super::build_folder;
use super::versions;
use crate::live::options;
use crate::output;
use crate::refusal::Refusal;
use crate::settings::{take_surroundings, Setting};
use crate::{cache, carried};

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Allocator {
    pub name: String,
    /// What is preloaded; nothing for the system's malloc. In files it has its name alone: where it lay is nobody's business.
    #[serde(serialize_with = "write_file_name")]
    pub library: Option<PathBuf>,
    /// As far as it can be told.
    pub version: String,
    /// Variables of the environment, such as options of snug.
    pub settings: Vec<(String, String)>,
}

fn write_file_name<S: Serializer>(library: &Option<PathBuf>, to: S) -> Result<S::Ok, S::Error> {
    library.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy()).serialize(to)
}

pub const SYSTEM: &str = "system";
pub const SNUG: &str = "snug";

/// Snug with an option set, which is measured beside snug as it is.
struct Variant {
    name: &'static str,
    option: &'static str,
    value: &'static str,
}

const VARIANTS: [Variant; 5] = [
    Variant { name: "snug-lean", option: "SNUG_PRESET", value: "lean" },
    Variant { name: "snug-fast", option: "SNUG_PRESET", value: "fast" },
    Variant { name: "snug-hardened", option: "SNUG_PRESET", value: "hardened" },
    Variant { name: "snug-profile", option: "SNUG_PROFILE", value: "1" },
    Variant { name: "snug-guard", option: "SNUG_GUARD", value: "1" },
];

/// Those that do more than a malloc does, beside each other or beside none of it: measured if they are named.
const IF_NAMED: [&str; 4] = ["snug-hardened", "snug-profile", "snug-guard", "scudo"];

/// Which allocators are wanted; part of the arguments of every command that measures.
#[derive(Debug, Clone, Default, Args)]
pub struct AllocatorArgs {
    /// Only these besides the system's malloc and snug: names with commas between, or none
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub peers: Option<Vec<String>>,

    /// One more allocator: a name for it and its shared library; may be given several times
    #[arg(long, value_name = "NAME=PATH.so")]
    pub peer: Vec<String>,
}

/// An allocator that can be installed: the start of its library's file name, and the command that does it. Of a package
/// that only one release of Debian has, the release is named; `libtcmalloc-minimal4` is provided by the `t64` of later ones.
struct Known {
    name: &'static str,
    file: &'static str,
    install: &'static str,
}

const KNOWN: [Known; 8] = [
    Known { name: "jemalloc", file: "libjemalloc.so.2", install: "apt-get install libjemalloc2" },
    Known { name: "mimalloc2", file: "libmimalloc.so.2", install: "Debian 12: apt-get install libmimalloc2.0" },
    Known {
        name: "mimalloc3",
        file: "libmimalloc.so.3",
        install: "Debian 13: apt-get install libmimalloc3; else ./dev bench --install-peers",
    },
    Known { name: "tcmalloc", file: "libtcmalloc_minimal.so.4", install: "apt-get install libtcmalloc-minimal4" },
    Known { name: "tbbmalloc", file: "libtbbmalloc_proxy.so.2", install: "apt-get install libtbbmalloc2" },
    Known { name: "snmalloc", file: "libpeer_snmalloc.so", install: "./dev bench --install-peers" },
    Known { name: "rpmalloc", file: "libpeer_rpmalloc.so", install: "./dev bench --install-peers" },
    Known { name: "scudo", file: "libpeer_scudo.so", install: "./dev bench --install-peers" },
];

/// Whether it is one of those that are measured when they happen to be installed.
pub fn is_known(name: &str) -> bool {
    KNOWN.iter().any(|known| known.name == name)
}

pub struct Found {
    /// The system's malloc first, snug second, then it with options, then the others.
    pub allocators: Vec<Allocator>,
    /// One line for each that is known and not here.
    pub missing: Vec<String>,
}

/// The allocators that are wanted and there.
pub fn find(args: &AllocatorArgs) -> Result<Found> {
    let wanted = Wanted::new(args.peers.as_deref())?;
    let snug = cache::library()?;
    let (mut allocators, mut missing) = (vec![system(), own(&snug, None)], Vec::new());
    for variant in VARIANTS.iter().filter(|variant| wanted.has(variant.name)) {
        match options::is_known(variant.option, variant.value) {
            true => allocators.push(own(&snug, Some(variant))),
            false => missing.push(format!("{} (snug with {}={})", variant.name, variant.option, variant.value)),
        }
    }
    let files = library_files()?;
    for known in KNOWN.iter().filter(|known| wanted.has(known.name)) {
        match files.iter().find(|file| is_version_of(file, known.file)) {
            Some(file) => allocators.push(installed(known.name, file)),
            None => missing.push(format!("{} ({})", known.name, known.install)),
        }
    }
    for word in &args.peer {
        let peer = parse_named(word)?;
        let is_free = allocators.iter().all(|other| other.name != peer.name);
        ensure!(is_free, Refusal::misuse(format!("--peer {word}: {} is taken", peer.name)));
        ensure_is_allocator(&peer)?;
        allocators.push(peer);
    }
    Ok(Found { allocators, missing })
}

/// The same for commands without words for settings: those of the environment hold for all libraries, as far as a variant
/// has no other; they are said, and stand in the results.
pub fn find_with_surroundings(args: &AllocatorArgs) -> Result<Found> {
    let mut found = find(args)?;
    let surroundings: Vec<(String, String)> = take_surroundings()
        .into_iter()
        .map(|Setting { name, value }| (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned()))
        .collect();
    for allocator in found.allocators.iter_mut().filter(|allocator| allocator.library.is_some()) {
        let own: Vec<String> = allocator.settings.iter().map(|(name, _)| name.clone()).collect();
        allocator.settings.extend(surroundings.iter().filter(|(name, _)| !own.contains(name)).cloned());
    }
    if !surroundings.is_empty() {
        let words: Vec<String> = surroundings.iter().map(|(name, value)| format!("{name}={value}")).collect();
        eprintln!("snug: the environment has settings, which hold for what is measured: {}", words.join(" "));
    }
    Ok(found)
}

/// The names of --peers, all of them known.
struct Wanted<'a>(Option<&'a [String]>);

impl Wanted<'_> {
    fn new(names: Option<&[String]>) -> Result<Wanted<'_>> {
        let known = || KNOWN.iter().map(|known| known.name).chain(VARIANTS.iter().map(|variant| variant.name));
        for name in names.unwrap_or_default() {
            if !known().chain([SYSTEM, SNUG, "none"]).any(|other| other == name) {
                let all: Vec<&str> = known().collect();
                let known = all.join(", ");
                bail!(Refusal::misuse(format!(
                    "--peers: there is no {name}; known are {known}, and --peer NAME=PATH.so adds any"
                )));
            }
        }
        Ok(Wanted(names))
    }

    fn has(&self, name: &str) -> bool {
        self.0.map_or(!IF_NAMED.contains(&name), |names| names.iter().any(|wanted| wanted == name))
    }
}

fn system() -> Allocator {
    let version = super::machine::Machine::describe_this().libc;
    Allocator { name: SYSTEM.into(), version, ..Allocator::default() }
}

/// snug, as it is or with an option.
fn own(library: &Path, variant: Option<&Variant>) -> Allocator {
    Allocator {
        name: variant.map_or(SNUG, |variant| variant.name).into(),
        library: Some(library.to_path_buf()),
        version: format!("{} ({})", env!("CARGO_PKG_VERSION"), carried::LIBRARY.id),
        settings: variant.iter().map(|variant| (variant.option.to_string(), variant.value.to_string())).collect(),
    }
}

fn installed(name: &str, library: &Path) -> Allocator {
    let version = versions::of_library(library);
    Allocator { name: name.into(), library: Some(library.to_path_buf()), version, settings: Vec::new() }
}

fn parse_named(word: &str) -> Result<Allocator> {
    let misuse = |what: &str| Refusal::misuse(format!("--peer {word} {what}"));
    let (name, path) = word.split_once('=').ok_or_else(|| misuse("is not NAME=PATH"))?;
    ensure!(!name.is_empty() && name != SYSTEM && name != SNUG, misuse("needs a name of its own"));
    let path = fs::canonicalize(path).with_context(|| format!("--peer {name}: {path} cannot be found"))?;
    Ok(installed(name, &path))
}

/// `libx.so.2` and `libx.so.2.0` are versions of `libx.so.2`; `libx.so.20` is not.
fn is_version_of(file: &Path, start: &str) -> bool {
    let rest = file.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_prefix(start));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        && file.extension().is_none_or(|extension| extension != versions::NOTE)
}

/// All files in the folders where libraries of distributions are, and anywhere in build/peers.
fn library_files() -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for folder in
        ["/usr/local/lib", "/usr/local/lib64", &format!("/usr/lib/{ARCH}-linux-gnu"), "/usr/lib64", "/usr/lib"]
    {
        files.extend(entries(Path::new(folder)));
    }
    let mut folders = vec![build_folder()?.join("peers")];
    while let Some(folder) = folders.pop() {
        let (inner, other): (Vec<_>, Vec<_>) =
            entries(&folder).into_iter().partition(|entry| entry.is_dir() && !entry.is_symlink());
        folders.extend(inner);
        files.extend(other);
    }
    Ok(files)
}

/// What is in a folder, in order; nothing if it cannot be read.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let read = fs::read_dir(folder).into_iter().flatten();
    let mut paths: Vec<PathBuf> = read.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    paths
}

/// The functions that hand out memory.
const ALLOCATES: [&str; 6] = ["malloc", "calloc", "realloc", "memalign", "aligned_alloc", "posix_memalign"];

/// A library without a malloc of its own can be preloaded, and would be shown as an allocator with the figures of the
/// system's. Its own means in itself: what it is linked with comes after libc.
fn ensure_is_allocator(peer: &Allocator) -> Result<()> {
    let Some(library) = &peer.library else { return Ok(()) };
    let shown = library.display();
    let bytes = fs::read(library).with_context(|| format!("--peer {}: {shown} cannot be read", peer.name))?;
    let file = object::File::parse(bytes.as_slice())
        .with_context(|| format!("--peer {}: {shown} is not a shared library", peer.name))?;
    // One of them is enough: what only replaces a part of the system's malloc can be measured, too.
    let allocates =
        |symbol: object::Symbol| symbol.is_definition() && symbol.name().is_ok_and(|name| ALLOCATES.contains(&name));
    let is_allocator = file.dynamic_symbols().any(allocates);
    ensure!(is_allocator, "--peer {}: {shown} has no malloc of its own, so it is no allocator", peer.name);
    Ok(())
}

/// The loader only warns about a library that it cannot preload, and goes on with the system's malloc: then the figures
/// would not be those of the allocator they are shown for. So it is asked beforehand what it loads.
pub fn ensure_loads(allocator: &Allocator, workload: &Path) -> Result<()> {
    let Some(library) = &allocator.library else { return Ok(()) };
    let mut command = Command::new(workload);
    let output = command.env("LD_PRELOAD", library).env("LD_TRACE_LOADED_OBJECTS", "1").output();
    let output = output.with_context(|| output::cannot_run(workload))?;
    let (loaded, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let path = library.display().to_string();
    let is_there = loaded.lines().any(|line| line.trim_start().starts_with(&path));
    // A list is printed even if what the library is linked with is missing; then nothing would run.
    let missing = loaded.lines().find(|line| line.ends_with("=> not found")).unwrap_or_default();
    let is_whole = is_there && missing.is_empty() && said.is_empty();
    ensure!(is_whole, "{} cannot be preloaded: {}{}", allocator.name, said.trim(), missing.trim());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_a_library() {
        for (file, expected) in [
            ("/l/libx.so.2", true),
            ("/l/libx.so.2.0", true),
            ("/l/libx.so.20", false),
            ("/l/libx.so.2.version", false),
        ] {
            assert_eq!(is_version_of(Path::new(file), "libx.so.2"), expected, "{file}");
        }
        assert!(!is_version_of(Path::new("/l/liby.so.2"), "libx.so.2"));
    }

    #[test]
    fn the_mimallocs_of_debian_12_and_13_are_known_and_told_apart() {
        for (file, name, package) in
            [("libmimalloc.so.2.0", "mimalloc2", "libmimalloc2.0"), ("libmimalloc.so.3", "mimalloc3", "libmimalloc3")]
        {
            let file = Path::new("/usr/lib/x86_64-linux-gnu").join(file);
            let found: Vec<&Known> = KNOWN.iter().filter(|known| is_version_of(&file, known.file)).collect();
            assert!(matches!(found[..], [known] if known.name == name && known.install.contains(package)), "{name}");
        }
    }

    #[test]
    fn named_peers() {
        let peer = parse_named("mine=/bin/sh").unwrap();
        assert_eq!(peer.name, "mine");
        for wrong in ["mine", "=/bin/sh", "snug=/bin/sh", "mine=/no/such/file"] {
            assert!(parse_named(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn files_do_not_tell_where_a_library_lay() {
        let text = serde_json::to_string(&parse_named("mine=/bin/sh").unwrap()).unwrap();
        assert!(!text.contains('/'), "{text}");
    }

    #[test]
    fn wanted_peers() {
        let names = |words: &[&str]| words.iter().map(|word| word.to_string()).collect::<Vec<_>>();
        let all = Wanted::new(None).unwrap();
        assert!(all.has("jemalloc") && all.has("snug-lean"));
        for name in IF_NAMED {
            assert!(!all.has(name), "{name} was not asked for");
            assert!(Wanted::new(Some(&names(&[name]))).unwrap().has(name));
        }
        let some = names(&["jemalloc", "snug-lean"]);
        let wanted = Wanted::new(Some(&some)).unwrap();
        assert!(wanted.has("jemalloc") && wanted.has("snug-lean") && !wanted.has("tcmalloc"));
        assert!(!Wanted::new(Some(&names(&["none"]))).unwrap().has("jemalloc"));
        let unknown = names(&["jmalloc"]);
        let error = Wanted::new(Some(&unknown)).err().unwrap().to_string();
        assert!(error.contains("no jmalloc") && error.contains("tcmalloc"), "{error}");
    }
}
