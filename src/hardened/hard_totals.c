/*
 * How much of what a hardened heap has, for the statistics: of this process, or of another one. See
 * hardened.h.
 */
#include "base/peek.h"
#include "hardened/hardened.h"

/* What the caches of threads have of each class. */
static void add_caches(struct peek *peek, const struct hardened *hardened,
                       struct hard_totals *totals, size_t *cached, size_t *waiting)
{
    const struct hard_cache *cache = PEEK(peek, hardened->caches);
    for (; cache != NULL; cache = PEEK(peek, cache->next)) {
        totals->waiting += PEEK(peek, cache->wait.bytes);
        *waiting += PEEK(peek, cache->wait.count);
        for (size_t class = 1; class < HARD_KEPT; class++)
            cached[class] += PEEK(peek, cache->magazines[class].count);
    }
}

struct hard_totals hard_totals_of(struct peek *peek, const struct hardened *hardened)
{
    struct hard_totals totals = {.waiting = PEEK(peek, hardened->wait.bytes)};
    size_t cached[HARD_CLASSES] = {0}, out = 0, waits = PEEK(peek, hardened->wait.count);
    add_caches(peek, hardened, &totals, cached, &waits);
    for (size_t class = 1; class < HARD_CLASSES; class++) {
        const struct hard_bin *bin = &hardened->bins[class];
        size_t bytes = hard_class_bytes(class), in_slabs = PEEK(peek, bin->in_slabs);
        size_t outside = rest_of(PEEK(peek, bin->total), in_slabs);
        totals.free += in_slabs * bytes;
        totals.cached += cached[class] * bytes;
        out += outside * bytes;
        totals.live_count += rest_of(outside, cached[class]);
    }
    totals.live_count = rest_of(totals.live_count, waits);
    totals.live = rest_of(out, totals.cached + totals.waiting);
    size_t large = PEEK(peek, hardened->large.mapped);
    size_t waiting = PEEK(peek, hardened->large.waiting_bytes);
    totals.live += rest_of(large, waiting);
    totals.live_count += PEEK(peek, hardened->large.count);
    totals.mapped = PEEK(peek, hardened->zones.mapped) + large;
    totals.rest =
        rest_of(totals.mapped, totals.live + totals.waiting + totals.cached + totals.free);
    return totals;
}
