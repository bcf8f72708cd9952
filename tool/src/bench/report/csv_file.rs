//! A lab as CSV: a line for each run, for spreadsheets and scripts.

use std::io::Write;

use anyhow::Result;

use crate::bench::results::{Lab, Unit};

const HEADER: [&str; 10] =
    ["row", "allocator", "round", "time", "unit", "cpu_seconds", "peak_bytes", "page_faults", "overhead", "failure"];

pub fn write(lab: &Lab, out: &mut dyn Write) -> Result<()> {
    write_record(out, HEADER)?;
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
                write_record(out, [names[0], names[1], &round, &time, unit, &cpu, &peak, &faults, &overhead, ""])?;
            }
            if let Some(why) = &series.failure {
                write_record(out, [names[0], names[1], "", "", unit, "", "", "", "", why])?;
            }
        }
    }
    Ok(())
}

/// A line of fields. One that holds what would end it stands in quotation marks, as RFC 4180 has it.
pub fn write_record<const N: usize>(out: &mut dyn Write, fields: [&str; N]) -> Result<()> {
    let quoted = |field: &str| match field.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", field.replace('"', "\"\"")),
        false => field.to_string(),
    };
    Ok(writeln!(out, "{}", fields.map(quoted).join(","))?)
}

#[cfg(test)]
mod tests {
    use super::super::samples::lab;
    use super::*;

    #[test]
    fn fields_that_would_end_stand_in_quotation_marks() {
        let fields = ["plain", "a,b", "it said \"no\"", "two\nlines", ""];
        let mut bytes = Vec::new();
        write_record(&mut bytes, fields).unwrap();
        assert_eq!(bytes, b"plain,\"a,b\",\"it said \"\"no\"\"\",\"two\nlines\",\n");
        let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(bytes.as_slice());
        assert_eq!(reader.records().next().unwrap().unwrap().iter().collect::<Vec<_>>(), fields);
    }

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
