/*
 * What a thread may look at without a trap and without a lock: which object the code at an address
 * belongs to, and whether there is memory at an address.
 *
 * Safe in signal handlers and while another thread holds the loader's lock; allocates nothing.
 */
#ifndef SNUG_PLATFORM_LOOK_H
#define SNUG_PLATFORM_LOOK_H

#include "base/common.h"

/* An object that the loader has mapped. `name` is empty for the program itself; it and `unwinding`
 * stay as long as code of the object is on some stack. */
struct os_object {
    uintptr_t start, end;
    uintptr_t bias; /* what was added to the addresses in its file */
    const char *name;
    const uint8_t *unwinding; /* its .eh_frame_hdr; NULL: it has none */
};

/* False: no object has code there, or the C library cannot tell without a lock (glibc before 2.35,
 * musl). What the static library is linked into is known in any case. */
bool os_object_of(uintptr_t code, struct os_object *object);

/* Whether code is this library's, in what the static library is linked into. */
bool os_is_own_code(uintptr_t code);

/* The file of the program, as it was called. */
const char *os_program_name(void);

/* Whether the four bytes at an address, a multiple of 4, can be read. A system call. */
bool os_is_readable(uintptr_t address);

#endif
