//! rpmalloc, brought in by its crate, with its own functions malloc, free and so on.

extern crate rpmalloc_sys;
