/*
 * Heaps beside malloc's: which there are, and the threads' caches of them.
 *
 * The idea: such a heap has segments, slabs and cells of its own, so all that is in it can be given
 * back segment by segment. A thread that uses it often gets a cache of it, with the same magazines
 * as malloc's cache has (thread.h).
 *
 * Thread-safe but for heap_clear and heap_destroy: those need that nobody else uses that heap at
 * the moment. RANK_HEAPS.
 */
#ifndef SNUG_HEAP_USER_HEAPS_H
#define SNUG_HEAP_USER_HEAPS_H

#include "heap/thread.h"
#include "pageheap/segments.h"
#include "provider/quota.h"

/* What a heap is made with; zero is the default everywhere. */
struct heap_settings {
    const struct provider *provider; /* that must outlive the heap; NULL: the system */
    char *buffer;                    /* or: all the memory there is for it, bookkeeping included */
    size_t buffer_bytes;
    bool outside;  /* no bookkeeping in that memory; without a key, a header or a zero from snug */
    bool hardened; /* see hardened/hardened.h; not in a buffer, and not outside */
    size_t quota;  /* bytes that it may take; 0: any */
    size_t soft_limit; /* bytes above which call_back is called; 0: none */
    void (*call_back)(void *context, struct heap *heap, size_t missing);
    void *context; /* for call_back */
    const char *name;
};

/* Layout: a name's bytes in the record, its end included. */
enum { HEAP_NAME_MOST = 32 };

/* A smaller buffer is refused, for its descriptors, arena and first slabs would fill it. */
#define HEAP_BUFFER_LEAST SEGMENT_LEAST

/* A heap beside malloc's, and what only such a heap has. */
struct heap_record {
    struct heap heap;
    struct list link;   /* in the list of heaps */
    struct list caches; /* the threads' caches of it */
    bool caching;       /* threads may have caches of it */
    bool placed;        /* this record lies in the heap's own memory */
    struct arena *arena;
    struct quota quota;  /* the heap's provider */
    struct meta meta;    /* for descriptors, of a heap that may take nothing from the system */
    const char *range;   /* the start of the buffer's pages, as the page map knows it; or NULL */
    uintptr_t *entries;  /* of that range, where they do not lie in the buffer; or NULL */
    size_t range_bytes;  /* of them */
    size_t fixed_bytes;  /* of the buffer, for bookkeeping */
    size_t soft_limit;   /* SIZE_MAX: none */
    size_t told;         /* bytes taken when call_back was called for it last; 0: not since */
    const void *visitor; /* whose thread visits its blocks: nobody else may change anything */
    const void *caller;  /* whose is in call_back; both &thread_self there, or NULL */
    void (*call_back)(void *context, struct heap *heap, size_t missing);
    void *context;
    char name[HEAP_NAME_MOST];
};

/* A new heap; NULL: no memory, or the buffer is too small. */
struct heap *heap_create(const struct heap_settings *settings);

/* Frees everything in a heap at once. It stays usable. */
void heap_clear(struct heap *heap);

/* Frees everything in a heap, and the heap. */
void heap_destroy(struct heap *heap);

/* Calls `visit` with every live block of a heap, until it returns false; false if it did. Nobody
 * else may use the heap meanwhile, nor `visit`. (visit.c) */
bool heap_visit(struct heap *heap, bool (*visit)(void *context, void *block, size_t bytes),
                void *context);

/* Takes the blocks of a heap, which are about to be freed, out of the profile: those that may be
 * samples are its large ones, and of a hardened heap all. As heap_visit. (visit.c) */
void heap_forget_samples(struct heap *heap);

static inline struct heap *heap_of_page_heap(struct page_heap *page_heap)
{
    return CONTAINER_OF(page_heap, struct heap, page_heap);
}

/* The calling thread's cache of the heap with this page heap. The heap that was freed to last is
 * tried first: the next allocation would wait for the way from a pointer to its heap. */
static ALWAYS_INLINE struct cache *heap_cache_guess(struct page_heap *page_heap)
{
    const struct heap *heap = heap_of_page_heap(page_heap);
    struct heap_slot *slot = thread_self.last;
    if (UNLIKELY(slot->id != heap->id)) {
        slot = &thread_self.slots[heap->id % HEAP_SLOTS];
        thread_self.last = slot;
        if (slot->id != heap->id)
            return (struct cache *)&cache_none;
    }
    return slot->cache;
}

/* Puts a small object or a cell of a heap other than malloc's (`only`, or if that is NULL any) into
 * the calling thread's magazines. False: nothing was done, as for cache_push_of. */
static inline bool heap_push_other(const struct heap *only, uintptr_t address, size_t byte)
{
    uintptr_t tagged = page_map_home_entry(address);
    if (UNLIKELY(tagged == 0))
        tagged = page_map_entry(address);
    if (UNLIKELY(!entry_is_span(tagged)))
        return false;
    const struct span *span = (const struct span *)entry_untagged(tagged);
    struct page_heap *page_heap = span_home(span);
    if (UNLIKELY(only != NULL && page_heap != &only->page_heap))
        return false;
    struct cache *cache = heap_cache_guess(page_heap);
    if (UNLIKELY(byte != PAGE_MAP_OTHER))
        return cache_push_cell(cache, address);
    size_t class = entry_class(tagged);
    return cache_push_of(cache, address, LIKELY(class != 0) ? class : span->class);
}

/* The same for a block of this heap; false also if it is of another. */
static ALWAYS_INLINE bool heap_push(struct heap *heap, uintptr_t address)
{
    uintptr_t tagged = page_map_home_entry(address);
    size_t class = entry_class(tagged);
    if (UNLIKELY(class == 0))
        return false;
    const struct span *span = (const struct span *)entry_untagged(tagged);
    return LIKELY(span->segment->page_heap == &heap->page_heap) &&
           cache_push_of(heap_cache_fast(heap), address, class);
}

/* The heaps beside malloc's, by record->link; heaps_lock. */
extern INTERNAL struct list heaps_all;

/* Whether there are heaps beside malloc's, or were. */
bool heaps_exist(void);

/* Calls `act` for every heap but malloc's until it returns true; returns that heap, or NULL. The
 * list is locked meanwhile. */
struct heap *heaps_find(bool (*act)(struct heap *heap, void *context), void *context);

/* The one heap beside malloc's for which `is` says so. The one that was found last is asked first,
 * so that it does not take long for a program that goes on with it. */
struct heap *heaps_find_by(bool (*is)(struct heap *heap, void *context), void *context);

/* In every child of fork: forgets the heaps that it does not have (placed.h). */
void heaps_fork_in_child(void);

/* In a child of fork: makes orphans of all caches of all heaps but malloc's. */
void heaps_orphan(void);

/* In every child of fork: all heaps draw other random numbers than the parent's. */
void heaps_fork_dice(void);

/* Every heap's locks of one rank, and the list's; for fork, which leaves out those that are shared
 * with the child (placed.h). */
void heaps_each_lock_of(enum lock_rank rank, void (*act)(struct lock *lock));

#endif
