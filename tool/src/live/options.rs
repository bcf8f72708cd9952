//! The library's table of options, with the values that this environment gives.

use std::ffi::{c_char, CStr, CString, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use super::ffi;

pub struct OptionRow {
    pub name: String,
    pub value: String,
    pub default: String,
    pub text: String,
}

fn rows() -> Vec<(String, String, String)> {
    let mut found = Vec::new();
    for index in 0.. {
        let (mut name, mut text) = (std::ptr::null(), std::ptr::null());
        let mut value: Vec<c_char> = vec![0; 4096];
        // SAFETY: `value` has the room that is said, and ends in 0 afterwards.
        if !unsafe { ffi::outside_option(index, &mut name, &mut text, value.as_mut_ptr(), value.len()) } {
            break;
        }
        // SAFETY: all three are strings that end in 0; the first two are constants.
        let string = |at: *const c_char| unsafe { CStr::from_ptr(at) }.to_string_lossy().into_owned();
        found.push((string(name), string(value.as_ptr()), string(text)));
    }
    found
}

/// All options. Names and values that are wrong are reported on stderr, as the library does.
pub fn in_force(variables: impl Iterator<Item = (OsString, OsString)>) -> Vec<OptionRow> {
    let defaults = rows();
    let variable = |(name, value): (OsString, OsString)| {
        let mut bytes = name.into_vec();
        bytes.push(b'=');
        bytes.extend_from_slice(value.as_bytes());
        CString::new(bytes).ok()
    };
    let variables: Vec<CString> = variables.filter_map(variable).collect();
    let mut pointers: Vec<*const c_char> = variables.iter().map(|variable| variable.as_ptr()).collect();
    pointers.push(std::ptr::null());
    // SAFETY: a list of strings that ends in NULL; the options point into it only until it goes, below.
    unsafe { ffi::options_read(pointers.as_ptr(), 2) };
    let row = |((name, default, text), (_, value, _)): (_, (String, String, String))| OptionRow {
        name: format!("SNUG_{name}"),
        value,
        default,
        text,
    };
    defaults.into_iter().zip(rows()).map(row).collect()
}
