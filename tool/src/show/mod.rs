//! Commands that look at a running program, or at the options: `snug stats`, `snug trim`, `snug options`, `snug top`.

pub mod options;
pub mod stats;
pub mod top;
pub mod trim;

/// The value of an option that is a time.
fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.01..=86400.0).contains(&seconds) => Ok(seconds),
        _ => Err("not a number of seconds from 0.01 to 86400".to_string()),
    }
}
