//! snug as the program's allocator.

use core::alloc::{GlobalAlloc, Layout};

use crate::ffi;

/// What every block is aligned to, so that no more has to be said of such a layout than its size.
const ALIGNMENT: usize = 16;

/// The allocator, for `#[global_allocator]`.
///
/// ```
/// #[global_allocator]
/// static ALLOCATOR: snug::Snug = snug::Snug;
///
/// let before = snug::stats().blocks;
/// let numbers: Vec<u64> = (0..1000).collect();
/// assert_eq!(numbers.iter().sum::<u64>(), 499_500);
/// assert!(snug::stats().blocks > before);
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Snug;

// SAFETY: the functions keep the contracts of malloc, aligned_alloc, calloc, realloc and free, from any thread, and
// do not unwind. Blocks are aligned to 16 bytes, and to more where that is asked for; NULL is a failure.
unsafe impl GlobalAlloc for Snug {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.align() <= ALIGNMENT {
            ffi::snug_malloc(layout.size()).cast()
        } else {
            ffi::snug_aligned_alloc(layout.align(), layout.size()).cast()
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if layout.align() <= ALIGNMENT {
            return ffi::snug_calloc(1, layout.size()).cast();
        }
        let block = self.alloc(layout);
        if !block.is_null() {
            block.write_bytes(0, layout.size());
        }
        block
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if layout.align() <= ALIGNMENT {
            return ffi::snug_realloc(block.cast(), size).cast();
        }
        // realloc keeps 16 bytes of alignment, and no more.
        let moved = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
        if !moved.is_null() {
            moved.copy_from_nonoverlapping(block, layout.size().min(size));
            self.dealloc(block, layout);
        }
        moved
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, _: Layout) {
        ffi::snug_free(block.cast());
    }
}
