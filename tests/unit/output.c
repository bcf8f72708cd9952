/*
 * Tests of platform/output.h and platform/check.h: lines put together in a buffer, and written.
 */
#include "support.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "platform/check.h"
#include "platform/output.h"

static void assert_text(const struct text *text, const char *expected)
{
    assert_int_equal(text->length, strlen(expected));
    assert_memory_equal(text->buffer, expected, text->length);
}

/* ---- Text ---- */

TEST(pieces_follow_each_other)
{
    char buffer[64];
    struct text text;
    text_init(&text, buffer, sizeof(buffer));
    assert_text(&text, "");
    text_add(&text, "one ");
    text_add_bytes(&text, "two three", 4);
    text_add_decimal(&text, 42);
    text_add(&text, "");
    text_add_hex(&text, 0xabc);
    assert_text(&text, "one two 420xabc");
}

TEST(numbers_are_written_as_printf_writes_them)
{
    uint64_t seed = 1;
    for (unsigned i = 0; i < 2000; i++) {
        uint64_t number = i < 20 ? i : random_next(&seed) >> (i % 64);
        char buffer[64], expected[64];
        struct text text;
        text_init(&text, buffer, sizeof(buffer));
        text_add_decimal(&text, number);
        text_add(&text, "|");
        text_add_hex(&text, number);
        text_add(&text, "|");
        text_add_column(&text, number, i % 25);
        snprintf(expected, sizeof(expected), "%" PRIu64 "|0x%" PRIx64 "|%*" PRIu64, number, number,
                 (int)(i % 25), number);
        assert_text(&text, expected);
    }
    char buffer[64];
    struct text text;
    text_init(&text, buffer, sizeof(buffer));
    text_add_decimal(&text, UINT64_MAX);
    text_add_hex(&text, UINTPTR_MAX);
    assert_text(&text, "184467440737095516150xffffffffffffffff");
}

TEST(a_format_is_printed_as_printf_prints_it)
{
    char buffer[256], expected[256];
    for (size_t number = 0; number < 100000; number = 3 * number + 1) {
        struct text text;
        text_init(&text, buffer, sizeof(buffer));
#define FORMAT \
    "%s|%8s|%.*s|%zu|%12zu|%#zx|%20s|%%|%3s.", "", "right", 3, "cut off", number, number, \
        number + 1, "more than that is fine", "abcdef"
        text_print(&text, FORMAT);
        snprintf(expected, sizeof(expected), FORMAT);
        assert_text(&text, expected);
    }
    int file = text_file();
    os_print(file, "%.*s and %zu\n", 100, "one", (size_t)2);
    assert_string_equal(text_written(file), "one and 2\n");
    os_close(file);
}

TEST(what_does_not_fit_is_cut)
{
    for (size_t capacity = 0; capacity < 40; capacity++) {
        char buffer[48];
        memset(buffer, '#', sizeof(buffer));
        struct text text;
        text_init(&text, buffer, capacity);
        text_add(&text, "twelve bytes");
        text_add_decimal(&text, 1234567890);
        text_add_column(&text, 7, 6);
        text_pad(&text, 32);
        text_add_hex(&text, 0xffff);
        char expected[48] = "twelve bytes1234567890     7    0xffff";
        expected[size_min(capacity, strlen(expected))] = 0;
        assert_text(&text, expected);
        for (size_t i = capacity; i < sizeof(buffer); i++)
            assert_int_equal(buffer[i], '#');
    }
}

TEST(padding_counts_from_the_line)
{
    char buffer[128];
    struct text text;
    text_init(&text, buffer, sizeof(buffer));
    text_pad(&text, 3);
    text_add(&text, "a");
    text_pad(&text, 2); /* already past it */
    text_add(&text, "\nbb");
    text_pad(&text, 5);
    text_add(&text, "c\n");
    text_pad(&text, 1);
    text_add(&text, "d");
    assert_text(&text, "   a\nbb   c\n d");
}

/* ---- Descriptors ---- */

TEST(a_text_is_written)
{
    int file = text_file();
    char buffer[16];
    struct text text;
    text_init(&text, buffer, sizeof(buffer));
    text_add(&text, "hello\n");
    assert_true(text_write(&text, file));
    assert_true(os_write(file, "world\n", 6));
    assert_true(os_write(file, NULL, 0));
    assert_string_equal(text_written(file), "hello\nworld\n");
    os_close(file);
}

TEST(a_descriptor_that_refuses_is_told)
{
    int ends[2];
    errno = 0;
    assert_false(os_write(-1, "x", 1));
    assert_int_equal(pipe(ends), 0);
    os_close(ends[1]);
    assert_false(os_write(ends[1], "x", 1));
    assert_false(os_write(ends[0], "x", 1)); /* open for reading only */
    os_close(ends[0]);
    assert_int_equal(fcntl(ends[0], F_GETFD), -1);
}

TEST(errno_is_left_alone)
{
    errno = 77;
    assert_false(os_write(-1, "x", 1));
    assert_int_equal(errno, 77);
    assert_true(os_open_output("/nonexistent/file") < 0);
    assert_int_equal(errno, 77);
    os_close(-1);
    assert_int_equal(errno, 77);
}

enum { LONG = 1 << 20 };

static void *read_all(void *argument)
{
    int *descriptor = argument;
    char *bytes = malloc(LONG + 1);
    size_t length = 0;
    ssize_t got;
    while ((got = read(*descriptor, bytes + length, LONG + 1 - length)) > 0) {
        length += (size_t)got;
        if (length < LONG / 64)
            usleep(1000); /* the pipe runs full */
    }
    *descriptor = (int)length;
    return bytes;
}

TEST(a_long_text_goes_through_a_narrow_pipe)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    char *sent = malloc(LONG);
    for (size_t i = 0; i < LONG; i++)
        sent[i] = (char)(i * 7 + i / 4096);
    pthread_t reader;
    int argument = ends[0];
    assert_int_equal(pthread_create(&reader, NULL, read_all, &argument), 0);
    bool done = os_write(ends[1], sent, LONG);
    os_close(ends[1]);
    void *received;
    pthread_join(reader, &received);
    assert_true(done);
    assert_int_equal(argument, LONG);
    assert_memory_equal(received, sent, LONG);
    os_close(ends[0]);
    free(received);
    free(sent);
}

TEST(an_output_file_is_made_and_cut)
{
    char path[] = "/tmp/snug-unit-XXXXXX";
    int made = mkstemp(path);
    assert_true(made >= 0);
    assert_true(os_write(made, "something long", 14));
    close(made);
    int file = os_open_output(path);
    assert_true(file >= 0);
    assert_true(fcntl(file, F_GETFD) & FD_CLOEXEC);
    assert_false(fcntl(file, F_GETFL) & O_NONBLOCK);
    os_cut_output(file);
    assert_true(os_write(file, "short", 5));
    int second = os_open_output(path); /* goes on at the end */
    assert_true(os_write(second, "er", 2));
    os_close(second);
    os_close(file);
    file = open(path, O_RDONLY);
    assert_string_equal(text_written(file), "shorter");
    close(file);
    unlink(path);
    file = os_open_output(path); /* and made if it is not there */
    assert_true(file >= 0);
    os_close(file);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(os_open_output("/nonexistent/file"), -ENOENT);
}

TEST(a_fifo_that_nobody_reads_is_refused)
{
    char directory[] = "/tmp/snug-unit-XXXXXX", path[64];
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/fifo", directory);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(os_open_output(path), -ENXIO);
    unlink(path);
    rmdir(directory);
}

TEST(a_descriptor_is_known_by_its_file)
{
    struct os_identity first, second, other;
    int ends[2], copy = dup(1);
    assert_int_equal(pipe(ends), 0);
    assert_true(os_identify(1, &first) && os_identify(copy, &second));
    assert_memory_equal(&first, &second, sizeof(first));
    assert_true(os_identify(ends[0], &other));
    assert_memory_not_equal(&first, &other, sizeof(first));
    close(copy);
    assert_false(os_identify(copy, &second));
    close(ends[0]);
    close(ends[1]);
}

TEST(a_duplicate_is_out_of_the_way)
{
    int file = text_file();
    int second = os_duplicate(file);
    assert_true(second >= 100);
    assert_true(fcntl(second, F_GETFD) & FD_CLOEXEC);
    os_close(file);
    assert_true(os_write(second, "still here", 10));
    assert_string_equal(text_written(second), "still here");
    os_close(second);
    assert_int_equal(os_duplicate(second), -EBADF);
}

TEST(the_process_id_is_that_of_libc)
{
    assert_int_equal(os_process_id(), getpid());
}

/* ---- check.h ---- */

static void fail_a_check(void *argument)
{
    (void)argument;
    check_failed("1 + 1 == 3", "src/some/file.c", 27);
}

TEST(a_failed_check_says_where_and_aborts)
{
    assert_aborts(fail_a_check, NULL,
                  "snug: internal error: src/some/file.c:27: 1 + 1 == 3 does not hold\n");
}

static bool evaluated;

/* Where checks are not made nothing calls it, which is the point. */
__attribute__((unused)) static bool note(bool result)
{
    evaluated = true;
    return result;
}

static void check_false(void *argument)
{
    (void)argument;
    CHECK(note(false));
}

TEST(checks_are_made_in_the_debug_build_only)
{
    evaluated = false;
    CHECK(note(true));
#if defined(SNUG_DEBUG)
    assert_true(evaluated);
    assert_aborts(check_false, NULL, "note(false) does not hold");
#else
    assert_false(evaluated);
    assert_succeeds(check_false, NULL);
#endif
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW(pieces_follow_each_other),
        ROW(numbers_are_written_as_printf_writes_them),
        ROW(a_format_is_printed_as_printf_prints_it),
        ROW(what_does_not_fit_is_cut),
        ROW(padding_counts_from_the_line),
        ROW(a_text_is_written),
        ROW(a_descriptor_that_refuses_is_told),
        ROW(errno_is_left_alone),
        ROW(a_long_text_goes_through_a_narrow_pipe),
        ROW(an_output_file_is_made_and_cut),
        ROW(a_fifo_that_nobody_reads_is_refused),
        ROW(a_descriptor_is_known_by_its_file),
        ROW(a_duplicate_is_out_of_the_way),
        ROW(the_process_id_is_that_of_libc),
        ROW(a_failed_check_says_where_and_aborts),
        ROW(checks_are_made_in_the_debug_build_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
