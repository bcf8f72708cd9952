/*
 * Objects of several pages: clearing them, and looking whether they are zero, without a touch of
 * pages that the program never touched.
 *
 * The idea: who reads a page that is not there is given one, by a page fault, which costs as much
 * as clearing some KiB, and two looks at a long block cost as much as its pages. So the system is
 * asked which pages are there (mincore). If they are few they are cleared, and what is not there is
 * dropped all the same, as it may be swapped out; otherwise all goes back. Who looks whether
 * something was written to the object since asks again. What was written and then swapped out is
 * not seen.
 *
 * Such objects are slabs of their own (hard_class.h). Other memory than the system's is asked for
 * nothing, but read.
 */
#ifndef SNUG_HARDENED_HARD_PAGES_H
#define SNUG_HARDENED_HARD_PAGES_H

#include "hardened/canary.h"
#include "hardened/hard_class.h"
#include "provider/provider.h"

/* Bytes: an object that is longer, and written in full, is given back and made present again in
 * about the time in which it is cleared and looked at. */
#define HARD_PAGES_LEAST (32 * KIB)

static ALWAYS_INLINE bool has_pages(size_t bytes)
{
    return bytes > HARD_PAGES_LEAST;
}

/* Whether all of such an object is zero. */
bool pages_are_zero(const struct provider *provider, uintptr_t object, size_t bytes);

/* Clears all of it; no more than a few pages of it take memory then. */
void pages_clear(const struct provider *provider, uintptr_t object, size_t bytes);

/* A bit for each page, of a slab, that is there, the first the lowest; none if the system was not
 * asked. It is to find out which of the objects that nobody has had since the system gave their
 * memory were touched all the same. */
uint32_t pages_there(const struct provider *provider, uintptr_t start, size_t bytes);

/* Whether a page of an object, which begins so many bytes behind the first, is among them. */
static inline bool pages_have(uint32_t there, size_t from, size_t bytes)
{
    size_t page = os_kernel_page_size(), first = from / page, last = (from + bytes - 1) / page;
    return ((uint64_t)there >> first & (((uint64_t)2 << (last - first)) - 1)) != 0;
}

/* Whether an object of any size is zero. */
bool object_rests(const struct provider *provider, uintptr_t object, size_t bytes);

#endif
