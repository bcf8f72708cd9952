//! Profiles in files: the name of a file says its format.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use anyhow::{ensure, Context, Result};

use super::model::Profile;
use super::{flame, pprof, show, View};
use crate::output::complain;
use crate::refusal::Refusal;
use crate::whole::Whole;

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
    path: PathBuf,
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

/// Of two that a name has, the first counts.
const ENDINGS: [(&str, Format); 9] = [
    (".pb.gz", Format::Pprof),
    (".pb", Format::Pprof),
    (".pprof", Format::Pprof),
    (".html", Format::Html),
    (".svg", Format::Svg),
    (".folded", Format::Folded),
    (".collapsed", Format::Folded),
    (".json", Format::Json),
    (".txt", Format::Text),
];

/// What a name says its format by, if it does.
fn ending_of(path: &Path) -> Option<(&'static str, Format)> {
    let name = path.file_name()?.as_bytes();
    ENDINGS.into_iter().find(|(end, _)| name.ends_with(end.as_bytes()))
}

impl Format {
    fn of(path: &Path) -> Option<Format> {
        Some(ending_of(path)?.1)
    }
}

/// `memory.pb.gz` becomes `memory.3.pb.gz`.
pub fn numbered(path: &Path, number: usize) -> PathBuf {
    let name = path.file_name().unwrap_or_default().as_bytes();
    let ending = ending_of(path).map_or("", |(ending, _)| ending);
    let stem = &name[..name.len() - ending.len()];
    path.with_file_name(OsStr::from_bytes(&[stem, format!(".{number}{ending}").as_bytes()].concat()))
}

impl Output {
    pub fn new(path: &Path) -> Result<Output> {
        let known = ".pb.gz, .html, .svg, .folded, .json, .txt";
        let format = Format::of(path).ok_or_else(|| {
            Refusal::misuse(format!("{}: there is no format for it; known are {known}", path.display()))
        })?;
        ensure!(!path.is_dir(), "{} is a directory", path.display());
        Ok(Output { path: path.to_path_buf(), format, file: Whole::new(path)? })
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
        self.file.write(&bytes)?;
        if matches!(self.format, Format::Html | Format::Svg | Format::Folded) {
            let left_out = show::left_out(profile, by);
            left_out.into_iter().for_each(|what| complain(&format!("snug: {} is {what}\n", self.path.display())));
        }
        Ok(())
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

    #[test]
    fn snapshots_have_numbers() {
        for (name, wanted) in [
            ("a.pb.gz", "a.3.pb.gz"),
            ("my.app.pb.gz", "my.app.3.pb.gz"),
            ("/x.y/a", "/x.y/a.3"),
            ("b/a.pb.html", "b/a.pb.3.html"),
        ] {
            assert_eq!(numbered(Path::new(name), 3), Path::new(wanted));
        }
        let odd = |bytes: &[u8]| PathBuf::from(OsStr::from_bytes(bytes));
        assert_eq!(numbered(&odd(b"a\xff.txt"), 3), odd(b"a\xff.3.txt"));
    }
}
