/*
 * Memory taken ahead. See provider_prealloc.h.
 */
#include "provider/provider_prealloc.h"

#include "platform/memory.h"
#include "provider/limit.h"
#include "provider/names.h"

static bool never_grows(struct pool *pool, size_t bytes)
{
    (void)pool;
    (void)bytes;
    return false;
}

bool provider_prealloc_init(struct pool *pool, size_t bytes, const struct provider *fallback)
{
    pool_init(pool, KIND_PREALLOC, never_grows);
    pool->fallback = fallback;
    pool->limited = true;
    bytes = align_up(bytes, os_page_size());
    if (!limit_take(bytes))
        return false;
    char *start = os_map_present(bytes);
    if (start != NULL && pool_add(pool, start, bytes)) {
        mapping_name(start, bytes, "snug heap");
        return true;
    }
    if (start != NULL)
        os_unmap(start, bytes);
    limit_give(bytes);
    return false;
}
