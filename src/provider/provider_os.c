/*
 * The provider that takes private anonymous memory from the system and counts the calls.
 */
#include <string.h>

#include "options/options.h"
#include "platform/clock.h"
#include "platform/memory.h"
#include "provider/limit.h"
#include "provider/names.h"
#include "provider/provider.h"
#include "stats/stats.h"

static unsigned reserve(void)
{
    return options.overcommit != 0 ? OS_PAGES_UNRESERVED : 0;
}

static void *alloc_pages(size_t bytes, size_t alignment, unsigned pages)
{
    if (!limit_take(bytes))
        return NULL;
    pages |= reserve();
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

static void *take(const struct provider *provider, size_t bytes, size_t alignment)
{
    (void)provider;
    bool asked = options.huge_pages == HUGE_PAGES_ALWAYS;
    return alloc_pages(bytes, alignment, asked ? OS_PAGES_ANY : OS_PAGES_SMALL);
}

static void *take_block(const struct provider *provider, size_t bytes, size_t alignment)
{
    (void)provider;
    bool declined = options.huge_pages == HUGE_PAGES_NEVER;
    return alloc_pages(bytes, alignment, declined ? OS_PAGES_SMALL : OS_PAGES_ANY);
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

static uint64_t purge_ranges(const struct provider *provider, const struct iovec *ranges,
                             size_t count)
{
    (void)provider;
    uint64_t done = os_purge_ranges(ranges, count);
    if (done != 0)
        COUNT(purge_calls, 1);
    for (size_t i = 0; i < count; i++)
        if (done >> i & 1)
            COUNT(purge_bytes, ranges[i].iov_len);
    return done;
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

/* The system is asked, and nothing stays taken. */
static bool system_has(size_t bytes)
{
    void *start = os_map(bytes, OS_PAGES_SMALL | reserve());
    return start != NULL && (os_unmap(start, bytes), true);
}

static void *detach(const struct provider *provider, void *start, size_t old_bytes,
                    size_t new_bytes)
{
    (void)provider;
    if (!limit_take(new_bytes))
        return NULL;
    /* Whether there is so much is asked before anything moves. */
    char *part = system_has(new_bytes) ? os_detach(start, old_bytes) : NULL, *moved = NULL;
    if (part != NULL)
        moved = os_remap(part, old_bytes, new_bytes, true);
    if (moved == NULL) {
        /* Another thread has taken it since. */
        if (part != NULL && !os_move(part, start, old_bytes)) {
            memcpy(start, part, old_bytes);
            os_unmap(part, old_bytes);
        }
        limit_give(new_bytes);
        return NULL;
    }
    COUNT(remap_calls, 1);
    COUNT(map_bytes, new_bytes);
    /* The mapping that it was in had none. */
    if (options.huge_pages != HUGE_PAGES_NEVER && os_huge_pages_by_default())
        os_advise_huge_pages(moved, new_bytes, true);
    return moved;
}

static void prepare(const struct provider *provider, void *start, size_t bytes)
{
    (void)provider;
    if (options.prefault != 0)
        os_populate(start, size_min(bytes, align_up(options.prefault, os_page_size())));
}

static uint64_t populate(const struct provider *provider, void *start, size_t bytes, bool huge)
{
    (void)provider;
    if (huge)
        os_advise_huge_pages(start, bytes, true);
    uint64_t begin = os_clock_exact();
    bool done = os_populate(start, bytes);
    uint64_t elapsed = os_clock_exact() - begin;
    if (huge)
        os_advise_huge_pages(start, bytes, false);
    return done ? elapsed + 1 : 0;
}

static bool want_huge(const struct provider *provider, void *start, size_t bytes, bool huge)
{
    (void)provider;
    if (huge && (options.huge_pages != HUGE_PAGES_ALWAYS || bytes < OS_HUGE_PAGE))
        return false;
    if (huge || options.huge_pages != HUGE_PAGES_NEVER) /* with `never` all of it was declined */
        os_advise_huge_pages(start, bytes, huge);
    return huge;
}

static bool might_take(const struct provider *provider, size_t bytes)
{
    (void)provider;
    return bytes <= limit_bytes() && system_has(bytes);
}

const struct provider provider_os = {.kind = KIND_SYSTEM,
                                     .take = take,
                                     .take_block = take_block,
                                     .give = give,
                                     .purge = purge,
                                     .purge_ranges = purge_ranges,
                                     .resize = resize,
                                     .detach = detach,
                                     .prepare = prepare,
                                     .populate = populate,
                                     .want_huge = want_huge,
                                     .might_take = might_take};
