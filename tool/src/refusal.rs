//! The error that carries an exit status of its own: a program that is not there, or that cannot run on snug.

use std::fmt;

/// The command line asks for what makes no sense; the number that clap uses.
pub const MISUSE: u8 = 2;
/// The program was not found; the number that shells, env(1) and nohup(1) use.
pub const NOT_FOUND: u8 = 127;
/// The program was found and cannot be run, or not on snug.
pub const CANNOT_RUN: u8 = 126;
/// What went wrong is snug's own business, not the program's; the number that env(1) and nohup(1) use.
pub const OWN_FAILURE: u8 = 125;

#[derive(Debug, PartialEq, Eq)]
pub struct Refusal {
    pub status: u8,
    pub message: String,
}

impl Refusal {
    pub fn not_found(message: String) -> Self {
        Refusal { status: NOT_FOUND, message }
    }

    pub fn misuse(message: String) -> Self {
        Refusal { status: MISUSE, message }
    }

    pub fn cannot_run(message: String) -> Self {
        Refusal { status: CANNOT_RUN, message }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refusal {}
