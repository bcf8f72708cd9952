/*
 * The provider for tests. See fake_provider.h.
 */
#include "fake_provider.h"

#include <string.h>

#include "platform/memory.h"

static struct fake_provider *fake_of(const struct provider *provider)
{
    return CONTAINER_OF(provider, struct fake_provider, provider);
}

/* Whether this call fails. */
static bool call_fails(struct fake_provider *fake, bool refused)
{
    unsigned call = __atomic_add_fetch(&fake->calls, 1, __ATOMIC_RELAXED); /* of any thread */
    if (call >= fake->fail_first && call <= fake->fail_last) {
        fake->failed++;
        return true;
    }
    return refused;
}

static struct fake_range *range_find(struct fake_provider *fake, const char *start, size_t bytes)
{
    for (size_t i = 0; i < fake->range_count; i++)
        if (fake->ranges[i].start == start && fake->ranges[i].bytes == bytes)
            return &fake->ranges[i];
    fake->unknown_range = true;
    return NULL;
}

static void *take(const struct provider *provider, size_t bytes, size_t alignment)
{
    struct fake_provider *fake = fake_of(provider);
    if (call_fails(fake, fake->refuse_take) || bytes > fake->most ||
        fake->bytes + bytes > fake->limit)
        return NULL;
    if (fake->range_count == FAKE_RANGES)
        return NULL;
    char *start = os_map_aligned(bytes, alignment, OS_PAGES_SMALL);
    if (start == NULL)
        return NULL;
    fake->ranges[fake->range_count++] = (struct fake_range){start, bytes};
    fake->bytes += bytes;
    fake->takes++;
    return start;
}

static bool give(const struct provider *provider, void *start, size_t bytes)
{
    struct fake_provider *fake = fake_of(provider);
    struct fake_range *range = range_find(fake, start, bytes);
    if (fake->meanwhile != NULL)
        fake->meanwhile();
    if (range == NULL || call_fails(fake, fake->refuse_give) || !os_unmap(start, bytes))
        return false;
    *range = fake->ranges[--fake->range_count];
    fake->bytes -= bytes;
    fake->gives++;
    return true;
}

static bool purge(const struct provider *provider, void *start, size_t bytes)
{
    struct fake_provider *fake = fake_of(provider);
    if (fake->meanwhile != NULL)
        fake->meanwhile();
    if (call_fails(fake, fake->refuse_purge) || !os_purge(start, bytes))
        return false;
    fake->purges++;
    fake->purged_bytes += bytes;
    return true;
}

uint64_t fake_purge_together(const struct provider *provider, const struct iovec *ranges,
                             size_t count)
{
    struct fake_provider *fake = fake_of(provider);
    uint64_t done = 0;
    fake->calls_together++;
    fake->most_together = count > fake->most_together ? (unsigned)count : fake->most_together;
    for (size_t i = 0; i < count; i++)
        if ((fake->refused_together >> i & 1) == 0 &&
            purge(provider, ranges[i].iov_base, ranges[i].iov_len))
            done |= (uint64_t)1 << i;
    return done;
}

static void *resize(const struct provider *provider, void *start, size_t old_bytes,
                    size_t new_bytes, bool may_move)
{
    struct fake_provider *fake = fake_of(provider);
    struct fake_range *range = range_find(fake, start, old_bytes);
    if (range == NULL || call_fails(fake, fake->refuse_resize) || new_bytes > fake->most)
        return NULL;
    char *moved = os_remap(start, old_bytes, new_bytes, may_move);
    if (moved == NULL)
        return NULL;
    *range = (struct fake_range){moved, new_bytes};
    fake->bytes += new_bytes - old_bytes;
    fake->resizes++;
    return moved;
}

void *fake_detach(const struct provider *provider, void *start, size_t old_bytes, size_t new_bytes)
{
    struct fake_provider *fake = fake_of(provider);
    char *moved = fake->refuse_resize ? NULL : take(provider, new_bytes, os_page_size());
    if (moved == NULL)
        return NULL;
    memcpy(moved, start, old_bytes);
    os_purge(start, old_bytes);
    fake->resizes++;
    return moved;
}

void fake_provider_init(struct fake_provider *fake)
{
    memset(fake, 0, sizeof(*fake));
    fake->provider =
        (struct provider){.take = take, .give = give, .purge = purge, .resize = resize};
    fake->limit = SIZE_MAX;
    fake->most = SIZE_MAX;
}

void fake_provider_end(struct fake_provider *fake)
{
    while (fake->range_count != 0) {
        struct fake_range *range = &fake->ranges[--fake->range_count];
        os_unmap(range->start, range->bytes);
    }
    fake->bytes = 0;
}
