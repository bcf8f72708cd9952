//! Which files the code in a process is of: told by what is in its memory, not by names.
//!
//! Under a name there may be another file by now, and to a process with mounts of its own there always was one. So a file
//! that is opened counts only if it has the build id that is in memory; without one, if it begins with the same bytes.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use memmap2::Mmap;
use object::elf::{FileHeader64, NT_GNU_BUILD_ID};
use object::read::elf::ElfFile;
use object::{LittleEndian, Object as _};

use super::find::{find_note, HEADERS};
use super::memory::Memory;
use crate::proc;

/// A program or library that had code on some stack.
pub struct Object {
    pub path: PathBuf,
    /// In hexadecimal; empty: it has none.
    pub build_id: String,
    /// Where its code was, and what was added to the addresses in its file.
    pub start: u64,
    pub end: u64,
    pub bias: u64,
}

/// The files that a process has mapped.
pub struct Mapped {
    process: i32,
    all: Vec<Mapping>,
}

struct Mapping {
    /// As /proc/PID/maps has it, which is also its name in map_files.
    range: String,
    start: usize,
    end: usize,
    offset: u64,
    /// Device and inode.
    file: (String, String),
    path: String,
}

impl Mapped {
    /// `process`: the thread through which it is seen.
    pub fn of(process: i32) -> Mapped {
        let maps = proc::text(format!("/proc/{process}/maps")).unwrap_or_default();
        Mapped { process, all: maps.lines().filter_map(mapping).collect() }
    }

    /// Where the file begins of which there is code at this address. A program may have moved its code elsewhere: then
    /// the name must do.
    fn beginning(&self, address: usize, name: &str) -> Option<&Mapping> {
        let place = self.all.iter().position(|mapping| (mapping.start..mapping.end).contains(&address));
        let of_the_file = place.filter(|&place| !self.all[place].path.is_empty()).and_then(|place| {
            let mut before = self.all[..=place].iter().rev();
            before.find(|mapping| mapping.offset == 0 && mapping.file == self.all[place].file)
        });
        of_the_file.or_else(|| self.all.iter().find(|mapping| mapping.offset == 0 && mapping.path == name))
    }

    /// What the library noted of it: where its code is, and its name, of which it may have only a part.
    pub fn object(&self, memory: &Memory, name: &str, (start, end, bias): (u64, u64, u64)) -> Object {
        let Some(first) = self.beginning(start as usize, name) else {
            return Object { path: gone(name), build_id: String::new(), start, end, bias };
        };
        let path = if first.path.starts_with('/') { first.path.as_str() } else { name };
        let build_id = find_note(memory, first.start, |note, _| {
            (note.0 == b"GNU" && note.1 == NT_GNU_BUILD_ID).then(|| hexadecimal(note.2))
        });
        let build_id = build_id.unwrap_or_default();
        let path = match self.is_found(first, path, &build_id, memory) {
            true => PathBuf::from(path),
            false => gone(path),
        };
        Object { path, build_id, start, end, bias }
    }

    /// Whether the file is to be had, under its name or kept open.
    fn is_found(&self, first: &Mapping, path: &str, build_id: &str, memory: &Memory) -> bool {
        if !build_id.is_empty() {
            if kept(build_id).is_none() && build_id_of(Path::new(path)).as_deref() != Some(build_id) {
                self.keep(first, path, build_id);
            }
            return true; // by its build id it may also be found elsewhere
        }
        let mut in_memory = [0; HEADERS];
        let mut in_file = [0; HEADERS];
        let mut file = open(Path::new(path));
        let is_read = memory.read(first.start, &mut in_memory)
            && file.as_mut().is_some_and(|file| file.read(&mut in_file).is_ok_and(|count| count > 0));
        is_read && in_memory == in_file
    }

    /// What has no name here is opened as long as the process has it: it may have ended when names are wanted.
    fn keep(&self, first: &Mapping, path: &str, build_id: &str) {
        let process = self.process;
        let places = [format!("/proc/{process}/map_files/{}", first.range), format!("/proc/{process}/root{path}")];
        let is_it = |file: &File| build_id_in(file).as_deref() == Some(build_id);
        let found = places.iter().find_map(|place| open(Path::new(place)).filter(is_it));
        let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = found.filter(|_| kept.len() < KEPT_MOST) {
            kept.insert(build_id.to_string(), file);
        }
    }
}

/// By their build ids; some of the descriptors that a process may have.
static KEPT: Mutex<BTreeMap<String, File>> = Mutex::new(BTreeMap::new());
const KEPT_MOST: usize = 256;

/// A file of this build id that was kept open, by a name that only this process may use.
pub fn kept(build_id: &str) -> Option<PathBuf> {
    let kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    kept.get(build_id).map(|file| PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd())))
}

/// As the kernel calls files that have lost their name: under this one there is another file, or none.
fn gone(path: &str) -> PathBuf {
    const MARK: &str = " (deleted)";
    PathBuf::from(if path.ends_with(MARK) || path.is_empty() { path.to_string() } else { format!("{path}{MARK}") })
}

/// A line of /proc/PID/maps.
fn mapping(line: &str) -> Option<Mapping> {
    let mut words = line.splitn(6, ' ');
    let range = words.next()?;
    let (start, end) = range.split_once('-')?;
    let offset = u64::from_str_radix(words.nth(1)?, 16).ok()?;
    let file = (words.next()?.to_string(), words.next()?.to_string());
    let path = words.next().unwrap_or_default().trim_start().to_string();
    let number = |text| usize::from_str_radix(text, 16).ok();
    Some(Mapping { range: range.to_string(), start: number(start)?, end: number(end)?, offset, file, path })
}

/// A process says where its files are: to open a pipe would not end, and a device may do something.
fn open(path: &Path) -> Option<File> {
    let found = path.is_file().then(|| OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path));
    found?.ok().filter(|file| file.metadata().is_ok_and(|found| found.is_file()))
}

/// The file's build id, in hexadecimal. None: it is no ELF file; empty: it has none.
pub fn build_id_of(path: &Path) -> Option<String> {
    build_id_in(&open(path)?)
}

fn build_id_in(file: &File) -> Option<String> {
    // SAFETY: whoever cuts the file off meanwhile ends this tool, as with any program that maps files.
    let bytes = unsafe { Mmap::map(file) }.ok()?;
    let elf = ElfFile::<FileHeader64<LittleEndian>>::parse(&*bytes).ok()?;
    Some(hexadecimal(elf.build_id().ok().flatten().unwrap_or_default()))
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of this process itself: its own file is known by its memory, whatever the library's table calls it.
    #[test]
    fn a_file_is_known_by_what_is_in_memory() {
        let process = std::process::id() as i32;
        let (memory, mapped) = (Memory::of(process), Mapped::of(process));
        let code = a_file_is_known_by_what_is_in_memory as *const () as u64;
        let object = mapped.object(&memory, "part of a na", (code, code + 1, 0));
        let own = std::env::current_exe().unwrap();
        assert_eq!((Some(object.build_id), object.path), (build_id_of(&own), own));
        let nothing = mapped.object(&memory, "/bin/sh", (8, 9, 0));
        assert_eq!((nothing.build_id.as_str(), nothing.path), ("", PathBuf::from("/bin/sh (deleted)")));
    }

    #[test]
    fn lines_of_maps() {
        let found = mapping("7f00-8f00 r-xp 00001000 fe:00 12                  /a b/lib (deleted)").unwrap();
        assert_eq!((found.start, found.end, found.offset), (0x7f00, 0x8f00, 0x1000));
        assert_eq!((found.file.1.as_str(), found.path.as_str()), ("12", "/a b/lib (deleted)"));
        assert_eq!(mapping("7f00-8f00 rw-p 00000000 00:00 0").unwrap().path, "");
        assert!(mapping("nonsense").is_none());
    }
}
