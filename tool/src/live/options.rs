//! The library's table of options, with the values that this environment gives.

use std::ffi::{c_char, CStr, CString, OsString};
use std::io::{Read, Seek};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::sync::{Mutex, PoisonError};

use anyhow::Result;

use super::ffi;
use crate::scratch;

pub struct OptionRow {
    pub name: String,
    pub value: String,
    pub default: String,
    pub text: String,
    pub range: Range,
}

/// What an option may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Range {
    OneOf(Vec<String>),
    AnyOf(Vec<String>),
    /// The least and the most.
    Number(u64, u64),
    Bytes(u64, u64),
    /// Up to so many milliseconds, or -1 for never.
    Delay(u64),
    /// Bytes, or this word.
    Limit(String),
    /// In thousandths.
    Factor(u64, u64),
    Path,
}

fn range(index: u32) -> Range {
    let (mut kind, mut least, mut most, mut choices) = (0, 0, 0, std::ptr::null());
    // SAFETY: all are written to, if there is such an option, and what `choices` points to is a constant string.
    let choices = unsafe {
        if !ffi::outside_option_range(index, &mut kind, &mut least, &mut most, &mut choices) {
            return Range::Path;
        }
        CStr::from_ptr(choices).to_string_lossy()
    };
    let words = || choices.split(',').map(str::to_string).collect();
    match kind as u8 {
        b'c' => Range::OneOf(words()),
        b's' => Range::AnyOf(words()),
        b'n' => Range::Number(least, most),
        b'b' => Range::Bytes(least, most),
        b'd' => Range::Delay(most),
        b'l' => Range::Limit(choices.into_owned()),
        b'f' => Range::Factor(least, most),
        _ => Range::Path,
    }
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
    read(variables, libc::STDERR_FILENO)
}

/// The values of all options with these settings; nothing is said about mistakes.
pub fn effect(variables: impl Iterator<Item = (OsString, OsString)>) -> Vec<String> {
    read(variables, -1).into_iter().map(|row| row.value).collect()
}

/// What the library says of settings that it does not know, or whose values it does not; empty if all is well.
pub fn complaints(variables: impl Iterator<Item = (OsString, OsString)>) -> Result<String> {
    let mut said = scratch::small()?;
    read(variables, said.as_raw_fd());
    let mut text = Vec::new();
    said.rewind()?;
    said.read_to_end(&mut text)?; // values are in it, which may be any bytes
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Whether the library has an option, and this value for it: whatever else the environment says to it.
pub fn is_known(name: &str, value: &str) -> bool {
    complaints([(name.into(), value.into())].into_iter()).is_ok_and(|said| said.is_empty())
}

/// The options are one variable of the library's code: it begins at the defaults each time.
fn read(variables: impl Iterator<Item = (OsString, OsString)>, descriptor: i32) -> Vec<OptionRow> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _reading = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: one thread at a time reads options, the one that holds the lock.
    unsafe { ffi::outside_options_reset() };
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
    // SAFETY: a list of strings that ends in NULL; the options point into it only until they are reset, below.
    unsafe { ffi::options_read(pointers.as_ptr(), descriptor) };
    let row = |(index, ((name, default, text), (_, value, _))): (usize, (_, (String, String, String)))| OptionRow {
        name: format!("SNUG_{name}"),
        value,
        default,
        text,
        range: range(index as u32),
    };
    let found = defaults.into_iter().zip(rows()).enumerate().map(row).collect();
    // SAFETY: as above; paths of this environment go with it.
    unsafe { ffi::outside_options_reset() };
    found
}
