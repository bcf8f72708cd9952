//! What an ELF file's headers say: the machine it is for, and the loader it asks for.

use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::{bail, Result};
use object::elf::{self, FileHeader32, FileHeader64};
use object::read::elf::{FileHeader, ProgramHeader};
use object::read::{ReadCache, ReadRef};
use object::{Endianness, FileKind};

#[derive(Debug)]
pub struct Facts {
    machine: elf::Machine,
    is_64: bool,
    is_big_endian: bool,
    /// The loader; None in a statically linked program.
    pub interpreter: Option<PathBuf>,
}

/// What programs and libraries must agree on to meet in one process.
#[derive(Debug, PartialEq, Eq)]
pub struct Kind {
    machine: elf::Machine,
    is_64: bool,
    is_big_endian: bool,
}

impl Facts {
    pub fn of_file(path: &Path) -> Result<Facts> {
        let cache = ReadCache::new(File::open(path)?);
        Facts::read(&cache)
    }

    pub fn of_bytes(bytes: &[u8]) -> Result<Facts> {
        Facts::read(bytes)
    }

    fn read<'data, R: ReadRef<'data>>(data: R) -> Result<Facts> {
        match FileKind::parse(data)? {
            FileKind::Elf32 => Facts::from_header::<FileHeader32<Endianness>, R>(data),
            FileKind::Elf64 => Facts::from_header::<FileHeader64<Endianness>, R>(data),
            _ => bail!("not an ELF file"),
        }
    }

    fn from_header<'data, H, R>(data: R) -> Result<Facts>
    where
        H: FileHeader<Endian = Endianness>,
        R: ReadRef<'data>,
    {
        let header = H::parse(data)?;
        let endian = header.endian()?;
        let mut interpreter = None;
        for segment in header.program_headers(endian, data)? {
            if let Some(path) = segment.interpreter(endian, data)? {
                interpreter = Some(PathBuf::from(OsStr::from_bytes(path)));
            }
        }
        Ok(Facts {
            machine: header.e_machine(endian),
            is_64: header.is_type_64(),
            is_big_endian: endian == Endianness::Big,
            interpreter,
        })
    }

    pub fn kind(&self) -> Kind {
        Kind { machine: self.machine, is_64: self.is_64, is_big_endian: self.is_big_endian }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self.machine {
            elf::EM_386 => f.write_str("i386")?,
            elf::EM_X86_64 => f.write_str("x86-64")?,
            elf::EM_ARM => f.write_str("ARM")?,
            elf::EM_AARCH64 => f.write_str("AArch64")?,
            elf::EM_RISCV => f.write_str("RISC-V")?,
            elf::EM_PPC64 => f.write_str("PowerPC64")?,
            elf::EM_S390 => f.write_str("S/390")?,
            elf::EM_LOONGARCH => f.write_str("LoongArch")?,
            other => write!(f, "machine type {}", other.0)?,
        }
        let bits = if self.is_64 { 64 } else { 32 };
        let order = if self.is_big_endian { ", big-endian" } else { "" };
        write!(f, " ({bits}-bit{order})")
    }
}

pub fn is_musl_loader(loader: &Path) -> bool {
    file_name_starts_with(loader, &["ld-musl"])
}

/// The loader's usual names are links, so the file they lead to counts as well.
pub fn is_glibc_loader(program: &Path) -> bool {
    let names = ["ld-linux", "ld64.so", "ld.so", "ld-2."];
    let behind = fs::canonicalize(program).unwrap_or_default();
    file_name_starts_with(program, &names) || file_name_starts_with(&behind, &names)
}

fn file_name_starts_with(path: &Path, starts: &[&str]) -> bool {
    let name = path.file_name().unwrap_or_default().as_bytes();
    starts.iter().any(|start| name.starts_with(start.as_bytes()))
}
