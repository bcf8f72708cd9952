//! Settings of the library: the SNUG_NAME=value words of the command line.

use std::env;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

/// The tool's own variable. It is not passed on: to the library it would be an option that does not exist.
pub const WORKLOADS_VARIABLE: &str = "SNUG_WORKLOADS";

/// One SNUG_NAME=value word.
#[derive(Debug, PartialEq, Eq)]
pub struct Setting {
    pub name: OsString,
    pub value: OsString,
}

/// Settings of the environment. It does not have them any more: what is measured has the settings that are known to whoever
/// measures, and the system's malloc none.
pub fn take_surroundings() -> Vec<Setting> {
    let mut found: Vec<Setting> = env::vars_os().map(|(name, value)| Setting { name, value }).collect();
    found.retain(|setting| setting.name.as_bytes().starts_with(b"SNUG_") && setting.name != WORKLOADS_VARIABLE);
    found.sort_by(|one, other| one.name.cmp(&other.name));
    found.iter().for_each(|setting| env::remove_var(&setting.name));
    found
}

/// For commands that have settings of their own, beside which others would change what figures are told of.
pub fn leave_out_surroundings() {
    let names: Vec<_> = take_surroundings().iter().map(|setting| setting.name.to_string_lossy().into_owned()).collect();
    if !names.is_empty() {
        eprintln!("snug: what is measured does not get these of the environment: {}", names.join(", "));
    }
}
