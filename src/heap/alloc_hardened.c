/*
 * Taking, freeing and resizing in hardened heaps: what alloc.c and resize.c are for others.
 */
#include <errno.h>
#include <string.h>

#include "hardened/hard_fast.h"
#include "heap/empty.h"
#include "heap/harden.h"
#include "heap/reclaim.h"
#include "heap/tick.h"
#include "heap/user_heaps.h"
#include "platform/imports.h"
#include "profile/profile.h"
#include "profile/watch.h"

/* ---- The thread's cache ---- */

/* A thread gets one as late as any other cache (thread.h). */
static COLD struct hard_cache *self_new(void)
{
    if (!heap_thread_may_cache() || ++thread_self.slow_calls < CALLS_BEFORE_CACHE)
        return NULL;
    thread_self.slow_calls = 0;
    struct hard_cache *cache = hard_cache_new(heap_default.hardened);
    if (cache != NULL && !heap_thread_arm(cache)) {
        hard_cache_free(cache);
        cache = NULL;
    }
    if (cache != NULL)
        hard_cache_self = cache;
    return cache;
}

static ALWAYS_INLINE struct hard_cache *cache_of(struct heap *heap)
{
    if (UNLIKELY(heap != &heap_default))
        return heap_hard_cache(heap);
    return LIKELY(hard_cache_self != &hard_cache_none) ? hard_cache_self : self_new();
}

/* ---- Taking and freeing ---- */

static COLD void *alloc_again(struct heap *heap, size_t alignment, size_t bytes)
{
    void *block = NULL;
    enum reclaim_step step = RECLAIM_OWN;
    while (block == NULL && heap_reclaim(heap, size_max(bytes, alignment), &step))
        block = hard_alloc(heap->hardened, cache_of(heap), alignment, bytes);
    if (block != NULL)
        return block;
    errno = ENOMEM;
    return NULL;
}

static NOINLINE void *alloc_long(struct heap *heap, size_t bytes, size_t alignment)
{
    heap_poll_taking(heap);
    if (UNLIKELY(bytes == 0 && heap == &heap_default && alignment <= MIN_ALIGN)) {
        void *empty = empty_alloc();
        if (empty != NULL)
            return empty;
    }
    void *block = hard_alloc(heap->hardened, cache_of(heap), alignment, bytes);
    if (UNLIKELY(block == NULL))
        block = alloc_again(heap, alignment, bytes);
    else if (UNLIKELY(heap->record != NULL))
        heap_look_at_limit(heap, block);
    if (watch_is_on() && (watch_counts(bytes) & WATCH_PROFILE) != 0 && block != NULL)
        profile_put(block, bytes);
    return block;
}

/* A block of a size that is below `*sizes`, from the thread's cache; or of any from elsewhere. */
static ALWAYS_INLINE void *alloc_below(const size_t *sizes, struct heap *heap, size_t bytes,
                                       void *(*otherwise)(struct heap *, size_t, size_t))
{
    struct hard_cache *cache = hard_cache_self;
    if (UNLIKELY(!size_is_below(bytes - 1, sizes)) || UNLIKELY(cache->home != heap->hardened))
        return otherwise(heap, bytes, MIN_ALIGN);
    void *block = hard_pop(cache, bytes, sizes == &hard_short_sizes);
    return LIKELY(block != NULL) ? block : otherwise(heap, bytes, MIN_ALIGN);
}

/* What is looked at by another function is left to this, for the registers of the other. */
static NOINLINE void *alloc_middle(struct heap *heap, size_t bytes, size_t alignment)
{
    if (bytes < OBJECT_LONG)
        return alloc_long(heap, bytes, alignment);
    return alloc_below(&hard_fast_sizes, heap, bytes, alloc_long);
}

/* The zone of an address in a hardened one; it may have a tag. */
static inline struct hard_zone *zone_at(const void *pointer)
{
    return (struct hard_zone *)page_map_entry_fast((uintptr_t)pointer);
}

/* The pointer that the program gets to a block that was taken. */
static NOINLINE void *tagged(void *block, size_t bytes)
{
    if (block == NULL || page_map_class_call((uintptr_t)block) != PAGE_MAP_HARDENED)
        return block;
    return (void *)hard_tag(zone_at(block), (uintptr_t)block, bytes);
}

void *heap_malloc_hardened(size_t bytes, struct heap *heap)
{
    void *block = alloc_below(&hard_short_sizes, heap, bytes, alloc_middle);
    return tags_are_on() ? tagged(block, bytes) : block;
}

void *heap_alloc_hardened(struct heap *heap, size_t alignment, size_t bytes)
{
    if (alignment <= MIN_ALIGN)
        return heap_malloc_hardened(bytes, heap);
    void *block = alloc_long(heap, bytes, alignment);
    return tags_are_on() ? tagged(block, bytes) : block;
}

static COLD bool free_elsewhere(const void *block, struct misuse *misuse)
{
    *misuse = (struct misuse){.kind = MISUSE_OTHER_HEAP, .address = (uintptr_t)block};
    return false;
}

static COLD void free_refused(const struct misuse *misuse, struct said said)
{
    bool wrong_maker = misuse->kind == MISUSE_MAKER;
    misuse_report(wrong_maker ? maker_freer((enum maker)said.maker) : "free", misuse);
}

/* Whether a free that was refused is to be tried again, as the pair may be right after all. */
static COLD bool free_again(const struct misuse *misuse, struct said said)
{
    if (misuse->kind != MISUSE_MAKER ||
        !hard_makers_are_arrays(misuse->maker, (enum maker)said.maker) || !os_runtime_is_in_parts())
        return false;
    __atomic_store_n(&hard_arrays_alike, true, __ATOMIC_RELAXED);
    return true;
}

/* What counts of what is said of a block: only those of malloc's heap have other makers. */
static struct said said_of(const struct heap *heap, struct said said)
{
    if (heap != &heap_default)
        said.maker = MADE_BY_MALLOC;
    return said;
}

static NOINLINE void free_long(struct heap *only, void *block, struct said said)
{
    struct hard_zone *zone = (struct hard_zone *)page_map_entry_fast((uintptr_t)block);
    struct heap *heap = heap_of_page_heap((struct page_heap *)zone->span.owner);
    struct profile_block sample;
    struct misuse misuse;
    int error = errno; /* the program's; a system call of a provider's may write it */
    heap_poll(heap);
    bool freed;
    if (LIKELY(only == NULL || only == heap)) {
        if (profile_has_blocks())
            profile_take(block, &sample); /* before another thread has the address */
        freed = hard_free(heap->hardened, cache_of(heap), zone, (uintptr_t)block,
                          said_of(heap, said), &misuse);
    } else {
        freed = free_elsewhere(block, &misuse);
    }
    if (UNLIKELY(!freed) && !free_again(&misuse, said))
        free_refused(&misuse, said);
    else if (UNLIKELY(!freed))
        free_long(only, block, said);
    errno = error;
}

static NOINLINE void turn(struct hard_cache *cache)
{
    int error = errno; /* as in free_long */
    heap_poll(&heap_default);
    hard_cache_turn(cache);
    errno = error;
}

/* The zone of an address in a hardened one, if it is of the heap that a thread's cache is of and no
 * block is a sample; NULL: it is not, or some are. */
static ALWAYS_INLINE const struct hard_zone *zone_fast(const struct hard_cache *cache,
                                                       const void *block)
{
    if (UNLIKELY(!page_map_is_home((uintptr_t)block)))
        return NULL;
    const struct hard_zone *zone =
        (const struct hard_zone *)page_map_home_entry_of((uintptr_t)block);
    if (UNLIKELY(zone->owner != cache->owner) || UNLIKELY(profile_has_blocks()))
        return NULL;
    if (zone == NULL) /* callers then ask once only */
        __builtin_unreachable();
    return zone;
}

static NOINLINE void push_rest(struct hard_cache *cache, struct hard_entry entry)
{
    if (UNLIKELY(hard_push_rest(cache, entry)))
        turn(cache);
}

/* As hard_push. The address is of a hardened zone. */
static ALWAYS_INLINE enum hard_pushed push_fast(void *block, struct said said, bool first)
{
    struct hard_cache *cache = hard_cache_self;
    const struct hard_zone *zone = zone_fast(cache, block);
    if (UNLIKELY(zone == NULL))
        return HARD_NOT_PUSHED;
    struct hard_entry entry;
    enum hard_pushed pushed = hard_push(cache, zone, (uintptr_t)block, said, first, &entry);
    if (UNLIKELY(pushed == HARD_PUSHED_TURN))
        turn(cache);
    else if (UNLIKELY(pushed == HARD_CLAIMED))
        push_rest(cache, entry);
    return pushed;
}

static ALWAYS_INLINE void free_any(struct heap *only, void *block, struct said said)
{
    if (only != NULL || UNLIKELY(push_fast(block, said, true) == HARD_NOT_PUSHED))
        free_long(only, block, said);
}

/* By the program's pointer, which may have a tag; the rest goes by the address. */
static NOINLINE void free_tagged(struct heap *only, void *block, struct said said)
{
    struct misuse misuse;
    if (UNLIKELY(!hard_tag_fits(zone_at(block), (uintptr_t)block, &misuse))) {
        misuse_report("free", &misuse);
        return;
    }
    bool ignored = tags_ignore(true); /* a poll may have called what calls this */
    free_any(only, (void *)tags_strip((uintptr_t)block), said);
    tags_ignore(ignored);
}

void heap_free_hardened(struct heap *only, void *block, struct said said)
{
    if (tags_are_on())
        free_tagged(only, block, said);
    else
        free_any(only, block, said);
}

/* What is the first of its slab is left to the other, for the registers of this. */
void heap_free_plain_hardened(void *block)
{
    const struct said plain = said_unsized(MADE_BY_MALLOC);
    if (tags_are_on()) {
        free_tagged(NULL, block, plain);
        return;
    }
    enum hard_pushed pushed = push_fast(block, plain, false);
    if (UNLIKELY(pushed == HARD_NOT_HERE))
        heap_free_hardened(NULL, block, plain);
    else if (UNLIKELY(pushed == HARD_NOT_PUSHED))
        free_long(NULL, block, plain);
}

/* ---- Resizing ---- */

/* Without a lock, as long as nothing is wrong and nothing runs out; NULL: nothing was done. */
static void *resize_fast(void *block, size_t bytes)
{
    struct hard_cache *cache = hard_cache_self;
    if (!size_is_below(bytes - 1, &hard_fast_sizes))
        return NULL;
    const struct hard_zone *zone = zone_fast(cache, block);
    if (zone == NULL)
        return NULL;
    size_t old;
    enum hard_resized resized = hard_resize_fast(zone, (uintptr_t)block, bytes, &old);
    if (resized != HARD_MOVES)
        return resized == HARD_RESIZED ? block : NULL;
    int error = errno;
    void *moved = heap_malloc_hardened(bytes, &heap_default);
    if (moved == NULL) {
        errno = error; /* the long way may do without */
        return NULL;
    }
    memcpy(moved, block, size_min(old, bytes));
    if (tags_are_on())
        free_any(NULL, block, said_unsized(MADE_BY_MALLOC));
    else
        heap_free_plain_hardened(block);
    return moved;
}

/* The same of any block. */
static COLD void *resize_long(void *block, size_t bytes)
{
    size_t old_bytes;
    struct hard_zone *zone = (struct hard_zone *)page_map_entry((uintptr_t)block);
    struct heap *heap = heap_of_page_heap((struct page_heap *)zone->span.owner);
    struct misuse misuse = hard_usable((uintptr_t)block, &old_bytes);
    heap_poll_taking(heap);
    if (misuse.kind == MISUSE_NONE && !hard_maker_fits(misuse.maker, MADE_BY_MALLOC)) {
        misuse.kind = MISUSE_MAKER;
        misuse.address = (uintptr_t)block;
        misuse.bytes = old_bytes;
    }
    misuse_report("realloc", &misuse);
    if (misuse.kind != MISUSE_NONE || bytes > MAX_REQUEST)
        return NULL;
    int error = errno;
    if (!profile_has_blocks() && hard_resize(heap->hardened, (uintptr_t)block, bytes))
        return block;
    void *moved = heap_alloc_hardened(heap, MIN_ALIGN, bytes);
    if (moved == NULL && bytes > old_bytes)
        return NULL;
    if (moved == NULL) { /* as elsewhere; see resize_plain.c */
        errno = error;
        return block;
    }
    memcpy(moved, block, size_min(old_bytes, bytes));
    heap = heap == &heap_default ? NULL : heap;
    if (tags_are_on())
        free_any(heap, block, said_unsized(MADE_BY_MALLOC));
    else
        heap_free_hardened(heap, block, said_unsized(MADE_BY_MALLOC));
    return moved;
}

static inline void *resize_any(void *block, size_t bytes)
{
    void *resized = resize_fast(block, bytes);
    return resized != NULL ? resized : resize_long(block, bytes);
}

/* What moves gets its tag as it is taken; what stays keeps it, and has it as far as it goes now. */
static COLD void *resize_tagged(void *block, size_t bytes)
{
    uintptr_t pointer = (uintptr_t)block, address = tags_strip(pointer);
    const struct hard_zone *zone = zone_at(block);
    struct misuse misuse;
    if (!hard_tag_fits(zone, pointer, &misuse)) {
        misuse_report("realloc", &misuse);
        return NULL;
    }
    bool ignored = tags_ignore(true); /* a poll may have called what calls this */
    void *resized = resize_any((void *)address, bytes);
    if (resized == (void *)address) {
        misuse = hard_usable(address, &bytes);
        hard_tag_again(zone, pointer, bytes);
        resized = block;
    }
    tags_ignore(ignored);
    return resized;
}

void *heap_resize_hardened(void *block, size_t bytes)
{
    return tags_are_on() ? resize_tagged(block, bytes) : resize_any(block, bytes);
}

/* ---- Size ---- */

struct misuse heap_usable_hardened(uintptr_t address, size_t *bytes)
{
    struct misuse misuse;
    if (tags_are_on() && !hard_tag_fits(zone_at((void *)address), address, &misuse))
        return misuse;
    return hard_usable(tags_strip(address), bytes);
}
