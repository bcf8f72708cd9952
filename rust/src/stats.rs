//! What the program's heap consists of, and what can be done about it.

use core::ffi::CStr;

use crate::ffi;

/// In bytes where nothing else is said. While no other thread uses the heap:
/// `mapped == live + waste + cached + free + purge_pending + metadata`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Taken from the system and not given back.
    pub mapped: u64,
    /// Blocks that the program has, as granted.
    pub live: u64,
    /// Ends of slabs, headers of blocks above 1 KiB.
    pub waste: u64,
    /// Waiting for the next request of a thread.
    pub cached: u64,
    /// Free, and of the pages those that occupy no memory.
    pub free: u64,
    /// Free pages that still occupy memory.
    pub purge_pending: u64,
    /// snug's own structures; mostly address space only.
    pub metadata: u64,
    /// What the program asked for when it got `live`: an estimate.
    pub requested: u64,
    /// The number of live blocks.
    pub blocks: u64,
    /// The most that was mapped, but for metadata.
    pub mapped_peak: u64,
    /// Of the whole process; `u64::MAX` if that is not known. The same for its peak.
    pub resident: u64,
    pub resident_peak: u64,
    /// Handed to threads, ever.
    pub taken_bytes: u64,
    /// Numbers of system calls.
    pub map_calls: u64,
    pub unmap_calls: u64,
    pub purge_calls: u64,
    /// Bytes in `purge_calls`.
    pub purge_bytes: u64,
    /// How often a thread's magazine ran empty, and full.
    pub refills: u64,
    pub flushes: u64,
}

/// The current statistics. Takes no lock and does not allocate.
///
/// ```
/// let stats = snug::stats();
/// assert!(stats.live <= stats.mapped);
/// ```
pub fn stats() -> Stats {
    let mut stats = Stats::default();
    // SAFETY: the structure is the header's, and its size is said.
    let status = unsafe { ffi::snug_stats_get(&mut stats, size_of::<Stats>()) };
    assert_eq!(status, 0, "the library has other statistics than this crate");
    stats
}

/// Gives free memory back to the system, all but about `keep` bytes. Says whether there was any.
pub fn trim(keep: usize) -> bool {
    // SAFETY: may be called at any time.
    unsafe { ffi::snug_malloc_trim(keep) != 0 }
}

/// Walks all heaps and checks them; says whether they are sound. What is wrong is printed on the standard error.
pub fn check() -> bool {
    // SAFETY: may be called at any time.
    unsafe { ffi::snug_check() == 0 }
}

/// The version of the C library.
///
/// ```
/// assert_eq!(snug::version(), env!("CARGO_PKG_VERSION"));
/// ```
pub fn version() -> &'static str {
    // SAFETY: it is a constant string.
    unsafe { CStr::from_ptr(ffi::snug_version()) }.to_str().unwrap_or_default()
}
