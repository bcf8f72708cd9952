/*
 * Walking hardened heaps: what is wrong in them, and which blocks there are.
 */
#include "base/peek.h"
#include "hardened/hard_pages.h"
#include "hardened/hardened.h"
#include "meta/page_map.h"
#include "platform/tags.h"

/* ---- Visiting ---- */

static bool visit_zone(const struct hard_zone *zone,
                       bool (*visit)(void *context, void *block, size_t bytes), void *context)
{
    const struct hard_class *row = &hard_classes[zone->class];
    for (size_t id = 0; id < (size_t)zone->slabs_count * row->per_slab; id++) {
        uint16_t state = state_of(&zone->states[id]);
        if (state < STATE_LIVE)
            continue;
        uintptr_t object =
            slab_start(&zone->slabs[id / row->per_slab]) + id % row->per_slab * (size_t)row->bytes;
        size_t slack = (size_t)state - STATE_LIVE;
        if (!visit(context, (void *)object, row->bytes - slack))
            return false;
    }
    return true;
}

bool hard_visit(struct hardened *hardened, bool (*visit)(void *context, void *block, size_t bytes),
                void *context)
{
    for (size_t class = 1; class < HARD_CLASSES; class++)
        for (struct hard_zone *zone = hardened->bins[class].zones; zone != NULL; zone = zone->next)
            if (!visit_zone(zone, visit, context))
                return false;
    LIST_EACH(node, &hardened->large.blocks) {
        const struct hard_block *block = CONTAINER_OF(node, struct hard_block, link);
        if (!visit(context, block->zone.span.start, block->requested))
            return false;
    }
    return true;
}

bool hard_extent(uintptr_t address, struct block_extent *extent)
{
    const struct hard_zone *zone = (const struct hard_zone *)page_map_entry(address);
    if (zone->class == 0)
        return false;
    const struct hard_class *row = &hard_classes[zone->class];
    struct hard_place place = zone_place(zone, address);
    if (place.slab >= zone->slabs_count || place.number >= row->per_slab)
        return false;
    uint16_t state = state_of(&zone->states[place.id]);
    extent->start = address - place.inside;
    extent->is_free = state < STATE_LIVE;
    extent->end = extent->start + row->bytes - (extent->is_free ? 0 : state - STATE_LIVE);
    return true;
}

/* ---- Checking ---- */

/* What is wrong with the canary of an object that was in use a moment ago. Who frees or resizes it
 * waits meanwhile; if somebody has just done so, there is nothing to look at. */
static struct misuse live_check(uintptr_t object, size_t bytes, uint16_t *state, uint16_t made)
{
    const struct misuse none = {.kind = MISUSE_NONE};
    size_t slack = (size_t)(made & STATE_SIZE) - STATE_LIVE;
    uintptr_t end = object + bytes;
    struct misuse overflow = {.kind = MISUSE_OVERFLOW, .address = object, .bytes = bytes - slack};
    if (lock_is_alone())
        return canary_is_sound(object, end - slack, end) ? none : overflow;
    /* acquire: pairs with the release in hard_alloc and hard_resize, after they wrote the canary */
    if (!__atomic_compare_exchange_n(state, &made, made | STATE_LOOKED, false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED))
        return none;
    bool sound = canary_is_sound_beside(object, end - slack, end);
    /* release: who waited writes after the last look */
    __atomic_store_n(state, made, __ATOMIC_RELEASE);
    return sound ? none : overflow;
}

/* `resting`: nobody is about to clear the object, or to hand it out; `touched`: pages of it are in
 * memory. The lock of the bin must be held, so only one check looks at an object at a time. */
static struct misuse object_check(const struct hard_zones *zones, const struct hard_zone *zone,
                                  uintptr_t object, uint16_t *state, bool resting, bool touched)
{
    size_t bytes = hard_classes[zone->class].bytes;
    uint16_t made = state_made(state), value = made & STATE_SIZE;
    if (value >= STATE_LIVE)
        return live_check(object, bytes, state, made);
    if ((value == STATE_FREE || touched) && resting &&
        !object_rests(zones->provider, object, bytes))
        return (struct misuse){.kind = MISUSE_WRITTEN, .address = object, .bytes = bytes};
    return (struct misuse){.kind = MISUSE_NONE};
}

static const char *slab_check(const struct hard_zones *zones, const struct hard_slab *slab,
                              struct misuse *misuse)
{
    const struct hard_zone *zone = slab->zone;
    const struct hard_class *row = &hard_classes[zone->class];
    const uint64_t *bits = zone->bits + (size_t)slab->number * zone->words;
    uint16_t *states = &zone->states[(size_t)slab->number * row->per_slab];
    bool alone = lock_is_alone();
    size_t free = 0;
    uint32_t there = 0;
    bool asked = false;
    for (uint32_t i = 0; i < row->per_slab; i++) {
        bool in_slab = bitmap_get(bits, i);
        free += in_slab;
        if (in_slab && state_of(&states[i]) >= STATE_LIVE)
            return "a hardened block is in use and free";
        uintptr_t object = slab_start(slab) + (size_t)i * row->bytes;
        bool new = in_slab && state_of(&states[i]) == STATE_NEW;
        /* A new object is in memory if somebody wrote behind or before a block, or to one after it
         * was freed and purged. */
        if (new && !asked)
            there = pages_there(zones->provider, slab_start(slab), row->slab_bytes);
        asked |= new;
        bool touched = new && pages_have(there, i * (size_t)row->bytes, row->bytes);
        *misuse = object_check(zones, zone, object, &states[i], in_slab || alone, touched);
        if (misuse->kind == MISUSE_WRITTEN)
            return "a hardened block was written to after it was freed";
        if (misuse->kind != MISUSE_NONE)
            return "a hardened block was written to behind its end";
    }
    return free == slab->free ? NULL : "a hardened slab has other bits than it counts";
}

/* The lock of the bin must be held. Other threads may take and free what is out of its slabs
 * meanwhile; so what waits is looked at only if there are none. */
static const char *bin_check(const struct hard_zones *zones, const struct hard_bin *bin,
                             struct misuse *misuse)
{
    for (const struct hard_zone *zone = bin->zones; zone != NULL; zone = zone->next)
        for (uint32_t i = 0; i < zone->slabs_count; i++) {
            const struct hard_slab *slab = &zone->slabs[i];
            const char *wrong = slab->kind == SLAB_OPEN ? slab_check(zones, slab, misuse) : NULL;
            if (wrong != NULL)
                return wrong;
        }
    return NULL;
}

static const char *large_check(struct hard_large *large, struct misuse *misuse)
{
    lock_acquire(&large->lock);
    LIST_EACH(node, &large->blocks) {
        *misuse = hard_large_damage(CONTAINER_OF(node, struct hard_block, link));
        if (misuse->kind != MISUSE_NONE)
            break;
    }
    lock_release(&large->lock);
    return misuse->kind == MISUSE_NONE ? NULL
                                       : "a large hardened block was written to behind its end";
}

const char *hard_check(struct hardened *hardened, struct misuse *misuse)
{
    *misuse = (struct misuse){.kind = MISUSE_NONE};
    bool ignored = tags_ignore(true); /* of blocks in use, too */
    const char *wrong = large_check(&hardened->large, misuse);
    for (size_t class = 1; class < HARD_CLASSES && wrong == NULL; class++) {
        struct hard_bin *bin = &hardened->bins[class];
        lock_acquire(&bin->lock);
        wrong = bin_check(&hardened->zones, bin, misuse);
        lock_release(&bin->lock);
    }
    tags_ignore(ignored);
    return wrong;
}

/* ---- What waits ---- */

/* Whether nothing was written to an object; otherwise `*misuse` says so. */
static bool entry_check(const struct hardened *hardened, const struct hard_entry *entry,
                        struct misuse *misuse)
{
    size_t bytes = hard_classes[entry_hard_class(entry)].bytes;
    uintptr_t object = entry_object(entry);
    if ((bytes > PAGE_BYTES && state_of(entry->state) == STATE_NEW) || /* as in hard_alloc */
        object_rests(hardened->zones.provider, object, bytes))
        return true;
    *misuse = (struct misuse){.kind = MISUSE_WRITTEN, .address = object, .bytes = bytes};
    return false;
}

static bool wait_check(const struct hardened *hardened, const struct hard_wait *wait,
                       struct misuse *misuse)
{
    for (uint32_t i = 0; i < wait->young + wait->old; i++)
        if (!entry_check(hardened, wait_at(wait, i), misuse))
            return false;
    return true;
}

static bool cache_check(const struct hardened *hardened, const struct hard_cache *cache,
                        struct misuse *misuse)
{
    for (size_t class = 1; class < HARD_KEPT; class++) {
        const struct hard_magazine *magazine = &cache->magazines[class];
        for (uint32_t i = 0; i < magazine->count; i++)
            if (!entry_check(hardened, &magazine->entries[i], misuse))
                return false;
    }
    return wait_check(hardened, &cache->wait, misuse);
}

bool hard_check_waiting(struct hardened *hardened, const struct hard_cache *own,
                        struct misuse *misuse)
{
    *misuse = (struct misuse){.kind = MISUSE_NONE};
    if (own != NULL && !cache_check(hardened, own, misuse))
        return false;
    lock_acquire(&hardened->wait_lock);
    bool sound = wait_check(hardened, &hardened->wait, misuse);
    lock_release(&hardened->wait_lock);
    return sound;
}
