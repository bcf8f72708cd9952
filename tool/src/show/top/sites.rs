//! The page of sites: which code holds the memory, of a program that takes a profile of itself. Key s has it begin one,
//! which ends with this tool.

use std::collections::HashMap;

use anyhow::Result;

use super::table::{Row, Table, Value};
use crate::live::Program;
use crate::profile::sites::Sites;

const COLUMNS: &[&str] = &["LIVE", "CHANGE", "BLOCKS", "ALLOCATED", "CALLS, THE INNERMOST FIRST"];

pub struct Page {
    sites: Sites,
    /// Bytes live by site, at the look before.
    before: HashMap<u64, u64>,
    has_begun: bool,
}

impl Page {
    pub fn new() -> Page {
        Page { sites: Sites::new(), before: HashMap::new(), has_begun: false }
    }

    /// `seconds`: since the look before.
    pub fn table(&mut self, program: &Program, seconds: Option<f64>) -> Table {
        let sites = self.sites.look(program).unwrap_or_default();
        let is_first = self.before.is_empty();
        let row = |site: &crate::profile::sites::Site| {
            let before = self.before.get(&site.key).copied().unwrap_or(0) as f64;
            let change = seconds.filter(|_| !is_first).map(|seconds| (site.live_bytes as f64 - before) / seconds);
            Row {
                key: site.key,
                values: vec![
                    Value::Size(site.live_bytes),
                    Value::Change(change),
                    Value::Count(site.live_blocks),
                    Value::Size(site.allocated_bytes),
                    Value::Text(site.calls.clone()),
                ],
            }
        };
        let rows = sites.iter().map(row).collect();
        self.before = sites.iter().map(|site| (site.key, site.live_bytes)).collect();
        Table { columns: COLUMNS, rows }
    }

    /// What there is to say where there are no sites.
    pub fn note(&self, program: &Program) -> &'static str {
        match program.is_profiled() {
            Ok(true) => "a profile is taken, one byte in 512 KiB; sites come with the first samples",
            _ => "no profile is taken: s begins one",
        }
    }

    /// Begins a profile, or ends it.
    pub fn toggle(&mut self, program: &Program) -> Result<&'static str> {
        let is_on = program.is_profiled()?;
        program.request_profile(!is_on)?;
        self.has_begun = !is_on;
        Ok(if is_on { "the profile ends" } else { "a profile begins with the next allocations" })
    }

    /// What it began ends with it.
    pub fn end(&self, program: &Program) {
        if self.has_begun {
            let _ = program.request_profile(false); // if the process has ended, so has the profile
        }
    }
}
