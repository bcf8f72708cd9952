/*
 * The statistics for the program itself: snug_stats_get.
 */
#include <errno.h>
#include <string.h>

#include "report/values.h"
#include "snug/snug.h"

static uint64_t known(uint64_t number)
{
    return number == UNKNOWN ? SNUG_STATS_UNKNOWN : number;
}

int snug_stats_get(struct snug_stats *stats, size_t size)
{
    struct values values;
    if (stats == NULL || size < sizeof(stats->mapped))
        return EINVAL;
    values_read(&values, NULL, NULL, &snug_anchor, 0, VALUES_QUICK);
    struct snug_stats all = {
        .mapped = values.mapped,
        .live = values.live,
        .waste = values.waste,
        .cached = values.cached_small + values.cached_cells + values.depots +
                  values.hardened_waiting + values.hardened_cached,
        .free = values.free_slabs + values.free_cells + values.free_clean + values.hardened_free +
                values.hardened_rest,
        .purge_pending = values.purge_pending,
        .metadata = values.metadata,
        .requested = values.requested,
        .blocks = values.blocks_small + values.blocks_medium + values.blocks_large +
                  values.blocks_huge + values.blocks_hardened,
        .mapped_peak = values.mapped_peak,
        .resident = known(values.resident),
        .resident_peak = known(values.resident_peak),
        .taken_bytes = values.taken_bytes,
        .map_calls = values.counters.map_calls,
        .unmap_calls = values.counters.unmap_calls,
        .purge_calls = values.counters.purge_calls,
        .purge_bytes = values.counters.purge_bytes,
        .refills = values.counters.refills,
        .flushes = values.counters.flushes,
    };
    /* A program that was compiled with a shorter structure gets its beginning. */
    memset(stats, 0, size);
    memcpy(stats, &all, size_min(size, sizeof(all)));
    return 0;
}
