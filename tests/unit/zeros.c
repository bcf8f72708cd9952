/*
 * Tests of looking for what is not zero and of clearing, in each width that this processor has.
 */
#include "support.h"

#include <string.h>
#include <sys/mman.h>

#include "platform/zeros.h"

enum { ROOM = 20000, EDGE = 64 };
static unsigned char room[ROOM + 2 * EDGE] __attribute__((aligned(64)));

/* Calls `test` in each width. */
static void in_each_width(void (*test)(void))
{
    zeros_begin();
    enum zeros_width widest = zeros_width;
    for (unsigned width = ZEROS_16; width <= (unsigned)widest; width++) {
        zeros_width = (enum zeros_width)width;
        test();
    }
    zeros_width = widest;
}

/* What is around the memory at hand is not zero, and has to stay. */
static uintptr_t surround(size_t from, size_t bytes)
{
    memset(room, 0xff, sizeof(room));
    memset(room + EDGE + from, 0, bytes);
    return (uintptr_t)room + EDGE + from;
}

static void assert_around(uintptr_t at, size_t bytes)
{
    size_t from = at - (uintptr_t)room;
    for (size_t i = from - EDGE; i < from; i++)
        assert_int_equal(room[i], 0xff);
    for (size_t i = from + bytes; i < from + bytes + EDGE; i++)
        assert_int_equal(room[i], 0xff);
}

/* Each word of some lengths that is not zero is found, and cleared. */
static void each_word(void)
{
    static const size_t lengths[] = {256, 264, 384, 1000, 4096, 9000};
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        size_t bytes = lengths[i];
        uintptr_t at = surround(8 * i, bytes);
        assert_true(zeros_long(at, at + bytes, false));
        for (size_t word = 0; word < bytes; word += 8) {
            unsigned char *byte = (unsigned char *)at + word + word / 8 % 8;
            *byte = 1;
            assert_false(zeros_long(at, at + bytes, false));
            assert_int_equal(*byte, 1);
            zeros_long(at, at + bytes, true);
            assert_int_equal(*byte, 0);
        }
        assert_around(at, bytes);
        memset((void *)at, 0x11, bytes);
        zeros_long(at, at + bytes, true);
        assert_true(zeros_long(at, at + bytes, false));
        assert_around(at, bytes);
    }
}

static void each_short_length(void)
{
    for (size_t bytes = 272; bytes <= 1024; bytes += 16) {
        uintptr_t at = surround(bytes % 64, bytes);
        assert_true(zeros_short(at, bytes, false));
        for (size_t word = 0; word < bytes; word += 8) {
            unsigned char *byte = (unsigned char *)at + word + word / 8 % 8;
            *byte = 1;
            assert_false(zeros_short(at, bytes, false));
            *byte = 0;
        }
        memset((void *)at, 0x11, bytes);
        zeros_short(at, bytes, true);
        for (size_t i = 0; i < bytes; i++)
            assert_int_equal(((unsigned char *)at)[i], 0);
        assert_around(at, bytes);
    }
}

TEST(long_ones)
{
    in_each_width(each_word);
}

TEST(short_ones)
{
    in_each_width(each_short_length);
}

/* What is zero is not written: it may be memory that cannot be. */
static void each_page_is_read(void)
{
    enum { BYTES = 64 * 4096 };
    void *pages = mmap(NULL, BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(pages, MAP_FAILED);
    zeros_long((uintptr_t)pages, (uintptr_t)pages + BYTES, true);
    munmap(pages, BYTES);
}

TEST(zeros_are_not_written)
{
    in_each_width(each_page_is_read);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ROW(long_ones),
        ROW(short_ones),
        ROW(zeros_are_not_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
