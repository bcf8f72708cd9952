//! What a borrowed thread (borrow.rs) can be asked for, and what comes of it.

use std::time::Duration;

/// Where no threads can be borrowed, as on other processors than x86-64.
pub const NONE_LENT: &str = "snug lends no threads on this processor";

/// What can be asked for: enum outside_what of the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    Trim = 0,
    Check = 1,
}

/// What came of it.
#[derive(Debug)]
pub enum Outcome {
    Done(Done),
    /// No thread sleeps, or one holds a lock of snug's: it may be otherwise in a moment.
    NotNow(&'static str),
    /// It is not to be had of this process, or not by this user.
    Never(String),
}

#[derive(Debug)]
pub struct Done {
    /// The thread that did it, and how long it took.
    pub thread: i32,
    pub took: Duration,
    /// How many threads were stopped, and of how many the magazines were emptied.
    pub stopped: usize,
    pub emptied: usize,
    /// What a check found.
    pub wrong: Option<String>,
}
