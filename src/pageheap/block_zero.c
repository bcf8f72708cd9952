/*
 * Memory that the system makes zero for less than it takes to write.
 *
 * The idea: what was handed out and freed counts as dirty, but a program may have touched little of
 * it, and writing zeros to the rest would make it present. So the system is asked what is there;
 * where that is little, or the range is long, it goes back and is zero when it is touched again.
 * For short ranges to ask costs a part of what writing does: they are asked about as long as that
 * pays, and otherwise at ever rarer occasions.
 *
 * Costs: writing zeros takes 0.5 us a page, and 1.5 more for each that is not there; giving pages
 * back 0.2 us for each that is there, and 1.5 for each that is touched again; to ask, 0.2 us and 10
 * ns a page.
 */
#include <string.h>

#include "pageheap/large.h"
#include "pageheap/page_heap_parts.h"
#include "platform/memory.h"

/* Less than this is written in less time than the system needs. */
#define SYSTEM_ZERO_LEAST (32 * KIB)

/* From here on to ask is a few percent of what writing costs. */
#define ALWAYS_ASKED (128 * KIB)

/* More than this is always left to the system. What was touched throughout once, and cleared by
 * hand ever since, would stay in memory for ever, however little of it is touched now. */
#define HAND_ZERO_MOST (32 * MIB)

/* So many occasions pass after the first that did not pay, and at most. */
enum { WAIT_LEAST = 8, WAIT_MOST = 1024 };

/* If as many pages will be touched as were, both ways take as long where five of eight are there.
 */
static bool is_mostly_resident(const char *start, size_t bytes)
{
    return os_resident_bytes(start, bytes) / 5 >= bytes / 8;
}

/* relaxed, here and below: hints, of whichever thread was last */
static bool pays_to_ask(struct zero_asked *asked)
{
    uint32_t wait = __atomic_load_n(&asked->wait, __ATOMIC_RELAXED);
    if (wait != 0)
        __atomic_store_n(&asked->wait, wait - 1, __ATOMIC_RELAXED);
    return wait == 0;
}

static void note_asked(struct zero_asked *asked, bool paid)
{
    uint32_t waited = __atomic_load_n(&asked->waited, __ATOMIC_RELAXED);
    waited = paid ? 0 : (uint32_t)size_min(size_max(2 * (size_t)waited, WAIT_LEAST), WAIT_MOST);
    __atomic_store_n(&asked->waited, waited, __ATOMIC_RELAXED);
    __atomic_store_n(&asked->wait, waited, __ATOMIC_RELAXED);
}

static bool is_better_written(struct page_heap *page_heap, const char *start, size_t bytes)
{
    if (bytes >= HAND_ZERO_MOST)
        return false;
    if (bytes >= ALWAYS_ASKED)
        return is_mostly_resident(start, bytes);
    if (!pays_to_ask(&page_heap->zero_asked))
        return true;
    bool written = is_mostly_resident(start, bytes);
    note_asked(&page_heap->zero_asked, !written);
    return written;
}

static bool zero_by_system(struct page_heap *page_heap, char *start, size_t bytes)
{
    return bytes >= SYSTEM_ZERO_LEAST && !page_heap->compact &&
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
