/*
 * What each site, a stack on which something was allocated, has and had: estimates from samples.
 *
 * The idea of the peak: when the estimate of all live bytes is higher than ever, what every site
 * has at that moment is to be kept. Copying all of it at each new peak would cost as much as there
 * are sites; instead the peaks are numbered, and a site notes what it has when it changes for the
 * first time after one. So the snapshot at the peak is exact, and costs one comparison for each
 * change.
 *
 * Bytes are whole: an estimate is rounded once, when its sample comes, and the same is taken off
 * when it goes. Counts are in 65536ths.
 *
 * Not thread-safe: under the profile's lock. Readers without it see numbers that are moments apart.
 */
#ifndef SNUG_PROFILE_SITES_H
#define SNUG_PROFILE_SITES_H

#include "base/common.h"

/* Layout: parts of one allocation in counts. */
enum { SITE_COUNT_UNIT = 65536 };

struct site {
    uint32_t stack;
    uint32_t live_samples;
    uint64_t samples;
    uint64_t live_bytes, live_count;
    uint64_t bytes, count; /* all that were ever allocated */
    uint64_t peak_bytes, peak_count;
    uint64_t peak; /* the number of the peak that these two are of; see site_peak_is_live */
    double live_variance, variance; /* of live_bytes and bytes; bytes squared */
};

/* All sites together. */
struct site_totals {
    uint64_t live_bytes;
    uint64_t peak_bytes;
    uint64_t peak; /* its number */
};

/* What a sample stands for. */
struct site_change {
    uint64_t bytes, count;
    double variance;
};

static inline struct site_change site_change_of(size_t size, double weight)
{
    double bytes = (double)size * weight;
    return (struct site_change){.bytes = (uint64_t)(bytes + 0.5),
                                .count = (uint64_t)(weight * SITE_COUNT_UNIT + 0.5),
                                .variance = bytes * (double)size * (weight - 1)};
}

void site_add(struct site *site, struct site_totals *totals, const struct site_change *change);
void site_remove(struct site *site, struct site_totals *totals, const struct site_change *change);

/* Whether what a site had at the last peak is what it has now. */
static inline bool site_peak_is_live(const struct site *site, const struct site_totals *totals)
{
    return site->peak < totals->peak;
}

#endif
