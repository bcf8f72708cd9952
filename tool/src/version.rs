//! `snug --version`: the tool's version, and that of the library it carries.

use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{bail, Result};

use crate::cache;
use crate::carried::LIBRARY;
use crate::output;

pub fn print() -> Result<ExitCode> {
    let library = match cache::library().and_then(|path| ask_version(&path)) {
        Ok(version) => version,
        Err(error) => format!("of unknown version: {error:#}"),
    };
    let tool = env!("CARGO_PKG_VERSION");
    output::print(format!("snug {tool}\nlibsnug {library} (carried inside, id {})\n", LIBRARY.id).as_bytes())?;
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
