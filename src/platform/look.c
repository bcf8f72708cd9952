/*
 * Looking without traps. See look.h.
 *
 * For unwinding, the loader keeps a table of its objects that can be read without its lock
 * (_dl_find_object, glibc 2.35). A program without a loader is one object, which its own headers
 * describe. The kernel tells whether memory is there if it is asked for
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

static bool loader_finds(uintptr_t code, struct os_object *object)
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

static bool loader_finds(uintptr_t code, struct os_object *object)
{
    (void)code;
    (void)object;
    return false;
}

#endif

#if defined(SNUG_SHARED)

bool os_object_of(uintptr_t code, struct os_object *object)
{
    return loader_finds(code, object);
}

bool os_is_own_code(uintptr_t code)
{
    (void)code; /* it is all of an object, which is told by that */
    return false;
}

#else

#define OF_LINKER __attribute__((weak, visibility("hidden")))

/* The headers of what this code is linked into; from the linker, which has mapped them. */
extern const ElfW(Ehdr) __ehdr_start OF_LINKER;

/* The ends of the library's code in the static library; see static.ld. */
extern const char snug_code_start[] OF_LINKER, snug_code_end[] OF_LINKER;
extern const char snug_new_start[] OF_LINKER, snug_new_end[] OF_LINKER;

/* What this code is linked into, by its own headers. */
static bool own_headers_find(uintptr_t code, struct os_object *object)
{
    uintptr_t headers = (uintptr_t)&__ehdr_start;
    if (headers == 0)
        return false;
    const ElfW(Phdr) *parts = (const ElfW(Phdr) *)(headers + __ehdr_start.e_phoff);
    const ElfW(Phdr) *unwinding = NULL;
    uintptr_t first = 0, end = 0; /* as the file says them */
    for (unsigned i = 0; i < __ehdr_start.e_phnum; i++) {
        if (parts[i].p_type == PT_GNU_EH_FRAME)
            unwinding = &parts[i];
        if (parts[i].p_type != PT_LOAD)
            continue;
        if (parts[i].p_offset == 0)
            first = parts[i].p_vaddr;
        end = size_max(end, parts[i].p_vaddr + parts[i].p_memsz);
    }
    uintptr_t bias = headers - first;
    *object = (struct os_object){.start = headers, .end = bias + end, .bias = bias, .name = ""};
    if (unwinding != NULL)
        object->unwinding = (const uint8_t *)(bias + unwinding->p_vaddr);
    return code - object->start < object->end - object->start;
}

/* In a program without a loader libc's function is not there, or knows no more than where code
 * is. */
bool os_object_of(uintptr_t code, struct os_object *object)
{
    bool found = loader_finds(code, object);
    uintptr_t table = found ? (uintptr_t)object->unwinding : 0;
    if (found && table - object->start < object->end - object->start)
        return true;
    struct os_object own;
    if (!own_headers_find(code, &own))
        return found;
    *object = own;
    return true;
}

bool os_is_own_code(uintptr_t code)
{
    uintptr_t whole = (uintptr_t)snug_code_start, news = (uintptr_t)snug_new_start;
    return code - whole < (uintptr_t)snug_code_end - whole ||
           code - news < (uintptr_t)snug_new_end - news;
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
