//! Reports of a lab: on the terminal, as JSON (all of it, to be read again), as CSV (a line for each run), as Markdown,
//! as one HTML page with plots, and as a picture of all rows in one plot.

mod csv_file;
mod earlier;
pub mod figures;
mod frontier;
pub mod html;
pub mod markdown;
pub mod plots;
#[cfg(test)]
pub mod samples;
pub mod tables;
pub mod terminal;
pub mod verdict;
pub mod words;

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{ensure, Context, Result};
use clap::Args;
use serde::Serialize;

use super::results::Lab;
use crate::output;
use crate::refusal::Refusal;
use crate::whole::{ensure_writable, Whole};

/// Where reports go; part of the arguments of every command that measures. `-` is the standard output, which then has nothing
/// else; so is no word at all, as in `snug stats`.
#[derive(Debug, Clone, Default, Args)]
pub struct ReportArgs {
    /// Write every measured value to FILE, for snug bench --compare and --resume; compressed if its name ends in .zst.
    /// Without FILE, here and below, and with -, to the standard output; a file that holds anything else but such a
    /// report is not written over
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = output::STANDARD)]
    pub json: Option<PathBuf>,

    /// Write a line for each run to FILE
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = output::STANDARD)]
    pub csv: Option<PathBuf>,

    /// Write the tables to FILE, as Markdown
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = output::STANDARD)]
    pub markdown: Option<PathBuf>,

    /// Write tables and plots to FILE, as one page of HTML
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = output::STANDARD)]
    pub html: Option<PathBuf>,

    /// Write the plot of speed against memory over all rows to FILE, as SVG
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = output::STANDARD)]
    pub frontier: Option<PathBuf>,
}

impl ReportArgs {
    /// That all files can be written, and hold nothing but earlier reports, is known before hours are spent.
    pub fn ensure_writable(&self) -> Result<()> {
        let (to_output, files): (Vec<&Path>, Vec<&Path>) = self.paths().partition(|path| output::is_standard(path));
        ensure!(to_output.len() <= 1, Refusal::misuse("only one report can go to the standard output".into()));
        files.into_iter().try_for_each(|path| earlier::ensure_replaceable(path).and_then(|()| ensure_writable(path)))
    }

    /// Whether a report goes to the standard output.
    pub fn to_output(&self) -> bool {
        self.paths().any(output::is_standard)
    }

    fn paths(&self) -> impl Iterator<Item = &Path> {
        [&self.json, &self.csv, &self.markdown, &self.html, &self.frontier].into_iter().flatten().map(PathBuf::as_path)
    }
}

/// Prints the report and writes all files that are wanted: that one cannot be written is no reason to lose the others.
pub fn publish(text: &str, lab: &Lab, args: &ReportArgs) -> Result<()> {
    publish_with(text, &|| markdown::render(lab), lab, args)
}

/// The same with tables of its own as Markdown.
pub fn publish_with(text: &str, markdown: &dyn Fn() -> String, lab: &Lab, args: &ReportArgs) -> Result<()> {
    output::last_error([
        if args.to_output() { Ok(()) } else { output::print(text.as_bytes()) },
        write_json(lab, args.json.as_deref()),
        write_to(args.csv.as_deref(), |file| csv_file::write(lab, file)),
        write_to(args.markdown.as_deref(), |file| Ok(file.write_all(markdown().as_bytes())?)),
        write_to(args.html.as_deref(), |file| Ok(file.write_all(html::render(lab)?.as_bytes())?)),
        write_to(args.frontier.as_deref(), |file| {
            let plot = figures::overall(lab).context(NO_PLOT)?;
            Ok(file.write_all(plots::image(&plot)?.as_bytes())?)
        }),
    ])
}

const NO_PLOT: &str =
    "a plot of all rows needs the system's malloc and another allocator, and a pace that is not the recorded one";

const COMPRESSED: &str = "zst";
const LEVEL: i32 = 15;

/// Any value as JSON.
pub fn write_json(value: &impl Serialize, path: Option<&Path>) -> Result<()> {
    let is_compressed = path.and_then(Path::extension).is_some_and(|extension| extension == COMPRESSED);
    write_to(path, |file| {
        if !is_compressed {
            return Ok(serde_json::to_writer_pretty(file, value)?);
        }
        let mut compressed = BufWriter::new(zstd::Encoder::new(file, LEVEL)?);
        serde_json::to_writer_pretty(&mut compressed, value)?;
        compressed.into_inner().map_err(|error| error.into_error())?.finish()?;
        Ok(())
    })
}

pub fn write_to(path: Option<&Path>, write: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    let Some(path) = path else { return Ok(()) };
    if output::is_standard(path) {
        let mut bytes = Vec::new();
        write(&mut bytes)?;
        return output::print(&bytes);
    }
    Whole::new(path)?.write_with(|file| {
        let mut file = BufWriter::new(file);
        write(&mut file).and_then(|()| Ok(file.flush()?)).with_context(|| output::cannot_write(path))
    })
}
