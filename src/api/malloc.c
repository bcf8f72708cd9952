/*
 * malloc, free and friends: the functions that programs call.
 *
 * The fast paths are inlined from magazine/fast.h and leave by a jump to a slow path; what the
 * compiler makes of them stands in docs/decisions/0001-fast-path.md.
 */
#include "api/slow.h"
#include "platform/memory.h"
#include "snug/snug.h"

/* ---- Slow paths ---- */

/* Above the small sizes: cells, the most part of them from the thread's quick lists. */
static NOINLINE void *malloc_medium(size_t size, struct heap *heap, struct cache *cache)
{
    void *cell = LIKELY(size <= CELL_MOST) ? cache_pop_cell(cache, size) : NULL;
    return LIKELY(cell != NULL) ? cell : heap_alloc_with(heap, cache, size);
}

NOINLINE void *malloc_slow(size_t size, struct heap *heap, struct cache *cache)
{
    if (size > SMALL_MOST)
        return malloc_medium(size, heap, cache);
    return heap_alloc_with(heap, cache, size);
}

/* Cells, and what is not of malloc's heap. */
static NOINLINE void free_elsewhere(void *block, size_t class, struct heap *only)
{
    uintptr_t address = (uintptr_t)block;
    bool done = class == PAGE_MAP_CELL
                    ? LIKELY(only == NULL) && cache_push_cell(thread_self.cache, address)
                    : heap_push_other(only, address, class);
    if (UNLIKELY(!done))
        heap_free_of(only, block, class);
}

NOINLINE void free_slow(void *block, size_t class, struct heap *only)
{
    if (class >= PAGE_MAP_CELL)
        free_elsewhere(block, class, only);
    else
        heap_free_of(only, block, class);
}

/* The class of a page far from home takes longer to find. */
static NOINLINE void free_far(void *block)
{
    uintptr_t address = (uintptr_t)block;
    size_t class = page_map_far_class(address);
    if (!cache_push_of(thread_self.cache, address, class))
        free_slow(block, class, NULL);
}

/* ---- malloc and free ---- */

HOT void *snug_malloc(size_t size)
{
    if (LIKELY(size <= SMALL_MOST)) {
        void *object = cache_pop(thread_self.cache, class_of_size(size));
        if (LIKELY(object != NULL))
            return object;
    }
    return malloc_slow(size, &heap_default, thread_self.cache);
}

HOT void snug_free(void *block)
{
    uintptr_t address = (uintptr_t)block;
    if (UNLIKELY(!page_map_is_home(address))) {
        free_far(block);
        return;
    }
    size_t class = page_map_home_class(address);
    if (UNLIKELY(!cache_push_of(thread_self.cache, address, class)))
        free_slow(block, class, NULL);
}

void snug_free_sized(void *block, size_t size)
{
    (void)size;
    snug_free(block);
}

void snug_free_aligned_sized(void *block, size_t alignment, size_t size)
{
    (void)alignment;
    (void)size;
    snug_free(block);
}

/* ---- calloc and realloc ---- */

void *snug_calloc(size_t count, size_t size)
{
    size_t bytes;
    if (UNLIKELY(__builtin_mul_overflow(count, size, &bytes)))
        return or_no_memory(NULL);
    return heap_alloc_zero(bytes);
}

void *snug_realloc(void *block, size_t size)
{
    if (block == NULL)
        return snug_malloc(size);
    if (UNLIKELY(size == 0)) {
        snug_free(block);
        return NULL;
    }
    return or_no_memory(heap_resize(block, size));
}

void *snug_reallocarray(void *block, size_t count, size_t size)
{
    size_t bytes;
    if (UNLIKELY(__builtin_mul_overflow(count, size, &bytes)))
        return or_no_memory(NULL);
    return snug_realloc(block, bytes);
}

/* ---- Aligned ---- */

void *snug_aligned_alloc(size_t alignment, size_t size)
{
    if (UNLIKELY(!is_power_of_two(alignment))) {
        errno = EINVAL;
        return NULL;
    }
    return heap_alloc_aligned(alignment, size);
}

void *snug_memalign(size_t alignment, size_t size)
{
    if (UNLIKELY(alignment > MAX_REQUEST)) {
        errno = EINVAL;
        return NULL;
    }
    size_t power = MIN_ALIGN;
    while (power < alignment)
        power *= 2;
    return heap_alloc_aligned(power, size);
}

int snug_posix_memalign(void **result, size_t alignment, size_t size)
{
    if (UNLIKELY(!is_power_of_two(alignment) || alignment % sizeof(void *) != 0))
        return EINVAL;
    int error = errno; /* which a failing system call of libc's may write */
    void *block = heap_alloc_aligned(alignment, size);
    if (UNLIKELY(block == NULL))
        return ENOMEM; /* errno is that as well: glibc sets it, and programs read it */
    errno = error;
    *result = block;
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

size_t snug_malloc_usable_size(void *block)
{
    return block == NULL ? 0 : heap_usable(block, "malloc_usable_size");
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
