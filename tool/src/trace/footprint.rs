//! `snug replay --footprint`: how much memory an allocator holds for the same requests, counted rather than sampled.
//!
//! One thread carries out all operations in the recorded order, with addresses that are not randomised, and looks at
//! its own resident memory after equal numbers of operations. So two runs of one allocator differ by a few pages at
//! most, and two allocators, or two versions of one, can be compared by single runs.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{bail, ensure, Context, Result};
use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, Table};

use super::replay::{Program, Touch};
use crate::bench::allocators::Allocator;

const SAMPLES: u32 = 256;
const EXPLANATION: &str = "\
Without the replayer's own memory. overhead: resident over requested bytes, each added up over the samples.";

/// A moment of the replay.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Sample {
    live_bytes: i64,
    resident_kib: i64,
}

#[derive(Debug, PartialEq)]
struct Footprint {
    peak_kib: i64,
    end_kib: i64,
    overhead: f64,
}

pub fn run(replayer: &Path, programs: &[Program], allocators: &[Allocator], touch: Touch) -> Result<ExitCode> {
    let mut table = Table::new();
    table.load_preset(UTF8_FULL_CONDENSED);
    table.set_header(["trace", "allocator", "peak KiB", "at the end", "overhead"]);
    for program in programs {
        let live = program.converted.totals.peak_live_bytes / 1024;
        table.add_row([&program.name, "(requested)", &live.to_string(), "", ""]);
        for allocator in allocators {
            let found = measure(replayer, program, allocator, touch)
                .with_context(|| format!("{} on {}", program.name, allocator.name))?;
            let Footprint { peak_kib, end_kib, overhead } = found;
            let figures = [peak_kib.to_string(), end_kib.to_string(), format!("{overhead:.3}")];
            table.add_row(["", &allocator.name].map(str::to_string).into_iter().chain(figures));
        }
    }
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    writeln!(std::io::stdout().lock(), "{table}\n{EXPLANATION}")?;
    Ok(ExitCode::SUCCESS)
}

fn measure(replayer: &Path, program: &Program, allocator: &Allocator, touch: Touch) -> Result<Footprint> {
    let mut command = Command::new(replayer);
    command.arg(format!("--samples={SAMPLES}")).arg(touch.word()).arg(program.file.path());
    command.env_remove("LD_PRELOAD");
    if let Some(library) = &allocator.library {
        command.env("LD_PRELOAD", library);
    }
    command.envs(allocator.settings.iter().map(|(name, value)| (name, value)));
    // SAFETY: personality is a system call and async-signal-safe. Where it is forbidden, addresses vary.
    unsafe {
        command.pre_exec(|| {
            libc::personality(libc::ADDR_NO_RANDOMIZE as libc::c_ulong);
            Ok(())
        });
    }
    let output = command.output().context("cannot run the replayer")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}: {}", output.status, said.trim());
    read(&String::from_utf8_lossy(&output.stdout))
}

/// What snugreplay printed.
fn read(text: &str) -> Result<Footprint> {
    let mut samples = Vec::new();
    let mut base = None;
    for word in text.split_whitespace() {
        match word.split_once('=') {
            Some(("sample", fields)) => samples.push(parse_sample(fields)?),
            Some(("base_kib", kib)) => base = Some(kib.parse::<i64>()?),
            _ => {}
        }
    }
    let base = base.context("it did not print base_kib=")?;
    let Some(last) = samples.last() else { bail!("it took no samples") };
    let resident: i64 = samples.iter().map(|sample| sample.resident_kib - base).sum();
    let live: i64 = samples.iter().map(|sample| sample.live_bytes).sum();
    Ok(Footprint {
        peak_kib: samples.iter().map(|sample| sample.resident_kib).max().unwrap_or(0) - base,
        end_kib: last.resident_kib - base,
        overhead: if live > 0 { resident as f64 * 1024.0 / live as f64 } else { 0.0 },
    })
}

fn parse_sample(fields: &str) -> Result<Sample> {
    let numbers: Vec<i64> = fields.split(',').map(str::parse).collect::<Result<_, _>>()?;
    let [_, live_bytes, resident_kib] = numbers[..] else { bail!("sample={fields} has not three figures") };
    Ok(Sample { live_bytes, resident_kib })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_footprint_of_known_samples() {
        let text = "sample=10,1024,1010\nsample=20,3072,1030\nsample=30,0,1004\nops=30 base_kib=1000 peak_rss_kib=9\n";
        assert_eq!(read(text).unwrap(), Footprint { peak_kib: 30, end_kib: 4, overhead: 11.0 });
        for wrong in ["", "sample=1,2,3", "base_kib=3", "sample=1,2 base_kib=3", "sample=1,2,x base_kib=3"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
