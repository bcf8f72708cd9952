//! snmalloc, brought in by its crate. Its functions are called sn_malloc and so on; the linker gives them the names that
//! programs call.

extern crate snmalloc_sys;
