//! `snug profile`: which code holds a program's memory.
//!
//! The library takes samples of what is allocated, each with its stack (src/profile of the library). Here they are read
//! from outside (live/profile.rs), when the command has ended or while it runs, get their names, and become what people
//! look at.
//!
//!     take       runs, attaches, reads       snapshots  the same again and again, of what runs
//!     gather     what was read, as a         model      stacks and their numbers
//!     symbols    names for addresses         growth     which sites grow, from snapshots
//!     pprof      the format that is kept     show       the other formats
//!     pages      what blocks pin              sites     those of a running program, for `snug top`
//!     flame      the picture                 formats    which file has which          view  what of it is shown

mod flame;
mod formats;
mod gather;
mod growth;
mod model;
mod pages;
mod pprof;
mod show;
pub mod sites;
mod snapshots;
mod symbols;
mod take;
mod view;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{ensure, Result};
use clap::{Args, Subcommand};

use crate::launch;
use crate::output::{counted, print};
use crate::period::period;
use crate::process_id::process_id;
use crate::refusal::{Refusal, OWN_FAILURE};
use crate::settings::Setting;
use crate::watch::{parse_children, Children};
use formats::{read, Output};
use growth::{FINE, SNAPSHOTS_LEAST};
use model::Profile;
use snapshots::Wanted;
use symbols::Symbols;
use take::Taken;
use view::View;

/// Show which code holds a program's memory
///
/// Runs a command and looks at what it and the processes that it starts allocate, until they end; or looks at a running
/// process that was started with `snug run`, for some time. One byte in 512 KiB is looked at: put
/// SNUG_PROFILE_BYTES=NUMBER before the command for another number; 1 looks at every block. Numbers are estimates, with
/// their standard error.
///
/// FILE's name says what is written: .pb.gz for pprof, which `snug profile show`, `diff`, `growth` and `merge` read as
/// well; .html or .svg for a flame graph; .folded for collapsed stacks; .json; .txt for the table that is printed
/// otherwise. Snapshots stand beside it: FILE.pb.gz has FILE.1.pb.gz and so on.
///
/// Exit status: that of the command, as for `snug run`; otherwise 0, or 1 if it could not be done.
#[derive(Debug, Args)]
#[command(
    override_usage = "snug profile [-o FILE] [SNUG_NAME=value]... [--] CMD [ARGS]...\n       snug profile [-o FILE] [--for TIME] PID\n       snug profile show|diff|growth|merge|symbolize ...",
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true
)]
pub struct ProfileArgs {
    #[command(subcommand)]
    command: Option<ProfileCommand>,

    /// Where the profile is written
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// For how long a running process is looked at: 2, 500ms, 1m; Ctrl-C ends it before
    #[arg(long = "for", value_name = "TIME", default_value = "10", value_parser = period)]
    time: Duration,

    /// Take a snapshot that often, too; with three or more the sites that grow steadily are told at the end
    #[arg(long, value_name = "TIME", value_parser = period)]
    every: Option<Duration>,

    /// Take a snapshot whenever the signal SIGURG comes to snug, too: kill -URG PID
    #[arg(long, requires = "output")]
    on_signal: bool,

    /// Which processes that the command starts are looked at: all, none, or those of programs of this NAME
    #[arg(long, value_name = "all|none|NAME", num_args = 0..=1, require_equals = true, default_missing_value = "all",
          value_parser = parse_children)]
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
        /// A profile in pprof's format, here and below
        file: PathBuf,
        #[command(flatten)]
        target: Target,
    },
    /// Show what grew from one profile to another
    Diff {
        /// The earlier one
        before: PathBuf,
        /// The later one
        after: PathBuf,
        #[command(flatten)]
        target: Target,
    },
    /// Show which sites grow steadily over three or more profiles of a process: what it may be leaking
    Growth {
        /// The profiles; they are taken in the order of their times
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// How many sites are shown
        #[arg(long, value_name = "NUMBER", default_value = "20")]
        top: usize,
    },
    /// Add profiles up
    Merge {
        /// The profiles
        #[arg(required = true)]
        files: Vec<PathBuf>,
        #[command(flatten)]
        target: Target,
    },
    /// Give a profile of another machine its names, from programs, libraries and debug files that are here
    ///
    /// They are found by their build ids. Without -o the profile itself gets them.
    Symbolize {
        /// The profile
        file: PathBuf,
        /// A folder with those files, at any depth
        #[arg(long, value_name = "DIR", required = true)]
        symbols: Vec<PathBuf>,
        #[command(flatten)]
        target: Target,
    },
}

/// Where it goes, and what of it.
#[derive(Debug, Args)]
struct Target {
    /// Where it is written, in the format that the name says; without it a table is printed
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    view: View,
}

impl ProfileArgs {
    /// The number of the process, if one is to be looked at.
    fn process(&self) -> Option<i32> {
        match self.words.as_slice() {
            [word] => word.to_str().and_then(|word| word.parse().ok()),
            _ => None,
        }
    }

    /// Whether options stand behind the number of a process.
    pub fn has_options_behind(&self) -> bool {
        match self.words.as_slice() {
            [first, second, ..] => {
                let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
                first.to_str().is_some_and(is_number) && second.to_str().is_some_and(|word| word.starts_with('-'))
            }
            _ => false,
        }
    }

    /// The status of what could not be done: where a command is run, one that is not the command's.
    pub fn failure(&self) -> u8 {
        if self.command.is_none() && self.process().is_none() {
            OWN_FAILURE
        } else {
            1
        }
    }
}

pub fn run(args: &ProfileArgs, settings: &[Setting]) -> Result<ExitCode> {
    match &args.command {
        None => take(args, settings),
        Some(ProfileCommand::Show { file, target }) => shown(&read(file)?, target),
        Some(ProfileCommand::Diff { before, after, target }) => {
            let mut grown = read(after)?;
            grown.add(&read(before)?, -1);
            shown(&grown, target)
        }
        Some(ProfileCommand::Growth { files, top }) => growth_of(files, *top),
        Some(ProfileCommand::Merge { files, target }) => {
            let mut all = Profile::default();
            for file in files {
                all.add(&read(file)?, 1);
            }
            shown(&all, target)
        }
        Some(ProfileCommand::Symbolize { file, symbols, target }) => symbolize(file, symbols, target),
    }
}

fn take(args: &ProfileArgs, settings: &[Setting]) -> Result<ExitCode> {
    let output = args.output.as_deref().map(Output::new).transpose()?;
    let signal = args.on_signal.then(Arc::default);
    if let Some(signal) = &signal {
        signal_hook::flag::register(libc::SIGURG, Arc::clone(signal))?;
    }
    let wanted = Wanted { every: args.every, signal, output: args.output.as_deref(), view: &args.view };
    let taken = match args.process() {
        Some(pid) => {
            let misuse = || Refusal::misuse("--children is for commands that snug starts".to_string());
            ensure!(args.children.is_none(), misuse());
            process_id(&pid.to_string()).map_err(|why| Refusal::misuse(format!("{pid} is {why}")))?;
            take::of_process(pid, args.time, &wanted)?
        }
        None => {
            launch::check_settings(settings)?;
            let children = args.children.clone().unwrap_or(Children::All);
            take::of_command(&args.words, settings, &children, &wanted)?
        }
    };
    let status = taken.status;
    match (status, report(taken, output, &args.view, wanted.every.is_some())) {
        (None, written) => written.map(|()| ExitCode::SUCCESS),
        (Some(status), written) => launch::end_after(status, written),
    }
}

/// Of a command what is printed goes to where it does not mix with what that prints.
fn report(taken: Taken, output: Option<Output>, view: &View, wanted_growth: bool) -> Result<()> {
    let Taken { profile, mut snapshots, status } = taken;
    let say = |text: &str| match status {
        Some(_) => {
            eprint!("{text}");
            Ok(())
        }
        None => print(text.as_bytes()),
    };
    match output {
        Some(output) => {
            output.write(&profile, view)?;
            if profile.samples.is_empty() {
                eprintln!("snug: {}", show::NOTHING);
            }
        }
        None => say(&show::table(&profile, view.by(&profile), view.top))?,
    }
    // A command has freed at its end what it does not leak; only what was seen before says how it grew.
    if status.is_none() {
        snapshots.push(profile);
    }
    if snapshots.len() >= SNAPSHOTS_LEAST {
        say(&format!("\n{}", growth::text(&snapshots, view.top)))?;
    } else if wanted_growth {
        let taken = counted(snapshots.len(), "snapshot");
        eprintln!(
            "snug: {taken} had samples; what grows is seen in {SNAPSHOTS_LEAST} or more: a shorter --every takes more, and \
             SNUG_PROFILE_BYTES={FINE} before the command has samples sooner"
        );
    }
    Ok(())
}

fn growth_of(files: &[PathBuf], top: usize) -> Result<ExitCode> {
    let few = || Refusal::misuse(format!("growth is seen in {SNAPSHOTS_LEAST} profiles or more; two have a diff"));
    ensure!(files.len() >= SNAPSHOTS_LEAST, few());
    let mut profiles = files.iter().map(|file| read(file)).collect::<Result<Vec<_>>>()?;
    profiles.sort_by_key(|profile| profile.taken); // stable: those without a time stay as they are
    print(growth::text(&profiles, top).as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

fn symbolize(file: &Path, folders: &[PathBuf], target: &Target) -> Result<ExitCode> {
    for folder in folders {
        ensure!(folder.is_dir(), "{} is no folder", folder.display());
    }
    let mut profile = read(file)?;
    let nameless = |profile: &Profile| profile.places.iter().filter(|place| place.lines.is_empty()).count();
    let before = nameless(&profile);
    let named = Symbols::with(folders).resolve(&mut profile);
    Output::new(target.output.as_deref().unwrap_or(file))?.write(&profile, &target.view)?;
    print(format!("{named} of {before} places without a name got one\n").as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

fn shown(profile: &Profile, target: &Target) -> Result<ExitCode> {
    let view = &target.view;
    match &target.output {
        Some(path) => Output::new(path)?.write(profile, view)?,
        None => print(show::table(profile, view.by(profile), view.top).as_bytes())?,
    }
    Ok(ExitCode::SUCCESS)
}
