/*
 * Objects of several pages: clearing them, and looking whether they are zero, without a touch of
 * pages that the program never touched.
 *
 * The idea: reading a page that is not there is a page fault, which costs as much as clearing some
 * KiB; and two looks at a long block cost as much as its pages. So the system is asked which pages
 * are there (mincore). When an object is freed and few pages are there, these are cleared, and the
 * others are dropped all the same, as they may be swapped out; otherwise all are dropped. A later
 * look whether something was written to the object asks again, and reads the pages that are there.
 * What was written and then swapped out is not seen.
 *
 * Such objects are slabs of their own (hard_class.h). Of memory that is not the system's all pages
 * are taken to be there.
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

/* A bit for each page of a slab that is there, the lowest for the first; none if the system was not
 * asked. It tells which of the objects that nobody has had since the system gave their memory were
 * touched all the same. */
uint32_t pages_there(const struct provider *provider, uintptr_t start, size_t bytes);

/* Whether `there` has a page of an object, which begins `from` bytes behind the slab's start. */
static inline bool pages_have(uint32_t there, size_t from, size_t bytes)
{
    size_t page = os_kernel_page_size(), first = from / page, last = (from + bytes - 1) / page;
    return ((uint64_t)there >> first & (((uint64_t)2 << (last - first)) - 1)) != 0;
}

/* Whether an object of any size is zero. */
bool object_rests(const struct provider *provider, uintptr_t object, size_t bytes);

#endif
