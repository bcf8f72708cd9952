//! Times on the command line.

use std::time::Duration;

/// The value of an option that is a time: seconds, or a number with its unit.
pub fn period(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| (0.0..=86400.0).contains(seconds));
    let time = seconds.map(Duration::from_secs_f64).or_else(|| humantime::parse_duration(text).ok());
    let fits = |time: &Duration| (Duration::from_millis(10)..=Duration::from_secs(86400)).contains(time);
    time.filter(fits).ok_or("not a time from 10ms to 1day, such as 2, 0.5, 500ms, 1m".to_string())
}

/// `1 s`, `0.5 s`: as long as it was, in tenths.
pub fn seconds(time: Duration) -> String {
    let tenths = (time.as_secs_f64() * 10.0).round();
    match tenths % 10.0 == 0.0 {
        true => format!("{:.0} s", tenths / 10.0),
        false => format!("{:.1} s", tenths / 10.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_as_they_were_given() {
        for (milliseconds, told) in [(1000, "1 s"), (500, "0.5 s"), (60_000, "60 s"), (1999, "2 s"), (1949, "1.9 s")] {
            assert_eq!(seconds(Duration::from_millis(milliseconds)), told);
        }
    }

    #[test]
    fn times() {
        for (text, milliseconds) in [("2", 2000), ("0.5", 500), ("500ms", 500), ("1m", 60_000), ("0.01", 10)] {
            assert_eq!(period(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
        for text in ["", "0", "-1", "x", "2 days", "1ms", "NaN"] {
            assert!(period(text).is_err(), "{text}");
        }
    }
}
