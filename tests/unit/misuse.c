/*
 * Tests of meta/misuse.h: the line for each kind of misuse and each call, and what follows it.
 */
#include "support.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "meta/misuse.h"
#include "options/options.h"
#include "platform/thread.h"

struct row {
    const char *call;
    struct misuse misuse;
    const char *line;
};

static const struct row rows[] = {
    {"free",
     {.kind = MISUSE_DOUBLE_FREE, .address = 0x7f0000001040, .bytes = 64},
     "snug: double free: 0x7f0000001040, a 64-byte object\n"},
    {"free",
     {.kind = MISUSE_DOUBLE_FREE, .address = 0x7f0000001040},
     "snug: invalid free: 0x7f0000001040 is in free memory\n"},
    {"free",
     {.kind = MISUSE_INSIDE, .address = 0x7f0000001048, .bytes = 64, .start = 0x7f0000001040},
     "snug: invalid free: 0x7f0000001048 is inside a 64-byte object that starts at "
     "0x7f0000001040\n"},
    {"free",
     {.kind = MISUSE_UNKNOWN, .address = 0x10},
     "snug: invalid free: 0x10 was not allocated by snug\n"},
    {"realloc",
     {.kind = MISUSE_DOUBLE_FREE, .address = 0x7f0000001040, .bytes = 1048576},
     "snug: invalid realloc: 0x7f0000001040 is a 1048576-byte object that is free\n"},
    {"realloc",
     {.kind = MISUSE_DOUBLE_FREE, .address = 0x7f0000001040},
     "snug: invalid realloc: 0x7f0000001040 is in free memory\n"},
    {"realloc",
     {.kind = MISUSE_INSIDE, .address = 0x7f0000001048, .bytes = 64, .start = 0x7f0000001040},
     "snug: invalid realloc: 0x7f0000001048 is inside a 64-byte object that starts at "
     "0x7f0000001040\n"},
    {"malloc",
     {.kind = MISUSE_DAMAGED, .address = 0x7f0000001040},
     "snug: invalid malloc: the header of the object at 0x7f0000001040 was overwritten\n"},
    {"malloc_usable_size",
     {.kind = MISUSE_UNKNOWN, .address = UINTPTR_MAX},
     "snug: invalid malloc_usable_size: 0xffffffffffffffff was not allocated by snug\n"},
};

static const struct row rows_of_writes[] = {
    {"malloc",
     {.kind = MISUSE_WRITTEN,
      .has_found = true,
      .address = 0x7f0000001040,
      .bytes = 64,
      .found = 0x4141414141414141},
     "snug: use after free: 0x7f0000001040, a 64-byte object, was written to, found "
     "0x4141414141414141\n"},
    {"malloc",
     {.kind = MISUSE_STALE, .has_found = true, .address = 0x7f0000001040, .bytes = 64, .found = 0},
     "snug: use after free: 0x7f0000001040, a 64-byte object, was written to or freed twice, found "
     "0x0\n"},
    {"free",
     {.kind = MISUSE_WRITTEN, .address = 0x7f0000001040},
     "snug: use after free: 0x7f0000001040, was written to\n"},
    {"exit",
     {.kind = MISUSE_BEYOND,
      .has_found = true,
      .address = 0x7f0000001040,
      .bytes = 64,
      .found = 65},
     "snug: overflow: 0x7f0000001040, a 64-byte object, never handed out, was written to, found "
     "0x41\n"},
    {"free",
     {.kind = MISUSE_OVERFLOW, .address = 0x7f0000001040, .bytes = 64},
     "snug: overflow: 0x7f0000001040, a 64-byte object, was written past its end\n"},
    {"free",
     {.kind = MISUSE_UNDERFLOW, .address = 0x7f0000001040, .bytes = 64},
     "snug: underflow: 0x7f0000001040, a 64-byte object, was written before its beginning\n"},
    {"free_sized",
     {.kind = MISUSE_SIZE, .address = 0x7f0000001040, .bytes = 64, .said = 128},
     "snug: invalid free_sized: 0x7f0000001040 is a 64-byte object, not one of 128\n"},
    {"operator delete",
     {.kind = MISUSE_ALIGNMENT, .address = 0x7f0000001040, .bytes = 64, .said = 4096},
     "snug: invalid operator delete: 0x7f0000001040 is a 64-byte object at no multiple of 4096\n"},
    {"memcpy",
     {.kind = MISUSE_COPY, .address = 0x7f0000001080, .bytes = 64, .start = 0x7f0000001040},
     "snug: invalid memcpy: 0x7f0000001080 is past the end of a 64-byte object that starts at "
     "0x7f0000001040\n"},
    {"operator delete",
     {.kind = MISUSE_MAKER, .address = 0x7f0000001040, .bytes = 64, .maker = MADE_BY_NEW_ARRAY},
     "snug: invalid operator delete: 0x7f0000001040 is a 64-byte object that was made by operator "
     "new[]\n"},
};

enum { ROWS_OF_WRITES = sizeof(rows_of_writes) / sizeof(rows_of_writes[0]) };

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

TEST(what_was_written_has_its_line)
{
    options.misuse = MISUSE_WARN;
    for (size_t i = 0; i < ROWS_OF_WRITES; i++) {
        stderr_capture();
        misuse_report(rows_of_writes[i].call, &rows_of_writes[i].misuse);
        assert_string_equal(stderr_restore(), rows_of_writes[i].line);
    }
}

/* ---- In JSON ---- */

static void assert_json(const struct row *row, const char *middle)
{
    char line[256], expected[1024];
    snprintf(line, sizeof(line), "%s", row->line);
    line[strlen(line) - 1] = '\0';
    snprintf(expected, sizeof(expected), "{%s,\"process\":%d,\"thread\":%ld,\"line\":\"%s\"}\n",
             middle, getpid(), os_thread_id(), line);
    stderr_capture();
    misuse_report(row->call, &row->misuse);
    assert_string_equal(stderr_restore(), expected);
}

TEST(the_same_is_said_in_json)
{
    options.misuse = MISUSE_WARN;
    options.misuse_format = MISUSE_FORMAT_JSON;
    assert_json(&rows[0], "\"misuse\":\"double-free\",\"call\":\"free\",\"address\":"
                          "\"0x7f0000001040\",\"bytes\":64");
    assert_json(&rows[2], "\"misuse\":\"pointer-inside\",\"call\":\"free\",\"address\":"
                          "\"0x7f0000001048\",\"bytes\":64,\"start\":\"0x7f0000001040\"");
    assert_json(&rows[3], "\"misuse\":\"unknown-pointer\",\"call\":\"free\",\"address\":"
                          "\"0x10\"");
    assert_json(&rows_of_writes[0],
                "\"misuse\":\"write-after-free\",\"call\":\"malloc\",\"address\":"
                "\"0x7f0000001040\",\"bytes\":64,\"found\":\"0x4141414141414141\"");
    assert_json(&rows_of_writes[6], "\"misuse\":\"wrong-size\",\"call\":\"free_sized\",\"address\":"
                                    "\"0x7f0000001040\",\"bytes\":64,\"said\":128");
    assert_json(&rows_of_writes[7],
                "\"misuse\":\"wrong-alignment\",\"call\":\"operator delete\",\"address\":"
                "\"0x7f0000001040\",\"bytes\":64,\"said\":4096");
    assert_json(&rows_of_writes[9],
                "\"misuse\":\"wrong-maker\",\"call\":\"operator delete\",\"address\":"
                "\"0x7f0000001040\",\"bytes\":64,\"maker\":\"operator new[]\"");
    options.misuse_format = MISUSE_FORMAT_TEXT;
}

/* ---- Who is told, and who knows more ---- */

static struct misuse_report last;
static char last_line[256];
static unsigned told;

static void listen(const struct misuse_report *report)
{
    last = *report;
    snprintf(last_line, sizeof(last_line), "%s\n", report->line);
    told++;
}

static void two_stacks(uintptr_t address, struct misuse_stack *allocated,
                       struct misuse_stack *freed)
{
    *allocated = (struct misuse_stack){2, {address + 1, 0x22}};
    *freed = (struct misuse_stack){1, {0x33}};
}

TEST(a_listener_is_told_after_the_line)
{
    options.misuse = MISUSE_WARN;
    misuse_set_listener(listen);
    for (unsigned i = 0; i < ROWS; i++) {
        stderr_capture();
        misuse_report(rows[i].call, &rows[i].misuse);
        stderr_restore();
        assert_int_equal(told, i + 1);
        assert_string_equal(last_line, rows[i].line);
        assert_string_equal(last.call, rows[i].call);
        assert_memory_equal(last.misuse, &rows[i].misuse, sizeof(struct misuse));
        assert_int_equal(last.allocated.count, 0);
    }
    misuse_set_listener(NULL);
    stderr_capture();
    misuse_report(rows[0].call, &rows[0].misuse);
    stderr_restore();
    assert_int_equal(told, ROWS);
}

TEST(stacks_follow_if_they_are_known)
{
    char expected[512];
    options.misuse = MISUSE_WARN;
    misuse_set_source(two_stacks);
    misuse_set_listener(listen);
    stderr_capture();
    misuse_report(rows[2].call, &rows[2].misuse); /* a pointer inside: asked for its object */
    snprintf(expected, sizeof(expected),
             "%ssnug: allocated at 0x7f0000001041 0x22\nsnug: freed at 0x33\n", rows[2].line);
    assert_string_equal(stderr_restore(), expected);
    assert_int_equal(last.allocated.count, 2);
    assert_int_equal(last.freed.frames[0], 0x33);
    options.misuse_format = MISUSE_FORMAT_JSON;
    assert_json(&rows[0], "\"misuse\":\"double-free\",\"call\":\"free\",\"address\":"
                          "\"0x7f0000001040\",\"bytes\":64,\"allocated\":[\"0x7f0000001041\","
                          "\"0x22\"],\"freed\":[\"0x33\"]");
    options.misuse_format = MISUSE_FORMAT_TEXT;
    misuse_set_source(NULL);
    misuse_set_listener(NULL);
}

/* ---- What follows ---- */

static volatile sig_atomic_t trapped;

static void on_trap(int signal)
{
    trapped = signal;
}

TEST(a_trap_is_raised_and_may_return)
{
    signal(SIGTRAP, on_trap);
    options.misuse = MISUSE_TRAP;
    stderr_capture();
    misuse_report(rows[0].call, &rows[0].misuse);
    assert_string_equal(stderr_restore(), rows[0].line);
    assert_int_equal(trapped, SIGTRAP);
    signal(SIGTRAP, SIG_DFL);
    options.misuse = MISUSE_ABORT;
}

TEST(no_misuse_is_not_reported)
{
    struct misuse none = {.kind = MISUSE_NONE, .address = 0x7f0000001040, .bytes = 64};
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
        ROW(each_kind_has_its_line),          ROW(what_was_written_has_its_line),
        ROW(the_same_is_said_in_json),        ROW(a_listener_is_told_after_the_line),
        ROW(stacks_follow_if_they_are_known), ROW(a_trap_is_raised_and_may_return),
        ROW(no_misuse_is_not_reported),       ROW(by_default_the_process_aborts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
