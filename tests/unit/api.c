/*
 * Tests of the public functions in the process, where sanitizers can watch: results, errno, and
 * what they report. tests/api tests the same functions from outside, as programs have them.
 */
#include "heap_support.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "platform/memory.h"
#include "snug/snug.h"

/* The same size, which the compiler knows nothing of. */
static size_t opaque(size_t size)
{
    __asm__ volatile("" : "+r"(size));
    return size;
}

static void assert_no_memory(void *block)
{
    assert_null(block);
    assert_int_equal(errno, ENOMEM);
    errno = 0;
}

static void assert_block(void *block, size_t bytes)
{
    assert_non_null(block);
    assert_int_equal(errno, 0);
    assert_true(snug_malloc_usable_size(block) >= bytes);
    snug_free(block);
    assert_int_equal(errno, 0);
}

TEST(success_leaves_errno_alone)
{
    errno = 0;
    for (const size_t *bytes = border_sizes; *bytes != 0; bytes++) {
        assert_block(snug_malloc(*bytes), *bytes);
        assert_block(snug_calloc(1, *bytes), *bytes);
        assert_block(snug_realloc(NULL, *bytes), *bytes);
        assert_block(snug_reallocarray(NULL, *bytes, 2), 2 * *bytes);
        assert_block(snug_aligned_alloc(64, *bytes), *bytes);
        assert_block(snug_memalign(100, *bytes), *bytes);
        assert_block(snug_valloc(*bytes), *bytes);
        assert_block(snug_pvalloc(*bytes), *bytes);
    }
    assert_block(snug_malloc(0), 0);
    assert_block(snug_calloc(0, 5), 0);
    assert_block(snug_aligned_alloc(4096, 0), 0);
    assert_block(snug_pvalloc(0), os_page_size());
}

TEST(what_cannot_be_had_is_null_and_enomem)
{
    static const size_t sizes[] = {SIZE_MAX, SIZE_MAX - 15, (size_t)PTRDIFF_MAX + 1, PTRDIFF_MAX};
    errno = 0;
    for (size_t i = 0; i < 4; i++) {
        size_t bytes = opaque(sizes[i]);
        assert_no_memory(snug_malloc(bytes));
        assert_no_memory(snug_calloc(1, bytes));
        assert_no_memory(snug_realloc(NULL, bytes));
        assert_no_memory(snug_aligned_alloc(64, bytes));
        assert_no_memory(snug_memalign(64, bytes));
        assert_no_memory(snug_valloc(bytes));
        assert_no_memory(snug_pvalloc(bytes));
    }
    size_t half = opaque((size_t)1 << 33);
    assert_no_memory(snug_calloc(half, half));
    assert_no_memory(snug_reallocarray(NULL, half, half));
}

TEST(a_failed_realloc_keeps_the_block)
{
    char *block = snug_malloc(100);
    strcpy(block, "kept");
    errno = 0;
    assert_no_memory(snug_realloc(block, opaque(SIZE_MAX)));
    assert_no_memory(snug_reallocarray(block, opaque((size_t)1 << 40), opaque((size_t)1 << 40)));
    assert_string_equal(block, "kept");
    assert_null(snug_realloc(block, 0)); /* frees */
    assert_int_equal(errno, 0);
    size_t live = heap_totals().small_live;
    block = snug_malloc(100);
    assert_null(snug_realloc(block, 0));
    assert_int_equal(heap_totals().small_live, live);
}

TEST(wrong_alignments_are_einval)
{
    static const size_t wrong[] = {0, 3, 24, 100, SIZE_MAX};
    for (size_t i = 0; i < 5; i++) {
        errno = 0;
        assert_null(snug_aligned_alloc(opaque(wrong[i]), 64));
        assert_int_equal(errno, EINVAL);
        errno = 77;
        void *untouched = &errno;
        assert_int_equal(snug_posix_memalign(&untouched, opaque(wrong[i]), 64), EINVAL);
        assert_ptr_equal(untouched, &errno);
        assert_int_equal(errno, 77);
    }
    void *block = NULL;
    assert_int_equal(snug_posix_memalign(&block, 4, 64), EINVAL); /* less than a pointer's */
    errno = 0;
    assert_null(snug_memalign(opaque(SIZE_MAX), 64));
    assert_int_equal(errno, EINVAL);
}

TEST(posix_memalign_sets_errno_only_without_memory)
{
    void *block = NULL;
    for (size_t alignment = sizeof(void *); alignment <= MIB; alignment *= 2) {
        errno = 77;
        assert_int_equal(snug_posix_memalign(&block, alignment, 100), 0);
        assert_int_equal((uintptr_t)block % alignment, 0);
        assert_int_equal(errno, 77);
        snug_free(block);
        void *before = block;
        assert_int_equal(snug_posix_memalign(&block, alignment, opaque(SIZE_MAX)), ENOMEM);
        assert_ptr_equal(block, before);
        assert_int_equal(errno, ENOMEM);
    }
}

TEST(alignments_are_rounded_or_kept)
{
    for (size_t alignment = 0; alignment < 10000; alignment += 1 + alignment / 9) {
        char *block = snug_memalign(alignment, 50);
        assert_int_equal((uintptr_t)block & (size_max(alignment, 1) / 2), 0);
        size_t power = 1;
        while (power < alignment)
            power *= 2;
        assert_int_equal((uintptr_t)block % power, 0);
        snug_free(block);
    }
    char *block = snug_valloc(100);
    assert_int_equal((uintptr_t)block % os_page_size(), 0);
    snug_free_sized(block, 100);
    block = snug_pvalloc(os_page_size() + 1);
    assert_int_equal((uintptr_t)block % os_page_size(), 0);
    assert_true(snug_malloc_usable_size(block) >= 2 * os_page_size());
    snug_free_aligned_sized(block, os_page_size(), os_page_size() + 1);
}

TEST(calloc_clears)
{
    for (const size_t *bytes = border_sizes; *bytes != 0; bytes++) {
        char *dirty = snug_malloc(*bytes);
        memset(dirty, 0xff, *bytes);
        snug_free(dirty);
        char *block = snug_calloc(*bytes, 1);
        assert_true(all_zero(block, *bytes));
        snug_free(block);
    }
}

TEST(null_is_nothing)
{
    errno = 77;
    snug_free(NULL);
    snug_free_sized(NULL, 5);
    snug_free_aligned_sized(NULL, 16, 5);
    assert_int_equal(snug_malloc_usable_size(NULL), 0);
    assert_int_equal(errno, 77);
}

/* ---- Asking ---- */

TEST(mallinfo_has_the_totals)
{
    void *huge = snug_malloc(4 * MIB);
    struct heap_totals totals = heap_totals();
    struct snug_mallinfo info = snug_mallinfo2();
    size_t free_small = totals.small_free + totals.small_depots + totals.small_cached;
    assert_int_equal(info.arena, totals.segments);
    assert_int_equal(info.ordblks,
                     totals.free_runs + (totals.cells_free + totals.cells_cached != 0));
    assert_int_equal(info.smblks, totals.small_free_count);
    assert_int_equal(info.hblks, totals.huge_count);
    assert_int_equal(info.hblkhd, totals.huge);
    assert_int_equal(info.fsmblks, free_small);
    assert_int_equal(info.uordblks, totals.small_live + totals.slabs_waste + totals.cells_live +
                                        totals.cells_waste + totals.large);
    assert_int_equal(info.fordblks, free_small + totals.cells_free + totals.cells_cached +
                                        totals.dirty + totals.clean);
    assert_int_equal(info.keepcost, totals.dirty);
    assert_int_equal(info.usmblks, 0);
    snug_free(huge);
}

TEST(trim_tells_whether_it_gave_anything)
{
    void *block = snug_malloc(500 * KIB);
    memset(block, 1, 500 * KIB);
    snug_free(block);
    errno = 77;
    assert_int_equal(snug_malloc_trim(0), 1);
    assert_int_equal(snug_malloc_trim(0), 0);
    assert_int_equal(errno, 77);
}

TEST(mallopt_knows_the_parameters_of_glibc)
{
    for (int parameter = -20; parameter <= 20; parameter++)
        assert_int_equal(snug_mallopt(parameter, 1), (parameter >= 1 && parameter <= 4) ||
                                                         (parameter >= -8 && parameter <= -1));
}

TEST(malloc_info_takes_no_options)
{
    char *text = NULL;
    size_t length;
    FILE *stream = open_memstream(&text, &length);
    assert_int_equal(snug_malloc_info(1, stream), EINVAL);
    fflush(stream);
    assert_int_equal(length, 0);
    assert_int_equal(snug_malloc_info(0, stream), 0);
    fclose(stream);
    assert_contains(text, "</malloc>\n");
    free(text);
}

TEST(malloc_stats_goes_to_stderr)
{
    stderr_capture();
    snug_malloc_stats();
    assert_contains(stderr_restore(), "snug: statistics of process");
}

TEST(check_says_what_is_wrong)
{
    snug_free(snug_malloc(64));
    stderr_capture();
    assert_int_equal(snug_check(), 0);
    assert_string_equal(stderr_restore(), "");
    heap_default.page_heap.used_pages++;
    stderr_capture();
    int result = snug_check();
    heap_default.page_heap.used_pages--;
    const char *said = stderr_restore();
    assert_int_equal(result, 1);
    assert_string_equal(said, "snug: the heap is damaged: the page counts of the runs are wrong\n");
    assert_int_equal(snug_check(), 0);
}

TEST(the_version_is_that_of_the_header)
{
    char version[32];
    snprintf(version, sizeof(version), "%d.%d.%d", SNUG_VERSION_MAJOR, SNUG_VERSION_MINOR,
             SNUG_VERSION_PATCH);
    assert_string_equal(snug_version(), version);
    assert_string_equal(snug_version(), SNUG_VERSION_STRING);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW(success_leaves_errno_alone),
        ROW(what_cannot_be_had_is_null_and_enomem),
        ROW(a_failed_realloc_keeps_the_block),
        ROW(wrong_alignments_are_einval),
        ROW(posix_memalign_sets_errno_only_without_memory),
        ROW(alignments_are_rounded_or_kept),
        ROW(calloc_clears),
        ROW(null_is_nothing),
        ROW(mallinfo_has_the_totals),
        ROW(trim_tells_whether_it_gave_anything),
        ROW(mallopt_knows_the_parameters_of_glibc),
        ROW(malloc_info_takes_no_options),
        ROW(malloc_stats_goes_to_stderr),
        ROW(check_says_what_is_wrong),
        ROW(the_version_is_that_of_the_header),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
