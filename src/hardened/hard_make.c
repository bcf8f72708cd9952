/*
 * Making and ending a hardened heap. See hardened.h.
 */
#include "hardened/canary.h"
#include "hardened/hardened.h"
#include "meta/meta.h"
#include "platform/thread.h"

struct canary_secret canary_secret;

const unsigned char canary_window[2 * CANARY_SHORT] = {[CANARY_SHORT] = 255,
                                                       255,
                                                       255,
                                                       255,
                                                       255,
                                                       255,
                                                       255,
                                                       255,
                                                       255,
                                                       255,
                                                       255,
                                                       255,
                                                       255,
                                                       255,
                                                       255,
                                                       255};

bool hard_wait_init(struct hard_wait *wait, size_t bytes, size_t count)
{
    uint32_t half = (uint32_t)1 << bit_highest(size_max(count, 2) - 1);
    size_t ring_bytes = 2 * half * sizeof(struct hard_entry);
    *wait = (struct hard_wait){.mask = half - 1,
                               .count_most = (uint32_t)size_max(count, 2),
                               .least = count > 1, /* with fewer, none waits */
                               .random = os_random() | 1};
    wait_limit(wait, bytes);
    wait->ring = ring_bytes <= META_MOST ? meta_alloc(ring_bytes) : meta_map(ring_bytes);
    wait->places = wait->ring + half;
    return wait->ring != NULL;
}

/* The first hardened heap makes what all have in common. Two threads may make theirs at a time. */
static void common_init(void)
{
    lock_acquire(&meta_system.lock);
    if (canary_secret.factor == 0) {
        hard_classes_init();
        zeros_begin();
        canary_secret = (struct canary_secret){.mask = os_random(), .factor = os_random() | 1};
    }
    lock_release(&meta_system.lock);
}

bool hardened_init(struct hardened *hardened, const struct hard_settings *settings)
{
    common_init();
    struct hard_zones *zones = &hardened->zones;
    *zones = (struct hard_zones){.provider = settings->provider,
                                 .owner = settings->owner,
                                 .realms = zones->realms, /* kept when it was cleared */
                                 .mapped = zones->mapped,
                                 .random = os_random() | 1,
                                 .whole_most = settings->dirty,
                                 .guards = settings->guards};
    lock_init(&zones->lock, RANK_HARD_ZONE);
    hard_large_init(&hardened->large, settings->provider, settings->owner, os_random());
    for (size_t class = 1; class < HARD_CLASSES; class++)
        hard_bin_init(&hardened->bins[class], class, os_random());
    lock_init(&hardened->wait_lock, RANK_HARD_WAIT);
    hardened->held_most = settings->held_most;
    hardened->orphans = false;
    struct hard_entry *ring = hardened->wait.ring; /* of a heap that had this memory before */
    if (ring == NULL) {
        hardened->generation = 1;
        return hard_wait_init(&hardened->wait, settings->wait_bytes, settings->wait_count);
    }
    wait_forget(&hardened->wait);
    return true;
}

void hardened_end(struct hardened *hardened, bool goes_on)
{
    for (size_t class = 1; class < HARD_CLASSES; class++)
        for (struct hard_zone *zone = hardened->bins[class].zones, *next; zone != NULL;
             zone = next) {
            next = zone->next;
            zone_forget(zone);
        }
    hard_large_drop(&hardened->large, true);
    zones_end(&hardened->zones, goes_on);
}

void hard_each_lock_of(struct hardened *hardened, enum lock_rank rank,
                       void (*act)(struct lock *lock))
{
    if (rank == RANK_HARD_WAIT)
        act(&hardened->wait_lock);
    for (size_t class = 1; rank == RANK_HARD_BIN && class < HARD_CLASSES; class++)
        act(&hardened->bins[class].lock);
    if (rank == RANK_HARD_ZONE) {
        act(&hardened->zones.lock);
        act(&hardened->large.lock);
    }
}
