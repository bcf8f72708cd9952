/*
 * Memory taken ahead. See provider_prealloc.h.
 */
#include "provider/provider_prealloc.h"

#include "platform/memory.h"
#include "provider/limit.h"

static bool never_grows(struct pool *pool, size_t bytes)
{
    (void)pool;
    (void)bytes;
    return false;
}

bool provider_prealloc_init(struct pool *pool, size_t bytes, const struct provider *beyond)
{
    pool_init(pool, never_grows);
    pool->beyond = beyond;
    pool->limited = true;
    bytes = align_up(bytes, os_page_size());
    char *start = limit_take(bytes) ? os_map_present(bytes) : NULL;
    if (start == NULL)
        return false;
    if (pool_add(pool, start, bytes))
        return true;
    os_unmap(start, bytes);
    limit_give(bytes);
    return false;
}
