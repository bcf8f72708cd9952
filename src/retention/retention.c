/*
 * Learning how much to keep. See retention.h.
 */
#include "retention/retention.h"

#include "options/options.h"

/* One part in: of the time in between, having something again may cost so much, since that is what
 * a program loses at most. */
enum { TIME_PER_COST = 40 };

/* A share more, as what is kept never fits exactly, and the next peak is not just as high. */
static size_t with_share(size_t units)
{
    return units + units / SLACK_SHARE;
}

/* Learned room, of a peak: however much a program misses, it has no more than three eighths of it
 * again and the base. Of few long blocks so much is in pieces of which none is long enough. */
static NOINLINE uint32_t limit_room(const struct retention *retention, size_t room)
{
    size_t most = retention->high / 4;
    most += size_max(options.dirty >> PAGE_SHIFT, retention->high / SLACK_SHARE);
    return (uint32_t)size_min(size_min(room, most), UINT32_MAX);
}

/* For how long so many units are worth keeping. */
static uint64_t window(const struct retention *retention, size_t units)
{
    uint64_t most = options_nanoseconds(options.purge_delay);
    uint64_t worth = (uint64_t)size_min(units, UINT32_MAX) * retention->price * TIME_PER_COST;
    return worth < most ? worth : most;
}

size_t retention_bound(struct retention *retention, size_t base, size_t in_use)
{
    if (options.purge_delay == DELAY_NEVER)
        return SIZE_MAX;
    if (options.purge_delay == 0)
        return 0;
    size_t all = with_share(retention->high) + retention->room;
    size_t left = all > in_use ? all - in_use : 0;
    size_t wanted = base + retention->wanted + retention->room;
    retention->tight = wanted > left;
    return size_max(base, size_min(wanted, left));
}

void retention_released(struct retention *retention, size_t units, uint64_t now)
{
    if (now > retention->ghosts_until)
        retention->ghosts = 0;
    retention->ghosts += units;
    retention->cramped = retention->tight;
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
    if (retention->cramped)
        retention->room = limit_room(retention, retention->room + missed / SLACK_SHARE + 1);
    else
        GAUGE_SET(retention->wanted,
                  size_min(retention->wanted + with_share(missed), retention->high));
    /* What was learned is not to be forgotten before it could be of use: a new epoch begins. */
    retention->epoch = now;
    retention->low = SIZE_MAX;
}

/* An epoch is as long for what is wanted and in use right now, since a peak that is half way up
 * must not look as if the other half were not needed; for room it is as long as for what has to be
 * missed to learn it again. */
uint64_t retention_due(const struct retention *retention, size_t kept, size_t base)
{
    size_t learned = retention->wanted + SLACK_SHARE * (size_t)retention->room;
    uint64_t length = window(retention, size_max(kept > base ? kept - base : 0, learned));
    return retention->epoch + (length > RETENTION_TICK ? length : RETENTION_TICK);
}

bool retention_tick(struct retention *retention, size_t kept, size_t base, size_t in_use,
                    uint64_t now, size_t *idle)
{
    if (now < retention_due(retention, kept, base))
        return false;
    retention_see(retention, kept, in_use);
    *idle = retention->low > base ? retention->low - base : 0;
    retention->high = retention->epoch_high;
    retention->room = limit_room(retention, retention->room - size_min(retention->room, *idle));
    size_t wanted = retention->wanted - size_min(retention->wanted, *idle);
    GAUGE_SET(retention->wanted, size_min(wanted, retention->high));
    retention->epoch_high = in_use;
    retention->low = kept;
    retention->epoch = now;
    return true;
}
