/*
 * no_list_lock.c - preloaded before an allocator, it keeps that from taking libc's list of streams:
 * the planted fault of fork_with_stdio.c. libc itself calls its own functions, not these.
 */
void _IO_list_lock(void) {}

void _IO_list_unlock(void) {}

void _IO_list_resetlock(void) {}
