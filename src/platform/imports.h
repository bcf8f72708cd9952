/*
 * Standing in for functions of libc in objects that are loaded already.
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

/* Lets all objects but this library and what the loader keeps apart call `function` for `name`, up
 * to an entry without a name. Objects that come later are found by a call after that; where none
 * has come since the last, it does nothing. False: this library is a part of the program itself,
 * whose calls cannot be told from its own. */
bool os_imports_replace(const struct import *imports);

#endif
