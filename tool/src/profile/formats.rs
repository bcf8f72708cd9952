//! Profiles in files: the name of a file says its format.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use anyhow::{ensure, Context, Result};

use super::model::Profile;
use super::{flame, pprof, show, View};
use crate::output::Whole;
use crate::refusal::Refusal;

pub fn read(path: &Path) -> Result<Profile> {
    let bytes = contents(path).with_context(|| crate::output::cannot_read(path))?;
    pprof::decode(&bytes).with_context(|| format!("{}", path.display()))
}

/// A pipe does as well, what has no end does not.
fn contents(path: &Path) -> Result<Vec<u8>> {
    let file = File::open(path)?;
    let kind = file.metadata()?.file_type();
    ensure!(kind.is_file() || kind.is_fifo(), "it is not a file");
    let mut bytes = Vec::new();
    file.take(pprof::BYTES_MOST + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A file that will be written, in a format that is known before anything is done for it.
pub struct Output {
    format: Format,
    file: Whole,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Format {
    Pprof,
    Html,
    Svg,
    Folded,
    Json,
    Text,
}

impl Format {
    fn of(path: &Path) -> Option<Format> {
        let endings = [
            (Format::Pprof, &[".pb.gz", ".pb", ".pprof"][..]),
            (Format::Html, &[".html"]),
            (Format::Svg, &[".svg"]),
            (Format::Folded, &[".folded", ".collapsed"]),
            (Format::Json, &[".json"]),
            (Format::Text, &[".txt"]),
        ];
        let name = path.file_name()?.to_string_lossy();
        endings.into_iter().find(|(_, endings)| endings.iter().any(|end| name.ends_with(end))).map(|(format, _)| format)
    }
}

impl Output {
    pub fn new(path: &Path) -> Result<Output> {
        let known = ".pb.gz, .html, .svg, .folded, .json, .txt";
        let format = Format::of(path).ok_or_else(|| {
            Refusal::misuse(format!("{}: there is no format for it; known are {known}", path.display()))
        })?;
        ensure!(!path.is_dir(), "{} is a directory", path.display());
        Ok(Output { format, file: Whole::new(path)? })
    }

    pub fn write(self, profile: &Profile, view: &View) -> Result<()> {
        let by = view.by(profile);
        let bytes = match self.format {
            Format::Pprof => pprof::encode(profile)?,
            Format::Html => flame::html(profile, view)?,
            Format::Svg => flame::svg(profile, by)?,
            Format::Folded => show::folded(profile, by).into_bytes(),
            Format::Json => show::json(profile)?,
            Format::Text => show::table(profile, by, view.top).into_bytes(),
        };
        self.file.write(&bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_by_name() {
        for (name, format) in
            [("a.pb.gz", Some(Format::Pprof)), ("x/a.html", Some(Format::Html)), ("a", None), ("a.gz", None)]
        {
            assert_eq!(Format::of(Path::new(name)), format, "{name}");
        }
    }
}
