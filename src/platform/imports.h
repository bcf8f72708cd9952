/*
 * Standing in for functions of libc in objects that are loaded already, and what these objects say
 * of functions that they call elsewhere.
 *
 * The idea: each object has a table of the addresses of what it calls elsewhere. Exchanging words
 * in these tables when the program starts costs nothing where nobody asks for it; a function of the
 * same name in this library would be in the way of every call in every program, and be called
 * before the library is relocated.
 *
 * Cost: a look at every relocation with a name of every object, about a millisecond for a large
 * program. Source: System V ABI, 5 (dynamic linking), and those for x86-64, aarch64 and riscv64 on
 * relocations.
 */
#ifndef SNUG_PLATFORM_IMPORTS_H
#define SNUG_PLATFORM_IMPORTS_H

#include "base/common.h"

struct import {
    const char *name;
    uintptr_t function;
};

/* Makes all loaded objects call `function` where they call `name`, for each entry up to one without
 * a name. This library itself is left as it is, and so are objects that the loader keeps apart
 * (dlmopen). Another call finds objects that were loaded since the last, and does nothing if there
 * are none. False: this library is a part of the program itself, whose calls cannot be told from
 * the library's own. */
bool os_imports_replace(const struct import *imports);

/* Whether an address is that of a function only in the eyes of a program without PIE that takes the
 * function's address: it is a stub of the program's, which calls what all others call. */
bool os_is_stub(uintptr_t address);

/* Whether an object calls operator new or delete elsewhere though it needs no C++ runtime as an
 * object: it has a part of the runtime in it, whose new[] calls another's new, and whose delete[]
 * calls another's delete. */
bool os_runtime_is_in_parts(void);

#endif
