//! Settings of the library: the SNUG_NAME=value words of the command line.

use std::ffi::OsString;

/// The tool's own variable. It is not passed on: to the library it would be an option that does not exist.
pub const WORKLOADS_VARIABLE: &str = "SNUG_WORKLOADS";

/// One SNUG_NAME=value word.
#[derive(Debug, PartialEq, Eq)]
pub struct Setting {
    pub name: OsString,
    pub value: OsString,
}
