//! Commands that look at a running program, or at the options: `snug stats`, `snug trim`, `snug options`, `snug top`.

pub mod options;
pub mod stats;
pub mod top;
pub mod trim;
