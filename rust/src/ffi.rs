//! What is used of c/include/snug/snug.h; that header says what each does.

use core::ffi::{c_char, c_int, c_uint, c_void};

#[repr(C)]
pub struct RawHeap {
    private: [u8; 0],
}

#[repr(C)]
pub struct HeapConfig {
    pub size: usize,
    pub name: *const c_char,
    pub provider: *mut c_void,
    pub buffer: *mut c_void,
    pub buffer_bytes: usize,
    pub quota: usize,
    pub soft_limit: usize,
    pub on_limit: Option<unsafe extern "C" fn(*mut c_void, *mut RawHeap, usize)>,
    pub context: *mut c_void,
    pub flags: c_uint,
}

extern "C" {
    pub fn snug_malloc(size: usize) -> *mut c_void;
    pub fn snug_calloc(count: usize, size: usize) -> *mut c_void;
    pub fn snug_realloc(block: *mut c_void, size: usize) -> *mut c_void;
    pub fn snug_aligned_alloc(alignment: usize, size: usize) -> *mut c_void;
    pub fn snug_free(block: *mut c_void);
    pub fn snug_malloc_trim(keep: usize) -> c_int;
    pub fn snug_stats_get(stats: *mut crate::Stats, size: usize) -> c_int;
    pub fn snug_check() -> c_int;
    pub fn snug_version() -> *const c_char;
    pub fn snug_heap_create(config: *const HeapConfig) -> *mut RawHeap;
    pub fn snug_heap_clear(heap: *mut RawHeap);
    pub fn snug_heap_destroy(heap: *mut RawHeap);
    pub fn snug_heap_aligned_alloc(heap: *mut RawHeap, alignment: usize, size: usize) -> *mut c_void;
    pub fn snug_heap_trim(heap: *mut RawHeap) -> c_int;
    pub fn snug_heap_get_statistics(heap: *mut RawHeap, statistics: *mut crate::HeapStats) -> c_int;
    #[cfg(feature = "profile")]
    pub fn snug_profile_begin() -> c_int;
    #[cfg(feature = "profile")]
    pub fn snug_profile_end();
}
