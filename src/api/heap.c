/*
 * Heaps for programs: snug_heap_*.
 */
#include <string.h>

#include "api/config.h"
#include "api/provider.h"
#include "api/slow.h"
#include "heap/totals.h"
#include "options/options.h"
#include "platform/output.h"
#include "platform/tags.h"
#include "report/report.h"
#include "snug/snug.h"

static struct heap *heap_in(snug_heap *heap)
{
    return (struct heap *)heap;
}

static snug_heap *heap_out(struct heap *heap)
{
    return (snug_heap *)heap;
}

/* ---- Create, clear, destroy ---- */

static bool config_is_sound(const struct snug_heap_config *config)
{
    if ((config->flags & ~(SNUG_HEAP_OUTSIDE | SNUG_HEAP_HARDENED)) != 0 ||
        config->flags == (SNUG_HEAP_OUTSIDE | SNUG_HEAP_HARDENED))
        return false;
    bool hardened = (config->flags & SNUG_HEAP_HARDENED) != 0;
    if (config->buffer != NULL)
        return !hardened && config->provider == NULL && config->quota == 0 &&
               config->buffer_bytes >= SNUG_HEAP_BUFFER_LEAST;
    return config->buffer_bytes == 0 &&
           (config->flags == 0 || hardened || config->provider != NULL);
}

COLD snug_heap *snug_heap_create(const struct snug_heap_config *config)
{
    struct snug_heap_config known = {.size = sizeof(known)};
    if ((config != NULL && !config_read(&known, sizeof(known), config, config->size)) ||
        !config_is_sound(&known)) {
        errno = EINVAL;
        return NULL;
    }
    struct heap_settings settings = {
        .provider = known.provider == NULL ? NULL : provider_in(known.provider),
        .buffer = known.buffer,
        .buffer_bytes = known.buffer_bytes,
        .outside = (known.flags & SNUG_HEAP_OUTSIDE) != 0,
        .hardened = (known.flags & SNUG_HEAP_HARDENED) != 0,
        .quota = known.quota,
        .soft_limit = known.soft_limit,
        .call_back = (void (*)(void *, struct heap *, size_t))known.on_limit,
        .context = known.context,
        .name = known.name,
    };
    return or_no_memory(heap_create(&settings));
}

void snug_heap_clear(snug_heap *heap)
{
    int error = errno;
    heap_clear(heap_in(heap));
    errno = error;
}

void snug_heap_destroy(snug_heap *heap)
{
    int error = errno;
    if (heap != NULL)
        heap_destroy(heap_in(heap));
    errno = error;
}

/* ---- Allocate and free ---- */

void *snug_heap_malloc(snug_heap *heap, size_t size)
{
    struct cache *cache = heap_cache_fast(heap_in(heap));
    if (UNLIKELY(!size_is_below(size, &page_map.small_sizes)))
        return malloc_above(size, heap_in(heap), cache);
    void *object = cache_pop(cache, class_of_size(size));
    return LIKELY(object != NULL) ? object : heap_alloc_small(size, heap_in(heap), cache);
}

void *snug_heap_calloc(snug_heap *heap, size_t count, size_t size)
{
    size_t bytes;
    if (UNLIKELY(__builtin_mul_overflow(count, size, &bytes)))
        return or_no_memory(NULL);
    void *object = cache_pop_zero(heap_cache_fast(heap_in(heap)), bytes);
    return LIKELY(object != NULL) ? object : heap_alloc_zero_in(heap_in(heap), bytes);
}

void *snug_heap_aligned_alloc(snug_heap *heap, size_t alignment, size_t size)
{
    if (UNLIKELY(!is_power_of_two(alignment))) {
        errno = EINVAL;
        return NULL;
    }
    void *object = cache_pop_aligned(heap_cache_fast(heap_in(heap)), alignment, size);
    return LIKELY(object != NULL) ? object : heap_alloc_aligned_in(heap_in(heap), alignment, size);
}

void snug_heap_free(snug_heap *heap, void *block)
{
    uintptr_t address = (uintptr_t)block;
    if (UNLIKELY(!heap_push(heap_in(heap), address)))
        heap_free_of(heap_in(heap), block, page_map_class(address));
}

void *snug_heap_realloc(snug_heap *heap, void *block, size_t size)
{
    if (block == NULL)
        return snug_heap_malloc(heap, size);
    if (UNLIKELY(size == 0 || heap_of(block) != heap_in(heap))) {
        snug_heap_free(heap, block); /* which says what is wrong */
        return NULL;
    }
    return or_no_memory(heap_resize(block, size));
}

/* ---- Ask ---- */

snug_heap *snug_heap_of(const void *block)
{
    struct heap *heap = heap_of(block);
    return heap == &heap_default ? NULL : heap_out(heap);
}

const char *snug_heap_name(const snug_heap *heap)
{
    return ((const struct heap *)heap)->record->name;
}

struct visitor {
    int (*visit)(void *context, void *block, size_t bytes);
    void *context;
};

static bool visit_block(void *context, void *block, size_t bytes)
{
    const struct visitor *visitor = context;
    if (tags_are_on()) /* the program's pointer to it */
        block = (void *)tags_of_memory((uintptr_t)block);
    return visitor->visit(visitor->context, block, bytes) != 0;
}

int snug_heap_visit(snug_heap *heap, int (*visit)(void *context, void *block, size_t bytes),
                    void *context)
{
    struct visitor visitor = {visit, context};
    return heap_visit(heap_in(heap), visit_block, &visitor);
}

int snug_heap_trim(snug_heap *heap)
{
    int error = errno;
    bool trimmed = heap_trim_of(heap_in(heap), 0) != 0;
    errno = error;
    return trimmed;
}

int snug_heap_check(snug_heap *heap)
{
    return report_damage(heap_check_of(heap_in(heap)));
}

COLD int snug_heap_get_statistics(snug_heap *heap, struct snug_heap_statistics *statistics)
{
    size_t size = statistics->size;
    if (size < sizeof(size_t))
        return EINVAL;
    const struct heap_record *record = heap_in(heap)->record;
    struct heap_totals totals = heap_totals_of(NULL, heap_in(heap), NULL);
    bool buffered = record->quota.under == &provider_none;
    struct snug_heap_statistics filled = {
        .size = size,
        .taken = totals.segments + totals.huge + totals.hardened.mapped,
        .peak = buffered ? totals.segments : record->quota.peak,
        .quota = record->quota.limit == SIZE_MAX ? 0 : record->quota.limit,
        .used = totals.small_live + totals.cells_live + totals.large + totals.huge +
                totals.hardened.live,
        .fixed = record->fixed_bytes,
    };
    filled.free = filled.taken > filled.used ? filled.taken - filled.used : 0;
    memset(statistics, 0, size);
    memcpy(statistics, &filled, size_min(size, sizeof(filled)));
    return 0;
}
