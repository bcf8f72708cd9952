//! `snug run`: becomes the command, with the library preloaded.

use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::{absolute, Path};
use std::process::{Command, ExitCode};

use anyhow::{bail, Context, Result};
use clap::Args;

use crate::cache;
use crate::inherited;
use crate::live::options::complaints;
use crate::plot;
use crate::refusal::Refusal;
use crate::settings::{Setting, WORKLOADS_VARIABLE};
use crate::target;

/// Run a command on snug, and so the programs that it starts
///
/// The command takes snug's place: its exit status, signals and standard streams are its own. SNUG_NAME=value words
/// set options of the library (docs/options.md lists them).
///
/// Exit status: that of the command; 127 if it was not found; 126 if it cannot be run, or not on snug (statically
/// linked, set-user-ID, for another machine, on musl); 125 if snug itself failed.
#[derive(Debug, Args)]
#[command(override_usage = "snug run [SNUG_NAME=value]... [--stats[=FILE] | --plot=FILE.svg] [--] CMD [ARGS]...")]
pub struct RunArgs {
    /// Print the allocator's statistics on stderr when the command ends, or write them to FILE, in the format that its
    /// name says: .json, .csv, .prom or text
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "stderr")]
    pub stats: Option<OsString>,

    /// Draw the command's memory over time when it has ended: requested, granted, mapped and resident
    #[arg(long, value_name = "FILE.svg", require_equals = true, conflicts_with = "stats")]
    pub plot: Option<OsString>,

    /// The command and its arguments; SNUG_NAME=value words may stand before it
    #[arg(value_name = "CMD", trailing_var_arg = true, required = true)]
    pub words: Vec<OsString>,
}

pub fn run(args: &RunArgs, settings: &[Setting]) -> Result<ExitCode> {
    check_settings(settings)?;
    let mut command = command_for(&args.words)?;
    set_up(&mut command, &cache::library()?, settings);
    if let Some(plot) = &args.plot {
        return plot::run(command, plot);
    }
    if let Some(place) = &args.stats {
        command.env("SNUG_STATS", stats_place(place)?);
    }
    let error = command.exec();
    bail!(Refusal::cannot_run(format!("{} cannot be run: {error}", args.words[0].to_string_lossy())))
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
            bail!("{first}")
        }
        Some(Setting { name, value }) => {
            let (name, value) = (name.to_string_lossy(), value.to_string_lossy());
            bail!(
                "{name}={value} is not one of snug's settings, which begin with SNUG_; \
                 set others with env, as in: env {name}={value} snug ..."
            )
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
