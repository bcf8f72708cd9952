//! Values as people write them, and as the library reads them: 4 MiB, 10 s.

use crate::live::options::Range;

pub fn value(raw: &str, range: &Range) -> String {
    let number = raw.parse::<u64>();
    match (range, number) {
        (Range::Bytes(..), Ok(bytes)) => size(bytes),
        (Range::Limit(_), Ok(0)) => "none".to_string(),
        (Range::Limit(word), Ok(u64::MAX)) => word.clone(),
        (Range::Limit(_), Ok(bytes)) => size(bytes),
        (Range::Delay(_), Ok(milliseconds)) => delay(milliseconds),
        (Range::Delay(_), Err(_)) => "never".to_string(),
        _ => raw.to_string(),
    }
}

pub fn allowed(range: &Range) -> String {
    match range {
        Range::OneOf(words) => words.join(", "),
        Range::AnyOf(words) => format!("any of {}", words.join(", ")),
        Range::Number(least, most) => format!("{least} to {most}"),
        Range::Bytes(least, most) => format!("{} to {}", size(*least), size(*most)),
        Range::Delay(most) => format!("0 to {}, such as 250ms or 10s; -1 is never", delay(*most)),
        Range::Limit(word) => format!("a size, or {word}; 0 is none"),
        Range::Factor(least, most) => format!("{} to {}", *least as f64 / 1e3, *most as f64 / 1e3),
        Range::Path => "a path".to_string(),
    }
}

/// In the largest unit that divides it.
fn size(bytes: u64) -> String {
    let units = ["", " KiB", " MiB", " GiB", " TiB"];
    let unit = (0..units.len()).rev().find(|&unit| bytes != 0 && bytes % (1 << (10 * unit)) == 0).unwrap_or(0);
    format!("{}{}", bytes >> (10 * unit), units[unit])
}

fn delay(milliseconds: u64) -> String {
    const DAY: u64 = 24 * 3_600_000;
    match milliseconds {
        0 => "0".to_string(),
        _ if milliseconds % DAY == 0 => format!("{} days", milliseconds / DAY),
        _ if milliseconds % 1000 == 0 => format!("{} s", milliseconds / 1000),
        _ => format!("{milliseconds} ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_units() {
        let bytes = Range::Bytes(0, 1 << 40);
        assert_eq!((value("4194304", &bytes), value("1000", &bytes)), ("4 MiB".into(), "1000".into()));
        assert_eq!(allowed(&bytes), "0 to 1 TiB");
        let delay = Range::Delay(31_622_400_000);
        assert_eq!((value("10000", &delay), value("-1", &delay)), ("10 s".into(), "never".into()));
        assert_eq!((value("250", &delay), value("0", &delay)), ("250 ms".into(), "0".into()));
        let limit = Range::Limit("cgroup".into());
        assert_eq!((value("0", &limit), value("1048576", &limit)), ("none".into(), "1 MiB".into()));
        assert_eq!(value(&u64::MAX.to_string(), &limit), "cgroup");
        assert_eq!(allowed(&Range::Factor(1010, 16000)), "1.01 to 16");
    }
}
