//! Numbers of processes on the command line.

/// The value of an argument that is a process.
pub fn process_id(text: &str) -> Result<i32, String> {
    let number = text.parse().ok().filter(|&number: &i32| number > 0);
    number.ok_or("not the number of a process; snug top --once lists those of programs on snug".to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_above_0() {
        assert_eq!(process_id("17"), Ok(17));
        for text in ["", "0", "-1", "x", "1.5", "99999999999"] {
            assert!(process_id(text).is_err(), "{text}");
        }
    }
}
