/*
 * Adding to sites and taking off. See sites.h.
 */
#include "profile/sites.h"

#include "base/peek.h"

/* Called before a site changes: what it has is what it had at the last peak, unless that is
 * noted. */
static void note_peak(struct site *site, const struct site_totals *totals)
{
    if (!site_peak_is_live(site, totals))
        return;
    GAUGE_SET(site->peak_bytes, site->live_bytes);
    GAUGE_SET(site->peak_count, site->live_count);
    GAUGE_SET(site->peak, totals->peak);
}

void site_add(struct site *site, struct site_totals *totals, const struct site_change *change)
{
    note_peak(site, totals);
    GAUGE_ADD(site->live_bytes, change->bytes);
    GAUGE_ADD(site->live_count, change->count);
    GAUGE_ADD(site->bytes, change->bytes);
    GAUGE_ADD(site->count, change->count);
    GAUGE_ADD(site->samples, 1);
    GAUGE_ADD(site->live_samples, 1);
    site->live_variance += change->variance;
    site->variance += change->variance;
    GAUGE_ADD(totals->live_bytes, change->bytes);
    if (totals->live_bytes > totals->peak_bytes) {
        GAUGE_SET(totals->peak_bytes, totals->live_bytes);
        GAUGE_ADD(totals->peak, 1);
    }
}

void site_remove(struct site *site, struct site_totals *totals, const struct site_change *change)
{
    note_peak(site, totals);
    GAUGE_ADD(site->live_bytes, -change->bytes);
    GAUGE_ADD(site->live_count, -change->count);
    GAUGE_ADD(site->live_samples, -1);
    GAUGE_ADD(totals->live_bytes, -change->bytes);
    /* What rounding leaves must not stay where nothing is. */
    site->live_variance = site->live_samples == 0 ? 0 : site->live_variance - change->variance;
}
