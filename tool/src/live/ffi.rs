//! The C side: the library's own code for statistics, compiled into the tool (outside.c).

use std::ffi::{c_char, c_int, c_uint, c_void};

/// Reads `bytes` bytes at `address` of the other process into `value`.
pub type Reader = extern "C" fn(context: *mut c_void, address: usize, value: *mut c_void, bytes: usize) -> bool;

pub const DONE: c_int = 0;
pub const OTHER_LAYOUT: c_int = 3;

/// Where things are in the other process (borrow.c).
#[repr(C)]
#[derive(Default)]
pub struct Places {
    pub entry: u64,
    pub work: u64,
    pub call: u64,
    pub image: u64,
    pub image_bytes: u64,
    pub stack_top: u64,
    /// Where the offset of a thread's own data is, and the offset in them of its cache.
    pub own: u64,
    pub cache: u64,
}

/// States of a borrowed thread, and what came of its call.
pub const IDLE: u32 = 0;
pub const WORKING: u32 = 1;
pub const DONE_WORK: u32 = 2;
pub const MADE: c_uint = 2;

/// What a site has and had (profile.c); counts are in 65536ths.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Site {
    pub stack: u64,
    pub live_samples: u64,
    pub samples: u64,
    pub live_bytes: u64,
    pub live_count: u64,
    pub bytes: u64,
    pub count: u64,
    pub peak_bytes: u64,
    pub peak_count: u64,
    pub live_variance: f64,
    pub variance: f64,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Call {
    pub code: u64,
    pub parent: u32,
    pub object: u32,
}

/// A block that is live; address 0: none.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Block {
    pub address: u64,
    pub size: u64,
    pub stack: u32,
    pub unused: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Object {
    pub start: u64,
    pub end: u64,
    pub bias: u64,
    pub name: [c_char; 232],
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct ProfileTotals {
    pub live_bytes: u64,
    pub peak_bytes: u64,
    pub lost: u64,
    pub on: u64,
    pub mean: f64,
}

extern "C" {
    pub fn outside_profile_size() -> usize;
    pub fn outside_profile(
        read: Reader,
        context: *mut c_void,
        anchor: *const c_void,
        profile: *mut c_void,
        totals: *mut ProfileTotals,
    ) -> bool;
    pub fn outside_profile_site(profile: *const c_void, number: u32, site: *mut Site) -> bool;
    pub fn outside_profile_call(profile: *const c_void, number: u32, call: *mut Call) -> bool;
    pub fn outside_profile_object(profile: *const c_void, number: u32, object: *mut Object) -> bool;
    pub fn outside_profile_block(profile: *const c_void, number: u32, block: *mut Block) -> bool;
    pub fn outside_profile_request(anchor: *const c_void) -> usize;
    pub fn outside_profile_served(anchor: *const c_void, number: c_uint) -> usize;
    pub fn outside_profile_on(anchor: *const c_void) -> usize;
    pub fn outside_values_size() -> usize;
    pub fn outside_anchor_size() -> usize;
    pub fn outside_anchor(read: Reader, context: *mut c_void, address: usize, anchor: *mut c_void) -> c_int;
    pub fn outside_version(anchor: *const c_void) -> *const c_char;
    pub fn outside_places(anchor: *const c_void, places: *mut Places);
    pub fn outside_call_bytes(caches: usize) -> usize;
    pub fn outside_caches_most() -> usize;
    pub fn outside_call_fill(
        call: *mut c_void,
        anchor: *const c_void,
        what: c_uint,
        thread: c_int,
        mask: u64,
        registers: *const u64,
        caches: *const u64,
        count: usize,
    );
    pub fn outside_call_result(call: *const c_void, outcome: *mut c_uint, wrong: *mut u64, place: *mut u64);
    pub fn outside_caches(
        read: Reader,
        context: *mut c_void,
        anchor: *const c_void,
        caches: *mut u64,
        most: usize,
    ) -> usize;
    pub fn outside_trim_request(anchor: *const c_void) -> usize;
    pub fn outside_trim_count(anchor: *const c_void) -> usize;
    pub fn outside_read(
        read: Reader,
        context: *mut c_void,
        anchor: *const c_void,
        process: c_int,
        depth: c_uint,
        values: *mut c_void,
    ) -> bool;
    pub fn outside_because(values: *mut c_void, reason: *const c_char);
    pub fn outside_of(values: *mut c_void, process: c_int);
    pub fn outside_write(values: *const c_void, format: *const c_char, detail: bool, descriptor: c_int) -> bool;
    pub fn outside_value(values: *const c_void, name: *const c_char, value: *mut u64) -> bool;
    pub fn outside_class(values: *const c_void, class: usize, size: *mut u64, live: *mut u64, idle: *mut u64) -> bool;
    pub fn outside_medium(values: *const c_void, row: usize, to: *mut u64, blocks: *mut u64, bytes: *mut u64) -> bool;
    pub fn outside_large(values: *const c_void, row: usize, to: *mut u64, blocks: *mut u64, bytes: *mut u64) -> bool;
    pub fn outside_heap(
        values: *const c_void,
        index: usize,
        name: *mut *const c_char,
        provider: *mut *const c_char,
        numbers: *mut [u64; 6],
    ) -> bool;
    pub fn outside_slabs(values: *const c_void, class: usize, numbers: *mut [u64; 6]) -> bool;
    pub fn outside_option(
        index: c_uint,
        name: *mut *const c_char,
        text: *mut *const c_char,
        value: *mut c_char,
        capacity: usize,
    ) -> bool;
    pub fn outside_option_range(
        index: c_uint,
        kind: *mut c_char,
        least: *mut u64,
        most: *mut u64,
        choices: *mut *const c_char,
    ) -> bool;
    pub fn outside_options_reset();
    pub fn options_read(variables: *const *const c_char, descriptor: c_int);
}
