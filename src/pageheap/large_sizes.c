/*
 * Counting large blocks by size. See large_sizes.h.
 */
#include "pageheap/large_sizes.h"

NOINLINE void large_sizes_count(struct large_sizes *sizes, size_t bytes, size_t more)
{
    size_t row = large_row_of(bytes);
    GAUGE_ADD(sizes->blocks[row], more);
    GAUGE_ADD(sizes->bytes[row], more * bytes);
}
