//! `snug run`: becomes the command, with the library preloaded.

use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{absolute, Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};

use anyhow::{bail, ensure, Context, Result};
use clap::Args;

use crate::cache;
use crate::inherited;
use crate::live::options::complaints;
use crate::live::Format;
use crate::plot;
use crate::refusal::Refusal;
use crate::settings::{Setting, WORKLOADS_VARIABLE};
use crate::target;
use crate::watch::report::{self, Place};
use crate::watch::{self, Children};
use crate::whole::Whole;

/// Run a command on snug, and so the programs that it starts
///
/// The command takes snug's place: its exit status, signals and standard streams are its own. SNUG_NAME=value words
/// set options of the library (docs/options.md lists them).
///
/// Exit status: that of the command; 127 if it was not found; 126 if it cannot be run, or not on snug (statically
/// linked, set-user-ID, for another machine, on musl); 125 if snug itself failed.
#[derive(Debug, Args)]
#[command(override_usage = "snug run [SNUG_NAME=value]... [--stats[=FILE]] [--plot=FILE.svg] [--] CMD [ARGS]...")]
pub struct RunArgs {
    /// Print statistics on stderr when the command has ended, however it ended: the command and its children as a tree,
    /// and the details of the one with the highest peak. Or write them to FILE, in the format that its name says: .json,
    /// .csv, .prom or text; with %p in the name, a file for each process
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "stderr")]
    pub stats: Option<OsString>,

    /// Draw memory over time when the command has ended: requested, granted, mapped and resident of the process with the
    /// highest peak, and the resident memory of all processes; with SNUG_PROFILE=1 before it, which sites hold it
    #[arg(long, value_name = "FILE.svg")]
    pub plot: Option<OsString>,

    /// Whose details are wanted by --stats and --plot: all, none but the command's (whose children are then not followed),
    /// or those of programs of this NAME (* stands for anything) [default: of the process with the highest peak]
    #[arg(long, value_name = "all|none|NAME", num_args = 0..=1, require_equals = true, default_missing_value = "all",
          value_parser = watch::parse_children)]
    pub children: Option<Children>,

    /// The command and its arguments; SNUG_NAME=value words may stand before it
    #[arg(value_name = "CMD", trailing_var_arg = true, required = true)]
    pub words: Vec<OsString>,
}

/// `names`: what gives the sites in a picture their names.
pub fn run(args: &RunArgs, settings: &[Setting], names: plot::SiteNames) -> Result<ExitCode> {
    check_settings(settings)?;
    let mut command = command_for(&args.words)?;
    set_up(&mut command, &cache::library()?, settings);
    let prints_itself = asks_the_library(settings);
    if let Some(place) = args.stats.as_deref().filter(|_| prints_itself) {
        command.env("SNUG_STATS", stats_place(place)?);
    }
    if args.plot.is_some() || (args.stats.is_some() && !prints_itself) {
        return watched(command, args, prints_itself, names);
    }
    ensure!(args.children.is_none(), "--children is for --stats and --plot");
    let error = command.exec();
    bail!(Refusal::cannot_run(format!("{} cannot be run: {error}", args.words[0].to_string_lossy())))
}

/// Options that say when and how the program itself prints its statistics: then it does, and --stats is where to.
fn asks_the_library(settings: &[Setting]) -> bool {
    let names = ["SNUG_STATS_ON", "SNUG_STATS_EVERY", "SNUG_STATS_BYTES", "SNUG_STATS_FORMAT"];
    names.iter().any(|name| env::var_os(name).is_some() || settings.iter().any(|setting| setting.name == *name))
}

/// Runs the command, watches it and its children from outside, and then says what was seen.
fn watched(command: Command, args: &RunArgs, prints_itself: bool, names: plot::SiteNames) -> Result<ExitCode> {
    let children = args.children.clone().unwrap_or(Children::Highest);
    let plot = args.plot.as_deref().map(picture).transpose()?;
    let place = args.stats.as_deref().filter(|_| !prints_itself);
    let place = place.map(|place| place_of(place, &children)).transpose()?;
    let detail = command.get_envs().any(|(name, value)| name == "SNUG_STATS_DETAIL" && value == Some(OsStr::new("1")))
        || env::var_os("SNUG_STATS_DETAIL").is_some_and(|value| value == "1");
    let children = report::widened(children, place.as_ref());
    let mut watched = watch::run(command, &children, plot.is_some())?;
    let written = match place {
        Some(place) => report::write(&mut watched, &children, place, detail),
        None => {
            watched.notes.iter().for_each(|note| eprintln!("snug: {note}"));
            Ok(())
        }
    };
    let drawn = plot.map_or(Ok(()), |picture| picture.write(plot::svg(&watched, &children, names)?.as_bytes()));
    if let (Err(error), Err(_)) = (&written, &drawn) {
        eprintln!("snug: {}", crate::output::told(error));
        return end_after(watched.status, drawn);
    }
    end_after(watched.status, written.and(drawn))
}

fn picture(plot: &OsStr) -> Result<Whole> {
    let path = absolute(plot).context("--plot= needs the name of a file")?;
    plot::ensure_svg(&path)?;
    Whole::new(&path)
}

fn place_of(place: &OsStr, children: &Children) -> Result<Place> {
    match place.to_str() {
        Some("stderr") => Ok(Place::Stderr),
        Some("stdout") => Ok(Place::Stdout),
        _ => {
            let path = PathBuf::from(stats_place(place)?);
            Place::of_file(&path, format_of(&path), children)
        }
    }
}

/// As the library tells it from a name (format_of_path).
fn format_of(path: &Path) -> Format {
    match path.extension().and_then(OsStr::to_str) {
        Some("json" | "jsonl") => Format::Json,
        Some("csv") => Format::Csv,
        Some("prom" | "om") => Format::OpenMetrics,
        _ => Format::Text,
    }
}

/// As `end_as`, after something that was to be done besides. What could not be done is said, and is the end unless the command
/// itself failed.
pub fn end_after(status: ExitStatus, done: Result<()>) -> Result<ExitCode> {
    match done {
        Err(error) if status.success() => return Err(error),
        Err(error) => eprintln!("snug: {}", crate::output::told(&error)),
        Ok(()) => {}
    }
    Ok(end_as(status))
}

/// snug ends as the command has ended, by the same signal if it was one; but only one of them leaves a core.
pub fn end_as(status: ExitStatus) -> ExitCode {
    if let Some(signal) = status.signal() {
        // SAFETY: the limit is a valid structure, and the signal's action may be set at any time.
        unsafe {
            libc::setrlimit(libc::RLIMIT_CORE, &libc::rlimit { rlim_cur: 0, rlim_max: 0 });
            libc::signal(signal, libc::SIG_DFL);
            libc::raise(signal);
        }
    }
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}

/// What is written on the command line is meant, so a name or value that the library does not know is a mistake. The
/// library itself, which finds its options in an environment that may be older than it, only warns.
pub fn check_settings(settings: &[Setting]) -> Result<()> {
    match settings.iter().find(|setting| !setting.name.as_bytes().starts_with(b"SNUG_")) {
        None => {
            let pairs = settings.iter().map(|setting| (setting.name.clone(), setting.value.clone()));
            let complaints = complaints(pairs)?;
            let Some(first) = complaints.lines().next() else { return Ok(()) };
            // The library would go on with another value, and says which; here nothing goes on.
            let first = first.trim_start_matches("snug: ").split("; using ").next().unwrap_or(first);
            bail!(Refusal::misuse(first.to_string()))
        }
        Some(Setting { name, value }) => {
            let (name, value) = (name.to_string_lossy(), value.to_string_lossy());
            bail!(Refusal::misuse(format!(
                "{name}={value} is not one of snug's settings, which begin with SNUG_; \
                 set others with env, as in: env {name}={value} snug ..."
            )))
        }
    }
}

/// The command, found and looked at: an error says why it cannot run on snug.
pub fn command_for(words: &[OsString]) -> Result<Command> {
    let program = target::find(&words[0])?;
    target::check(&program)?;
    let mut command = Command::new(&program);
    command.arg0(&words[0]).args(&words[1..]).env_remove(WORKLOADS_VARIABLE);
    // SAFETY: the function only makes async-signal-safe calls.
    unsafe {
        command.pre_exec(|| {
            inherited::restore_for_exec();
            Ok(())
        });
    }
    Ok(command)
}

/// Preloads the library before whatever is preloaded already, and sets the settings.
pub fn set_up(command: &mut Command, library: &Path, settings: &[Setting]) {
    command.env("LD_PRELOAD", preload_list(library, env::var_os("LD_PRELOAD").as_deref()));
    for Setting { name, value } in settings {
        command.env(name, value);
    }
}

fn preload_list(library: &Path, existing: Option<&OsStr>) -> OsString {
    let library = library.as_os_str().as_bytes();
    let mut list = library.to_vec();
    let existing = existing.unwrap_or_default().as_bytes().split(|byte| matches!(byte, b' ' | b':'));
    for other in existing.filter(|other| !other.is_empty() && *other != library) {
        list.push(b':');
        list.extend_from_slice(other);
    }
    OsString::from_vec(list)
}

/// The library's own words for streams stay; a file is meant from here, wherever the program moves to.
fn stats_place(place: &OsStr) -> Result<OsString> {
    if place == "stderr" || place == "stdout" {
        return Ok(place.into());
    }
    let path = absolute(place).context("--stats= needs the name of a file")?;
    ensure_format(&path)?;
    Ok(path.into_os_string())
}

/// Endings that say a format (those of format_of_path in the library), and those of text.
const ENDINGS: [&str; 8] = ["json", "jsonl", "csv", "prom", "om", "txt", "text", "log"];

/// An ending that promises another format is a mistake; one that is no word, as in `stats.%p`, promises none.
fn ensure_format(path: &Path) -> Result<()> {
    let ending = path.extension().unwrap_or_default().to_string_lossy();
    let is_word = !ending.is_empty() && ending.chars().all(|letter| letter.is_ascii_alphabetic());
    if is_word && !ENDINGS.contains(&ending.as_ref()) {
        bail!("--stats={}: there is no format for .{ending}; known are .json, .csv, .prom, and .txt", path.display());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_comes_first_and_once() {
        let list = |existing: Option<&str>| preload_list(Path::new("/c/libsnug.so"), existing.map(OsStr::new));
        assert_eq!(list(None), "/c/libsnug.so");
        assert_eq!(list(Some("")), "/c/libsnug.so");
        assert_eq!(list(Some("/a.so b.so::/c/libsnug.so")), "/c/libsnug.so:/a.so:b.so");
    }

    #[test]
    fn a_stats_file_becomes_absolute() {
        assert_eq!(stats_place(OsStr::new("stderr")).unwrap(), "stderr");
        assert_eq!(stats_place(OsStr::new("/x/y")).unwrap(), "/x/y");
        assert_eq!(Path::new(&stats_place(OsStr::new("y")).unwrap()), env::current_dir().unwrap().join("y"));
        assert!(stats_place(OsStr::new("")).is_err());
    }
}
