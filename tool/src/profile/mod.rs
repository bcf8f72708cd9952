//! `snug profile`: which code holds a program's memory.
//!
//! The library takes samples of what is allocated, each with its stack (src/profile of the library). Here they are read
//! from outside (live/profile.rs), when the command has ended or while it runs, get their names, and become what people
//! look at.
//!
//!     take  runs, attaches, reads      model  stacks and their numbers     symbols  names for addresses
//!     pprof  the format that is kept   show   the other formats            flame    the picture

mod flame;
mod model;
mod pprof;
mod show;
mod symbols;
mod take;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{ensure, Context, Result};
use clap::{Args, Subcommand};

use crate::launch;
use crate::output::{print, Whole};
use crate::period::period;
use crate::refusal::Refusal;
use crate::settings::Setting;
use crate::watch::{parse_children, Children};
use model::{Profile, What};

/// Show which code holds a program's memory
///
/// Runs a command and looks at what it and the processes that it starts allocate, until they end; or looks at a running
/// process that was started with `snug run`, for some time. One byte in 512 KiB is looked at: put
/// SNUG_PROFILE_BYTES=NUMBER before the command for another number; 1 looks at every block. Numbers are estimates, with
/// their standard error.
///
/// FILE's name says what is written: .pb.gz for pprof, which `snug profile show`, `diff` and `merge` read as well;
/// .html or .svg for a flame graph; .folded for collapsed stacks; .json; .txt for the table that is printed otherwise.
///
/// Exit status: that of the command, as for `snug run`; for a process 0, or 1 if it could not be done.
#[derive(Debug, Args)]
#[command(
    override_usage = "snug profile [-o FILE] [SNUG_NAME=value]... [--] CMD [ARGS]...\n       snug profile [-o FILE] [--for TIME] PID\n       snug profile show|diff|merge ...",
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true
)]
pub struct ProfileArgs {
    #[command(subcommand)]
    command: Option<ProfileCommand>,

    /// Where the profile is written
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// For how long a running process is looked at: 2, 500ms, 1m
    #[arg(long = "for", value_name = "TIME", default_value = "10", value_parser = period)]
    time: Duration,

    /// Which processes that the command starts are looked at: all, none, or those of programs of this NAME
    #[arg(long, value_name = "all|none|NAME", require_equals = true, value_parser = parse_children)]
    children: Option<Children>,

    #[command(flatten)]
    view: View,

    /// The command and its arguments, SNUG_NAME=value words before it; or the number of a process
    #[arg(value_name = "CMD|PID", trailing_var_arg = true, required = true)]
    pub words: Vec<OsString>,
}

#[derive(Debug, Subcommand)]
enum ProfileCommand {
    /// Show a profile, or write it in another format
    Show {
        file: PathBuf,
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
        #[command(flatten)]
        view: View,
    },
    /// Show what grew from one profile to another
    Diff {
        before: PathBuf,
        after: PathBuf,
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
        #[command(flatten)]
        view: View,
    },
    /// Add profiles up
    Merge {
        #[arg(required = true)]
        files: Vec<PathBuf>,
        #[arg(short, long, value_name = "FILE", required = true)]
        output: PathBuf,
        #[command(flatten)]
        view: View,
    },
}

/// What of a profile is looked at.
#[derive(Debug, Args)]
struct View {
    /// What sites are shown by
    #[arg(long, value_enum, default_value = "live")]
    by: What,

    /// How many sites the table has
    #[arg(long, value_name = "NUMBER", default_value = "20")]
    top: usize,
}

pub fn run(args: &ProfileArgs, settings: &[Setting]) -> Result<ExitCode> {
    match &args.command {
        None => take(args, settings),
        Some(ProfileCommand::Show { file, output, view }) => shown(&read(file)?, output.as_deref(), view),
        Some(ProfileCommand::Diff { before, after, output, view }) => {
            let mut grown = read(after)?;
            grown.add(&read(before)?, -1);
            shown(&grown, output.as_deref(), view)
        }
        Some(ProfileCommand::Merge { files, output, view }) => {
            let mut all = Profile::default();
            for file in files {
                all.add(&read(file)?, 1);
            }
            shown(&all, Some(output), view)
        }
    }
}

fn take(args: &ProfileArgs, settings: &[Setting]) -> Result<ExitCode> {
    let pid = match args.words.as_slice() {
        [word] => word.to_str().and_then(|word| word.parse::<i32>().ok()),
        _ => None,
    };
    let output = args.output.as_deref().map(Output::new).transpose()?;
    let (profile, status) = match pid {
        Some(pid) => (take::of_process(pid, args.time)?, None),
        None => {
            launch::check_settings(settings)?;
            let children = args.children.clone().unwrap_or(Children::All);
            let (profile, status) = take::of_command(&args.words, settings, &children)?;
            (profile, Some(status))
        }
    };
    let written = match output {
        Some(output) => output.write(&profile, &args.view),
        None if status.is_some() => {
            eprint!("{}", show::table(&profile, args.view.by, args.view.top));
            Ok(())
        }
        None => print(show::table(&profile, args.view.by, args.view.top).as_bytes()),
    };
    match status {
        None => written.map(|()| ExitCode::SUCCESS),
        Some(status) => {
            if let Err(error) = written {
                eprintln!("snug: {error:#}");
            }
            Ok(launch::end_as(status))
        }
    }
}

fn shown(profile: &Profile, output: Option<&Path>, view: &View) -> Result<ExitCode> {
    match output {
        Some(path) => Output::new(path)?.write(profile, view)?,
        None => print(show::table(profile, view.by, view.top).as_bytes())?,
    }
    Ok(ExitCode::SUCCESS)
}

fn read(path: &Path) -> Result<Profile> {
    let bytes = fs::read(path).with_context(|| format!("{} cannot be read", path.display()))?;
    pprof::decode(&bytes).with_context(|| format!("{}", path.display()))
}

/// A file that will be written, in a format that is known before anything is done for it.
struct Output {
    format: Format,
    file: Whole,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Format {
    Pprof,
    Html,
    Svg,
    Folded,
    Json,
    Text,
}

impl Format {
    fn of(path: &Path) -> Option<Format> {
        let endings = [
            (Format::Pprof, &[".pb.gz", ".pb", ".pprof"][..]),
            (Format::Html, &[".html"]),
            (Format::Svg, &[".svg"]),
            (Format::Folded, &[".folded", ".collapsed"]),
            (Format::Json, &[".json"]),
            (Format::Text, &[".txt"]),
        ];
        let name = path.file_name()?.to_string_lossy();
        endings.into_iter().find(|(_, endings)| endings.iter().any(|end| name.ends_with(end))).map(|(format, _)| format)
    }
}

impl Output {
    fn new(path: &Path) -> Result<Output> {
        let known = ".pb.gz, .html, .svg, .folded, .json, .txt";
        let format = Format::of(path).ok_or_else(|| {
            Refusal::misuse(format!("{}: there is no format for it; known are {known}", path.display()))
        })?;
        ensure!(!path.is_dir(), "{} is a directory", path.display());
        Ok(Output { format, file: Whole::new(path)? })
    }

    fn write(self, profile: &Profile, view: &View) -> Result<()> {
        let bytes = match self.format {
            Format::Pprof => pprof::encode(profile)?,
            Format::Html => flame::html(profile, view.by)?,
            Format::Svg => flame::svg(profile, view.by)?,
            Format::Folded => show::folded(profile, view.by).into_bytes(),
            Format::Json => show::json(profile)?,
            Format::Text => show::table(profile, view.by, view.top).into_bytes(),
        };
        self.file.write(&bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_by_name() {
        for (name, format) in
            [("a.pb.gz", Some(Format::Pprof)), ("x/a.html", Some(Format::Html)), ("a", None), ("a.gz", None)]
        {
            assert_eq!(Format::of(Path::new(name)), format, "{name}");
        }
    }
}
