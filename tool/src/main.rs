//! `snug`: runs programs on the snug allocator, and measures what that changes.
//!
//! Reading order: cli (which commands there are) -> launch (run) -> target (may this program run on snug?) -> cache and
//! carried (the library, and the file it becomes) -> compare and bench (measuring) -> trace
//! (recording and replaying) -> tune (the best options) -> live and show (looking at running programs) -> watch and plot
//! (programs that snug runs, looked at from outside) -> profile (which code holds the memory) -> export (metrics)
//! -> pages (the manual, completions).

mod bench;
mod cache;
mod carried;
mod cli;
mod compare;
mod export;
mod halts;
mod inherited;
mod launch;
mod live;
mod output;
mod pages;
mod period;
mod plot;
mod proc;
mod process;
mod process_id;
mod profile;
mod refusal;
mod scratch;
mod settings;
mod show;
mod signals;
mod target;
mod trace;
mod tune;
mod version;
mod watch;
mod whole;

use std::process::ExitCode;

use clap::CommandFactory;
use cli::Command;
use refusal::{Refusal, MISUSE, OWN_FAILURE};

fn main() -> ExitCode {
    inherited::restore();
    signals::have_limits_of_files_told();
    let (cli, settings) = match cli::parse(std::env::args_os().collect()) {
        Ok(parsed) => parsed,
        Err(status) => return ExitCode::from(status),
    };
    let (result, otherwise) = match &cli.command {
        None => (version::print(), 1),
        Some(Command::Run(args)) => (launch::run(args, &settings, profile::sites::names_of), OWN_FAILURE),
        Some(Command::Compare(args)) => (compare::run(args, &settings), 1),
        Some(Command::Bench(args)) => (bench::run(args), 1),
        Some(Command::Profile(args)) => (profile::run(args, &settings), args.failure()),
        Some(Command::Record(args)) => (trace::record::run(args), OWN_FAILURE),
        Some(Command::Replay(args)) => (trace::replay::run(args), 1),
        Some(Command::Tune(args)) => (tune::run(args), 1),
        Some(Command::Stats(args)) => (show::stats::run(args), 1),
        Some(Command::Top(args)) => (show::top::run(args), 1),
        Some(Command::Trim(args)) => (show::trim::run(args), 1),
        Some(Command::Check(args)) => (show::trim::check(args), 1),
        Some(Command::Export(args)) => (export::run(args), 1),
        Some(Command::Options(args)) => (show::options::run(args, &settings), 1),
        Some(Command::Man(args)) => (pages::man(args, cli::Cli::command()), 1),
        Some(Command::Completions(args)) => (pages::completions(args, cli::Cli::command()), 1),
    };
    result.unwrap_or_else(|error| {
        output::complain(&format!("snug: {}\n", output::told(&error)));
        let status = error.downcast_ref::<Refusal>().map_or(otherwise, |refusal| refusal.status);
        let is_misuse = status == MISUSE;
        ExitCode::from(if is_misuse { cli.command.as_ref().map_or(status, Command::misuse) } else { status })
    })
}
