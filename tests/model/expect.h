/*
 * What the model and the stress tests share: expectations that end the program with a line on
 * stderr, a watchdog, how much is to be done, random numbers and sizes, byte patterns, and the
 * process's resident memory.
 *
 * These programs contain the allocator under its snug_ names only; malloc is libc's, so whatever
 * they need for themselves does not disturb what they test.
 */
#ifndef SNUG_TESTS_EXPECT_H
#define SNUG_TESTS_EXPECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Prints "FILE:LINE: what failed" and what fail_context adds, and ends the process with 1, without
 * running exit handlers. */
_Noreturn void fail(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* EXPECT(condition, "format", ...): the text says what was found. */
#define EXPECT(condition, ...) \
    do { \
        if (!(condition)) \
            fail(__FILE__, __LINE__, __VA_ARGS__); \
    } while (0)

/* If set: writes where the test stands and how to get there again. */
extern void (*fail_context)(char *text, size_t capacity);

/* Starts the watchdog: the program ends with a line and 1 after `seconds`, many times as many in a
 * full run. TEST_WATCHDOG=SECONDS in the environment overrules it. */
void watchdog_start(unsigned seconds);

/* How long a watchdog of `seconds` is to wait. */
unsigned watchdog_seconds(unsigned seconds);

/* Whether SNUG_TEST_FULL=1 asks for the full numbers. */
bool test_full(void);

/* How often something is to be done that a release build does `count` times by default: more often
 * in a full run, less often where checks and sanitizers make it slow. At least once. */
size_t scaled(size_t count);

/* Whether this is a build with a sanitizer. Its memory distorts the size of the process, and a
 * child of a threaded process can not start threads: ThreadSanitizer forbids it, AddressSanitizer
 * may find its own locks held. */
bool sanitized(void);

/* Resident memory of this process in bytes, counted by the kernel from its page tables. */
size_t resident_bytes(void);

/* Seconds on a clock that only goes forward. */
double seconds_now(void);

/* ---- Random numbers and sizes ---- */

struct random {
    uint64_t state;
};

/* The next number. */
uint64_t random_next(struct random *random);

/* A number below `limit`, which must not be 0. */
size_t random_below(struct random *random, size_t limit);

/* True once in `times` on average. */
static inline bool random_one_in(struct random *random, size_t times)
{
    return random_below(random, times) == 0;
}

/* A number in least .. most, of which small ones are as likely per doubling as large ones. */
size_t random_log(struct random *random, size_t least, size_t most);

/* A size of a block as a test wants them: mostly small, with the borders between the kinds of
 * blocks far more often than chance would have them, up to a few MiB. */
size_t random_size(struct random *random);

/* A power of two, 16 .. most. */
size_t random_alignment(struct random *random, size_t most);

/* ---- Patterns ---- */

/* Fills a block with bytes that depend on `id` and on their place. */
void pattern_fill(void *block, size_t size, uint64_t id);

/* The offset of the first byte that does not hold the pattern, or `size` if all do. */
size_t pattern_check(const void *block, size_t size, uint64_t id);

/* What a heap has left when all is free, whether its free pages can go, and the objects of one of
 * its classes; heap_face.h has the same for other heaps than malloc's. */
#if !defined(SEGMENTS_LEFT)
#define SEGMENTS_LEFT 0
#define PURGES (options.provider == PROVIDER_OS)
#define heap_class_totals(class) heap_class_totals_of(NULL, &heap_default, class)
#endif

#endif
