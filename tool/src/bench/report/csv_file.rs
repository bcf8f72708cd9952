//! A lab as CSV: a line for each run, for spreadsheets and scripts.

use std::io::Write;

use anyhow::Result;

use crate::bench::results::{Lab, Unit};

const HEADER: [&str; 10] =
    ["row", "allocator", "round", "time", "unit", "cpu_seconds", "peak_bytes", "page_faults", "overhead", "failure"];

pub fn write(lab: &Lab, out: &mut dyn Write) -> Result<()> {
    let mut csv = csv::Writer::from_writer(out);
    csv.write_record(HEADER)?;
    for result in &lab.rows {
        let unit = match result.row.unit {
            Unit::NsPerOperation => "ns/op",
            Unit::Seconds => "s",
        };
        for (series, allocator) in result.series.iter().zip(&lab.allocators) {
            let names = [result.row.name.as_str(), allocator.name.as_str()];
            for run in &series.figures {
                let overhead = run.overhead.map(|ratio| ratio.to_string()).unwrap_or_default();
                let [round, time] = [run.round.to_string(), run.time.to_string()];
                let [cpu, peak] = [run.cpu_seconds.to_string(), run.peak_bytes.to_string()];
                let faults = run.page_faults.to_string();
                csv.write_record([names[0], names[1], &round, &time, unit, &cpu, &peak, &faults, &overhead, ""])?;
            }
            if let Some(why) = &series.failure {
                csv.write_record([names[0], names[1], "", "", unit, "", "", "", "", why])?;
            }
        }
    }
    csv.flush()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::samples::lab;
    use super::*;

    #[test]
    fn a_line_for_each_run_and_failure() {
        let mut bytes = Vec::new();
        write(&lab(), &mut bytes).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 1 + 9 + 6 + 1);
        assert_eq!(lines[1], "pairs/lifo,system,0,8,ns/op,0.5,3145728,100,1.5,");
        assert_eq!(lines[16], "larson/2,mine,,,ns/op,,,,,signal: 6");
    }
}
