//! Heaps of the program's own: each a malloc by itself that goes all at once.

use core::alloc::Layout;
use core::ffi::CStr;
use core::marker::PhantomData;
use core::mem::{size_of, MaybeUninit};
use core::ptr::{self, NonNull};

use crate::ffi;
use crate::OutOfMemory;

/// A heap, used as an arena: what is allocated lives as long as the heap, and goes with it, without drop.
///
/// Any thread may allocate from it. `'m` tells heaps in different memory apart; that of the system is `'static`.
///
/// ```
/// let mut heap = snug::Heap::new()?;
/// let word: &mut str = heap.alloc_str("word")?;
/// let number = heap.alloc(7)?;
/// *number += word.len();
/// assert_eq!(*number, 11);
/// heap.clear(); // all of it is gone
/// assert_eq!(heap.stats().used, 0);
/// # Ok::<(), snug::OutOfMemory>(())
/// ```
///
/// Nothing outlives it:
///
/// ```compile_fail
/// let mut heap = snug::Heap::new().unwrap();
/// let number = heap.alloc(7).unwrap();
/// heap.clear();
/// *number = 8;
/// ```
#[derive(Debug)]
pub struct Heap<'m> {
    pub(crate) raw: NonNull<ffi::RawHeap>,
    memory: PhantomData<fn(&'m ()) -> &'m ()>,
}

// SAFETY: any thread may allocate from any heap; clearing and destroying need that no other thread uses the heap, and take
// it mutably or by value.
unsafe impl Send for Heap<'_> {}
// SAFETY: as above.
unsafe impl Sync for Heap<'_> {}

/// What a heap is made with. The default is the system's memory, without limits.
///
/// ```
/// let config = snug::HeapConfig { name: Some(c"request"), quota: 1 << 20 };
/// let heap = snug::Heap::with(config)?;
/// assert!(heap.alloc([0u8; 1000]).is_ok());
/// assert!(heap.alloc_slice_fill(2 << 20, 0u8).is_err(), "over the quota");
/// # Ok::<(), snug::OutOfMemory>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct HeapConfig<'a> {
    /// For statistics; the first 31 bytes count.
    pub name: Option<&'a CStr>,
    /// Bytes that it may take from the system, in use or free; 0: any number.
    pub quota: usize,
}

/// In bytes. `taken == used + free`, but for what other threads do meanwhile.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeapStats {
    size: usize,
    pub taken: usize,
    pub peak: usize,
    pub quota: usize,
    pub used: usize,
    pub free: usize,
    pub fixed: usize,
}

impl Heap<'static> {
    /// With the system's memory, without limits.
    pub fn new() -> Result<Self, OutOfMemory> {
        Self::with(HeapConfig::default())
    }

    pub fn with(config: HeapConfig<'_>) -> Result<Self, OutOfMemory> {
        Self::create(config, ptr::null_mut(), 0)
    }
}

impl Heap<'_> {
    /// Calls `work` with a heap in this memory, 64 KiB or more, and nothing else: nothing is taken from the system. The heap
    /// ends with the call, however that ends: while the library knows of it, nobody else may use the memory.
    ///
    /// ```
    /// # use std::mem::MaybeUninit;
    /// let mut memory = vec![MaybeUninit::uninit(); 256 << 10];
    /// let sum = snug::Heap::within(&mut memory, |heap| {
    ///     assert!(heap.alloc_slice_fill(1 << 20, 0u8).is_err());
    ///     heap.alloc_slice_fill(100, 7).unwrap().iter().sum::<i32>()
    /// })?;
    /// assert_eq!(sum, 700);
    /// # Ok::<(), snug::OutOfMemory>(())
    /// ```
    ///
    /// It cannot be taken out, to be forgotten:
    ///
    /// ```compile_fail
    /// # use std::mem::MaybeUninit;
    /// let mut memory = vec![MaybeUninit::uninit(); 256 << 10];
    /// snug::Heap::within(&mut memory, |heap| {
    ///     let mut other = snug::Heap::new().unwrap();
    ///     std::mem::swap(heap, &mut other);
    /// });
    /// ```
    pub fn within<R>(
        memory: &mut [MaybeUninit<u8>],
        work: impl for<'x> FnOnce(&mut Heap<'x>) -> R,
    ) -> Result<R, OutOfMemory> {
        let mut heap = Heap::create(HeapConfig::default(), memory.as_mut_ptr(), memory.len())?;
        Ok(work(&mut heap))
    }

    fn create(config: HeapConfig<'_>, buffer: *mut MaybeUninit<u8>, bytes: usize) -> Result<Self, OutOfMemory> {
        let config = ffi::HeapConfig {
            size: size_of::<ffi::HeapConfig>(),
            name: config.name.map_or(ptr::null(), CStr::as_ptr),
            provider: ptr::null_mut(),
            buffer: buffer.cast(),
            buffer_bytes: bytes,
            quota: config.quota,
            soft_limit: 0,
            on_limit: None,
            context: ptr::null_mut(),
            flags: 0,
        };
        // SAFETY: the configuration is the header's, the name is copied, and the caller sees to the buffer.
        let raw = unsafe { ffi::snug_heap_create(&config) };
        NonNull::new(raw).map(|raw| Heap { raw, memory: PhantomData }).ok_or(OutOfMemory)
    }

    /// Memory for a layout, not initialised. It is the heap's until it is cleared or dropped.
    pub fn alloc_layout(&self, layout: Layout) -> Result<NonNull<u8>, OutOfMemory> {
        // SAFETY: the heap lives, and a layout's alignment is a power of two. A size of 0 gives a pointer of its own.
        let block = unsafe { ffi::snug_heap_aligned_alloc(self.raw.as_ptr(), layout.align(), layout.size()) };
        NonNull::new(block.cast()).ok_or(OutOfMemory)
    }

    /// A place for a value, which is never dropped.
    #[allow(clippy::mut_from_ref)] // each call gives another place
    pub fn alloc<T>(&self, value: T) -> Result<&mut T, OutOfMemory> {
        let place = self.alloc_layout(Layout::new::<T>())?.cast::<T>();
        // SAFETY: the memory is fresh, large and aligned enough, and nobody else has it while the heap is borrowed.
        unsafe {
            place.write(value);
            Ok(&mut *place.as_ptr())
        }
    }

    /// A copy of a slice.
    #[allow(clippy::mut_from_ref)]
    pub fn alloc_slice_copy<T: Copy>(&self, values: &[T]) -> Result<&mut [T], OutOfMemory> {
        let place = self.alloc_layout(Layout::for_value(values))?.cast::<T>();
        // SAFETY: as above, for as many values.
        unsafe {
            place.as_ptr().copy_from_nonoverlapping(values.as_ptr(), values.len());
            Ok(core::slice::from_raw_parts_mut(place.as_ptr(), values.len()))
        }
    }

    /// A slice of `count` times the same value.
    #[allow(clippy::mut_from_ref)]
    pub fn alloc_slice_fill<T: Copy>(&self, count: usize, value: T) -> Result<&mut [T], OutOfMemory> {
        let layout = Layout::array::<T>(count).map_err(|_| OutOfMemory)?;
        let place = self.alloc_layout(layout)?.cast::<MaybeUninit<T>>();
        // SAFETY: as above; what is not initialised yet is filled before it is called so.
        unsafe {
            let places = core::slice::from_raw_parts_mut(place.as_ptr(), count);
            places.fill(MaybeUninit::new(value));
            Ok(core::slice::from_raw_parts_mut(place.as_ptr().cast(), count))
        }
    }

    /// A copy of a string.
    #[allow(clippy::mut_from_ref)]
    pub fn alloc_str(&self, text: &str) -> Result<&mut str, OutOfMemory> {
        let bytes = self.alloc_slice_copy(text.as_bytes())?;
        // SAFETY: they are those of a string.
        Ok(unsafe { core::str::from_utf8_unchecked_mut(bytes) })
    }

    /// Frees all at once, in a time that does not depend on how many blocks there are. The heap stays.
    pub fn clear(&mut self) {
        // SAFETY: nothing that was allocated is borrowed any more.
        unsafe { ffi::snug_heap_clear(self.raw.as_ptr()) }
    }

    /// Gives the heap's free memory back. Says whether there was any.
    pub fn trim(&self) -> bool {
        // SAFETY: the heap lives.
        unsafe { ffi::snug_heap_trim(self.raw.as_ptr()) != 0 }
    }

    pub fn stats(&self) -> HeapStats {
        let mut stats =
            HeapStats { size: size_of::<HeapStats>(), taken: 0, peak: 0, quota: 0, used: 0, free: 0, fixed: 0 };
        // SAFETY: the structure is the header's, and says its size.
        let status = unsafe { ffi::snug_heap_get_statistics(self.raw.as_ptr(), &mut stats) };
        assert_eq!(status, 0, "the library has other statistics than this crate");
        stats
    }
}

impl Drop for Heap<'_> {
    fn drop(&mut self) {
        // SAFETY: nothing that was allocated is borrowed any more, and nobody uses the heap again.
        unsafe { ffi::snug_heap_destroy(self.raw.as_ptr()) }
    }
}
