/*
 * Tests of meta/misuse.h: the line for each kind of misuse and each call, and what follows it.
 */
#include "support.h"

#include "meta/misuse.h"
#include "options/options.h"

struct row {
    const char *call;
    struct misuse misuse;
    const char *line;
};

static const struct row rows[] = {
    {"free",
     {MISUSE_DOUBLE_FREE, 0x7f0000001040, 64, 0},
     "snug: double free: 0x7f0000001040, a 64-byte object\n"},
    {"free",
     {MISUSE_DOUBLE_FREE, 0x7f0000001040, 0, 0},
     "snug: invalid free: 0x7f0000001040 is in free memory\n"},
    {"free",
     {MISUSE_INSIDE, 0x7f0000001048, 64, 0x7f0000001040},
     "snug: invalid free: 0x7f0000001048 is inside a 64-byte object that starts at "
     "0x7f0000001040\n"},
    {"free", {MISUSE_UNKNOWN, 0x10, 0, 0}, "snug: invalid free: 0x10 was not allocated by snug\n"},
    {"realloc",
     {MISUSE_DOUBLE_FREE, 0x7f0000001040, 1048576, 0},
     "snug: invalid realloc: 0x7f0000001040 is a 1048576-byte object that is free\n"},
    {"realloc",
     {MISUSE_DOUBLE_FREE, 0x7f0000001040, 0, 0},
     "snug: invalid realloc: 0x7f0000001040 is in free memory\n"},
    {"realloc",
     {MISUSE_INSIDE, 0x7f0000001048, 64, 0x7f0000001040},
     "snug: invalid realloc: 0x7f0000001048 is inside a 64-byte object that starts at "
     "0x7f0000001040\n"},
    {"malloc",
     {MISUSE_DAMAGED, 0x7f0000001040, 0, 0},
     "snug: invalid malloc: the header of the object at 0x7f0000001040 was overwritten\n"},
    {"malloc_usable_size",
     {MISUSE_UNKNOWN, UINTPTR_MAX, 0, 0},
     "snug: invalid malloc_usable_size: 0xffffffffffffffff was not allocated by snug\n"},
};

enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

TEST(each_kind_has_its_line)
{
    options.misuse = MISUSE_WARN;
    for (size_t i = 0; i < ROWS; i++) {
        stderr_capture();
        misuse_report(rows[i].call, &rows[i].misuse);
        assert_string_equal(stderr_restore(), rows[i].line);
    }
}

TEST(no_misuse_is_not_reported)
{
    struct misuse none = {MISUSE_NONE, 0x7f0000001040, 64, 0};
    stderr_capture();
    misuse_report("free", &none); /* and does not abort */
    assert_string_equal(stderr_restore(), "");
}

static void report_row(void *argument)
{
    const struct row *row = argument;
    misuse_report(row->call, &row->misuse);
}

TEST(by_default_the_process_aborts)
{
    for (size_t i = 0; i < ROWS; i++)
        assert_aborts(report_row, (void *)&rows[i], rows[i].line);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW(each_kind_has_its_line),
        ROW(no_misuse_is_not_reported),
        ROW(by_default_the_process_aborts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
