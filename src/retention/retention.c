/*
 * Learning how much to keep. See retention.h.
 */
#include "retention/retention.h"

#include "options/options.h"

/* One part in: of the time in between, having something again may cost so much, since that is what
 * a program loses at most. */
enum { TIME_PER_COST = 40 };

/* A share more, as what is kept never fits exactly, and the next peak is not just as high. */
static size_t with_room(size_t units)
{
    return units + units / SLACK_SHARE;
}

/* For how long so many units are worth keeping. */
static uint64_t window(const struct retention *retention, size_t units)
{
    uint64_t most = options_nanoseconds(options.purge_delay);
    uint64_t worth = size_min(units, UINT32_MAX) * retention->price * TIME_PER_COST;
    return worth < most ? worth : most;
}

/* The clock is coarse: two readings may be the same, or from two processors a little apart. */
static uint64_t since(uint64_t then, uint64_t now)
{
    return now > then ? now - then : 0;
}

size_t retention_bound(const struct retention *retention, size_t base, size_t in_use)
{
    if (options.purge_delay == DELAY_NEVER)
        return SIZE_MAX;
    if (options.purge_delay == 0)
        return 0;
    size_t high = with_room(retention->high);
    size_t room = high > in_use ? high - in_use : 0;
    return size_max(base, size_min(base + retention->wanted, room));
}

void retention_released(struct retention *retention, size_t units, uint64_t now)
{
    if (now > retention->ghosts_until)
        retention->ghosts = 0;
    retention->ghosts += units;
    retention->ghosts_until = now + window(retention, retention->ghosts);
}

void retention_missed(struct retention *retention, size_t units, uint64_t now)
{
    if (now > retention->ghosts_until)
        retention->ghosts = 0;
    size_t missed = size_min(units, retention->ghosts);
    if (missed == 0)
        return;
    retention->ghosts -= missed;
    GAUGE_SET(retention->wanted, size_min(retention->wanted + with_room(missed), retention->high));
    /* What was learned is not to be forgotten before it could be of use: a new epoch begins. */
    retention->epoch = now;
    retention->low = SIZE_MAX;
}

/* How long an epoch is: as long for what is wanted and in use right now, since a peak that is half
 * way up must not look as if the other half were not needed. */
static uint64_t epoch_length(const struct retention *retention, size_t kept, size_t base)
{
    uint64_t length = window(retention, size_max(kept > base ? kept - base : 0, retention->wanted));
    return length > RETENTION_TICK ? length : RETENTION_TICK;
}

uint64_t retention_due(const struct retention *retention, size_t kept, size_t base)
{
    return retention->epoch + epoch_length(retention, kept, base);
}

bool retention_tick(struct retention *retention, size_t kept, size_t base, size_t in_use,
                    uint64_t now, size_t *idle)
{
    if (since(retention->epoch, now) < epoch_length(retention, kept, base))
        return false;
    retention_see(retention, kept, in_use);
    *idle = retention->low > base ? retention->low - base : 0;
    GAUGE_SET(retention->wanted, retention->wanted - size_min(retention->wanted, *idle));
    retention->high = size_max(retention->epoch_high, in_use);
    retention->epoch_high = in_use;
    retention->low = kept;
    retention->epoch = now;
    return true;
}
