/*
 * Tests of report/: the statistics as text and as XML say what the totals say, and go where
 * SNUG_STATS wants them.
 */
#include "heap_support.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "options/options.h"
#include "report/report.h"
#include "stats/stats.h"

/* Something of everything, in use and free. */
static char *kept[6];

static int use_heap(void **state)
{
    static const size_t sizes[] = {24, 800, 20000, 200000, 3000000};
    for (size_t i = 0; i < 5; i++) {
        for (unsigned j = 0; j < 40; j++)
            kept[i] = block_get(sizes[i]);
        for (unsigned j = 0; j < 40; j++)
            heap_give(block_get(sizes[i]));
    }
    return options_reset(state);
}

/* ---- Text ---- */

/* The number in the row that begins with `name`. */
static size_t row_of(const char *text, const char *name)
{
    char line[128];
    snprintf(line, sizeof(line), "\n  %s ", name);
    const char *at = strstr(text, line);
    if (at == NULL)
        fail_msg("no row \"%s\" in:\n%s", name, text);
    return strtoull(at + strlen(line), NULL, 10);
}

static size_t kib(size_t bytes)
{
    return (bytes + 512) / 1024;
}

TEST(the_text_has_the_totals)
{
    int file = text_file();
    struct heap_totals totals = heap_totals();
    assert_true(report_text(file));
    const char *text = text_written(file);
    assert_int_equal(row_of(text, "small objects in use"), kib(totals.small_live));
    assert_int_equal(row_of(text, "medium cells in use"), kib(totals.cells_live));
    assert_int_equal(row_of(text, "large blocks in use"), kib(totals.large));
    assert_int_equal(row_of(text, "huge blocks in use"), kib(totals.huge));
    assert_int_equal(row_of(text, "waiting in magazines"),
                     kib(totals.small_cached + totals.cells_cached));
    assert_int_equal(row_of(text, "waiting in depots"), kib(totals.small_waiting));
    assert_int_equal(row_of(text, "free in slabs"), kib(totals.small_free));
    assert_int_equal(row_of(text, "free in cell spans"), kib(totals.cells_free));
    assert_int_equal(row_of(text, "free pages, dirty"), kib(totals.dirty));
    assert_int_equal(row_of(text, "free pages, clean"), kib(totals.clean));
    assert_int_equal(row_of(text, "metadata"), kib(totals.meta_used));
    assert_int_equal(row_of(text, "segments mapped"), kib(totals.segments));
    assert_true(totals.small_live > 0 && totals.large > 0 && totals.huge > 0);
    close(file);
}

TEST(the_text_has_every_counter)
{
    int file = text_file();
    struct counters before = counters;
    assert_true(report_text(file));
    const char *text = text_written(file);
    const char *at = strstr(text, "\nevents\n");
    assert_non_null(at);
#define COUNTER(name, description) \
    at = strstr(at, "\n  " description " "); \
    assert_non_null(at); \
    assert_int_equal(strtoull(at + sizeof("\n  " description), NULL, 10), before.name);
#include "stats/counters.def"
#undef COUNTER
    assert_true(before.map_calls > 0 && before.slabs_made > 0 && before.refills > 0);
    close(file);
}

static size_t lines_of(const char *text)
{
    return count_of(text, "\n");
}

TEST(the_text_has_a_row_for_each_size_in_use)
{
    int file = text_file();
    assert_true(report_text(file));
    const char *at = strstr(text_written(file), "\nsmall objects by size\n");
    assert_non_null(at);
    at = strchr(strchr(at + 1, '\n') + 1, '\n') + 1;
    size_t rows = 0;
    for (size_t class = 1; class < CLASS_COUNT; class++) {
        size_t row[6];
        struct class_totals totals = heap_class_totals(class);
        if (totals.slabs == 0)
            continue;
        assert_int_equal(sscanf(at, "%zu %zu %zu %zu %zu %zu\n", &row[0], &row[1], &row[2], &row[3],
                                &row[4], &row[5]),
                         6);
        assert_int_equal(row[0], class_bytes(class));
        assert_int_equal(row[1], totals.live);
        assert_int_equal(row[2], totals.cached);
        assert_int_equal(row[3], totals.waiting);
        assert_int_equal(row[4], totals.free);
        assert_int_equal(row[5], totals.slabs);
        at = strchr(at, '\n') + 1;
        rows++;
    }
    assert_true(rows >= 2);
    assert_int_equal(*at, 0);
    close(file);
}

TEST(lines_are_aligned_and_not_too_long)
{
    int file = text_file();
    assert_true(report_text(file));
    const char *text = text_written(file);
    char first[64];
    snprintf(first, sizeof(first), "snug: statistics of process %d\nmemory\n", getpid());
    assert_int_equal(strncmp(text, first, strlen(first)), 0);
    size_t longest = 0;
    for (const char *at = text; *at != 0; at = strchr(at, '\n') + 1)
        longest = size_max(longest, strcspn(at, "\n"));
    assert_in_range(longest, 40, 100);
    assert_true(lines_of(text) > 20);
    close(file);
}

TEST(a_text_that_cannot_be_written_is_told)
{
    assert_false(report_text(-1));
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_false(report_text(ends[0]));
    close(ends[0]);
    close(ends[1]);
}

TEST(describing_the_heap_does_not_change_it)
{
    int file = text_file();
    struct heap_totals before = heap_totals(), after;
    for (unsigned i = 0; i < 10; i++)
        assert_true(report_text(file));
    after = heap_totals();
    assert_memory_equal(&before, &after, sizeof(before));
    close(file);
}

/* ---- Where it goes ---- */

static void write_at_exit(void *argument)
{
    options.stats = argument;
    report_at_exit();
}

TEST(the_report_goes_to_a_file)
{
    char directory[] = "/tmp/snug-unit-XXXXXX", path[128], expanded[160];
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/a%%pb%%%%p", directory);
    snprintf(expanded, sizeof(expanded), "%s/a%db%%%d", directory, getpid(), getpid());
    stderr_capture();
    write_at_exit(path);
    assert_string_equal(stderr_restore(), "");
    int file = open(expanded, O_RDONLY);
    assert_true(file >= 0);
    assert_contains(text_written(file), "snug: statistics of process");
    assert_contains(text_written(file), "small objects by size");
    close(file);
    unlink(expanded);
    rmdir(directory);
}

TEST(the_report_goes_to_stderr)
{
    stderr_capture();
    write_at_exit((void *)"stderr");
    assert_contains(stderr_restore(), "snug: statistics of process");
    stderr_capture();
    write_at_exit(NULL);
    assert_string_equal(stderr_restore(), "");
}

/* report_start keeps a way to the stream that the program closes. */
static void close_first(void *argument)
{
    options.stats = argument;
    report_start();
    close(2);
    report_at_exit();
}

TEST(a_closed_stream_is_written_all_the_same)
{
    char said[TEXT_MOST];
    assert_int_equal(child_status(close_first, (void *)"stderr", said), 0);
    assert_contains(said, "snug: statistics of process");
}

TEST(a_path_that_cannot_be_written_is_said_once)
{
    stderr_capture();
    write_at_exit((void *)"/nonexistent/directory/file");
    assert_string_equal(stderr_restore(), "snug: the statistics could not be written to "
                                          "/nonexistent/directory/file\n");
    stderr_capture();
    write_at_exit((void *)"/dev/full");
    assert_string_equal(stderr_restore(),
                        "snug: the statistics could not be written to /dev/full\n");
}

TEST(a_path_that_is_too_long_is_cut)
{
    static char path[10000];
    memset(path, '/', sizeof(path) - 1);
    stderr_capture();
    write_at_exit(path); /* a directory */
    assert_contains(stderr_restore(), "snug: the statistics could not be written to ////");
}

/* ---- XML ---- */

static char *xml(void)
{
    char *text = NULL;
    size_t length;
    FILE *stream = open_memstream(&text, &length);
    assert_non_null(stream);
    report_xml(stream);
    fclose(stream);
    return text;
}

TEST(the_xml_is_balanced)
{
    char *text = xml();
    static const char *const elements[] = {"malloc", "heap", "sizes"};
    for (size_t i = 0; i < 3; i++) {
        char open_tag[32], close_tag[32];
        snprintf(open_tag, sizeof(open_tag), "<%s", elements[i]);
        snprintf(close_tag, sizeof(close_tag), "</%s>\n", elements[i]);
        assert_int_equal(count_of(text, close_tag), 1);
        assert_true(count_of(text, open_tag) >= 1);
    }
    assert_int_equal(strncmp(text, "<malloc version=\"1\">\n", 21), 0);
    assert_string_equal(text + strlen(text) - 10, "</malloc>\n");
    /* All others are empty elements. */
    assert_int_equal(count_of(text, "<"), count_of(text, ">"));
    assert_int_equal(count_of(text, "/>"), count_of(text, "<") - 6);
    assert_int_equal(count_of(text, "\"") % 2, 0);
    free(text);
}

/* The `size` of the last element that begins with `start`. */
static size_t size_of_last(const char *text, const char *start)
{
    const char *at = NULL;
    for (const char *next = text; (next = strstr(next, start)) != NULL; next++)
        at = next;
    assert_non_null(at);
    at = strstr(at, " size=\"");
    assert_non_null(at);
    return strtoull(at + 7, NULL, 10);
}

TEST(the_xml_has_the_totals)
{
    struct heap_totals totals = heap_totals();
    char *text = xml();
    size_t mapped = totals.segments + totals.huge;
    assert_int_equal(size_of_last(text, "<total type=\"fast\""),
                     totals.small_free + totals.small_waiting + totals.small_cached);
    assert_int_equal(size_of_last(text, "<total type=\"rest\""),
                     totals.dirty + totals.clean + totals.cells_free + totals.cells_cached);
    assert_int_equal(size_of_last(text, "<total type=\"mmap\""), totals.huge);
    assert_int_equal(size_of_last(text, "<system type=\"current\""), mapped);
    assert_int_equal(size_of_last(text, "<aspace type=\"total\""), mapped);
    size_t total = 0, sum = 0, count = 0, free_count = 0;
    for (const char *at = text; (at = strstr(at, "<size from=")) != NULL; at++) {
        assert_int_equal(sscanf(at, "<size from=\"%*u\" to=\"%*u\" total=\"%zu\" count=\"%zu\"/>",
                                &total, &count),
                         2);
        sum += total;
        free_count += count;
    }
    assert_int_equal(sum, totals.small_free + totals.small_waiting + totals.small_cached);
    assert_int_equal(free_count, totals.small_free_count);
    free(text);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW_WITH(the_text_has_the_totals, use_heap, options_reset),
        ROW(the_text_has_every_counter),
        ROW(the_text_has_a_row_for_each_size_in_use),
        ROW(lines_are_aligned_and_not_too_long),
        ROW(a_text_that_cannot_be_written_is_told),
        ROW(describing_the_heap_does_not_change_it),
        ROW(the_report_goes_to_a_file),
        ROW(the_report_goes_to_stderr),
        ROW(a_closed_stream_is_written_all_the_same),
        ROW(a_path_that_cannot_be_written_is_said_once),
        ROW(a_path_that_is_too_long_is_cut),
        ROW(the_xml_is_balanced),
        ROW(the_xml_has_the_totals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
