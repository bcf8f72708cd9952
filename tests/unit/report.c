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

#include "heap/user_heaps.h"
#include "options/options.h"
#include "pageheap/pages_in_use.h"
#include "platform/lock.h"
#include "report/formats.h"
#include "report/peak.h"
#include "report/report.h"
#include "report/writer.h"
#include "stats/stats.h"
#include "values_sum.h"

/* Something of everything, in use and free. */
static char *kept[6];

static int use_heap(void **state)
{
    static const size_t sizes[] = {24, 800, 20000, 200000, 3000001};
    heap_default.page_heap.large_most = MIB;
    for (size_t i = 0; i < 5; i++) {
        for (unsigned j = 0; j < 150 && sizes[i] <= SMALL_MOST; j++) /* then no class is cold */
            heap_free(block_get(sizes[i]));
        for (unsigned j = 0; j < 40; j++)
            kept[i] = block_get(sizes[i]);
        for (unsigned j = 0; j < 40; j++)
            heap_free(block_get(sizes[i]));
    }
    return options_reset(state);
}

/* ---- The numbers ---- */

TEST(the_parts_add_up)
{
    struct values values;
    assert_true(values_read(&values, NULL, NULL, &snug_anchor, 0, VALUES_WHOLE));
    assert_int_equal(values_sum(&values), values.mapped);
    assert_true(values.live_small > 0 && values.live_cells > 0 && values.live_large > 0 &&
                values.live_huge > 0);
    assert_true(values.requested_large >= 40 * 200000 &&
                values.requested_large < values.live_large);
    assert_true(values.requested_huge >= 40 * 3000000 && values.requested_huge < values.live_huge);
    assert_true(values.requested_small <= values.live_small);
    assert_true(values.blocks_large >= 40 && values.blocks_huge >= 40);
    assert_int_equal(values.process, getpid());
}

TEST(medium_blocks_are_known_by_size)
{
    struct values values;
    struct values_more before, after;
    assert_true(values_read(&values, &before, NULL, &snug_anchor, 0, VALUES_WHOLE));
    char *blocks[] = {block_get(1040), block_get(2048), block_get(2072), block_get(131000)};
    assert_true(values_read(&values, &after, NULL, &snug_anchor, 0, VALUES_WHOLE));
    static const size_t more[MEDIUM_ROWS] = {0, 2, 1, 0, 0, 0, 0, 1};
    assert_true(before.medium_known && after.medium_known);
    for (size_t i = 0; i < MEDIUM_ROWS; i++)
        assert_int_equal(after.medium[i].blocks - before.medium[i].blocks, more[i]);
    assert_in_range(after.medium[7].bytes - before.medium[7].bytes, 131000, CELL_MOST);
    assert_true(values_read(&values, &after, NULL, &snug_anchor, 0, VALUES_QUICK));
    assert_false(after.medium_known);
    for (size_t i = 0; i < 4; i++)
        heap_free(blocks[i]);
}

/* Checks how many large blocks there are more than at `before`, of what size; and their sums. */
static void assert_large(const struct large_sizes *before, size_t row, size_t blocks, size_t bytes)
{
    struct values values;
    struct values_more now;
    size_t all = 0, sum = 0;
    assert_true(values_read(&values, &now, NULL, &snug_anchor, 0, VALUES_QUICK));
    assert_int_equal(now.large.blocks[row] - before->blocks[row], blocks);
    assert_int_equal(now.large.bytes[row] - before->bytes[row], bytes);
    for (size_t i = 0; i < LARGE_ROWS; i++) {
        all += now.large.blocks[i];
        sum += now.large.bytes[i];
    }
    assert_int_equal(all, values.blocks_large + values.blocks_huge);
    assert_int_equal(sum, values.requested_large + values.requested_huge);
}

TEST(large_blocks_are_known_by_size)
{
    struct values values;
    struct values_more before;
    assert_true(values_read(&values, &before, NULL, &snug_anchor, 0, VALUES_QUICK));
    char *block = block_get(256 * KIB);
    assert_large(&before.large, 0, 1, 256 * KIB);
    block = heap_resize(block, 256 * KIB + 1);
    assert_large(&before.large, 0, 0, 0);
    assert_large(&before.large, 1, 1, 256 * KIB + 1);
    block = heap_resize(block, 300 * MIB); /* a mapping of its own, from here on */
    assert_large(&before.large, 11, 1, 300 * MIB);
    block = heap_resize(block, 300 * MIB - 1);
    assert_large(&before.large, 11, 1, 300 * MIB - 1);
    block = heap_resize(block, 3 * MIB);
    assert_large(&before.large, 11, 0, 0);
    assert_large(&before.large, 4, 1, 3 * MIB);
    heap_free(block);
    assert_large(&before.large, 4, 0, 0);
    block = block_get(400 * KIB);
    assert_large(&before.large, 1, 1, 400 * KIB);
    heap_free(block); /* it waits for the next such request */
    assert_large(&before.large, 1, 0, 0);
    assert_ptr_equal(block_get(400 * KIB - 1), block);
    assert_large(&before.large, 1, 1, 400 * KIB - 1);
    heap_free(block);
    assert_int_equal(large_row_of(SIZE_MAX), LARGE_ROWS - 1);
    assert_int_equal(large_row_of((size_t)1 << 40), LARGE_ROWS - 2);
}

TEST(what_is_resident_is_reconciled)
{
    struct values values;
    assert_true(values_read(&values, NULL, NULL, &snug_anchor, 0, VALUES_WHOLE));
    if (values.resident_snug == UNKNOWN)
        skip();
    char *touched = block_get(8 * MIB);
    struct values before = values, after;
    assert_true(values_read(&before, NULL, NULL, &snug_anchor, 0, VALUES_WHOLE));
    memset(touched, 1, 8 * MIB);
    assert_true(values_read(&after, NULL, NULL, &snug_anchor, 0, VALUES_WHOLE));
    assert_int_equal(after.mapped, before.mapped);
    assert_in_range(after.resident_snug - before.resident_snug, 8 * MIB, 8 * MIB + 64 * KIB);
    assert_int_equal(after.resident_snug + after.untouched, after.mapped);
    assert_int_equal(after.resident_snug + after.resident_other, after.resident);
    assert_true(after.minor_faults > before.minor_faults);
    heap_free(touched);
}

/* The page map has the system's page of zeros in each of them; the kernel's number has it not. */
TEST(pages_that_are_only_read_are_no_more_than_the_whole)
{
    struct values values;
    const volatile char *untouched = block_get(64 * MIB);
    for (size_t at = 0; at < 64 * MIB; at += 4 * KIB)
        assert_int_equal(untouched[at], 0);
    assert_true(values_read(&values, NULL, NULL, &snug_anchor, 0, VALUES_WHOLE));
    if (values.resident_snug == UNKNOWN)
        skip();
    assert_int_equal(values.resident_snug + values.resident_other, values.resident);
    assert_int_equal(values.resident_snug + values.untouched, values.mapped);
    heap_free((void *)(uintptr_t)untouched);
}

/* A reader that can read nothing, as for a process that has died. */
static bool read_nothing(void *context, uintptr_t address, void *value, size_t bytes)
{
    (void)context, (void)address, (void)value, (void)bytes;
    return false;
}

static bool read_own(void *context, uintptr_t address, void *value, size_t bytes)
{
    (void)context;
    memcpy(value, (const void *)address, bytes);
    return true;
}

TEST(from_outside_the_numbers_are_the_same)
{
    struct peek peek = {.read = read_own};
    struct values inside, outside;
    struct values_more more_inside, more_outside;
    assert_true(values_read(&inside, &more_inside, NULL, &snug_anchor, 0, VALUES_WHOLE));
    assert_true(values_read(&outside, &more_outside, &peek, &snug_anchor, getpid(), VALUES_WHOLE));
    assert_int_equal(outside.mapped, inside.mapped);
    assert_int_equal(values_sum(&outside), outside.mapped);
    assert_int_equal(outside.live_small, inside.live_small);
    assert_int_equal(outside.resident_snug, inside.resident_snug);
    assert_memory_equal(more_outside.classes, more_inside.classes, sizeof(more_inside.classes));
    assert_memory_equal(more_outside.medium, more_inside.medium, sizeof(more_inside.medium));
    assert_memory_equal(&more_outside.large, &more_inside.large, sizeof(more_inside.large));
    struct peek nothing = {.read = read_nothing};
    assert_false(
        values_read(&outside, &more_outside, &nothing, &snug_anchor, getpid(), VALUES_WHOLE));
}

/* ---- The peak ---- */

/* A look is asked for, and taken, as far as the numbers say that there is more than ever. */
static bool peak_taken(struct peak *peak)
{
    bool asked = events.wanted.peak != 0;
    events.wanted.peak = 0;
    peak_keep();
    assert_true(peak_read(NULL, &peak_kept, peak));
    return asked;
}

TEST(the_highest_point_is_kept)
{
    struct peak before, peak;
    heap_trim(0); /* nothing waits */
    size_t now = pages_in_use_now();
    pages_in_use.wanted = now;
    char *first = block_get(64 * MIB);
    assert_true(peak_taken(&before));
    assert_in_range(before.pages, now + 64 * 256, now + 65 * 256);
    assert_true(before.large >= 64 * MIB && before.sizes.blocks[8] >= 1);
    assert_int_equal(before.small, before.small / 16 * 16);
    /* Less than a sixteenth more is no new peak, more is. */
    char *little = block_get(2 * MIB);
    assert_false(peak_taken(&peak));
    assert_int_equal(peak.pages, before.pages);
    heap_free(little);
    char *more = block_get(before.pages * 4096 / 16 + 2 * MIB);
    assert_true(peak_taken(&peak));
    assert_true(peak.pages > before.pages + before.pages / 16);
    /* What goes is not forgotten. */
    heap_free(first);
    heap_free(more);
    assert_false(peak_taken(&before));
    assert_memory_equal(&before, &peak, sizeof(peak));
    struct values values;
    struct values_more all;
    assert_true(values_read(&values, &all, NULL, &snug_anchor, 0, VALUES_QUICK));
    assert_int_equal(values.peak_live, peak.small + peak.medium + peak.large);
    assert_true(values.live + 64 * MIB < values.peak_live);
}

/* A row of heaps by name; NULL: there is none. */
static const struct heap_row *heap_at_peak(const struct peak *peak, const char *name)
{
    for (size_t i = 0; i < peak->by_name.count; i++)
        if (strcmp(peak->by_name.rows[i].name, name) == 0)
            return &peak->by_name.rows[i];
    return NULL;
}

/* Of spans of small blocks, which have many, and of large ones, which have few. */
TEST(the_first_blocks_of_a_span_stand_for_all_of_it)
{
    enum { SMALL = 2000, LARGE = 400 };
    struct heap_settings settings = {.name = "spans"};
    struct heap *heap = heap_create(&settings);
    for (size_t i = 0; i < SMALL; i++)
        assert_non_null(heap_alloc_slow(3000, heap));
    for (size_t i = 0; i < LARGE; i++)
        assert_non_null(heap_alloc_slow(20000, heap));
    struct medium_walk walk = {.looks = SIZE_MAX, .each = 5, .every = 1};
    assert_true(medium_walk(&walk, NULL, heap, 1024 * MIB));
    assert_in_range(walk.rows[2].blocks, SMALL * 3 / 4, SMALL * 5 / 4);
    assert_in_range(walk.rows[5].blocks, LARGE * 3 / 4, LARGE * 5 / 4);
    heap_destroy(heap);
}

TEST(the_peak_has_medium_blocks_by_size_and_heaps_by_name)
{
    enum { FEW = 20, MANY = 4000 };
    static char *small[MANY], *larger[MANY];
    struct heap_settings settings = {.name = "at the peak"};
    struct peak before, few, many;
    NEED(lock_is_alone(), "libc does not tell whether there are other threads");
    struct heap *heap = heap_create(&settings);
    assert_non_null(heap_alloc_slow(3 * MIB, heap));
    heap_trim(0);
    pages_in_use.wanted = 0;
    peak_taken(&before);
    for (size_t i = 0; i < FEW; i++)
        larger[i] = block_get(100000);
    pages_in_use.wanted = 0;
    peak_taken(&few);
    assert_true(peak_has_medium(&few));
    assert_int_equal(few.rows[7].blocks - before.rows[7].blocks, FEW);
    assert_true(few.heaps_known);
    assert_non_null(heap_at_peak(&few, "at the peak"));
    assert_true(heap_at_peak(&few, "at the peak")->live >= 3 * MIB);
    /* Of many only some were seen; all together they are as many as there are. */
    for (size_t i = 0; i < MANY; i++) {
        small[i] = block_get(3000);
        larger[i] = i < FEW ? larger[i] : block_get(12000);
    }
    heap_destroy(heap);
    pages_in_use.wanted = 0;
    peak_taken(&many);
    uint64_t blocks = 0, bytes = 0;
    for (size_t i = 0; i < MEDIUM_ROWS; i++) {
        blocks += many.rows[i].blocks;
        bytes += many.rows[i].bytes;
    }
    assert_true(many.medium_seen != 0);
    assert_in_range(blocks, many.blocks_medium - MEDIUM_ROWS, many.blocks_medium + MEDIUM_ROWS);
    assert_in_range(bytes, many.medium - 256 * KIB,
                    many.medium + 256 * KIB); /* half a block each */
    assert_in_range(many.rows[2].blocks, MANY / 2, MANY * 2);
    assert_in_range(many.rows[4].blocks, MANY / 2, MANY * 2);
    assert_null(heap_at_peak(&many, "at the peak"));
    for (size_t i = 0; i < MANY; i++) {
        heap_free(small[i]);
        heap_free(larger[i]);
    }
    heap_trim(0);
}

/* The first blocks of a span are the small ones, and no good guess of the rest. */
TEST(a_row_of_the_peak_has_blocks_of_its_size)
{
    static const size_t sizes[] = {1010, 2000, 7000}, counts[] = {128, 300, 500};
    static char *blocks[3][500];
    struct peak before, peak;
    NEED(lock_is_alone(), "libc does not tell whether there are other threads");
    heap_trim(0);
    pages_in_use.wanted = 0;
    peak_taken(&before);
    for (size_t size = 0; size < 3; size++)
        for (size_t i = 0; i < counts[size]; i++)
            blocks[size][i] = block_get(sizes[size]);
    pages_in_use.wanted = 0;
    peak_taken(&peak);
    uint64_t bytes = 0;
    for (size_t i = 0; i < MEDIUM_ROWS; i++) {
        assert_true(peak.rows[i].bytes <= peak.rows[i].blocks * ((KIB << i) + 8));
        assert_true(i == 0 || peak.rows[i].bytes > peak.rows[i].blocks * (KIB << (i - 1)) ||
                    peak.rows[i].blocks == 0);
        bytes += peak.rows[i].bytes;
    }
    assert_true(peak.medium_seen != 0);
    assert_in_range(bytes, peak.medium * 15 / 16, peak.medium * 17 / 16);
    assert_in_range(peak.rows[3].blocks - before.rows[3].blocks, 500 * 3 / 4, 500 * 5 / 4);
    for (size_t size = 0; size < 3; size++)
        for (size_t i = 0; i < counts[size]; i++)
            heap_free(blocks[size][i]);
    heap_trim(0);
}

/* A block that waits is not live: nobody looks before it is taken again. */
TEST(what_waits_makes_no_peak)
{
    struct peak peak;
    heap_trim(0); /* so that there is room for what waits */
    char *block = block_get(300 * KIB);
    pages_in_use.wanted = pages_in_use_now();
    uint64_t sequence = peak_kept.sequence;
    heap_free(block);
    assert_int_equal(heap_default.page_heap.recent.count, 1);
    peak_keep();
    assert_int_equal(peak_kept.sequence, sequence);
    events.wanted.peak = 0;
    assert_ptr_equal(block_get(300 * KIB), block);
    assert_true(peak_taken(&peak));
    assert_true(peak.sequence != sequence);
    heap_free(block);
}

/* As what waits is not live, nobody looks for a block that is taken beside a larger one that does.
 */
TEST(no_look_is_asked_for_that_would_be_in_vain)
{
    enum { LARGER = 256, SMALLER = 50, TAKES = 60 };
    struct peak peak;
    heap_trim(0);
    char *larger = block_get(LARGER * 4096), *smaller = block_get(SMALLER * 4096);
    heap_free(larger);
    pages_in_use.wanted = pages_in_use_now();
    events.wanted.peak = 0;
    for (unsigned i = 0; i < TAKES; i++) {
        heap_free(smaller);
        assert_ptr_equal(block_get(SMALLER * 4096), smaller);
        assert_int_equal(events.wanted.peak, 0);
    }
    assert_ptr_equal(block_get(LARGER * 4096), larger);
    assert_true(peak_taken(&peak));
    heap_free(larger);
    heap_free(smaller);
}

TEST(a_copy_that_is_being_written_is_not_read)
{
    struct peak peak;
    uint64_t sequence = peak_kept.sequence;
    peak_kept.sequence |= 1;
    assert_false(peak_read(NULL, &peak_kept, &peak));
    peak_kept.sequence = sequence;
}

TEST(other_heaps_count_for_the_peak)
{
    struct heap_settings settings = {.name = "peak"};
    size_t before = pages_in_use_now(), others = pages_in_use.others;
    struct heap *heap = heap_create(&settings);
    assert_non_null(heap);
    assert_non_null(heap_alloc_slow(40 * MIB, heap));
    assert_in_range(pages_in_use_now() - before, 40 * 256, 41 * 256);
    heap_clear(heap);
    assert_int_equal(pages_in_use_now(), before);
    assert_non_null(heap_alloc_slow(200 * MIB, heap));
    assert_in_range(pages_in_use.others - others, 200 * 256, 201 * 256);
    heap_destroy(heap);
    assert_int_equal(pages_in_use.others, others);
}

/* ---- Text ---- */

static size_t lines_of(const char *text)
{
    return count_of(text, "\n");
}

static size_t longest_line(const char *text)
{
    size_t longest = 0;
    for (const char *at = text; *at != 0; at = strchr(at, '\n') + 1)
        longest = size_max(longest, strcspn(at, "\n"));
    return longest;
}

TEST(the_text_fits_a_screen)
{
    int file = text_file();
    assert_true(report_text(file));
    const char *text = text_written(file);
    char first[64];
    snprintf(first, sizeof(first), "snug: statistics of process %d after ", getpid());
    assert_int_equal(strncmp(text, first, strlen(first)), 0);
    assert_in_range(longest_line(text), 60, 80);
    assert_in_range(lines_of(text), 16, 24);
    assert_contains(text, "mapped by snug");
    assert_contains(text, "in use by size");
    close(file);
}

/* MiB that the text says behind a label. */
static double mib_behind(const char *text, const char *label)
{
    double number = 0;
    char unit = 0;
    const char *found = strstr(text, label);
    assert_non_null(found);
    assert_int_equal(sscanf(found + strlen(label), "%lf %c", &number, &unit), 2);
    return unit == 'M' ? number : unit == 'G' ? number * 1024 : 0;
}

TEST(what_went_back_from_between_medium_blocks_has_no_memory)
{
    enum { COUNT = 1200, KEPT = 16, BYTES = 60000 }; /* 69 MiB, of which 65 are freed */
    static char *blocks[COUNT];
    heap_trim(0);
    int file = text_file();
    assert_true(report_text(file));
    const char *text = text_written(file);
    double without = mib_behind(text, "of it without memory");
    double unused = mib_behind(text, "- free in slabs and spans");
    close(file);
    for (size_t i = 0; i < COUNT; i++)
        memset(blocks[i] = block_get(BYTES), 1, BYTES);
    for (size_t i = 0; i < COUNT; i++)
        if (i % KEPT != 0)
            heap_free(blocks[i]);
    heap_trim(0);
    file = text_file();
    assert_true(report_text(file));
    text = text_written(file);
    assert_true(mib_behind(text, "of it without memory") > without + 48);
    assert_true(mib_behind(text, "- free in slabs and spans") < unused + 8);
    close(file);
    for (size_t i = 0; i < COUNT; i += KEPT)
        heap_free(blocks[i]);
    heap_trim(0);
}

TEST(the_detail_has_every_counter_and_class)
{
    int file = text_file();
    options.stats_detail = 1;
    assert_true(report_text(file));
    const char *text = text_written(file);
#define COUNTER(name, description) assert_contains(text, "\n  " description " ");
#include "stats/counters.def"
#undef COUNTER
#define GAUGE(group, name, unit, source, description) assert_contains(text, "\n  " description " ");
#include "report/gauges.def"
#undef GAUGE
    const char *at = strstr(text, "\nsmall objects by size\n");
    assert_non_null(at);
    size_t rows = 0;
    for (size_t class = 1; class < CLASS_COUNT; class++)
        rows += class_totals(class).slabs != 0;
    assert_true(rows >= 2);
    size_t large = 0;
    struct heap_totals totals = heap_totals();
    for (size_t i = 0; i < LARGE_ROWS; i++)
        large += totals.sizes.blocks[i] != 0;
    assert_true(large >= 2);
    assert_int_equal(lines_of(at), rows + 3 + 2 + MEDIUM_ROWS + large);
    close(file);
}

TEST(numbers_are_as_people_read_them)
{
    static const struct {
        uint64_t number;
        const char *size, *count;
    } rows[] = {
        {0, "     0 B  ", "0"},
        {999, "   999 B  ", "999"},
        {1000, "   1.0 KiB", "1,000"},
        {1024 * 1024 - 1, "   1.0 MiB", "1,048,575"},
        {1536 * 1024, "   1.5 MiB", "1,572,864"},
        {(uint64_t)3 << 40, "   3.0 TiB", "3,298,534,883,328"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char buffer[64] = "";
        struct text text;
        text_init(&text, buffer, sizeof(buffer) - 1);
        text_add_size(&text, rows[i].number);
        assert_string_equal(buffer, rows[i].size);
        memset(buffer, 0, sizeof(buffer));
        text_init(&text, buffer, sizeof(buffer) - 1);
        text_add_count(&text, rows[i].number, 0);
        assert_string_equal(buffer, rows[i].count);
    }
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
    report_print("exit");
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
    assert_contains(text_written(file), "in use by size");
    close(file);
    unlink(expanded);
    rmdir(directory);
}

TEST(the_report_goes_to_stderr)
{
    stderr_capture();
    options.stats = "stderr";
    report_start();
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
    report_print("exit");
}

/* What the program opens later must not be taken for the stream, whatever its number. */
static void take_its_number(void *argument)
{
    char path[] = "/tmp/snug-unit-XXXXXX";
    int keep = dup(2);
    options.stats = argument;
    report_start();
    for (int i = 2; i < 1024; i++)
        if (i != keep)
            close(i);
    int own = mkstemp(path);
    unlink(path);
    for (int i = 2; i < 1024; i++)
        if (i != keep && i != own)
            dup2(own, i);
    report_print("exit");
    off_t length = lseek(own, 0, SEEK_END);
    dprintf(keep, "%d bytes", (int)length);
}

static void closed_from_the_start(void *argument)
{
    int keep = dup(2);
    close(2);
    options.stats = argument;
    report_start();
    int own = dup(keep); /* gets the number 2 */
    report_print("exit");
    dprintf(keep, "%d", own);
}

TEST(a_file_of_the_program_is_not_taken_for_the_stream)
{
    char said[TEXT_MOST];
    assert_int_equal(child_status(take_its_number, (void *)"stderr", said), 0);
    assert_string_equal(said, "0 bytes");
    assert_int_equal(child_status(closed_from_the_start, (void *)"stderr", said), 0);
    assert_string_equal(said, "2");
}

TEST(a_closed_stream_is_written_all_the_same)
{
    char said[TEXT_MOST];
    assert_int_equal(child_status(close_first, (void *)"stderr", said), 0);
    assert_contains(said, "snug: statistics of process");
}

static void write_twice(void *argument)
{
    write_at_exit(argument);
    write_at_exit(argument);
}

TEST(a_path_that_cannot_be_written_is_said_once)
{
    static const struct {
        const char *path, *said;
    } rows[] = {
        {"/nonexistent/directory/file",
         "snug: the statistics could not be written to /nonexistent/directory/file: there is no "
         "such directory\n"},
        {"/tmp", "snug: the statistics could not be written to /tmp: that is a directory\n"},
        {"/dev/full", "snug: the statistics could not be written to /dev/full\n"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char said[TEXT_MOST];
        assert_int_equal(child_status(write_twice, (void *)rows[i].path, said), 0);
        assert_string_equal(said, rows[i].said);
    }
}

TEST(a_path_that_is_too_long_is_cut)
{
    static char path[10000], said[TEXT_MOST];
    memset(path, '/', sizeof(path) - 1);
    assert_int_equal(child_status(write_at_exit, path, said), 0); /* a directory */
    assert_contains(said, "snug: the statistics could not be written to ////");
}

/* ---- OpenMetrics ---- */

TEST(each_exposition_of_metrics_ends_as_it_must)
{
    static char text[256 * KIB];
    char buffer[WRITER_BUFFER];
    struct values values;
    struct values_more more;
    struct writer writer;
    FILE *file = tmpfile();
    assert_non_null(file);
    assert_true(values_read(&values, &more, NULL, &snug_anchor, 0, VALUES_WHOLE));
    writer_begin(&writer, fileno(file), buffer, sizeof(buffer));
    assert_true(format_write(FORMAT_OPENMETRICS, &values, false, true, &writer));
    rewind(file);
    text[fread(text, 1, sizeof(text) - 1, file)] = 0;
    fclose(file);
    assert_int_equal(count_of(text, "# EOF"), 1);
    assert_string_equal(text + strlen(text) - 7, "\n# EOF\n");
    /* Each family is described once, before its samples. */
    assert_int_equal(count_of(text, "# TYPE snug_refills counter\n"), 1);
    assert_int_equal(count_of(text, "\nsnug_refills_total "), 1);
    assert_int_equal(count_of(text, "# UNIT snug_mapped_bytes bytes\n"), 1);
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
                     totals.small_free + totals.small_depots + totals.small_cached);
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
    assert_int_equal(sum, totals.small_free + totals.small_depots + totals.small_cached);
    assert_int_equal(free_count, totals.small_free_count);
    free(text);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW_WITH(the_parts_add_up, use_heap, options_reset),
        ROW(medium_blocks_are_known_by_size),
        ROW(large_blocks_are_known_by_size),
        ROW(the_highest_point_is_kept),
        ROW(what_waits_makes_no_peak),
        ROW(no_look_is_asked_for_that_would_be_in_vain),
        ROW(a_copy_that_is_being_written_is_not_read),
        ROW(the_first_blocks_of_a_span_stand_for_all_of_it),
        ROW(the_peak_has_medium_blocks_by_size_and_heaps_by_name),
        ROW(a_row_of_the_peak_has_blocks_of_its_size),
        ROW(other_heaps_count_for_the_peak),
        ROW(what_is_resident_is_reconciled),
        ROW(from_outside_the_numbers_are_the_same),
        ROW(the_text_fits_a_screen),
        ROW(what_went_back_from_between_medium_blocks_has_no_memory),
        ROW(the_detail_has_every_counter_and_class),
        ROW(numbers_are_as_people_read_them),
        ROW(a_text_that_cannot_be_written_is_told),
        ROW(describing_the_heap_does_not_change_it),
        ROW(the_report_goes_to_a_file),
        ROW(the_report_goes_to_stderr),
        ROW(a_file_of_the_program_is_not_taken_for_the_stream),
        ROW(a_closed_stream_is_written_all_the_same),
        ROW(a_path_that_cannot_be_written_is_said_once),
        ROW(a_path_that_is_too_long_is_cut),
        ROW(each_exposition_of_metrics_ends_as_it_must),
        ROW(the_xml_is_balanced),
        ROW(the_xml_has_the_totals),
        /* The last: these pages stay in the map. */
        ROW(pages_that_are_only_read_are_no_more_than_the_whole),
    };
    return needs_end(cmocka_run_group_tests(tests, NULL, NULL));
}
