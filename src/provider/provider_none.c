/*
 * The provider that refuses everything, for heaps that were given all their memory.
 */
#include "provider/provider.h"

static void *take(const struct provider *provider, size_t bytes, size_t alignment)
{
    (void)provider;
    (void)bytes;
    (void)alignment;
    return NULL;
}

static bool refuse(const struct provider *provider, void *start, size_t bytes)
{
    (void)provider;
    (void)start;
    (void)bytes;
    return false;
}

static void *resize(const struct provider *provider, void *start, size_t old_bytes,
                    size_t new_bytes, bool may_move)
{
    (void)provider;
    (void)start;
    (void)old_bytes;
    (void)new_bytes;
    (void)may_move;
    return NULL;
}

const struct provider provider_none = {.take = take,
                                       .give = refuse,
                                       .purge = refuse,
                                       .resize = resize,
                                       .unclean = true,
                                       .kind = KIND_BUFFER};
