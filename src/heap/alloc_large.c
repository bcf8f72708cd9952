/*
 * The short way of large blocks of malloc's heap: what was freed last is taken again, or waits for
 * that. All else goes the long way, in alloc.c. These are functions of their own so that they need
 * few registers.
 */
#include "pageheap/large_recent.h"

#include "heap/alloc.h"
#include "heap/tick.h"

void *heap_alloc_large(size_t bytes)
{
    heap_poll(&heap_default);
    void *block = large_alloc_recent(&heap_default.page_heap, bytes, PAGE_BYTES);
    return LIKELY(block != NULL) ? block
                                 : heap_alloc_polled(&heap_default, thread_self.cache, bytes);
}

void heap_free_large(void *block)
{
    if (UNLIKELY(block == NULL))
        return;
    heap_poll(&heap_default);
    struct profile_block sample;
    if (profile_has_blocks())
        profile_take(block, &sample); /* before another thread has the address */
    if (UNLIKELY(!large_free_recent(&heap_default.page_heap, (uintptr_t)block)))
        heap_free_polled(block);
}
