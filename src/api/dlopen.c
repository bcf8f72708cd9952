/*
 * dlopen, without RTLD_DEEPBIND. An object that is opened with that flag looks for names in itself
 * and in what it is linked with before it looks in the program: it finds the malloc of libc, and
 * not a preloaded one. Such an object cannot free what the program allocated, nor the other way
 * round, and objects that are written for one malloc do just that (PHP's extensions).
 *
 * So the flag goes, unless SNUG_DEEPBIND=keep says otherwise, and libc's own function goes on, as
 * if the program had called it (platform/forward.h). A name space of its own, which dlmopen can
 * make, has a libc and a malloc of its own; it needs no help, and is left alone.
 *
 * Only in the shared library, and only where libc has such a flag. In the static library it would
 * stand in the way of fully static programs, in which there is no next function to be found.
 */
#include <dlfcn.h>

#include "api/copies.h"
#include "heap/heap.h"
#include "options/options.h"
#include "platform/forward.h"

enum { DLOPEN_MODE = 1, DLMOPEN_SPACE = 0, DLMOPEN_MODE = 2 };

forward_choose dlopen_choose, dlmopen_choose;

/* The function behind this library's; another library that is preloaded may have one as well. It is
 * looked for when the first call comes, since the search may allocate and takes the loader's lock,
 * as dlopen itself does. NULL, and dlerror has the reason: there is none. */
static void *next_function(void **known, const char *name)
{
    void *next = __atomic_load_n(known, __ATOMIC_RELAXED);
    if (next == NULL) {
        next = dlsym(RTLD_NEXT, name);
        __atomic_store_n(known, next, __ATOMIC_RELAXED);
    }
    return next;
}

static uintptr_t mode_to_use(uintptr_t mode)
{
    copies_begin(); /* in what was opened since */
    heap_init();    /* the first dlopen may come before the first malloc, which reads the options */
    return options.deepbind == DEEPBIND_KEEP ? mode : mode & ~(uintptr_t)RTLD_DEEPBIND;
}

FORWARD_CHOOSE void *dlopen_choose(uintptr_t arguments[FORWARD_ARGUMENTS])
{
    static void *next;
    arguments[DLOPEN_MODE] = mode_to_use(arguments[DLOPEN_MODE]);
    return next_function(&next, "dlopen");
}

FORWARD_CHOOSE void *dlmopen_choose(uintptr_t arguments[FORWARD_ARGUMENTS])
{
    static void *next;
    if ((Lmid_t)arguments[DLMOPEN_SPACE] == LM_ID_BASE)
        arguments[DLMOPEN_MODE] = mode_to_use(arguments[DLMOPEN_MODE]);
    return next_function(&next, "dlmopen");
}

FORWARD(dlopen, dlopen_choose);
FORWARD(dlmopen, dlmopen_choose);
