//! `snug options`: the library's options, by groups, with the values in force.
//!
//!     shown  values as people write them: 4 MiB, 10 s       page  the overview, and the page of a group

mod page;
mod shown;

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{bail, Result};
use clap::Args;
use serde::Serialize;

use crate::launch;
use crate::live::options::{effect, in_force, OptionRow};
use crate::output;
use crate::refusal::Refusal;
use crate::settings::{Setting, WORKLOADS_VARIABLE};
use crate::whole::Whole;

/// Show the library's options: a list of all, or the page of a group or of one option
///
/// Without a name: all options with the values that the environment gives them, and those of the presets. With the name of
/// a group or of an option: what it does and may be.
#[derive(Debug, Args)]
#[command(override_usage = "snug options [SNUG_NAME=value]... [--changed] [--json[=FILE]] [GROUP | SNUG_NAME]...")]
pub struct OptionsArgs {
    /// Only those that are not at their default
    #[arg(long)]
    pub changed: bool,

    /// All that is known of them, as JSON, and to FILE if one is given
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = output::STANDARD)]
    pub json: Option<PathBuf>,

    /// Groups (statistics, checks, threads, giving-back, limits, memory, system) and options; before them SNUG_NAME=value
    /// words: what it would be
    #[arg(value_name = "GROUP", trailing_var_arg = true)]
    pub words: Vec<OsString>,
}

/// The groups, and how the names of their options begin. Of two that fit, the first counts.
pub const GROUPS: [(&str, &str, &[&str]); 7] = [
    ("statistics", "what is told, when and where to", &["STATS", "PROFILE"]),
    ("checks", "what is looked for, and what follows", &["MISUSE", "CHECK", "NAMES", "GUARD", "QUARANTINE", "TAGS"]),
    ("threads", "what waits for them", &["ARENAS", "THREAD_", "PROCESSOR_", "DEPOT"]),
    ("giving-back", "how much free memory is kept, and for how long", &["PRESET", "DIRTY", "PURGE_", "CACHE_"]),
    ("limits", "how much there may be", &["LIMIT", "OVERCOMMIT"]),
    ("memory", "where it comes from", &["PROVIDER", "FILE", "GROW_", "HUGE_", "PREFAULT"]),
    ("system", "how snug gets along with others", &["DEEPBIND"]),
];

/// Where what no group has would stand; a test says that there is nothing.
const REST: &str = "system";

fn group_of(option: &str) -> &'static str {
    let name = option.strip_prefix("SNUG_").unwrap_or(option);
    let has = |starts: &[&str]| starts.iter().any(|start| name.starts_with(start));
    GROUPS.iter().find(|(_, _, starts)| has(starts)).map_or(REST, |group| group.0)
}

/// An option with all that is shown of it.
#[derive(Serialize)]
pub struct Shown {
    pub name: String,
    pub group: &'static str,
    value: String,
    pub default: String,
    changed: bool,
    /// What it may be.
    pub allowed: String,
    /// What these presets make its default; nothing where they leave it.
    pub lean: Option<String>,
    pub fast: Option<String>,
    pub text: String,
}

pub fn run(args: &OptionsArgs, settings: &[Setting]) -> Result<ExitCode> {
    launch::check_settings(settings)?;
    let own = settings.iter().map(|setting| (setting.name.clone(), setting.value.clone()));
    let surrounding = env::vars_os().filter(|(name, _)| name != WORKLOADS_VARIABLE);
    let all = table(surrounding.chain(own));
    let wanted: Vec<String> = args.words.iter().map(|word| wanted(&word.to_string_lossy())).collect::<Result<_>>()?;
    let is_wanted = |option: &Shown| {
        let named = wanted.is_empty() || wanted.iter().any(|word| *word == option.name || word == option.group);
        named && (!args.changed || option.changed)
    };
    let all: Vec<Shown> = all.into_iter().filter(is_wanted).collect();
    let text = match (&args.json, wanted.is_empty()) {
        (Some(_), _) => serde_json::to_string_pretty(&all)? + "\n",
        (None, true) => page::overview(&all, args.changed),
        (None, false) => page::pages(&all),
    };
    match args.json.as_deref().filter(|file| !output::is_standard(file)) {
        Some(file) => Whole::new(file)?.write(text.as_bytes())?,
        None => output::print(text.as_bytes())?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The name of a group, or of an option, which may be written without SNUG_ and in small letters.
fn wanted(word: &str) -> Result<String> {
    if GROUPS.iter().any(|group| group.0 == word) {
        return Ok(word.to_string());
    }
    let name = word.to_uppercase().replace('-', "_");
    let whole = if name.starts_with("SNUG_") { name } else { format!("SNUG_{name}") };
    if page::is_option(&whole) {
        return Ok(whole);
    }
    let groups = GROUPS.map(|group| group.0).join(", ");
    bail!(Refusal::misuse(format!(
        "{word} is no setting, option or group; settings are SNUG_NAME=value, groups are {groups}"
    )))
}

/// All options, with the values that these variables give them.
pub fn table(variables: impl Iterator<Item = (OsString, OsString)>) -> Vec<Shown> {
    let preset = |name: &str| effect(std::iter::once(("SNUG_PRESET".into(), name.into())));
    let (lean, fast) = (preset("lean"), preset("fast"));
    let rows = in_force(variables).into_iter().enumerate();
    rows.map(|(place, row)| shown(row, &lean[place], &fast[place])).collect()
}

fn shown(row: OptionRow, lean: &str, fast: &str) -> Shown {
    let value = |raw: &str| shown::value(raw, &row.range);
    let of_preset = |raw: &str| (raw != row.default && row.name != "SNUG_PRESET").then(|| value(raw));
    Shown {
        group: group_of(&row.name),
        value: value(&row.value),
        default: value(&row.default),
        changed: row.value != row.default,
        allowed: shown::allowed(&row.range),
        lean: of_preset(lean),
        fast: of_preset(fast),
        text: row.text.replace('`', ""),
        name: row.name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_option_is_in_a_group() {
        for row in in_force(std::iter::empty()) {
            let name = row.name.strip_prefix("SNUG_").unwrap();
            let groups = GROUPS.iter().filter(|(_, _, starts)| starts.iter().any(|start| name.starts_with(start)));
            assert!(groups.count() >= 1, "{name} has no group in show/options/mod.rs");
        }
    }
}
