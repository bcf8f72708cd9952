/*
 * The provider that takes private anonymous memory from the system and counts the calls.
 */
#include "options/options.h"
#include "platform/memory.h"
#include "provider/limit.h"
#include "provider/names.h"
#include "provider/provider.h"
#include "stats/stats.h"

/* Huge pages are for heaps that have grown; in a small one they are mostly memory that nobody
 * asked for. */
#define HUGE_PAGES_FROM (24 * MIB)

/* Whether a heap that `bytes` more have been, or are to be, taken for may have huge pages. */
static bool may_have_huge_pages(size_t bytes)
{
    size_t mapped = COUNTED(map_bytes) - COUNTED(unmap_bytes);
    return options.huge_pages == HUGE_PAGES_ALWAYS ||
           (options.huge_pages == HUGE_PAGES_AUTO && mapped + bytes >= HUGE_PAGES_FROM);
}

static enum os_pages pages_for(size_t bytes)
{
    return may_have_huge_pages(bytes) ? OS_PAGES_ANY : OS_PAGES_SMALL;
}

static void *take(const struct provider *provider, size_t bytes, size_t alignment)
{
    (void)provider;
    if (!limit_take(bytes))
        return NULL;
    enum os_pages pages = pages_for(bytes);
    void *start = alignment <= os_page_size() ? os_map(bytes, pages)
                                              : os_map_aligned(bytes, alignment, pages);
    if (start == NULL) {
        limit_give(bytes);
        return NULL;
    }
    COUNT(map_calls, 1);
    COUNT(map_bytes, bytes);
    mapping_name(start, bytes, "snug heap");
    return start;
}

static bool give(const struct provider *provider, void *start, size_t bytes)
{
    (void)provider;
    if (!os_unmap(start, bytes))
        return false;
    limit_give(bytes);
    COUNT(unmap_calls, 1);
    COUNT(unmap_bytes, bytes);
    return true;
}

static bool purge(const struct provider *provider, void *start, size_t bytes)
{
    (void)provider;
    if (!os_purge(start, bytes))
        return false;
    COUNT(purge_calls, 1);
    COUNT(purge_bytes, bytes);
    return true;
}

static void *resize(const struct provider *provider, void *start, size_t old_bytes,
                    size_t new_bytes, bool may_move)
{
    (void)provider;
    size_t more = new_bytes > old_bytes ? new_bytes - old_bytes : 0;
    size_t less = old_bytes > new_bytes ? old_bytes - new_bytes : 0;
    if (!limit_take(more))
        return NULL;
    void *moved = os_remap(start, old_bytes, new_bytes, may_move);
    if (moved == NULL) {
        limit_give(more);
        return NULL;
    }
    limit_give(less);
    COUNT(remap_calls, 1);
    COUNT(map_bytes, more);
    COUNT(unmap_bytes, less);
    return moved;
}

static void prepare(const struct provider *provider, void *start, size_t bytes)
{
    (void)provider;
    if (options.prefault != 0)
        os_populate(start, size_min(bytes, align_up(options.prefault, os_page_size())));
}

static bool want_huge(const struct provider *provider, void *start, size_t bytes, bool huge)
{
    (void)provider;
    if (huge && (!may_have_huge_pages(0) || bytes < OS_HUGE_PAGE))
        return false;
    os_advise_huge_pages(start, bytes, huge);
    return huge;
}

const struct provider provider_os = {.take = take,
                                     .give = give,
                                     .purge = purge,
                                     .resize = resize,
                                     .prepare = prepare,
                                     .want_huge = want_huge};
