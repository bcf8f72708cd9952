/*
 * refusals.c - what cannot be had is refused with NULL and the right error number, and nothing is
 * broken afterwards; size 0 and NULL have their defined meaning.
 *
 * Sizes at and beyond what an address space holds, products that overflow, sums that overflow when
 * an alignment or a page is added, and alignments that are none.
 * Faults it finds (planted.c): quiet_failure, abort_at_limit, shared_zero.
 */
#include <malloc.h>
#include <string.h>

#include "check.h"

static const size_t impossible[] = {
    SIZE_MAX,
    SIZE_MAX - 1,
    SIZE_MAX - 7,
    SIZE_MAX - 15,
    SIZE_MAX - 16,
    SIZE_MAX - 4095,
    SIZE_MAX - 4096,
    SIZE_MAX - ((size_t)1 << 20),
    SIZE_MAX - ((size_t)1 << 22),
    SIZE_MAX / 2 + 2,
    (size_t)PTRDIFF_MAX + 1,
    PTRDIFF_MAX,
    PTRDIFF_MAX - 4096,
    (size_t)1 << 62,
    (size_t)1 << 57,
    (size_t)1 << 49,
};
enum { IMPOSSIBLE = sizeof impossible / sizeof *impossible };

/* A refusal must not have taken anything with it. */
static void still_works(void)
{
    void *block = opaque(malloc(1000));
    CHECK(block != NULL);
    memset(block, 1, 1000);
    free(block);
    block = opaque(malloc((size_t)3 << 20));
    CHECK(block != NULL);
    memset(block, 1, (size_t)3 << 20);
    free(block);
}

static void sizes_that_cannot_be_had(void)
{
    for (size_t i = 0; i < IMPOSSIBLE; i++) {
        size_t size = opaque_size(impossible[i]);
        CHECK_REFUSED(malloc(size), size);
        CHECK_REFUSED(calloc(1, size), size);
        CHECK_REFUSED(calloc(size, 1), size);
        CHECK_REFUSED(realloc(NULL, size), size);
        CHECK_REFUSED(reallocarray(NULL, 1, size), size);
        CHECK_REFUSED(aligned_alloc(16, size), size);
        CHECK_REFUSED(aligned_alloc(4096, size), size);
        CHECK_REFUSED(aligned_alloc((size_t)1 << 22, size), size);
        CHECK_REFUSED(memalign(64, size), size);
        CHECK_REFUSED(memalign((size_t)1 << 30, size), size);
        CHECK_REFUSED(valloc(size), size);
        CHECK_REFUSED(pvalloc(size), size);
    }
    still_works();
}

static void products_that_overflow(void)
{
    static const size_t factors[][2] = {
        {SIZE_MAX / 2 + 1, 2},
        {2, SIZE_MAX / 2 + 1},
        {SIZE_MAX, SIZE_MAX},
        {SIZE_MAX, 2},
        {(size_t)1 << 32, (size_t)1 << 32},
        {(size_t)1 << 33, (size_t)1 << 31},
        {SIZE_MAX / 3, 4},
        {(size_t)0x100000001, 0xffffffff0},
        {SIZE_MAX / 16 + 2, 16},
    };
    for (size_t i = 0; i < sizeof factors / sizeof *factors; i++) {
        size_t count = opaque_size(factors[i][0]);
        size_t size = opaque_size(factors[i][1]);
        CHECK_REFUSED(calloc(count, size), count);
        CHECK_REFUSED(reallocarray(NULL, count, size), count);
    }
    still_works();
}

/* ---- Alignments ------------------------------------------------------------------------------ */

static void alignments_that_are_none(void)
{
    static const size_t wrong[] = {0,  1,  2,  3,   4,    5,    7,        12,
                                   24, 40, 48, 100, 4095, 4097, SIZE_MAX, SIZE_MAX / 2 + 2};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        void *mark = &mark;
        void *result = mark;
        errno = 77;
        CHECK_MSG(posix_memalign(&result, opaque_size(wrong[i]), 100) == EINVAL, "alignment %zu",
                  wrong[i]);
        CHECK_MSG(result == mark, "alignment %zu: the result was changed", wrong[i]);
        CHECK_MSG(errno == 77, "alignment %zu: errno was changed", wrong[i]);
        CHECK(posix_memalign(&result, opaque_size(wrong[i]), 0) == EINVAL && result == mark);
    }
}

/* Only where snug is the malloc: older glibc lets aligned_alloc round such alignments up. */
static void aligned_alloc_wants_a_power_of_two(void)
{
    if (getenv("SNUG_TEST_EXPECT") == NULL)
        return;
    static const size_t wrong[] = {0, 3, 24, 100, SIZE_MAX};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        errno = 0;
        CHECK_MSG(aligned_alloc(opaque_size(wrong[i]), 100) == NULL, "alignment %zu", wrong[i]);
        CHECK_MSG(errno == EINVAL, "alignment %zu, errno %d", wrong[i], errno);
    }
}

static void alignments_that_cannot_be_had(void)
{
    for (int shift = 48; shift <= 63; shift++) {
        size_t alignment = opaque_size((size_t)1 << shift);
        static const size_t sizes[] = {0, 1, 1000, 100000, SIZE_MAX / 2 + 1, SIZE_MAX};
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            size_t size = opaque_size(sizes[i]);
            CHECK_REFUSED(aligned_alloc(alignment, size), size);
            if (shift < 63)
                CHECK_REFUSED(memalign(alignment, size), size);
            CHECK_REFUSED(memalign(alignment - 1, size), size); /* which is rounded up */
        }
    }
    still_works();
}

/* As glibc's, it sets errno as well. A wrong alignment does not (see alignments_that_are_none). */
static void posix_memalign_returns_the_error(void)
{
    for (size_t i = 0; i < IMPOSSIBLE; i++)
        for (size_t alignment = sizeof(void *); alignment != 0; alignment *= 2) {
            void *mark = &mark;
            void *result = mark;
            errno = 77;
            CHECK_MSG(posix_memalign(&result, alignment, opaque_size(impossible[i])) == ENOMEM,
                      "alignment %zu, size %zu", alignment, impossible[i]);
            CHECK_MSG(result == mark, "alignment %zu, size %zu", alignment, impossible[i]);
            CHECK_MSG(errno == ENOMEM, "alignment %zu, size %zu", alignment, impossible[i]);
        }
    still_works();
}

/* ---- Nothing --------------------------------------------------------------------------------- */

static void *zero_sized(size_t way)
{
    void *block = NULL;
    size_t zero = opaque_size(0);
    switch (way) {
    case 0:
        return opaque(malloc(zero));
    case 1:
        return opaque(calloc(zero, 10));
    case 2:
        return opaque(calloc(opaque_size(SIZE_MAX), zero));
    case 3:
        return opaque(realloc(NULL, zero));
    case 4:
        return opaque(aligned_alloc(64, zero));
    case 5:
        return opaque(memalign(4096, zero));
    case 6:
        return opaque(reallocarray(NULL, zero, opaque_size(SIZE_MAX)));
    default:
        CHECK(posix_memalign(&block, 64, zero) == 0);
        return opaque(block);
    }
}

static int by_address(const void *a, const void *b)
{
    uintptr_t x = *(const uintptr_t *)a, y = *(const uintptr_t *)b;
    return x < y ? -1 : x > y;
}

static void zero_gives_unique_blocks(void)
{
    enum { BLOCKS = 8000 };
    static void *blocks[BLOCKS];
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = zero_sized(i % 8);
        CHECK_MSG(blocks[i] != NULL, "way %zu", i % 8);
        CHECK_MSG(is_aligned(blocks[i], 16), "way %zu", i % 8);
    }
    qsort(blocks, BLOCKS, sizeof *blocks, by_address);
    for (size_t i = 1; i < BLOCKS; i++)
        CHECK(blocks[i] != blocks[i - 1]);
    for (size_t i = 0; i < BLOCKS; i++)
        free(blocks[i]);
}

/* However large the alignment is. */
static void zero_with_an_alignment(void)
{
    for (size_t alignment = 1; alignment <= (size_t)16 << 20; alignment *= 2) {
        void *block = opaque(aligned_alloc(alignment, opaque_size(0)));
        void *other = opaque(memalign(alignment, opaque_size(0)));
        CHECK_MSG(block != NULL && other != NULL && block != other, "alignment %zu", alignment);
        CHECK(is_aligned(block, alignment) && is_aligned(other, alignment));
        free(block);
        free(other);
        if (alignment < sizeof(void *))
            continue;
        CHECK(posix_memalign(&block, alignment, opaque_size(0)) == 0);
        CHECK(block != NULL && is_aligned(block, alignment));
        free(block);
    }
}

static void null_is_taken(void)
{
    errno = 5;
    free(NULL);
    CHECK(errno == 5);
    CHECK(malloc_usable_size(NULL) == 0);
    CHECK(errno == 5);
}

int main(void)
{
    test_begin(30);
    sizes_that_cannot_be_had();
    products_that_overflow();
    alignments_that_are_none();
    aligned_alloc_wants_a_power_of_two();
    alignments_that_cannot_be_had();
    posix_memalign_returns_the_error();
    zero_gives_unique_blocks();
    zero_with_an_alignment();
    null_is_taken();
    return test_end();
}
