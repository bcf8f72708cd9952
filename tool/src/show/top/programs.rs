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
}

const COLUMNS: &[&str] = &["PID", "IN USE", "KEPT FREE", "RESIDENT", "PEAK", "FAULTS", "PROGRAM", "COMMAND"];

/// What is free and still occupies memory.
const KEPT: [&str; 5] = ["free_slabs", "free_cells", "purge_pending", "cached_small", "cached_cells"];

impl Programs {
    pub fn new() -> Programs {
        let table = Table { columns: COLUMNS, rows: Vec::new() };
        let mut all = Programs { order: Order::by(3), table, before: HashMap::new(), at: Instant::now() };
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
        let mut faults = HashMap::new();
        self.table.rows.clear();
        for (process, program) in programs() {
            let Ok(values) = program.values(Depth::Quick) else { continue };
            let get = |name: &str| values.get(name).unwrap_or(0);
            let (now, before) = (get("minor_faults"), self.before.get(&process));
            faults.insert(process, now);
            self.table.rows.push(Row {
                key: process as u64,
                values: vec![
                    Value::Id(process as u64),
                    Value::Size(get("live").saturating_add(get("heaps_live"))),
                    Value::Size(KEPT.iter().map(|gauge| get(gauge)).fold(0, u64::saturating_add)),
                    Value::Size(get("resident")),
                    Value::Size(get("resident_peak")),
                    Value::Rate(before.map(|&before| now.saturating_sub(before) as f64 / seconds)),
                    Value::Text(name_of(process).unwrap_or_default()),
                    Value::Text(command_line(process)),
                ],
            });
        }
        (self.before, self.at) = (faults, Instant::now());
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
