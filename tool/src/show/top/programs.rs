//! All programs on snug, a row each.

use std::collections::HashMap;
use std::time::Instant;

use anyhow::Result;

use super::facts::command_line;
use super::table::{Order, Row, Table, Value};
use crate::live::list::{name_of, programs};
use crate::live::Depth;

pub struct Programs {
    pub order: Order,
    pub table: Table,
    /// Page faults at the last look, and when that was.
    before: HashMap<i32, u64>,
    at: Instant,
    /// Of what is free in each, what occupied no memory at the last look at every page; and when the next is due.
    gone: HashMap<i32, u64>,
    due: Instant,
}

const COLUMNS: &[&str] = &["PID", "IN USE", "KEPT FREE", "RESIDENT", "PEAK", "FAULTS", "PROGRAM", "COMMAND"];

/// What is free and occupies memory, whatever else does: pages that a trim would give back, and what was used last.
const SURELY: [&str; 6] =
    ["purge_pending", "cached_small", "cached_cells", "depots", "hardened_waiting", "hardened_cached"];

/// What is free and may occupy some: of it whole pages may have gone back, or were never touched.
const MAYBE: [&str; 3] = ["free_slabs", "free_cells", "hardened_free"];

/// What is not free, and what of it occupies memory as a rule: of blocks in use some may never have been touched.
const USED: [&str; 3] = ["live", "waste", "metadata_used"];

/// At most one part in so many of the time goes into looks at every page.
const SHARE: u32 = 20;

/// What is free and still occupies memory, by gauges; and how much less that is than all that is free. What is resident says
/// so if it is known, and `gone`, what was found before, otherwise.
fn kept(get: impl Fn(&str) -> Option<u64>, gone: u64) -> (u64, u64) {
    let sum = |gauges: &[&str]| gauges.iter().filter_map(|gauge| get(gauge)).fold(0, u64::saturating_add);
    let surely = sum(&SURELY);
    let free = surely.saturating_add(sum(&MAYBE));
    let most = get("resident_snug").map_or(free.saturating_sub(gone), |resident| resident.saturating_sub(sum(&USED)));
    let kept = most.clamp(surely, free);
    (kept, free - kept)
}

impl Programs {
    pub fn new() -> Programs {
        let table = Table { columns: COLUMNS, rows: Vec::new() };
        let now = Instant::now();
        let (before, gone) = (HashMap::new(), HashMap::new());
        let mut all = Programs { order: Order::by(3), table, before, at: now, gone, due: now };
        all.look();
        all
    }

    /// The process that is marked.
    pub fn selected(&self) -> Option<i32> {
        self.table.ordered(&self.order).get(self.order.selected).map(|row| row.key as i32)
    }

    /// The mark stays on its program, wherever that goes.
    pub fn look(&mut self) {
        let marked = self.selected();
        let seconds = self.at.elapsed().as_secs_f64();
        let (mut faults, mut gone) = (HashMap::new(), HashMap::new());
        let begun = Instant::now();
        let is_due = begun >= self.due;
        let depth = if is_due { Depth::Resident } else { Depth::Quick };
        self.table.rows.clear();
        for (process, program) in programs() {
            let Ok(values) = program.values(depth) else { continue };
            let get = |name: &str| values.get(name).unwrap_or(0);
            let (now, before) = (get("minor_faults"), self.before.get(&process));
            faults.insert(process, now);
            let (kept, less) = kept(|name| values.get(name), self.gone.get(&process).copied().unwrap_or(0));
            gone.insert(process, less);
            self.table.rows.push(Row {
                key: process as u64,
                values: vec![
                    Value::Id(process as u64),
                    Value::Size(get("live").saturating_add(get("heaps_live"))),
                    Value::Size(kept),
                    Value::Size(get("resident")),
                    Value::Size(get("resident_peak")),
                    Value::Rate(before.map(|&before| now.saturating_sub(before) as f64 / seconds)),
                    Value::Text(name_of(process).unwrap_or_default()),
                    Value::Text(command_line(process)),
                ],
            });
        }
        (self.before, self.gone, self.at) = (faults, gone, Instant::now());
        if is_due {
            self.due = self.at + SHARE * (self.at - begun);
        }
        let place = self.table.ordered(&self.order).iter().position(|row| marked == Some(row.key as i32));
        self.order.selected = place.unwrap_or(self.order.selected);
        self.order.step(0, self.table.rows.len());
    }

    pub fn text(&self, width: usize) -> Result<String> {
        anyhow::ensure!(
            !self.table.rows.is_empty(),
            "no program runs on snug that may be looked into; start one with: snug run COMMAND"
        );
        Ok(self.table.lines(&self.order, width).join("\n") + "\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_went_back_is_not_kept() {
        let of = |gauges: &'static [(&str, u64)]| {
            move |name: &str| gauges.iter().find(|(gauge, _)| *gauge == name).map(|(_, bytes)| *bytes)
        };
        // Of 90 free between blocks 80 went back; then 5 more are freed, and nobody looks at pages.
        let after = of(&[("live", 20), ("free_cells", 90), ("depots", 1), ("resident_snug", 31)]);
        assert_eq!(kept(after, 0), (11, 80));
        assert_eq!(kept(of(&[("live", 15), ("free_cells", 95), ("depots", 1)]), 80), (16, 80));
        // All is there; and what is in use is not, as far as it was never touched.
        assert_eq!(kept(of(&[("live", 20), ("hardened_free", 9), ("resident_snug", 40)]), 0), (9, 0));
        assert_eq!(
            kept(of(&[("live", 900), ("purge_pending", 7), ("free_slabs", 3), ("resident_snug", 12)]), 0),
            (7, 3)
        );
        assert_eq!(kept(of(&[("purge_pending", 7), ("free_slabs", 3)]), 0), (10, 0));
    }
}
