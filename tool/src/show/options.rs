//! `snug options`: the table of options, with the values in force.

use std::env;
use std::io::IsTerminal;
use std::process::ExitCode;

use anyhow::{bail, Result};
use comfy_table::{presets, ContentArrangement, Table};

use crate::cli::{OptionsArgs, Setting, WORKLOADS_VARIABLE};
use crate::launch;
use crate::live::options::in_force;

pub fn run(args: &OptionsArgs, settings: &[Setting]) -> Result<ExitCode> {
    launch::check_settings(settings)?;
    if let Some(word) = args.words.first() {
        bail!("{} is no setting; those are SNUG_NAME=value", word.to_string_lossy());
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
