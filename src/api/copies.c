/*
 * Copies that are looked at before they are made. See copies.h.
 *
 * The functions here have the meaning of libc's of the same names, and go on to those or to others
 * that do the same where the length is known; those of a program that was built with
 * _FORTIFY_SOURCE know the end of what is written, and libc looks at that.
 */
#include "api/copies.h"

#include <string.h>
#include <strings.h>

#include "heap/place.h"
#include "options/options.h"
#include "platform/imports.h"
#include "platform/output.h"

/* ---- What is wrong ---- */

static COLD void report_end(const char *call, const struct block_extent *extent)
{
    struct misuse misuse = {.kind = MISUSE_COPY,
                            .address = extent->end,
                            .bytes = extent->end - extent->start,
                            .start = extent->start};
    misuse_report(call, &misuse);
}

static COLD void report_free(const char *call, uintptr_t address)
{
    struct misuse misuse = {.kind = MISUSE_DOUBLE_FREE, .address = address};
    misuse_report(call, &misuse);
}

/* Before so many bytes at an address are written or read. */
static void check(const char *call, const void *memory, size_t bytes)
{
    uintptr_t address = (uintptr_t)memory;
    struct block_extent extent;
    if (bytes == 0 || !block_extent(address, &extent))
        return;
    if (UNLIKELY(extent.is_free))
        report_free(call, address);
    else if (UNLIKELY(address >= extent.end || bytes > extent.end - address))
        report_end(call, &extent);
}

/* Before a text is read: its length, or `most` if that is less; PTRDIFF_MAX is over any length. */
static size_t check_text(const char *call, const char *text, size_t most)
{
    uintptr_t address = (uintptr_t)text;
    struct block_extent extent;
    if (most == 0 || !block_extent(address, &extent))
        return strnlen(text, most);
    if (UNLIKELY(extent.is_free)) {
        report_free(call, address);
        return strnlen(text, most);
    }
    size_t room = address < extent.end ? extent.end - address : 0;
    size_t length = strnlen(text, size_min(room, most));
    if (LIKELY(length < room || room >= most))
        return length;
    report_end(call, &extent);
    return strnlen(text, most);
}

/* ---- Memory ---- */

static void check_both(const char *call, const void *to, const void *from, size_t bytes)
{
    check(call, from, bytes);
    check(call, to, bytes);
}

static void *checked_memcpy(void *to, const void *from, size_t bytes)
{
    check_both("memcpy", to, from, bytes);
    return memcpy(to, from, bytes);
}

static void *checked_memmove(void *to, const void *from, size_t bytes)
{
    check_both("memmove", to, from, bytes);
    return memmove(to, from, bytes);
}

static void *checked_mempcpy(void *to, const void *from, size_t bytes)
{
    check_both("mempcpy", to, from, bytes);
    return (char *)memcpy(to, from, bytes) + bytes;
}

static void checked_bcopy(const void *from, void *to, size_t bytes)
{
    check_both("bcopy", to, from, bytes);
    memmove(to, from, bytes);
}

static void *checked_memset(void *to, int byte, size_t bytes)
{
    check("memset", to, bytes);
    return memset(to, byte, bytes);
}

static void checked_bzero(void *to, size_t bytes)
{
    check("bzero", to, bytes);
    memset(to, 0, bytes);
}

static void checked_explicit_bzero(void *to, size_t bytes)
{
    check("explicit_bzero", to, bytes);
    explicit_bzero(to, bytes);
}

/* ---- Texts ---- */

/* Before a text is copied: how many bytes it has, its end with it. */
static size_t check_copy(const char *call, const char *to, const char *from)
{
    size_t bytes = check_text(call, from, PTRDIFF_MAX) + 1;
    check(call, to, bytes);
    return bytes;
}

/* Before at most so many bytes of a text are copied, and zeros behind them up to as many. */
static void check_part(const char *call, const char *to, const char *from, size_t bytes)
{
    (void)check_text(call, from, bytes);
    check(call, to, bytes);
}

/* Before at most so many bytes of a text are appended: how many they are. */
static size_t check_append(const char *call, const char *to, const char *from, size_t most)
{
    size_t before = check_text(call, to, PTRDIFF_MAX);
    size_t bytes = check_text(call, from, most);
    check(call, to, before + bytes + 1);
    return bytes;
}

static char *checked_strcpy(char *to, const char *from)
{
    return memcpy(to, from, check_copy("strcpy", to, from));
}

static char *checked_stpcpy(char *to, const char *from)
{
    size_t bytes = check_copy("stpcpy", to, from);
    return (char *)memcpy(to, from, bytes) + bytes - 1;
}

static char *checked_strncpy(char *to, const char *from, size_t bytes)
{
    check_part("strncpy", to, from, bytes);
    return strncpy(to, from, bytes);
}

static char *checked_stpncpy(char *to, const char *from, size_t bytes)
{
    check_part("stpncpy", to, from, bytes);
    return stpncpy(to, from, bytes);
}

static char *checked_strcat(char *to, const char *from)
{
    return strncat(to, from, check_append("strcat", to, from, PTRDIFF_MAX));
}

static char *checked_strncat(char *to, const char *from, size_t bytes)
{
    return strncat(to, from, check_append("strncat", to, from, bytes));
}

/* ---- As _FORTIFY_SOURCE calls them ---- */

#if defined(__GLIBC__)

/* libc's, which ends the process. Its forms of memcpy and others are not gone on to: the loader
 * would choose each for the processor when any program starts, by code in pages of its own. */
_Noreturn void __chk_fail(void);

static void check_room(size_t bytes, size_t room)
{
    if (UNLIKELY(bytes > room))
        __chk_fail();
}

/* Defines the checked form of a function of libc's whose first arguments are as those of NAME, and
 * whose last is the room that the compiler knows of: what is checked, and what it goes on to. */
#define FORTIFIED(type, name, parameters, checks, call) \
    type __##name##_chk parameters; \
    static type checked_##name##_chk parameters \
    { \
        checks; \
        return call; \
    }

FORTIFIED(void *, memcpy, (void *to, const void *from, size_t bytes, size_t room),
          (check_both("memcpy", to, from, bytes), check_room(bytes, room)), memcpy(to, from, bytes))
FORTIFIED(void *, memmove, (void *to, const void *from, size_t bytes, size_t room),
          (check_both("memmove", to, from, bytes), check_room(bytes, room)),
          memmove(to, from, bytes))
FORTIFIED(void *, mempcpy, (void *to, const void *from, size_t bytes, size_t room),
          (check_both("mempcpy", to, from, bytes), check_room(bytes, room)),
          (char *)memcpy(to, from, bytes) + bytes)
FORTIFIED(void *, memset, (void *to, int byte, size_t bytes, size_t room),
          (check("memset", to, bytes), check_room(bytes, room)), memset(to, byte, bytes))
FORTIFIED(char *, strcpy, (char *to, const char *from, size_t room),
          size_t bytes = check_copy("strcpy", to, from);
          check_room(bytes, room), memcpy(to, from, bytes))
FORTIFIED(char *, stpcpy, (char *to, const char *from, size_t room), check_copy("stpcpy", to, from),
          __stpcpy_chk(to, from, room))
FORTIFIED(char *, strncpy, (char *to, const char *from, size_t bytes, size_t room),
          check_part("strncpy", to, from, bytes), __strncpy_chk(to, from, bytes, room))
FORTIFIED(char *, stpncpy, (char *to, const char *from, size_t bytes, size_t room),
          check_part("stpncpy", to, from, bytes), __stpncpy_chk(to, from, bytes, room))
FORTIFIED(char *, strncat, (char *to, const char *from, size_t bytes, size_t room),
          bytes = check_append("strncat", to, from, bytes), __strncat_chk(to, from, bytes, room))
FORTIFIED(char *, strcat, (char *to, const char *from, size_t room),
          size_t bytes = check_append("strcat", to, from, PTRDIFF_MAX),
          __strncat_chk(to, from, bytes, room))

#endif

/* ---- Standing in ---- */

#define CHECKED(name) {#name, (uintptr_t)checked_##name}
#define CHECKED_CHK(name) {"__" #name "_chk", (uintptr_t)checked_##name##_chk}

static NOINLINE void copies_exchange(void)
{
    /* On the stack: a table of addresses would be relocated in every process. */
    const struct import imports[] = {
        CHECKED(memcpy),
        CHECKED(memmove),
        CHECKED(mempcpy),
        CHECKED(bcopy),
        CHECKED(memset),
        CHECKED(bzero),
        CHECKED(strcpy),
        CHECKED(stpcpy),
        CHECKED(strncpy),
        CHECKED(stpncpy),
        CHECKED(strcat),
        CHECKED(strncat),
        CHECKED(explicit_bzero),
#if defined(__GLIBC__)
        CHECKED_CHK(memcpy),
        CHECKED_CHK(memmove),
        CHECKED_CHK(mempcpy),
        CHECKED_CHK(memset),
        CHECKED_CHK(strcpy),
        CHECKED_CHK(stpcpy),
        CHECKED_CHK(strncpy),
        CHECKED_CHK(stpncpy),
        CHECKED_CHK(strcat),
        CHECKED_CHK(strncat),
#endif
        {NULL, 0},
    };
    static const char none[] = "snug: SNUG_CHECK_COPIES=1 has no effect in a program that has "
                               "libsnug.a in it\n";
    if (!os_imports_replace(imports))
        os_write(2, none, sizeof(none) - 1);
}

AT_START void copies_begin(void)
{
    if (options.check_copies)
        copies_exchange();
}
