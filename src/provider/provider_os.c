/*
 * The provider that takes private anonymous memory from the system and counts the calls.
 */
#include "platform/memory.h"
#include "provider/provider.h"
#include "stats/stats.h"

static void *take(const struct provider *provider, size_t bytes, size_t alignment)
{
    (void)provider;
    void *start = alignment <= os_page_size() ? os_map(bytes) : os_map_aligned(bytes, alignment);
    if (start != NULL) {
        COUNT(map_calls, 1);
        COUNT(map_bytes, bytes);
    }
    return start;
}

static bool give(const struct provider *provider, void *start, size_t bytes)
{
    (void)provider;
    if (!os_unmap(start, bytes))
        return false;
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
    void *moved = os_remap(start, old_bytes, new_bytes, may_move);
    if (moved != NULL) {
        COUNT(remap_calls, 1);
        if (new_bytes > old_bytes)
            COUNT(map_bytes, new_bytes - old_bytes);
        else
            COUNT(unmap_bytes, old_bytes - new_bytes);
    }
    return moved;
}

const struct provider provider_os = {take, give, purge, resize};
