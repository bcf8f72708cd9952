/*
 * The process's own heap, for the tests of what stands above it.
 */
#ifndef SNUG_TESTS_UNIT_HEAP_SUPPORT_H
#define SNUG_TESTS_UNIT_HEAP_SUPPORT_H

#include "heap/totals.h"
#include "heap_calls.h"
#include "support.h"

/* Fails unless heap_check is content. */
void assert_heap_sound(void);

/* The objects of one size class of the process's heap. */
static inline struct class_totals class_totals(size_t class)
{
    return heap_class_totals_of(NULL, &heap_default, class);
}

/* A block that must be had. */
char *block_get(size_t bytes);

/* Whether one large block lies right behind another, of so many bytes. */
static inline bool is_behind(const char *block, const char *other, size_t bytes)
{
    return block == other + align_up(bytes, PAGE_BYTES);
}

/* Stops the exact clock of malloc's heap, by which it sees whether what it maps is memory at once:
 * the processor's own runs on while another process has the processor, and segments are shorter. */
void heap_clock_stop(void);

/* Runs a test once with magazines and once without. */
void with_and_without_cache(void (*test)(void));

/* The bytes of a pattern that depends on the place and on `seed`. */
void pattern_fill(char *block, size_t bytes, uint64_t seed);
bool pattern_holds(const char *block, size_t bytes, uint64_t seed);

bool all_zero(const char *block, size_t bytes);

/* Sizes around all borders of the heap, ending with 0. */
extern const size_t border_sizes[];

#endif
