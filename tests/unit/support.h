/*
 * What the unit tests share: cmocka, options that are put back after each test, what a function
 * writes to a descriptor, functions that end the process, and planted faults.
 */
#ifndef SNUG_TESTS_UNIT_SUPPORT_H
#define SNUG_TESTS_UNIT_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/common.h"
#include "meta/meta.h"
#include "platform/memory.h"
#include "random.h"

/* A test function, and its row in the list of them: each starts with the same options. */
#define TEST(name) static void name(void **state __attribute__((unused)))
#define ROW(name) {#name, name, options_reset, options_reset, NULL}
/* A test with functions of its own before and after. */
#define ROW_WITH(name, before, after) {#name, name, before, after, NULL}

/* A multiple of every page's size where no system has memory for a program. */
#define NOWHERE ((char *)-(uintptr_t)MIB)

enum { TEST_SKIPPED = 77, TEXT_MOST = 16384 };

/* The options as they are without any variable; for cmocka's setup and teardown. */
int options_reset(void **state);

/* Of the metadata that grows: bytes handed out, and bytes of all chunks and tables. */
static inline size_t meta_bytes_used(void)
{
    return __atomic_load_n(&meta_system.used, __ATOMIC_RELAXED);
}

static inline size_t meta_bytes_mapped(void)
{
    return __atomic_load_n(&meta_system.mapped, __ATOMIC_RELAXED);
}

/* ---- What is written ---- */

/* A file without a name, to be written by what is tested. */
int text_file(void);

/* What stands in it, as a string that is valid until the next call. */
const char *text_written(int file);

/* Sends standard error to a file from here to stderr_restore, which returns what was written. */
void stderr_capture(void);
const char *stderr_restore(void);

/* Fails unless `text` contains `part`. */
void assert_contains(const char *text, const char *part);

/* How many times `part` stands in `text`. */
size_t count_of(const char *text, const char *part);

/* ---- What ends the process ---- */

/* Runs `body` in a child process, with its standard error in `said` (TEXT_MOST bytes), and returns
 * how the child ended, as waitpid does. A body that returns ends with 0. */
int child_status(void (*body)(void *argument), void *argument, char *said);

/* Runs `body` in a child process and fails unless that aborts and says `part`. */
void assert_aborts(void (*body)(void *argument), void *argument, const char *part);

/* The same for a child that must end with 0. */
void assert_succeeds(void (*body)(void *argument), void *argument);

/* In a child: ends it with 1, and the text, unless the condition holds. */
#define CHILD_CHECK(condition) \
    do { \
        if (!(condition)) \
            child_failed(__FILE__, __LINE__, #condition); \
    } while (0)
_Noreturn void child_failed(const char *file, int line, const char *condition);

/* ---- What a test needs of the kernel ---- */

/* Skips the rest of a test unless the condition holds, for a reason: an emulator of another machine
 * answers system calls itself, and not all as the kernel does. Conditions ask the system; they do
 * not look at what machine it is. */
#define NEED(condition, reason) \
    do { \
        if (!(condition)) { \
            need_note(reason); \
            skip(); \
        } \
    } while (0)
void need_note(const char *reason);

/* For a test that counts in pages. */
#define NEED_SMALL_PAGES \
    NEED(os_page_size() == PAGE_BYTES, "it counts in pages of 4 KiB, and the system's are larger")

/* What main returns where tests have needs: 77 if some were skipped and none failed. */
int needs_end(int failed);

/* Whether the kernel refuses advice about memory that it does not know, or that is for none. */
bool kernel_refuses_advice(void);

/* Whether system calls of a process can be filtered. */
bool kernel_filters_calls(void);

/* ---- Planted faults ---- */

/* Damages one field, runs a checker (an expression that gives a string, or NULL for "all is
 * well"), mends the field, and fails unless the checker said what it should. */
#define ASSERT_FOUND(field, damage, checker, expected) \
    do { \
        assert_null(checker); \
        __typeof__(field) sound_ = (field); \
        (field) = (__typeof__(field))(damage); \
        const char *found_ = (checker); \
        (field) = sound_; \
        assert_said(found_, expected, #field " = " #damage); \
        assert_null(checker); \
    } while (0)
void assert_said(const char *found, const char *expected, const char *planted);

/* ---- Numbers ---- */

static inline size_t random_below(uint64_t *state, size_t limit)
{
    return (size_t)(random_next(state) >> 16) % limit;
}

static inline bool all_bytes_are(const char *start, size_t bytes, char value)
{
    for (size_t i = 0; i < bytes; i++)
        if (start[i] != value)
            return false;
    return true;
}

/* Fails with a formatted line unless the condition holds; for loops in which cmocka's assertions
 * would not say where they were, or take too long. */
#define ASSERT_THAT(condition, ...) \
    do { \
        if (!(condition)) \
            assert_that_failed(__FILE__, __LINE__, #condition, __VA_ARGS__); \
    } while (0)
__attribute__((format(printf, 4, 5))) void
assert_that_failed(const char *file, int line, const char *condition, const char *format, ...);

#endif
