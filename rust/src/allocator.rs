//! `Allocator`, which needs a nightly compiler: collections in snug's heap, and in heaps of the program's own.

use core::alloc::{AllocError, Allocator, GlobalAlloc, Layout};
use core::ptr::NonNull;

use crate::{ffi, Heap, Snug};

fn slice(block: *mut u8, size: usize) -> Result<NonNull<[u8]>, AllocError> {
    NonNull::new(block).map(|block| NonNull::slice_from_raw_parts(block, size)).ok_or(AllocError)
}

// SAFETY: as for GlobalAlloc; a request for nothing gets a dangling pointer, and never comes back to the library.
unsafe impl Allocator for Snug {
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        if layout.size() == 0 {
            return Ok(NonNull::slice_from_raw_parts(layout.dangling_ptr(), 0));
        }
        // SAFETY: the size is not 0.
        slice(unsafe { self.alloc(layout) }, layout.size())
    }

    unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
        if layout.size() != 0 {
            self.dealloc(block.as_ptr(), layout);
        }
    }
}

// SAFETY: blocks live until they are freed, or the heap goes, which is borrowed by whoever has the allocator; any thread
// may free them.
unsafe impl Allocator for &Heap<'_> {
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        let block = self.alloc_layout(layout).map_err(|_| AllocError)?;
        Ok(NonNull::slice_from_raw_parts(block, layout.size()))
    }

    unsafe fn deallocate(&self, block: NonNull<u8>, _: Layout) {
        ffi::snug_free(block.as_ptr().cast());
    }
}
