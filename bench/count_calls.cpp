/*
 * count_calls.cpp - the loops that count.sh counts instructions of: one for each call by which a
 * program takes, resizes or asks for a block.
 *
 * usage: count_calls CALL TIMES | count_calls list
 *
 * A turn of a loop makes the call, and frees what it gave; but `realloc-in-place` and `usable-size`
 * take one block for all turns. `empty` calls two functions that do nothing, in a shared library,
 * instead. Runs with different TIMES differ by the instructions of the loop alone. `list` prints
 * the calls.
 */
#include <malloc.h>
#include <stdio.h>
#include <string.h>

#include <new>

extern "C" {
#include "empty_calls.h"
#include "workload.h"
}

/* Some compilers declare these only if they are told to call them. */
void operator delete(void *block, std::size_t size) noexcept;
void operator delete(void *block, std::size_t size, std::align_val_t alignment) noexcept;

namespace
{

/* What the compiler must believe to be used. */
volatile size_t sink;

void count_empty(long times)
{
    for (long i = 0; i < times; i++)
        empty_free(empty_malloc(64));
}

template <size_t size>
void count_malloc(long times)
{
    for (long i = 0; i < times; i++)
        free(malloc(size));
}

template <size_t size>
void count_calloc(long times)
{
    for (long i = 0; i < times; i++)
        free(calloc(1, size));
}

template <size_t alignment, size_t size>
void count_aligned_alloc(long times)
{
    for (long i = 0; i < times; i++)
        free(aligned_alloc(alignment, size));
}

void count_posix_memalign(long times)
{
    for (long i = 0; i < times; i++) {
        void *block;
        if (posix_memalign(&block, 32, 100) == 0)
            free(block);
    }
}

void count_realloc_in_place(long times)
{
    void *block = malloc(64);
    for (long i = 0; i < times; i++)
        block = realloc(block, 60 + (size_t)(i & 3));
    free(block);
}

void count_realloc_grows(long times)
{
    for (long i = 0; i < times; i++)
        free(realloc(realloc(malloc(16), 64), 200));
}

void count_usable_size(long times)
{
    void *block = malloc(64);
    size_t sum = 0;
    for (long i = 0; i < times; i++)
        sum += malloc_usable_size(block);
    sink = sum;
    free(block);
}

void count_new(long times)
{
    for (long i = 0; i < times; i++)
        ::operator delete(::operator new(64));
}

void count_new_array(long times)
{
    for (long i = 0; i < times; i++)
        ::operator delete[](::operator new[](64));
}

void count_new_sized(long times)
{
    for (long i = 0; i < times; i++)
        ::operator delete(::operator new(64), (size_t)64);
}

void count_new_nothrow(long times)
{
    for (long i = 0; i < times; i++)
        ::operator delete(::operator new(64, std::nothrow), std::nothrow);
}

void count_new_aligned(long times)
{
    for (long i = 0; i < times; i++)
        ::operator delete(::operator new(128, std::align_val_t(64)), 128, std::align_val_t(64));
}

const struct {
    const char *name;
    void (*count)(long times);
} calls[] = {
    {"empty", count_empty},
    {"malloc-64", count_malloc<64>},
    {"calloc-64", count_calloc<64>},
    {"calloc-400", count_calloc<400>},
    {"realloc-in-place", count_realloc_in_place},
    {"realloc-16-64-200", count_realloc_grows},
    {"aligned-64-128", count_aligned_alloc<64, 128>},
    {"aligned-64-2000", count_aligned_alloc<64, 2000>},
    {"aligned-4096-4096", count_aligned_alloc<4096, 4096>},
    {"posix-memalign-32-100", count_posix_memalign},
    {"usable-size", count_usable_size},
    {"new-64", count_new},
    {"new-array-64", count_new_array},
    {"new-sized-64", count_new_sized},
    {"new-nothrow-64", count_new_nothrow},
    {"new-aligned-64-128", count_new_aligned},
    {"malloc-1500", count_malloc<1500>},
    {"malloc-8000", count_malloc<8000>},
    {"malloc-30000", count_malloc<30000>},
    {"malloc-60000", count_malloc<60000>},
    {"malloc-131064", count_malloc<131064>},
    {"malloc-200000", count_malloc<200000>},
    {"malloc-2000000", count_malloc<2000000>},
};

} // namespace

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "list") == 0) {
        for (const auto &call : calls)
            puts(call.name);
        return 0;
    }
    for (const auto &call : calls)
        if (argc == 3 && strcmp(argv[1], call.name) == 0) {
            call.count(number_argument(argv[2], 0, 1000000000));
            return 0;
        }
    fprintf(stderr, "usage: %s CALL TIMES | %s list\n", argv[0], argv[0]);
    return 2;
}
