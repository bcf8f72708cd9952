//! Results that were kept, as JSON: read with care, since files come from anywhere.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::{ensure, Context, Result};
use serde_json::Value;

use super::results::{Lab, Series, FORMAT};
use crate::output::{self, shown};

/// What compressed files begin with.
pub const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// The results of a hundred rows, ten rounds, on ten allocators take a fiftieth of it.
const BYTES_MOST: u64 = 256 << 20;
/// A count of rounds can go on from there.
const ROUND_MOST: u32 = 1 << 30;
/// Ratios and sums of such figures are numbers, too.
const FIGURE_MOST: f64 = 1e18;

impl Lab {
    pub fn read(path: &Path) -> Result<Lab> {
        let name = path.display();
        let file = File::open(path).with_context(|| output::cannot_read(path))?;
        let mut bytes = bytes_of(file).with_context(|| output::cannot_read(path))?;
        if bytes.starts_with(&ZSTD) {
            let decoder = zstd::Decoder::new(bytes.as_slice()).with_context(|| format!("{name} is damaged"))?;
            bytes = bytes_of(decoder).with_context(|| format!("{name} is damaged"))?;
        }
        let value: Result<Value, _> = serde_json::from_slice(&bytes);
        let lab: Lab = value
            .and_then(|value| serde_json::from_value(readable(value)))
            .with_context(|| format!("{name} holds no results of snug bench --json"))?;
        ensure!(lab.format == FORMAT, "{name} has format {}; this snug reads {FORMAT}", lab.format);
        lab.ensure_sound().with_context(|| format!("{name} is damaged"))?;
        Ok(lab)
    }

    /// What the reports take for granted.
    fn ensure_sound(&self) -> Result<()> {
        ensure!(!self.allocators.is_empty(), "it has no allocators");
        for result in &self.rows {
            let row = &result.row.name;
            let whole = result.series.len() == self.allocators.len();
            ensure!(whole, "a row has another number of series than there are allocators");
            ensure!(result.series.iter().all(is_sound), "{row} has a figure that cannot be");
        }
        Ok(())
    }
}

fn is_sound(series: &Series) -> bool {
    let may_be = |value: f64| (0.0..=FIGURE_MOST).contains(&value);
    let of_runs = series.figures.iter().all(|run| {
        let has_time = may_be(run.time) && run.time >= 1.0 / FIGURE_MOST;
        let further = run.further.values().copied().chain(run.overhead).chain([run.cpu_seconds]);
        has_time && run.round < ROUND_MOST && further.into_iter().all(may_be)
    });
    of_runs
        && series.curve.iter().all(|point| may_be(point.ms))
        && series.instructions.is_none_or(|count| may_be(count.abs()))
}

fn bytes_of(from: impl Read) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(BYTES_MOST + 1).read_to_end(&mut bytes)?;
    ensure!(bytes.len() as u64 <= BYTES_MOST, "it is longer than {} MiB", BYTES_MOST >> 20);
    Ok(bytes)
}

/// All texts as a terminal may have them.
fn readable(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(shown(&text)),
        Value::Array(all) => all.into_iter().map(readable).collect(),
        Value::Object(all) => all.into_iter().map(|(name, value)| (shown(&name), readable(value))).collect(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::{samples::lab, terminal, write_json};
    use super::*;

    fn read(change: impl Fn(&mut Lab)) -> Result<Lab> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lab.json");
        let mut lab = lab();
        change(&mut lab);
        write_json(&lab, Some(&path)).unwrap();
        Lab::read(&path)
    }

    #[test]
    fn files_plain_and_compressed() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["lab.json", "lab.json.zst"] {
            let path = folder.path().join(name);
            write_json(&lab(), Some(&path)).unwrap();
            let again = Lab::read(&path).unwrap();
            assert_eq!((again.date, again.rows.len()), (lab().date, 2), "{name}");
        }
        let compressed = std::fs::read(folder.path().join("lab.json.zst")).unwrap();
        assert!(compressed.starts_with(&ZSTD));
        let damaged = folder.path().join("damaged.zst");
        std::fs::write(&damaged, &compressed[..compressed.len() / 2]).unwrap();
        assert!(Lab::read(&damaged).unwrap_err().to_string().contains("damaged"));
        let endless = format!("{:#}", Lab::read(Path::new("/dev/zero")).unwrap_err());
        assert!(endless.contains("longer than"), "{endless}");
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let run = |lab: &mut Lab, time: f64| lab.rows[0].series[0].figures[0].time = time;
        assert!(read(|_| ()).is_ok());
        for time in [0.0, -1.0, 1e-300, 1e300] {
            assert!(read(|lab| run(lab, time)).is_err(), "{time}");
        }
        assert!(read(|lab| lab.rows[0].series[0].figures[0].round = u32::MAX).is_err());
        assert!(read(|lab| lab.rows[0].series.truncate(2)).is_err());
        let none = read(|lab| {
            lab.allocators.clear();
            lab.rows.iter_mut().for_each(|row| row.series.clear());
        });
        assert!(format!("{:#}", none.unwrap_err()).contains("no allocators"));
    }

    #[test]
    fn odd_texts_and_numbers_are_shown() {
        let odd = read(|lab| {
            lab.rows[0].row.name = "\x1b[2Jx".into();
            lab.allocators[2].name = "\x1b[31mred".into();
            let calls = [("a\x1b".to_string(), u64::MAX), ("b".to_string(), 5)];
            lab.rows[0].series[0].system_calls = Some(calls.into());
            lab.rows[0].series[0].figures[0].time = 1e18;
        });
        let text = terminal::render(&odd.unwrap());
        assert!(!text.contains('\x1b') && text.contains("[2Jx"), "{text}");
    }
}
