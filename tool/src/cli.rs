//! The command line: what may be asked, and how NAME=value words are told from the command.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use clap::{Args, Parser, Subcommand};

use crate::bench::BenchArgs;
use crate::live::Format;
use crate::trace::record::RecordArgs;
use crate::trace::replay::ReplayArgs;
use crate::tune::TuneArgs;
use crate::STATUS_OWN_FAILURE;

/// The tool's own variable. It is not passed on: to the library it would be an option that does not exist.
pub const WORKLOADS_VARIABLE: &str = "SNUG_WORKLOADS";

/// Runs programs on the snug memory allocator, and measures what that changes.
///
/// The allocator, libsnug.so, is carried inside this file; nothing needs to be installed.
#[derive(Debug, Parser)]
#[command(name = "snug", disable_version_flag = true, arg_required_else_help = true, max_term_width = 100)]
pub struct Cli {
    /// Print the version of the tool and that of the library it carries
    #[arg(short = 'V', long)]
    pub version: bool,

    #[command(subcommand)]
    pub command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    Run(RunArgs),
    Compare(CompareArgs),
    Record(RecordArgs),
    Replay(ReplayArgs),
    Tune(TuneArgs),
    Bench(Box<BenchArgs>),
    Stats(StatsArgs),
    Top(TopArgs),
    Trim(TrimArgs),
    Options(OptionsArgs),
}

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

/// Run a command on the system's malloc and on snug in turn, and compare time and memory
///
/// After one warm-up run on each, the runs alternate. What the command prints is thrown away; its standard input is a
/// file given with `<`, which every run reads from its start, else empty. At the end stand the statistics that snug
/// prints after one more run.
#[derive(Debug, Args)]
#[command(override_usage = "snug compare [SNUG_NAME=value]... [--runs N] [--] CMD [ARGS]...")]
pub struct CompareArgs {
    /// Measured runs on each of the two
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub runs: u32,

    /// The command and its arguments; SNUG_NAME=value words may stand before it
    #[arg(value_name = "CMD", trailing_var_arg = true, required = true)]
    pub words: Vec<OsString>,
}

/// Print the statistics of a running program once
///
/// It must have been started on snug, and nothing else be prepared. The same user may look, and root, as far as the
/// system lets processes be looked into.
#[derive(Debug, Args)]
pub struct StatsArgs {
    /// The process
    pub pid: i32,

    /// The format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,

    /// All numbers and all sizes in text, not just what fits a screen
    #[arg(long)]
    pub detail: bool,
}

/// Show a running program's heap in the terminal, refreshed
///
/// Keys: q ends, t asks the program to give back its free memory.
#[derive(Debug, Args)]
pub struct TopArgs {
    /// The process
    pub pid: i32,

    /// Seconds between two looks
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = seconds)]
    pub every: f64,
}

/// Ask a running program to give back its free memory
///
/// It does so when one of its threads next needs more than its magazines have, or has them full: at once in a program
/// that works, never in one that sleeps, unless it was started with SNUG_PURGE_THREAD=1 and has free memory to give.
/// Objects in the magazines of its other threads stay there.
///
/// Exit status: 0 if it was done in time, 1 if not yet.
#[derive(Debug, Args)]
pub struct TrimArgs {
    /// The process
    pub pid: i32,

    /// Seconds to wait until it is done
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0, value_parser = seconds)]
    pub wait: f64,
}

/// Print the library's options, with the values that the environment gives them
#[derive(Debug, Args)]
#[command(override_usage = "snug options [SNUG_NAME=value]... [--changed]")]
pub struct OptionsArgs {
    /// Only those that are not at their default
    #[arg(long)]
    pub changed: bool,

    /// SNUG_NAME=value: what it would be
    #[arg(value_name = "SNUG_NAME=value", trailing_var_arg = true)]
    pub words: Vec<OsString>,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.01..=86400.0).contains(&seconds) => Ok(seconds),
        _ => Err("not a number of seconds from 0.01 to 86400".to_string()),
    }
}

impl Cli {
    fn words(&self) -> Option<&[OsString]> {
        match &self.command {
            Some(Command::Run(args)) => Some(&args.words),
            Some(Command::Compare(args)) => Some(&args.words),
            Some(Command::Options(args)) => Some(&args.words),
            _ => None,
        }
    }
}

/// One SNUG_NAME=value word.
#[derive(Debug, PartialEq, Eq)]
pub struct Setting {
    pub name: OsString,
    pub value: OsString,
}

/// Parses the command line. Errors and help are printed here; the exit status is returned for them.
pub fn parse(argv: Vec<OsString>) -> Result<(Cli, Vec<Setting>), u8> {
    let own_failure = match argv.get(1).is_some_and(|word| word == "run") {
        true => STATUS_OWN_FAILURE,
        false => 2,
    };
    try_parse(argv).map_err(|error| {
        let _ = error.print(); // there is nowhere left to report that printing failed
        if error.use_stderr() {
            own_failure
        } else {
            0
        }
    })
}

/// The NAME=value words before the command are taken out and the rest is parsed again, so that options may stand
/// before them, between them and after them. They are always at the start of clap's trailing words, and those are
/// always the end of the command line.
fn try_parse(mut argv: Vec<OsString>) -> Result<(Cli, Vec<Setting>), clap::Error> {
    let mut settings = Vec::new();
    loop {
        let cli = Cli::try_parse_from(&argv)?;
        let words = cli.words().unwrap_or_default();
        let found: Vec<Setting> = words.iter().map_while(|word| split_assignment(word)).collect();
        if found.is_empty() {
            return Ok((cli, settings));
        }
        let start = argv.len() - words.len();
        argv.drain(start..start + found.len());
        settings.extend(found);
    }
}

/// A word is an assignment if what stands before its first `=` could be a variable's name, as for env(1).
fn split_assignment(word: &OsStr) -> Option<Setting> {
    let bytes = word.as_bytes();
    let equals = bytes.iter().position(|&byte| byte == b'=')?;
    let (name, value) = (&bytes[..equals], &bytes[equals + 1..]);
    let starts_well = name.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_');
    let goes_on_well = name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    (starts_well && goes_on_well)
        .then(|| Setting { name: OsStr::from_bytes(name).into(), value: OsStr::from_bytes(value).into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> (Option<OsString>, Vec<String>, Vec<String>) {
        let argv = line.split(' ').map(OsString::from).collect();
        let (cli, settings) = try_parse(argv).expect(line);
        let Some(Command::Run(args)) = cli.command else { panic!("{line}: not run") };
        let text = |word: &OsStr| word.to_str().unwrap().to_string();
        let settings = settings.iter().map(|s| format!("{}:{}", text(&s.name), text(&s.value))).collect();
        (args.stats, settings, args.words.iter().map(|word| text(word)).collect())
    }

    #[test]
    fn settings_and_options_in_any_order() {
        let (stats, settings, words) = parsed("snug run SNUG_A=1 --stats SNUG_B=x=y ls -l C=3 --stats=no");
        assert_eq!(stats, Some("stderr".into()));
        assert_eq!(settings, ["SNUG_A:1", "SNUG_B:x=y"]);
        assert_eq!(words, ["ls", "-l", "C=3", "--stats=no"]);
    }

    #[test]
    fn double_dash_ends_the_options() {
        assert_eq!(parsed("snug run SNUG_A= --stats=f -- -x -- y").2, ["-x", "--", "y"]);
        assert_eq!(parsed("snug run -- SNUG_A=1 ls").1, ["SNUG_A:1"]);
    }

    #[test]
    fn only_names_make_assignments() {
        assert_eq!(parsed("snug run ./a=b SNUG_A=1").2, ["./a=b", "SNUG_A=1"]);
        assert_eq!(parsed("snug run 1A=b").2, ["1A=b"]);
        assert_eq!(parsed("snug run =b").2, ["=b"]);
    }

    #[test]
    fn a_command_is_needed() {
        for line in ["snug run", "snug run SNUG_A=1", "snug run --stats", "snug compare --runs 3 SNUG_A=1"] {
            let argv = line.split(' ').map(OsString::from).collect();
            assert!(try_parse(argv).is_err(), "{line}");
        }
    }

    #[test]
    fn definitions_are_sound() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }
}
