//! Finds snug in a running process: the ELF note that leads to the anchor (src/report/anchor.h of the library).
//!
//! Only the process's memory is looked at, never a file of it: so it does not matter whether the program is linked
//! statically, stripped, deleted meanwhile, or in a container whose files are others.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;

use anyhow::{bail, Context, Result};
use object::elf::{FileHeader64, NoteType, ProgramHeader64, PT_LOAD, PT_NOTE};
use object::read::elf::{FileHeader, NoteIterator, ProgramHeader};
use object::LittleEndian;

use super::barred::why_not;
use super::memory::Memory;
use crate::proc;

const NAME: &[u8] = b"snug";
const KIND: NoteType = NoteType(1);

/// Enough for the header of a file and its program headers.
pub const HEADERS: usize = 4096;

/// Where the anchors of a process may be: one for each mapped file with the note.
pub fn anchors(process: i32, memory: &Memory) -> Result<Vec<usize>> {
    let maps = match proc::text(format!("/proc/{}/maps", memory.thread())) {
        Ok(maps) => maps,
        Err(error) if error.kind() == io::ErrorKind::NotFound => bail!("there is no process {process}"),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => bail!(why_not(process)),
        Err(error) => return Err(error).with_context(|| format!("process {process} cannot be looked into")),
    };
    if maps.is_empty() {
        bail!("process {process} has no memory: it is ending, or one of the kernel's");
    }
    let starts: Vec<usize> = maps.lines().filter_map(start_of_file).collect();
    let mut header = vec![0; HEADERS];
    if starts.iter().all(|&start| !memory.read(start, &mut header)) {
        bail!(why_not(process));
    }
    Ok(starts.iter().filter_map(|&start| anchor_of_file(memory, start)).collect())
}

/// When a process began, in ticks of the system's clock.
pub fn began(process: i32) -> Result<u64> {
    let stat = proc::text(format!("/proc/{process}/stat"))?;
    // The second field is a name that may contain anything; the time is the 22nd.
    let (_, rest) = stat.rsplit_once(')').context("no name in /proc/PID/stat")?;
    Ok(rest.split_ascii_whitespace().nth(19).context("too few fields in /proc/PID/stat")?.parse()?)
}

/// A process is younger than this when its program may still be loaded.
const YOUNG: f64 = 1.0;

/// Whether a process may run on snug in a moment: it is this tool, which becomes the command, or has just begun.
pub fn is_beginning(process: i32) -> bool {
    let file =
        |process: &str| fs::metadata(format!("/proc/{process}/exe")).map(|found| (found.dev(), found.ino())).ok();
    let tool = file("self");
    tool.is_some() && tool == file(&process.to_string()) || age(process).is_some_and(|seconds| seconds < YOUNG)
}

/// In seconds.
fn age(process: i32) -> Option<f64> {
    // SAFETY: this only asks for a number.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as f64;
    let now: f64 = proc::text("/proc/uptime").ok()?.split(' ').next()?.parse().ok()?;
    Some(now - began(process).ok()? as f64 / ticks)
}

/// The start of a mapping that is the beginning of a file, from a line of /proc/PID/maps.
fn start_of_file(line: &str) -> Option<usize> {
    let mut words = line.split_ascii_whitespace();
    let range = words.next()?;
    let readable = words.next()?.starts_with('r');
    let offset = words.next()?;
    let file = words.nth(2)?;
    let begins = readable && file.starts_with('/') && usize::from_str_radix(offset, 16) == Ok(0);
    begins.then(|| usize::from_str_radix(range.split('-').next()?, 16).ok()).flatten()
}

fn anchor_of_file(memory: &Memory, start: usize) -> Option<usize> {
    find_note(memory, start, |(name, kind, contents), place| {
        let distance = u64::from_le_bytes(contents.try_into().ok().filter(|_| name == NAME && kind == KIND)?);
        Some(place.wrapping_add(distance as usize))
    })
}

/// Of the notes in a file that is mapped from `start` on, the first from which `wanted` makes something: of its name, its
/// kind and its contents, and of where these are.
pub fn find_note<T>(memory: &Memory, start: usize, wanted: impl Fn(Note, usize) -> Option<T>) -> Option<T> {
    let mut bytes = vec![0; HEADERS];
    if !memory.read(start, &mut bytes) {
        return None;
    }
    let header = FileHeader64::<LittleEndian>::parse(bytes.as_slice()).ok()?;
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, bytes.as_slice()).ok()?;
    let first = segments.iter().find(|segment| segment.p_type(endian) == PT_LOAD)?;
    let bias = start.wrapping_sub(first.p_vaddr(endian) as usize & !(HEADERS - 1));
    segments
        .iter()
        .filter(|segment| segment.p_type(endian) == PT_NOTE)
        .find_map(|segment| find_in_segment(memory, endian, segment, bias, &wanted))
}

pub type Note<'a> = (&'a [u8], NoteType, &'a [u8]);

fn find_in_segment<T>(
    memory: &Memory,
    endian: LittleEndian,
    segment: &ProgramHeader64<LittleEndian>,
    bias: usize,
    wanted: &impl Fn(Note, usize) -> Option<T>,
) -> Option<T> {
    let address = bias.wrapping_add(segment.p_vaddr(endian) as usize);
    let mut bytes = vec![0; usize::try_from(segment.p_memsz(endian)).ok().filter(|&size| size <= 1 << 16)?];
    if !memory.read(address, &mut bytes) {
        return None;
    }
    let mut notes =
        NoteIterator::<FileHeader64<LittleEndian>>::new(endian, segment.p_align(endian), bytes.as_slice()).ok()?;
    while let Ok(Some(note)) = notes.next() {
        let place = note.desc().as_ptr() as usize - bytes.as_ptr() as usize;
        let found = wanted((note.name(), note.n_type(endian), note.desc()), address.wrapping_add(place));
        if found.is_some() {
            return found;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_maps() {
        let line = |text| start_of_file(text);
        assert_eq!(line("7f00-8f00 r--p 00000000 fe:00 12  /lib/libsnug.so"), Some(0x7f00));
        assert_eq!(line("7f00-8f00 r-xp 00001000 fe:00 12  /lib/libsnug.so"), None);
        assert_eq!(line("7f00-8f00 ---p 00000000 fe:00 12  /lib/libsnug.so"), None);
        assert_eq!(line("7f00-8f00 rw-p 00000000 00:00 0"), None);
        assert_eq!(line("7f00-8f00 rw-p 00000000 00:00 0  [heap]"), None);
    }
}
