//! The command line: which commands there are, and how NAME=value words are told from the program's. What a command
//! may be asked stands with the command.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};

use crate::bench::BenchArgs;
use crate::compare::CompareArgs;
use crate::export::ExportArgs;
use crate::launch::RunArgs;
use crate::output::{complain, shown, told};
use crate::pages::{CompletionsArgs, ManArgs};
use crate::profile::ProfileArgs;
use crate::refusal::{MISUSE, OWN_FAILURE};
use crate::settings::Setting;
use crate::show::options::OptionsArgs;
use crate::show::stats::StatsArgs;
use crate::show::top::TopArgs;
use crate::show::trim::{CheckArgs, TrimArgs};
use crate::trace::record::RecordArgs;
use crate::trace::replay::ReplayArgs;
use crate::tune::TuneArgs;

/// Every status that snug ends with by itself; tests/exits.rs holds it to that.
const EXIT_STATUS: &str = "\
Exit status:
    0  all went well
    1  what was asked for could not be done, or a measured command failed
       (bench --compare: snug became slower or larger)
    2  a mistake on the command line
  125  run, record and profile: snug itself failed, mistakes on the command line included
  126  the command cannot be run, or not on snug
  127  the command was not found
   of  run, record and profile: otherwise that of the command, its signals included

With NO_COLOR set, nothing is coloured. What is no terminal gets plain text of 80
columns, or of as many as COLUMNS says if that is 40 or more.
What slabs, magazines and depots are: snug man glossary.";

/// Runs programs on the snug memory allocator, and measures what that changes.
///
/// The allocator, libsnug.so, is carried inside this file; nothing needs to be installed.
#[derive(Debug, Parser)]
#[command(name = "snug", disable_version_flag = true, arg_required_else_help = true, max_term_width = 100)]
#[command(after_help = EXIT_STATUS)]
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
    Profile(Box<ProfileArgs>),
    Record(RecordArgs),
    Replay(ReplayArgs),
    Tune(TuneArgs),
    Bench(Box<BenchArgs>),
    Stats(StatsArgs),
    Top(TopArgs),
    Trim(TrimArgs),
    Check(CheckArgs),
    Export(ExportArgs),
    Options(OptionsArgs),
    Man(ManArgs),
    Completions(CompletionsArgs),
}

impl Command {
    /// What a mistake on the command line ends with: where a command's own status is what counts as a rule, one that is
    /// above those that programs use.
    pub fn misuse(&self) -> u8 {
        match self {
            Command::Run(_) | Command::Record(_) | Command::Profile(_) => OWN_FAILURE,
            _ => MISUSE,
        }
    }
}

impl Cli {
    fn has_options_behind(&self) -> bool {
        matches!(&self.command, Some(Command::Profile(args)) if args.has_options_behind())
    }

    fn words(&self) -> Option<&[OsString]> {
        match &self.command {
            Some(Command::Run(args)) => Some(&args.words),
            Some(Command::Compare(args)) => Some(&args.words),
            Some(Command::Options(args)) => Some(&args.words),
            Some(Command::Profile(args)) => Some(&args.words),
            _ => None,
        }
    }
}

/// Parses the command line. Errors and help are printed here; the exit status is returned for them.
pub fn parse(argv: Vec<OsString>) -> Result<(Cli, Vec<Setting>), u8> {
    let has_own_status = |word: &OsString| ["run", "record", "profile"].iter().any(|name| word == name);
    let own_failure = match argv.get(1).is_some_and(has_own_status) {
        true => OWN_FAILURE,
        false => MISUSE,
    };
    let first = argv.get(1).and_then(|word| word.to_str()).unwrap_or_default().to_string();
    try_parse(argv).map_err(|error| match error.kind() {
        _ if !error.use_stderr() => match error.print().and_then(|()| std::io::stdout().flush()) {
            Ok(()) => 0,
            Err(failed) => {
                let failed = anyhow::Error::new(failed).context("cannot write to the standard output");
                complain(&format!("snug: {}\n", told(&failed)));
                if own_failure == OWN_FAILURE {
                    OWN_FAILURE
                } else {
                    1
                }
            }
        },
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            own_failure
        }
        _ => {
            complain(&format!("snug: {}\n", mistake(&error, &first)));
            own_failure
        }
    })
}

/// A mistake on the command line in one line, with where to read on. What clap says of it stands in several paragraphs,
/// the last of which are the usage and the name of --help. `first` is the first word, that of a command or not.
fn mistake(error: &clap::Error, first: &str) -> String {
    let said = error.render().to_string();
    let wrong = said.split('\'').nth(1).unwrap_or_default();
    let paragraphs = said.split("\n\n").filter(|part| !part.starts_with("Usage:") && !part.starts_with("For more"));
    let lines: Vec<String> = paragraphs
        .map(|part| {
            part.lines()
                .filter(|line| !is_idle(line) && !is_far_fetched(line, wrong))
                .flat_map(str::split_whitespace)
                .collect::<Vec<_>>()
        })
        .map(|words| words.join(" "))
        .filter(|it| !it.is_empty())
        .collect();
    let is_command = Cli::command().find_subcommand(first).is_some();
    let command = if is_command { format!("snug {first}") } else { "snug".to_string() };
    let said = lines.join("; ");
    let said = said.strip_prefix("error: ").unwrap_or(&said);
    let said = PLAINER.iter().fold(said.to_string(), |said, (clap, plain)| said.replace(clap, plain));
    shown(&format!("{said}; see: {command} --help"))
}

/// Phrases of clap and of the standard library, and plainer ones.
const PLAINER: [(&str, &str); 7] = [
    ("the following required arguments were not provided:", "this is missing:"),
    ("invalid digit found in string", "not a whole number"),
    ("cannot parse integer from empty string", "not a whole number"),
    (" is not in ", " is not from "),
    ("..=", " to "),
    ("..18446744073709551615", " on"),
    ("number too large to fit in target type", "too large a number"),
];

/// Advice that misspelled options and forgotten numbers bring, and that helps nobody who made such a mistake.
fn is_idle(line: &str) -> bool {
    line.trim_start().starts_with("tip: to pass '")
}

/// A name that clap holds to be similar to the wrong one, and of which more than one letter in three is another.
fn is_far_fetched(line: &str, wrong: &str) -> bool {
    let is_tip =
        line.trim_start().starts_with("tip: a similar ") || line.trim_start().starts_with("tip: some similar ");
    let mut names = line.split('\'').skip(1).step_by(2);
    is_tip && names.all(|name| distance(wrong, name) > (wrong.len() / 3).max(1))
}

/// How many letters must be changed, added or dropped to make one word of the other (V. Levenshtein, 1966).
fn distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.bytes().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, b) in other.bytes().enumerate() {
            let changed = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[other.len()]
}

/// The NAME=value words before the command are taken out and the rest is parsed again, so that options may stand
/// before them, between them and after them. They are always at the start of clap's trailing words, and those are
/// always the end of the command line.
fn try_parse(mut argv: Vec<OsString>) -> Result<(Cli, Vec<Setting>), clap::Error> {
    let mut settings = Vec::new();
    loop {
        let cli = Cli::try_parse_from(&argv)?;
        let words = cli.words().unwrap_or_default();
        let start = argv.len() - words.len();
        if cli.has_options_behind() {
            argv[start..].rotate_left(1); // they go before the number of the process, where they are options
            continue;
        }
        let found: Vec<Setting> = words.iter().map_while(|word| split_assignment(word)).collect();
        if found.is_empty() {
            return Ok((cli, settings));
        }
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
    fn a_mistake_is_one_line() {
        let said = |line: &str| {
            let argv = line.split(' ').map(OsString::from).collect();
            mistake(&try_parse(argv).expect_err(line), line.split(' ').nth(1).unwrap())
        };
        assert_eq!(
            said("snug compare --rounds x true"),
            "invalid value 'x' for '--rounds <N>': not a whole number; see: snug compare --help"
        );
        assert_eq!(
            said("snug compare --rounds 0 true"),
            "invalid value '0' for '--rounds <N>': 0 is not from 1 to 10000; see: snug compare --help"
        );
        assert_eq!(
            said("snug top --batch --rounds 0"),
            "invalid value '0' for '--rounds <N>': 0 is not from 1 on; see: snug top --help"
        );
        assert_eq!(
            said("snug run --stat true"),
            "unexpected argument '--stat' found; tip: a similar argument exists: '--stats'; see: snug run --help"
        );
        assert_eq!(said("snug stats -1"), "unexpected argument '-1' found; see: snug stats --help");
        assert_eq!(said("snug run"), "this is missing: <CMD>...; see: snug run --help");
        assert_eq!(said("snug nosuch"), "unrecognized subcommand 'nosuch'; see: snug --help");
        assert_eq!(
            said("snug recrod true"),
            "unrecognized subcommand 'recrod'; tip: a similar subcommand exists: 'record'; see: snug --help"
        );
        for (line, part) in [
            ("snug nonsense", "unrecognized subcommand 'nonsense'"),
            ("snug compare --round 3 true", "a similar argument exists: '--rounds'"),
            ("snug stats 1 --json --csv", "cannot be used with"),
            ("snug replay --touch some x", "[possible values: all, pages, none]"),
        ] {
            let said = said(line);
            assert!(said.contains(part) && said.contains("; see: snug") && !said.contains('\n'), "{said}");
            assert!(said.ends_with(" --help") && !said.contains("Usage"), "{said}");
        }
    }

    #[test]
    fn definitions_are_sound() {
        Cli::command().debug_assert();
    }
}
