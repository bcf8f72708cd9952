//! Code that a program made while it ran, by the names that it wrote down for others: a list in /tmp/perf-PID.map (perf's
//! interface for JITs; `python3 -X perf` and node --perf-basic-prof write it), or jitdump, a file that it has mapped.
//!
//! Where an address was used twice, the later name counts: what is looked at is at the end of the file's life.
//! Source: tools/perf/Documentation/jit-interface.txt and jitdump-specification.txt of Linux.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::proc;

/// A function, and as far as is known its file and line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Made {
    pub function: String,
    pub file: String,
    pub line: u32,
}

/// By where their code begins: where it ends, and what it is.
#[derive(Debug, Default)]
pub struct MadeCode(BTreeMap<u64, (u64, Made)>);

impl MadeCode {
    /// What a process wrote down so far; nothing, if it did not.
    pub fn of(process: i32) -> MadeCode {
        let mut code = MadeCode::default();
        let status = proc::text(format!("/proc/{process}/status")).unwrap_or_default();
        let believed = believed(&status);
        let names = names_in_namespaces(process, &status);
        let inside = names.iter().map(|name| format!("/proc/{process}/root/tmp/perf-{name}.map"));
        // Under its number here: those that it has elsewhere are others' numbers here.
        let here = names.iter().rev().take(2).map(|name| format!("/tmp/perf-{name}.map"));
        if let Some(bytes) = inside.chain(here).find_map(|path| contents(Path::new(&path), &believed)) {
            code.add_map(&String::from_utf8_lossy(&bytes));
        }
        for path in dumps_of(process) {
            if let Some(bytes) = contents(Path::new(&format!("/proc/{process}/root{path}")), &believed) {
                code.add_dump(&bytes);
            }
        }
        code
    }

    pub fn find(&self, address: u64) -> Option<&Made> {
        let (_, (end, made)) = self.0.range(..=address).next_back()?;
        (address < *end).then_some(made)
    }

    /// Lines of `START SIZE NAME`, the numbers in hexadecimal; others are passed over.
    fn add_map(&mut self, text: &str) {
        for line in text.lines() {
            let mut words = line.splitn(3, ' ');
            let mut number = || u64::from_str_radix(words.next()?.trim_start_matches("0x"), 16).ok();
            if let (Some(start), Some(bytes), Some(name)) = (number(), number(), words.next()) {
                self.0.insert(start, (start.saturating_add(bytes), named(name)));
            }
        }
    }

    /// Records, each with its length; those that are cut off, or unknown, are passed over.
    fn add_dump(&mut self, bytes: &[u8]) {
        let Some(header) = Fields(bytes).skip(8).and_then(|mut fields| fields.u32()) else { return };
        if !bytes.starts_with(&DUMP_MAGIC.to_le_bytes()) {
            return;
        }
        let mut lines: BTreeMap<u64, (String, u32)> = BTreeMap::new();
        let mut rest = bytes.get(header as usize..).unwrap_or_default();
        while let Some((kind, record, next)) = record_of(rest) {
            match kind {
                LOAD => drop(self.add_load(record, &lines)),
                DEBUG => drop(add_first_line(record, &mut lines)),
                _ => {}
            }
            rest = next;
        }
    }

    /// pid, tid, vma, address, size, index, name.
    fn add_load(&mut self, record: &[u8], lines: &BTreeMap<u64, (String, u32)>) -> Option<()> {
        let mut fields = Fields(record).skip(16)?;
        let (start, bytes) = (fields.u64()?, fields.u64()?);
        let mut made = named(&fields.skip(8)?.text()?);
        if let Some((file, line)) = lines.get(&start) {
            (made.file, made.line) = (file.clone(), *line);
        }
        self.0.insert(start, (start.saturating_add(bytes), made));
        Some(())
    }
}

const DUMP_MAGIC: u32 = 0x4a69_5444;
/// Kinds of records: a function's code, and its lines, which come before that.
const LOAD: u32 = 0;
const DEBUG: u32 = 2;
const RECORD_HEAD: usize = 16;

/// Its kind, what is in it, and what follows it.
fn record_of(bytes: &[u8]) -> Option<(u32, &[u8], &[u8])> {
    let mut head = Fields(bytes);
    let (kind, length) = (head.u32()?, head.u32()? as usize);
    Some((kind, bytes.get(RECORD_HEAD..length)?, &bytes[length..]))
}

/// Of a function's lines the first stands for it: address, count, then address, line, discriminator and file of each.
fn add_first_line(record: &[u8], lines: &mut BTreeMap<u64, (String, u32)>) -> Option<()> {
    let mut fields = Fields(record);
    let start = fields.u64()?;
    let mut first = fields.skip(16)?;
    let line = first.u32()?;
    lines.insert(start, (first.skip(4)?.text()?, line));
    Some(())
}

/// Little-endian numbers, one after the other; None where the bytes end.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn skip(&self, bytes: usize) -> Option<Self> {
        self.0.get(bytes..).map(Fields)
    }

    fn u32(&mut self) -> Option<u32> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*bytes))
    }

    fn u64(&mut self) -> Option<u64> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*bytes))
    }

    fn text(&self) -> Option<String> {
        let end = self.0.iter().position(|&byte| byte == 0)?;
        Some(String::from_utf8_lossy(&self.0[..end]).into_owned())
    }
}

/// CPython calls its functions py::NAME:FILE.
fn named(name: &str) -> Made {
    let python = name.strip_prefix("py::").and_then(|rest| rest.split_once(':'));
    let (function, file) = python.unwrap_or((name, ""));
    Made { function: function.to_string(), file: file.to_string(), line: 0 }
}

/// Bytes: of a larger file only so much is read. A line is some 60, and four million functions are more than a program makes.
const FILE_MOST: u64 = 256 << 20;

/// Whose files say what code of a process is called: root's, its own user's, and this one's. Others can put files into
/// /tmp as well.
fn believed(status: &str) -> Vec<u32> {
    let users = proc::field(status, "Uid:").unwrap_or_default().split_ascii_whitespace();
    // SAFETY: this only asks for a number.
    users.filter_map(|user| user.parse().ok()).chain([0, unsafe { libc::geteuid() }]).collect()
}

/// None: it is no file, or of somebody else. Anyone may put something else there, a pipe that never ends.
fn contents(path: &Path, believed: &[u32]) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = path.is_file().then(|| File::open(path).ok()).flatten()?;
    file.metadata().ok().filter(|found| believed.contains(&found.uid()))?;
    file.take(FILE_MOST).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// The process's numbers, the one that it has for itself first; also if it is looked at through a thread of it.
fn names_in_namespaces(process: i32, status: &str) -> Vec<String> {
    let line = proc::field(status, "NStgid:").unwrap_or_default();
    line.split_ascii_whitespace().rev().map(str::to_string).chain([process.to_string()]).collect()
}

/// As the process names them.
fn dumps_of(process: i32) -> Vec<String> {
    let maps = proc::text(format!("/proc/{process}/maps")).unwrap_or_default();
    let paths = maps.lines().filter_map(|line| line.find('/').map(|start| &line[start..]));
    let is_dump = |path: &&str| {
        let name = Path::new(path).file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("jit-") && name.ends_with(".dump")
    };
    let mut paths: Vec<String> = paths.filter(is_dump).map(str::to_string).collect();
    paths.dedup();
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_has_the_numbers_of_its_process() {
        // SAFETY: this only asks for a number.
        let look = || names_in_namespaces(unsafe { libc::gettid() }, &proc::text("/proc/thread-self/status").unwrap());
        let names = std::thread::spawn(look).join().unwrap();
        assert_eq!(names[0], std::process::id().to_string());
    }

    #[test]
    fn files_of_others_are_not_believed() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let own = believed("Uid:\t7\t7\t7\t7\n");
        assert!(own.contains(&7) && own.contains(&0));
        assert_eq!(contents(file.path(), &own), Some(Vec::new()));
        assert_eq!(contents(file.path(), &[u32::MAX]), None);
    }

    #[test]
    fn a_map_has_names() {
        let mut code = MadeCode::default();
        code.add_map("1000 10 first\nno line\n2000 20 py::work:/srv/a.py\n1000 8 later one\n");
        assert_eq!(code.find(0x1007).unwrap().function, "later one");
        assert_eq!(code.find(0x1008), None);
        let python = Made { function: "work".into(), file: "/srv/a.py".into(), line: 0 };
        assert_eq!(code.find(0x201f), Some(&python));
        assert_eq!((code.find(0xfff), code.find(0x2020)), (None, None));
    }

    fn record(kind: u32, body: &[u8]) -> Vec<u8> {
        let mut bytes = kind.to_le_bytes().to_vec();
        bytes.extend((16 + body.len() as u32).to_le_bytes());
        bytes.extend([0; 8]);
        bytes.extend(body);
        bytes
    }

    #[test]
    fn a_dump_has_names_files_and_lines() {
        let words = |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
        let mut dump = DUMP_MAGIC.to_le_bytes().to_vec();
        dump.extend([1u32, 40, 62, 0, 1].iter().flat_map(|word| word.to_le_bytes()));
        dump.extend([0; 16]);
        let lines = [words(&[0x5000, 1, 0x5000]), 77u32.to_le_bytes().to_vec(), vec![0; 4], b"a.js\0".to_vec()];
        dump.extend(record(DEBUG, &lines.concat()));
        dump.extend(record(9, b"unknown"));
        dump.extend(record(LOAD, &[words(&[0, 0x5000, 0x5000, 4, 1]), b"hot\0\xc3\xc3\xc3\xc3".to_vec()].concat()));
        let mut code = MadeCode::default();
        code.add_dump(&dump);
        let made = Made { function: "hot".into(), file: "a.js".into(), line: 77 };
        assert_eq!((code.find(0x5003), code.find(0x5004)), (Some(&made), None));
        for end in 0..dump.len() {
            MadeCode::default().add_dump(&dump[..end]); // no part of one is trouble
        }
    }
}
