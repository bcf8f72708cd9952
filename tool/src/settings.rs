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

/// What is measured has the settings that the command line gives, and no others: those of the environment would change
/// figures that are told of snug as it is, and of the others not. So they go, and it is said.
pub fn leave_out_surroundings() {
    let mut names: Vec<OsString> = env::vars_os().map(|(name, _)| name).collect();
    names.retain(|name| name.as_bytes().starts_with(b"SNUG_") && name != WORKLOADS_VARIABLE);
    names.sort();
    names.iter().for_each(|name| env::remove_var(name));
    let names: Vec<_> = names.iter().map(|name| name.to_string_lossy()).collect();
    if !names.is_empty() {
        eprintln!("snug: what is measured does not get these of the environment: {}", names.join(", "));
    }
}
