//! The page of sizes: blocks in use by size, and how that changes.
//!
//! Small objects are counted at each look. Medium and large blocks are found by walking through the heap, which takes long
//! in a large one, so that is done more seldom: what changed is what changed between two walks, not between two looks.

use std::time::Instant;

use anyhow::Result;
use indicatif::HumanBytes;

use super::table::{Row, Value};
use crate::live::{Depth, Medium, Program, Values};

pub const SIZES: &[&str] = &["SIZE", "BLOCKS", "IN USE", "CHANGE", ""];

/// At most one part in so many of the time goes into walks.
const SHARE: u32 = 20;

/// Medium and large blocks by size, at the last walk.
pub struct Walked {
    medium: Option<Vec<Medium>>,
    large: Option<Vec<Medium>>,
    at: Instant,
    due: Instant,
}

impl Walked {
    pub fn new() -> Walked {
        let now = Instant::now();
        Walked { medium: None, large: None, at: now, due: now }
    }

    /// Looks at the program, and walks if it is time for that.
    pub fn look(&mut self, program: &Program) -> Result<Values> {
        let begun = Instant::now();
        if begun < self.due {
            return program.values(Depth::Resident);
        }
        let values = program.values(Depth::Whole)?;
        (self.medium, self.large, self.at) = (values.medium(), Some(values.large()), begun);
        self.due = Instant::now() + SHARE * begun.elapsed();
        Ok(values)
    }
}

/// Blocks of a size.
#[derive(Clone, Copy, Default)]
struct Size {
    /// Its place in the table.
    key: u64,
    blocks: u64,
    bytes: u64,
    /// When they were counted.
    at: Option<Instant>,
    /// Bytes each second, between the last two times.
    change: Option<f64>,
}

impl Size {
    /// `before`: the same size, at an earlier look.
    fn after(self, before: Option<&Size>) -> Size {
        let Some(before) = before else { return self };
        let seconds = self.at.zip(before.at).map_or(0.0, |(now, then)| (now - then).as_secs_f64());
        if seconds <= 0.0 {
            return Size { change: before.change, ..self };
        }
        Size { change: Some((self.bytes as f64 - before.bytes as f64) / seconds), ..self }
    }
}

/// With what stands in the table, in its order.
#[derive(Default)]
pub struct Sizes(Vec<(String, Size)>);

impl Sizes {
    /// `at`: when the values were read.
    pub fn of(values: &Values, at: Instant, walked: &Walked, before: Option<&Sizes>) -> Sizes {
        let get = |name: &str| values.get(name).unwrap_or(0);
        let mut found: Vec<(String, u64, u64, Instant)> = Vec::new();
        let rows = |sizes: &[Medium]| -> Vec<_> {
            let row = |size: &Medium| (format!("to {}", short(size.to)), size.blocks, size.bytes, walked.at);
            sizes.iter().map(row).collect()
        };
        match &walked.large {
            Some(sizes) => found.extend(rows(sizes)),
            None => found.extend([
                ("to 128 MiB".into(), get("blocks_large"), get("live_large"), at),
                ("larger".into(), get("blocks_huge"), get("live_huge"), at),
            ]),
        }
        match &walked.medium {
            Some(sizes) => found.extend(rows(sizes)),
            None => found.push(("to 128 KiB".into(), get("blocks_medium"), get("live_cells"), at)),
        }
        found.push(("hardened".into(), get("blocks_hardened"), get("live_hardened"), at));
        let class = |class: &crate::live::Class| {
            (format!("{} B", class.size), class.live, class.live.saturating_mul(class.size), at)
        };
        found.extend(values.classes().iter().map(class));
        let mut sizes = Sizes::default();
        for (key, (name, blocks, bytes, at)) in found.into_iter().enumerate() {
            let size = Size { key: key as u64, blocks, bytes, at: Some(at), change: None };
            let size = size.after(before.and_then(|before| before.get(&name)));
            sizes.0.push((name, size));
        }
        sizes
    }

    fn get(&self, name: &str) -> Option<&Size> {
        self.0.iter().find(|size| size.0 == name).map(|size| &size.1)
    }

    /// Of those of which there are any, or were at the last look.
    pub fn rows(&self) -> Vec<Row> {
        let most = self.0.iter().map(|(_, size)| size.bytes).max().unwrap_or(0).max(1);
        let has_any = |(_, size): &&(String, Size)| size.bytes != 0 || size.change.unwrap_or(0.0) != 0.0;
        self.0.iter().filter(has_any).map(|(name, size)| row(name, size, most)).collect()
    }
}

fn row(name: &str, size: &Size, most: u64) -> Row {
    Row {
        key: size.key,
        values: vec![
            Value::Label(name.to_string()),
            Value::Count(size.blocks),
            Value::Size(size.bytes),
            Value::Change(size.change),
            Value::Bar(size.bytes as f64 / most as f64),
        ],
    }
}

/// A power of two.
fn short(bytes: u64) -> String {
    HumanBytes(bytes).to_string().replace(".00", "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn what_was_not_counted_anew_has_not_changed_by_nothing() {
        let start = Instant::now();
        let at =
            |seconds: u64, bytes| Size { bytes, at: Some(start + Duration::from_secs(seconds)), ..Size::default() };
        let first = at(0, 1000);
        assert_eq!(first.after(None).change, None);
        let same_walk = at(0, 1000).after(Some(&first));
        assert_eq!(same_walk.change, None, "it is not known yet");
        let next_walk = at(4, 9000).after(Some(&same_walk));
        assert_eq!(next_walk.change, Some(2000.0), "over the time between the walks");
        assert_eq!(at(4, 9000).after(Some(&next_walk)).change, Some(2000.0), "until the next one");
        assert_eq!(at(5, 9000).after(Some(&next_walk)).change, Some(0.0));
    }
}
