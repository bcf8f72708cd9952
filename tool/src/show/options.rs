//! `snug options`: the table of options, with the values in force.

use std::env;
use std::ffi::OsString;
use std::io::IsTerminal;
use std::process::ExitCode;

use anyhow::{bail, Result};
use clap::Args;
use comfy_table::{presets, ContentArrangement, Table};

use crate::launch;
use crate::live::options::in_force;
use crate::refusal::Refusal;
use crate::settings::{Setting, WORKLOADS_VARIABLE};

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

pub fn run(args: &OptionsArgs, settings: &[Setting]) -> Result<ExitCode> {
    launch::check_settings(settings)?;
    if let Some(word) = args.words.first() {
        let word = word.to_string_lossy();
        bail!(Refusal::misuse(format!("{word} is no setting; those are SNUG_NAME=value")));
    }
    let own = settings.iter().map(|setting| (setting.name.clone(), setting.value.clone()));
    let surrounding = env::vars_os().filter(|(name, _)| name != WORKLOADS_VARIABLE);
    let rows = in_force(surrounding.chain(own));
    let mut table = Table::new();
    table.load_preset(presets::UTF8_HORIZONTAL_ONLY).set_content_arrangement(ContentArrangement::Dynamic);
    if !std::io::stdout().is_terminal() {
        table.set_width(100);
    }
    table.set_header(["option", "in force", "default", "what it does"]);
    for row in rows.iter().filter(|row| !args.changed || row.value != row.default) {
        let mark = if row.value == row.default { row.value.clone() } else { format!("{} *", row.value) };
        table.add_row([row.name.clone(), mark, row.default.clone(), row.text.replace('`', "")]);
    }
    println!("{table}");
    Ok(ExitCode::SUCCESS)
}
