/*
 * floats.c - no call changes the state of the program's floating-point arithmetic, or needs that
 * nothing in it is trapped.
 *
 * A program may have SIGFPE sent for what is not exact or a division by zero, another rounding, and
 * look at the marks that its arithmetic left. An allocator that computes a mean or a share in the
 * middle of malloc would end the first, and lie to the last. Faults it finds (planted.c):
 * free_marks.
 */
#include <fenv.h>
#include <malloc.h>
#include <string.h>

#include "check.h"

#define MIB ((size_t)1024 * 1024)
enum { MOST = 40000 };

static char *blocks[MOST];

/* So many blocks of `size` bytes, more and more, so that what is in use is highest again and again:
 * the statistics note what the heap consists of then. Sizes of one kind alone are the border case
 * of a mean. */
static void grow_and_shrink(size_t size, size_t bytes)
{
    size_t count = bytes / size;
    CHECK(count <= MOST);
    for (size_t i = 0; i < count; i++) {
        blocks[i] = opaque(i % 3 == 0 ? calloc(1, size) : malloc(size));
        CHECK(blocks[i] != NULL);
        blocks[i][0] = blocks[i][size - 1] = 1;
    }
    for (size_t i = 0; i < count; i += 2) {
        blocks[i] = opaque(realloc(blocks[i], size + size / (i % 7 + 1)));
        CHECK(blocks[i] != NULL);
        CHECK(malloc_usable_size(blocks[i]) > size);
    }
    for (size_t i = 0; i < count; i++)
        free(blocks[(i * 7919) % count]);
}

static void all_sizes(void)
{
    static const size_t sizes[] = {500,   2000,  3000,   5000,   9000,   40000,
                                   60000, 90000, 131000, 200000, 3 * MIB};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        grow_and_shrink(sizes[i] | 1, sizes[i] == 500 ? 8 * MIB : (16 + 8 * i) * MIB);
        void *aligned = opaque(aligned_alloc(512, sizes[i] * 512));
        CHECK(aligned != NULL);
        free(aligned);
    }
    (void)opaque_size(mallinfo2().uordblks);
    malloc_trim(0);
}

static void marks_stay(int rounding, int marks)
{
    CHECK(fesetround(rounding) == 0);
    CHECK(feclearexcept(FE_ALL_EXCEPT) == 0);
    CHECK(feraiseexcept(marks) == 0);
    marks = fetestexcept(FE_ALL_EXCEPT);
    all_sizes();
    CHECK_MSG(fetestexcept(FE_ALL_EXCEPT) == marks, "marks %#x became %#x", marks,
              fetestexcept(FE_ALL_EXCEPT));
    CHECK_MSG(fegetround() == rounding, "rounding became %d", fegetround());
}

/* Where the processor traps at all: on aarch64 hardly any does. */
static void nothing_is_trapped(void)
{
#if defined(__GLIBC__)
    CHECK(feclearexcept(FE_ALL_EXCEPT) == 0);
    if (feenableexcept(FE_ALL_EXCEPT) == -1 || fegetexcept() != FE_ALL_EXCEPT)
        return;
    all_sizes();
    CHECK(fegetexcept() == FE_ALL_EXCEPT);
    CHECK(fedisableexcept(FE_ALL_EXCEPT) == FE_ALL_EXCEPT);
#endif
}

int main(void)
{
    test_begin(60);
    marks_stay(FE_TONEAREST, 0);
    marks_stay(FE_UPWARD, FE_OVERFLOW);
    marks_stay(FE_TOWARDZERO, FE_DIVBYZERO | FE_INEXACT);
    CHECK(fesetround(FE_TONEAREST) == 0);
    nothing_is_trapped();
    return test_end();
}
