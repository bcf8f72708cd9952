/*
 * Frees that state the size of their block: free_sized, free_aligned_sized, operator delete with a
 * size. It is not needed, so it costs nothing where it is not looked at; with SNUG_CHECK=full, and
 * in the hardened preset, a size that cannot be that block's, or an alignment that its address does
 * not have, is reported as misuse, and the block is left alone. Hardened blocks know what was asked
 * for to the byte (hard_free); what is asked here is left to those of other heaps, and to empty
 * ones.
 */
#ifndef SNUG_API_SIZED_H
#define SNUG_API_SIZED_H

#include "meta/maker.h"
#include "options/options.h"
#include "slab/size_class.h"

/* Whether stated sizes are looked at. Then each free of malloc's heap is a slow one: no thread has
 * magazines of it. */
static inline bool sizes_are_checked(void)
{
    return UNLIKELY(options.check == CHECK_FULL || options.preset == PRESET_HARDENED);
}

/* Whether a block may have been asked for with this size and alignment (a power of two); reported
 * as misuse if not, as is a pointer to no block. The size that operator delete states is exact; a
 * block of C's functions may have been resized in place. */
bool size_is_possible(const void *block, size_t alignment, size_t size, enum maker maker);

/* Frees a block that no magazine took, which `maker` made as the program says. */
COLD void free_stated(void *block, size_t alignment, size_t size, enum maker maker);

#endif
