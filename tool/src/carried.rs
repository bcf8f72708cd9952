//! The files inside the tool: the library, what it says about itself, and what records and replays programs.

use std::ffi::{CStr, CString};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{bail, Result};

use crate::cache;

/// A file that the tool brings along.
#[derive(Debug)]
pub struct Carried {
    pub bytes: &'static [u8],
    /// What its name begins and ends with, around the id.
    pub stem: &'static str,
    pub suffix: &'static str,
    /// Differs between any two versions: the start of the SHA-256 of the bytes.
    pub id: &'static str,
}

pub const LIBRARY: Carried = Carried {
    bytes: include_bytes!(concat!(env!("OUT_DIR"), "/libsnug.so")),
    stem: "libsnug",
    suffix: ".so",
    id: env!("ID_OF_libsnug_so"),
};

/// What `snug record` preloads.
pub const RECORDER: Carried = Carried {
    bytes: include_bytes!(concat!(env!("OUT_DIR"), "/libsnugrecord.so")),
    stem: "libsnugrecord",
    suffix: ".so",
    id: env!("ID_OF_libsnugrecord_so"),
};

/// The program that `snug replay` runs.
pub const REPLAYER: Carried = Carried {
    bytes: include_bytes!(concat!(env!("OUT_DIR"), "/snugreplay")),
    stem: "snugreplay",
    suffix: "",
    id: env!("ID_OF_snugreplay"),
};

pub fn print_version() -> Result<ExitCode> {
    let library = match cache::library().and_then(|path| ask_version(&path)) {
        Ok(version) => version,
        Err(error) => format!("of unknown version: {error:#}"),
    };
    let mut out = std::io::stdout().lock();
    writeln!(out, "snug {}", env!("CARGO_PKG_VERSION"))?;
    writeln!(out, "libsnug {library} (carried inside, id {})", LIBRARY.id)?;
    Ok(ExitCode::SUCCESS)
}

/// The version by the library's own word: what counts is the file that programs will run on.
fn ask_version(path: &Path) -> Result<String> {
    let name = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: the file is the carried library, byte for byte. It stays loaded, so the text that snug_version returns
    // lives on; the function's type is that of include/snug/snug.h.
    unsafe {
        let handle = libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL);
        if handle.is_null() {
            bail!("{}", CStr::from_ptr(libc::dlerror()).to_string_lossy());
        }
        let address = libc::dlsym(handle, c"snug_version".as_ptr());
        if address.is_null() {
            bail!("it has no snug_version");
        }
        let snug_version: extern "C" fn() -> *const libc::c_char = std::mem::transmute(address);
        Ok(CStr::from_ptr(snug_version()).to_string_lossy().into_owned())
    }
}
