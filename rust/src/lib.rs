#![doc = include_str!("../README.md")]
#![no_std]
#![cfg_attr(feature = "allocator_api", feature(allocator_api))]

mod ffi;
mod global;
mod heap;
#[cfg(feature = "profile")]
pub mod profile;
mod stats;

#[cfg(feature = "allocator_api")]
mod allocator;

pub use global::Snug;
pub use heap::{Heap, HeapConfig, HeapStats};
pub use stats::{check, stats, trim, version, Stats};

/// A request that could not be met: there is no memory, or a heap's quota does not allow it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutOfMemory;

impl core::fmt::Display for OutOfMemory {
    fn fmt(&self, to: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        to.write_str("out of memory, or over the quota")
    }
}

impl core::error::Error for OutOfMemory {}
