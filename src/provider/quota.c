/*
 * Counting what a heap takes. See quota.h.
 */
#include "provider/quota.h"

#include "base/peek.h"

static struct quota *quota_of(const struct provider *provider)
{
    return CONTAINER_OF(provider, struct quota, provider);
}

/* relaxed, here and below: a sum that is only compared with a bound */
static bool count_more(struct quota *quota, size_t bytes)
{
    size_t used;
    if (!gauge_change_within(&quota->used, bytes, quota->limit, &used))
        return false;
    size_t peak = __atomic_load_n(&quota->peak, __ATOMIC_RELAXED);
    while (used > peak && !__atomic_compare_exchange_n(&quota->peak, &peak, used, true,
                                                       __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        continue;
    return true;
}

static void count_less(struct quota *quota, size_t bytes)
{
    __atomic_sub_fetch(&quota->used, bytes, __ATOMIC_RELAXED);
}

static void *take_counted(const struct provider *provider, size_t bytes, size_t alignment,
                          bool block)
{
    struct quota *quota = quota_of(provider);
    if (!count_more(quota, bytes))
        return NULL;
    void *start = block ? provider_take_block(quota->under, bytes, alignment)
                        : quota->under->take(quota->under, bytes, alignment);
    if (start == NULL)
        count_less(quota, bytes);
    return start;
}

static void *take(const struct provider *provider, size_t bytes, size_t alignment)
{
    return take_counted(provider, bytes, alignment, false);
}

static void *take_block(const struct provider *provider, size_t bytes, size_t alignment)
{
    return take_counted(provider, bytes, alignment, true);
}

static bool give(const struct provider *provider, void *start, size_t bytes)
{
    struct quota *quota = quota_of(provider);
    if (!quota->under->give(quota->under, start, bytes))
        return false;
    count_less(quota, bytes);
    return true;
}

static bool purge(const struct provider *provider, void *start, size_t bytes)
{
    const struct provider *under = quota_of(provider)->under;
    return under->purge(under, start, bytes);
}

static void *resize(const struct provider *provider, void *start, size_t old_bytes,
                    size_t new_bytes, bool may_move)
{
    struct quota *quota = quota_of(provider);
    size_t more = new_bytes > old_bytes ? new_bytes - old_bytes : 0;
    if (!count_more(quota, more))
        return NULL;
    void *moved = quota->under->resize(quota->under, start, old_bytes, new_bytes, may_move);
    if (moved == NULL)
        count_less(quota, more);
    else if (old_bytes > new_bytes)
        count_less(quota, old_bytes - new_bytes);
    return moved;
}

static bool might_take(const struct provider *provider, size_t bytes)
{
    const struct quota *quota = quota_of(provider);
    return bytes <= quota->limit && provider_might_take(quota->under, bytes, 0);
}

void quota_init(struct quota *quota, const struct provider *under, size_t limit)
{
    *quota = (struct quota){.provider = {.take = take,
                                         .take_block = take_block,
                                         .give = give,
                                         .purge = purge,
                                         .resize = resize,
                                         .might_take = might_take,
                                         .unclean = under->unclean,
                                         .kind = under->kind},
                            .under = under,
                            .limit = limit};
}
