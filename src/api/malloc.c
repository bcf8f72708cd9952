/*
 * malloc, free and friends: the functions that programs call.
 *
 * The fast paths are inlined from magazine/fast.h and leave by a jump to a slow path; what the
 * compiler makes of them stands in docs/decisions/0001-fast-path.md.
 */
#include <string.h>

#include "api/sized.h"
#include "api/slow.h"
#include "heap/resize.h"
#include "heap/tick.h"
#include "magazine/counted.h"
#include "platform/memory.h"
#include "snug/snug.h"
#include "stats/event.h"

/* The class of a page far from home takes longer to find. */
static NOINLINE void free_far(void *block)
{
    uintptr_t address = (uintptr_t)block;
    size_t class = page_map_far_class(address);
    struct cache *cache = thread_self.cache;
    if (!class_byte_is_small(class) || !cache_push_of(cache, address, class))
        free_above(block, class, cache);
}

/* ---- malloc and free ---- */

HOT void *snug_malloc(size_t size)
{
    struct cache *cache = thread_self.cache;
    if (UNLIKELY(!size_is_below(size, &page_map.small_sizes)))
        return malloc_above(size, &heap_default, cache);
    void *object = cache_pop(cache, class_of_size(size));
    return LIKELY(object != NULL) ? object : heap_alloc_small(size, &heap_default, cache);
}

HOT void snug_free(void *block)
{
    uintptr_t address = (uintptr_t)block;
    if (UNLIKELY(!page_map_is_home(address))) {
        free_far(block);
        return;
    }
    size_t class = page_map_home_class(address);
    struct cache *cache = thread_self.cache;
    if (UNLIKELY(!cache_put(cache, address, class)))
        free_above(block, class, cache);
}

void free_stated(void *block, size_t alignment, size_t size, enum maker maker)
{
    if (page_map_class((uintptr_t)block) == PAGE_MAP_HARDENED &&
        LIKELY(((uintptr_t)block & (alignment - 1)) == 0))
        heap_free_hardened(NULL, block, said_size(size, maker_that_counts(maker)));
    else if (!sizes_are_checked() || block == NULL ||
             size_is_possible(block, alignment, size, maker))
        snug_free(block);
}

/* Programs hardly use these two, so they have no way of their own that is fast. */
void snug_free_sized(void *block, size_t size)
{
    free_stated(block, MIN_ALIGN, size, MADE_BY_MALLOC);
}

void snug_free_aligned_sized(void *block, size_t alignment, size_t size)
{
    free_stated(block, alignment, size, MADE_BY_MALLOC);
}

HOT void *snug_calloc(size_t count, size_t size)
{
    size_t bytes;
    if (UNLIKELY(__builtin_mul_overflow(count, size, &bytes)))
        return or_no_memory(NULL);
    void *object = cache_pop_zero(thread_self.cache, bytes);
    return LIKELY(object != NULL) ? object : heap_alloc_zero(bytes);
}

/* ---- realloc ----
 *
 * A small object of up to BYTES_SHORT that moves to another goes by the magazines alone. A cell, or
 * a larger object, that has to move goes by what malloc and free come to next: mostly both blocks
 * wait in a magazine or a quick list. All else is the heap layer's (heap/resize.c): large blocks,
 * those of other heaps, and each call while requests are looked at, or something is asked for. */

/* Moves a live cell or small object of malloc's heap, of which `old_size` may be used, to where one
 * of `size`, from 1 to CELL_MOST, is to be, while nobody looks. What grows becomes a cell
 * (heap/resize_plain.c). */
static NOINLINE void *realloc_moved(void *block, size_t old_size, size_t size)
{
    heap_poll_taking(&heap_default); /* only a tick may wait */
    struct cache *cache = thread_self.cache;
    size_t wish = bytes_to_grow(old_size, size), dirty;
    void *moved = NULL;
    if (wish <= (size > old_size ? BYTES_SHORT : SMALL_MOST))
        moved = cache_pop_bytes(cache, wish);
    else if (wish <= CELL_MOST)
        moved = cell_alloc(&heap_default, cache, wish, &dirty);
    if (UNLIKELY(moved == NULL))
        return or_no_memory(heap_resize(block, size));
    memcpy(moved, block, size_min(old_size, size));
    snug_free(block);
    return moved;
}

static NOINLINE void *realloc_slow(void *block, size_t size)
{
    if (block == NULL)
        return snug_malloc(size);
    if (UNLIKELY(size == 0)) {
        snug_free(block);
        return NULL;
    }
    size_t old_size = place_cell_bytes(page_map_class_call((uintptr_t)block), (uintptr_t)block);
    if (UNLIKELY(old_size == 0) || size > CELL_MOST || watch_is_on() ||
        UNLIKELY(events_requested()))
        return or_no_memory(heap_resize_known(block, size, old_size));
    if (!resize_cell(block, old_size, size))
        return realloc_moved(block, old_size, size);
    heap_poll_taking(&heap_default); /* a program that only resizes ticks as well */
    return block;
}

/* The same while requests are looked at (profile/watch.h), and what the magazines leave. */
static COLD void *realloc_counted(void *block, size_t class, size_t size)
{
    void *moved = NULL;
    if (size <= BYTES_SHORT && cache_may_count(size))
        moved = cache_pop_counted(thread_self.cache, class_of_size(size), size);
    if (moved == NULL)
        return realloc_slow(block, size);
    memcpy(moved, block, size_min(class_size(class), size));
    snug_free(block);
    return moved;
}

/* An object that a magazine has instead of the small one of this class at `block`. */
static NOINLINE void *realloc_by_copy(void *block, size_t class, size_t size)
{
    struct cache *cache = thread_self.cache;
    uintptr_t address = (uintptr_t)block;
    void *moved = NULL;
    if (size <= BYTES_SHORT)
        moved = cache_pop_copy(cache, address, class_size(class), size);
    if (UNLIKELY(moved == NULL)) {
        if (watch_is_on())
            return realloc_counted(block, class, size);
        bool near = size != 0 && size <= CELL_MOST && LIKELY(!events_requested());
        return near ? realloc_moved(block, class_size(class), size) : realloc_slow(block, size);
    }
    if (UNLIKELY(!cache_push_of(cache, address, class)))
        heap_free_slow(block, class);
    return moved;
}

HOT void *snug_realloc(void *block, size_t size)
{
    uintptr_t address = (uintptr_t)block;
    if (UNLIKELY(!page_map_is_home(address)))
        return realloc_slow(block, size);
    size_t class = page_map_home_class(address);
    if (UNLIKELY(!object_is_live(address, class)))
        return realloc_slow(block, size);
    if (!object_stays(class_size(class), size))
        return realloc_by_copy(block, class, size);
    return LIKELY(!events_wait()) ? block : realloc_slow(block, size);
}

void *snug_reallocarray(void *block, size_t count, size_t size)
{
    size_t bytes;
    if (UNLIKELY(__builtin_mul_overflow(count, size, &bytes)))
        return or_no_memory(NULL);
    return snug_realloc(block, bytes);
}

/* ---- Aligned ---- */

HOT void *snug_aligned_alloc(size_t alignment, size_t size)
{
    if (UNLIKELY(!is_power_of_two(alignment))) {
        errno = EINVAL;
        return NULL;
    }
    void *object = cache_pop_aligned(thread_self.cache, alignment, size);
    return LIKELY(object != NULL) ? object : heap_alloc_aligned(alignment, size);
}

/* An alignment that is no power of two stands for the next. */
static NOINLINE void *memalign_slow(size_t alignment, size_t size)
{
    if (UNLIKELY(alignment > SIZE_MAX / 2 + 1)) { /* there is no power of two above */
        errno = EINVAL;
        return NULL;
    }
    size_t power = MIN_ALIGN;
    while (power < alignment)
        power *= 2;
    return heap_alloc_aligned(power, size);
}

void *snug_memalign(size_t alignment, size_t size)
{
    return LIKELY(is_power_of_two(alignment)) ? snug_aligned_alloc(alignment, size)
                                              : memalign_slow(alignment, size);
}

static NOINLINE int posix_memalign_slow(void **result, size_t alignment, size_t size)
{
    int error = errno; /* which a failing system call of libc's may write */
    void *block = heap_alloc_aligned(alignment, size);
    if (UNLIKELY(block == NULL))
        return ENOMEM; /* errno is that as well: glibc sets it, and programs read it */
    errno = error;
    *result = block;
    return 0;
}

HOT int snug_posix_memalign(void **result, size_t alignment, size_t size)
{
    if (UNLIKELY(!is_power_of_two(alignment) || alignment % sizeof(void *) != 0))
        return EINVAL;
    void *object = cache_pop_aligned(thread_self.cache, alignment, size);
    if (UNLIKELY(object == NULL))
        return posix_memalign_slow(result, alignment, size);
    *result = object;
    return 0;
}

void *snug_valloc(size_t size)
{
    return heap_alloc_aligned(os_page_size(), size);
}

void *snug_pvalloc(size_t size)
{
    size_t page = os_page_size();
    if (UNLIKELY(size > MAX_REQUEST))
        return or_no_memory(NULL);
    return heap_alloc_aligned(page, align_up(size + (size == 0), page));
}

/* ---- Size ---- */

static NOINLINE size_t usable_size_slow(const void *block)
{
    return block == NULL ? 0 : heap_usable(block, "malloc_usable_size");
}

HOT size_t snug_malloc_usable_size(void *block)
{
    uintptr_t address = (uintptr_t)block;
    if (UNLIKELY(!page_map_is_home(address)))
        return usable_size_slow(block);
    size_t class = page_map_home_class(address);
    return LIKELY(object_is_live(address, class)) ? class_size(class) : usable_size_slow(block);
}

/* ---- The names that programs know ---- */

#if defined(SNUG_OVERRIDE)
/* The names are made by the assembler, not declared: the compiler has its own idea of some. */
#define OVERRIDE_ALLOC(name, function) \
    extern __typeof(function) override_##name __asm__(#name) \
        __attribute__((alias(#function), visibility("default")));
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored \
    "-Wmissing-attributes" /* there are none to miss: nobody calls them */
#endif
#define OVERRIDE_INFO(name, function)
#include "api/overrides.def"
#endif
