/*
 * Looking without traps. See look.h.
 *
 * For unwinding, the loader keeps a table of its objects that can be read without its lock
 * (_dl_find_object, glibc 2.35). The kernel tells whether memory is there if it is asked for
 * something that has to read the memory first: to wait on a word, for no time at all. Locks use the
 * same call, so every sandbox allows it.
 */
#include "platform/look.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <sys/auxv.h>
#include <time.h>

#include "platform/syscall.h"

#if defined(__GLIBC__)
#define HAS_TABLE __GLIBC_PREREQ(2, 35)
#else
#define HAS_TABLE 0
#endif

#if HAS_TABLE

/* Weak: the library starts where there is none, too. */
#pragma weak _dl_find_object

bool os_object_of(uintptr_t code, struct os_object *object)
{
    struct dl_find_object found;
    if (_dl_find_object == NULL || _dl_find_object((void *)code, &found) != 0)
        return false;
    object->start = (uintptr_t)found.dlfo_map_start;
    object->end = (uintptr_t)found.dlfo_map_end;
    object->bias = found.dlfo_link_map == NULL ? 0 : found.dlfo_link_map->l_addr;
    object->name = found.dlfo_link_map == NULL ? "" : found.dlfo_link_map->l_name;
    object->unwinding = found.dlfo_eh_frame;
    return true;
}

#else

bool os_object_of(uintptr_t code, struct os_object *object)
{
    (void)code;
    (void)object;
    return false;
}

#endif

const char *os_program_name(void)
{
    const char *name = (const char *)getauxval(AT_EXECFN);
    return name == NULL ? "program" : name;
}

bool os_is_readable(uintptr_t address)
{
    const struct timespec none = {0, 0};
    long result = syscall6(SYS_futex, (long)address, FUTEX_WAIT_PRIVATE, ~0L, (long)&none, 0, 0);
    return result != -EFAULT;
}
