/*
 * check.h - what every black-box test program shares: assertions that end the program with a line
 * on stderr, a watchdog, random numbers, byte patterns, and a look at the process from outside.
 *
 * A test program is a plain program that calls malloc. It runs on whatever allocator it finds:
 * snug preloaded, linked or linked statically, the system's own, or the planted faults of
 * planted.c. It ends with 0 (passed), 77 (skipped, with a reason) or 1 (a check failed).
 *
 * The program is compiled with -fno-builtin, and pointers pass through opaque(), so that the
 * compiler does not remove or fold the very calls that are tested.
 */
#ifndef SNUG_TESTS_CHECK_H
#define SNUG_TESTS_CHECK_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "random.h"

#if defined(__cplusplus)
extern "C" {
#endif

enum { TEST_SKIPPED = 77 };

/* Prints "FILE:LINE: ..." to stderr and ends the process with 1, without running exit handlers. */
__attribute__((noreturn, format(printf, 3, 4))) void check_failed(const char *file, int line,
                                                                  const char *format, ...);

#define CHECK(condition) \
    do { \
        if (!(condition)) \
            check_failed(__FILE__, __LINE__, "failed: %s", #condition); \
    } while (0)

/* As CHECK, with what the numbers were. */
#define CHECK_MSG(condition, ...) \
    do { \
        if (!(condition)) \
            check_failed(__FILE__, __LINE__, "failed: " #condition ": " __VA_ARGS__); \
    } while (0)

/* A call for more than there can be returns NULL, and sets errno. */
#define CHECK_REFUSED(call, size) \
    do { \
        errno = 0; \
        void *refused = opaque(call); \
        CHECK_MSG(refused == NULL, "%s, size %zu", #call, (size_t)(size)); \
        CHECK_MSG(errno == ENOMEM, "%s, size %zu, errno %d", #call, (size_t)(size), errno); \
    } while (0)

/* To be called first in main: a watchdog of `seconds` (10 times as long in a full run), and, if
 * SNUG_TEST_EXPECT is set, a check that snug really is this program's malloc. */
void test_begin(unsigned seconds);

/* How long a child may take: `seconds`, or TEST_WATCHDOG of the environment, for a planted fault
 * whose children are known not to end. */
unsigned child_seconds(unsigned seconds);

/* To be called last in main: the heap's own consistency check, if snug is the malloc. */
int test_end(void);

/* Ends the program as skipped. */
__attribute__((noreturn)) void test_skip(const char *reason);

/* Whether SNUG_TEST_FULL=1 asks for the full numbers. */
bool test_full(void);

/* `small` by default, `full` in a full run. */
size_t test_scale(size_t small, size_t full);

/* snug_check() == 0 if snug is the malloc; checks nothing on another one. */
void check_heap(void);

/* ---- The process, seen from outside ---------------------------------------------------------- */

/* Resident memory of this process in KiB, as the kernel counts it (not from a page count that may
 * lag behind). Does not allocate. */
size_t resident_kib(void);

/* Waits for a child and checks that it ended with 0; `what` names it in the message. */
void check_child(int pid, const char *what);

/* ---- Pointers, numbers, patterns ------------------------------------------------------------- */

/* The same pointer, of which the compiler knows nothing any more. */
static inline void *opaque(const void *pointer)
{
    void *result = (void *)(uintptr_t)pointer;
    __asm__ volatile("" : "+r"(result) : : "memory");
    return result;
}

/* The same size, which the compiler can no longer fold into a warning. */
static inline size_t opaque_size(size_t size)
{
    __asm__ volatile("" : "+r"(size));
    return size;
}

static inline bool is_aligned(const void *pointer, size_t alignment)
{
    return ((uintptr_t)pointer & (alignment - 1)) == 0;
}

/* A pattern that depends on the place and on `seed`. Blocks of up to 8 KiB are filled wholly;
 * larger ones at both ends and in one word of every 512 bytes, which is enough to see any page
 * lost, moved or handed out twice. */
void pattern_fill(void *block, size_t size, uint64_t seed);

/* Whether the first `kept` bytes of a block that was filled with `size` still hold the pattern. */
bool pattern_holds(const void *block, size_t size, size_t kept, uint64_t seed);

/* Whether all bytes are zero. */
bool all_zero(const void *block, size_t size);

#if defined(__cplusplus)
}
#endif

#endif
