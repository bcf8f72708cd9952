/*
 * Clearing by hand, or by the system. See block_zero.h.
 */
#include "pageheap/block_zero.h"

#include <string.h>

#include "platform/memory.h"

/* Bytes (machine): from here on to ask what is there is a few percent of what writing costs. */
#define ALWAYS_ASKED (128 * KIB)

/* Bytes: what was cleared by hand ever since it was touched throughout would stay for ever. More is
 * always left to the system, however little of it is touched now. */
#define HAND_ZERO_MOST (32 * MIB)

/* Parts of 64 (machine): if as many pages will be touched as were, both ways take as long where so
 * many are there. */
enum { MOSTLY_RESIDENT = 40 };

static bool is_mostly_resident(const char *start, size_t bytes)
{
    return os_resident_bytes(start, bytes) / MOSTLY_RESIDENT >= bytes / 64;
}

static bool is_better_written(struct page_heap *page_heap, const char *start, size_t bytes)
{
    if (bytes >= HAND_ZERO_MOST)
        return false;
    if (bytes >= ALWAYS_ASKED)
        return is_mostly_resident(start, bytes);
    if (!backoff_try(&page_heap->zero_asked))
        return true;
    bool written = is_mostly_resident(start, bytes);
    backoff_note(&page_heap->zero_asked, !written);
    return written;
}

static bool zero_by_system(struct page_heap *page_heap, char *start, size_t bytes)
{
    return bytes >= RETENTION_PURGE_LEAST && !page_heap->compact &&
           !is_better_written(page_heap, start, bytes) &&
           page_heap->provider->purge(page_heap->provider, start, bytes);
}

void block_zero(struct page_heap *page_heap, void *block, size_t bytes)
{
    char *start = block, *end = start + bytes;
    char *from = (char *)align_up((uintptr_t)start, os_page_size());
    char *to = (char *)align_down((uintptr_t)end, os_page_size());
    if (from >= to || !zero_by_system(page_heap, from, (size_t)(to - from)))
        from = to = end;
    memset(start, 0, (size_t)(from - start));
    memset(to, 0, (size_t)(end - to));
}
