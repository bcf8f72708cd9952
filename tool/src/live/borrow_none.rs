//! Where no threads can be borrowed: see borrow.rs.

use std::time::Duration;

use anyhow::Result;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    Trim,
    Check,
}

#[derive(Debug)]
pub enum Outcome {
    Done(Done),
    NotNow(&'static str),
    Never(String),
}

#[derive(Debug)]
pub struct Done {
    pub thread: i32,
    pub took: Duration,
    pub stopped: usize,
    pub emptied: usize,
    pub wrong: Option<String>,
}

pub fn call(_process: i32, _anchor: &[u64], _what: What, _most: Duration) -> Result<Outcome> {
    Ok(Outcome::Never("snug lends no threads on this processor".to_string()))
}
