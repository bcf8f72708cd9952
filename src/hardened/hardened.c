/*
 * Hardened blocks: taking and freeing. See hardened.h.
 */
#include <string.h>

#include "hardened/hard_pages.h"
#include "hardened/hard_tags.h"
#include "hardened/hardened.h"
#include "meta/page_map.h"

/* ---- What is found ---- */

/* What is wrong with an address in a zone that is no block's. */
static COLD struct misuse place_misuse(const struct hard_zone *zone, struct hard_place place,
                                       uintptr_t address)
{
    const struct hard_class *row = &hard_classes[zone->class];
    struct misuse misuse = {.kind = MISUSE_UNKNOWN, .address = address, .bytes = 0};
    if (place.slab >= zone->slabs_count || place.number >= row->per_slab)
        return misuse;
    uint16_t state = state_of(&zone->states[place.id]);
    misuse.bytes = state >= STATE_LIVE ? row->bytes - (state - STATE_LIVE) : row->bytes;
    misuse.start = address - place.inside;
    misuse.kind = state < STATE_LIVE ? MISUSE_DOUBLE_FREE : MISUSE_INSIDE;
    return misuse;
}

static bool words_before_are_zero(uintptr_t address)
{
    return word_is_zero(address - 8) && word_is_zero(address - 16);
}

/* Not inlined again in each of those who seldom ask. */
static NOINLINE bool canary_holds(uintptr_t object, uintptr_t at, uintptr_t end)
{
    return canary_is_sound(object, at, end);
}

bool hard_front_is_sound(const struct hard_zone *zone, struct hard_place place, uintptr_t object)
{
    if (place.number == 0) {
        uint32_t slab = place.slab; /* before it is the end of the slab before */
        if (slab == 0) {            /* which is another zone's, or nobody's yet */
            uintptr_t entry = zone->follows ? page_map_entry(object - 1) : 0;
            if (!entry_is_span(entry))
                return !zone->follows || words_before_are_zero(object);
            zone = (const struct hard_zone *)entry;
            slab = zone->slabs_count;
        }
        const struct hard_class *row = zone->row;
        size_t before = (slab - 1) * (size_t)row->slab_bytes;
        uintptr_t last = (uintptr_t)zone->span.start + before + row->per_slab * (size_t)row->bytes;
        if (zone->slabs[slab - 1].kind == SLAB_GUARD)
            return true;
        if (zone->slabs[slab - 1].kind == SLAB_CLOSED || last != object)
            return words_before_are_zero(object);
        place.id = slab * row->per_slab;
    }
    const struct hard_class *row = zone->row;
    uint16_t state = state_of(&zone->states[place.id - 1]);
    if (state >= STATE_LIVE)
        return canary_holds(object - row->bytes, object - (state - STATE_LIVE), object);
    if (state == STATE_NEW && row->bytes > PAGE_BYTES && object % os_kernel_page_size() == 0)
        return true; /* a page that may not be there */
    return words_before_are_zero(object);
}

/* ---- Taking ---- */

void *hard_alloc(struct hardened *hardened, struct hard_cache *cache, size_t alignment,
                 size_t bytes)
{
    if (UNLIKELY(bytes >= HARD_MOST))
        return hard_large_alloc(&hardened->large, alignment, bytes);
    size_t class = LIKELY(alignment <= MIN_ALIGN) ? hard_class_of(bytes + 1)
                                                  : hard_class_of_aligned(alignment, bytes + 1);
    if (UNLIKELY(class == 0))
        return hard_large_alloc(&hardened->large, alignment, bytes);
    size_t of_object = hard_classes[class].bytes;
    for (;;) {
        struct hard_entry entry;
        if (UNLIKELY(!hard_entry_pop(hardened, cache, class, &entry)))
            return NULL;
        uintptr_t object = entry_object(&entry);
        if (UNLIKELY(!hard_entry_is_sound(hardened, &entry, of_object))) {
            /* With SNUG_MISUSE=warn it is never handed out again. */
            hard_report_written(object, class);
            continue;
        }
        canary_put(object, object + bytes, object + of_object);
        /* release: who finds the state finds the canary (hard_check.c) */
        __atomic_store_n(entry.state, (uint16_t)(STATE_LIVE + of_object - bytes), __ATOMIC_RELEASE);
        return (void *)object;
    }
}

/* ---- Freeing ---- */

/* Changes the state of an object from in use to free. Whoever does that frees the object. False:
 * somebody else has done it. */
static NOINLINE bool state_claim(struct hard_bin *bin, uint16_t *state, uint16_t made)
{
    return state_change(bin, state, made, STATE_FREE);
}

/* Frees that are refused; always false. */
static COLD bool refuse_place(const struct hard_zone *zone, uintptr_t address,
                              struct misuse *misuse)
{
    *misuse = place_misuse(zone, zone_place(zone, address), address);
    return false;
}

static COLD bool refuse(enum misuse_kind kind, uintptr_t address, size_t bytes, size_t said,
                        struct misuse *misuse)
{
    *misuse = (struct misuse){.kind = kind, .address = address, .bytes = bytes, .said = said};
    return false;
}

static COLD bool refuse_maker(uintptr_t address, size_t bytes, enum maker maker,
                              struct misuse *misuse)
{
    *misuse =
        (struct misuse){.kind = MISUSE_MAKER, .address = address, .bytes = bytes, .maker = maker};
    return false;
}

static NOINLINE bool free_large(struct hard_large *large, struct hard_zone *zone, uintptr_t address,
                                struct said said, struct misuse *misuse)
{
    *misuse = hard_large_free(large, zone, address, said);
    return misuse->kind == MISUSE_NONE;
}

bool hard_free(struct hardened *hardened, struct hard_cache *cache, struct hard_zone *zone,
               uintptr_t address, struct said said, struct misuse *misuse)
{
    if (UNLIKELY(zone->class == 0))
        return free_large(&hardened->large, zone, address, said, misuse);
    const struct hard_class *row = &hard_classes[zone->class];
    struct hard_place place = zone_place(zone, address);
    if (UNLIKELY(!place_is_object(zone, place)))
        return refuse_place(zone, address, misuse);
    uint16_t *state = &zone->states[place.id];
    uint16_t made = state_made(state), value = made & STATE_SIZE; /* see state_claim */
    if (UNLIKELY(value < STATE_LIVE))
        return refuse_place(zone, address, misuse);
    size_t bytes = row->bytes - ((size_t)value - STATE_LIVE);
    uintptr_t end = address + row->bytes, behind = address + bytes;
    /* Three places that are looked at one after the other, and far apart. */
    __builtin_prefetch((const void *)(address - 8));
    __builtin_prefetch((const void *)address);
    __builtin_prefetch((const void *)behind);
    if (UNLIKELY(!hard_maker_fits(state_maker(made), (enum maker)said.maker)))
        return refuse_maker(address, bytes, state_maker(made), misuse);
    if (UNLIKELY(said.size != SIZE_UNSAID && said.size != bytes))
        return refuse(MISUSE_SIZE, address, bytes, said.size, misuse);
    if (UNLIKELY(!state_claim(&hardened->bins[zone->class], state, made)))
        return refuse_place(zone, address, misuse);
    hard_untag(zone, address);
    if (UNLIKELY(!canary_is_sound(address, behind, end)))
        return refuse(MISUSE_OVERFLOW, address, bytes, 0, misuse);
    if (LIKELY(lock_is_alone()) && UNLIKELY(!hard_front_is_sound(zone, place, address)))
        return refuse(MISUSE_UNDERFLOW, address, bytes, 0, misuse);
    if (UNLIKELY(has_pages(row->bytes)))
        pages_clear(hardened->zones.provider, address, row->bytes);
    else
        words_clear(address, canary_end(behind, end));
    hard_entry_wait(hardened, cache, row, hard_entry_of(address, zone->class, state));
    return true;
}

/* ---- Blocks in use ---- */

COLD struct misuse hard_usable(uintptr_t address, size_t *bytes)
{
    struct hard_zone *zone = (struct hard_zone *)page_map_entry(address);
    if (zone->class == 0)
        return hard_large_usable(zone, address, bytes);
    struct hard_place place = zone_place(zone, address);
    uint16_t made = place_is_object(zone, place) ? state_made(&zone->states[place.id]) : STATE_NEW;
    uint16_t value = made & STATE_SIZE;
    if (value < STATE_LIVE)
        return place_misuse(zone, place, address);
    *bytes = hard_classes[zone->class].bytes - (value - STATE_LIVE);
    return (struct misuse){.kind = MISUSE_NONE, .maker = state_maker(made)};
}

COLD bool hard_resize(struct hardened *hardened, uintptr_t address, size_t bytes)
{
    struct hard_zone *zone = (struct hard_zone *)page_map_entry(address);
    if (zone->class == 0)
        return hard_large_resize(&hardened->large, zone, bytes);
    if (bytes >= HARD_MOST || hard_class_of(bytes + 1) != zone->class)
        return false;
    struct hard_place place = zone_place(zone, address);
    uint16_t *state = &zone->states[place.id];
    uintptr_t end = address + hard_classes[zone->class].bytes;
    uint16_t made = state_made(state), maker = made & (uint16_t)~STATE_SIZE;
    uintptr_t old = end - ((made & STATE_SIZE) - STATE_LIVE), new = address + bytes;
    if (!canary_holds(address, old, end))
        return false; /* its free says so */
    uintptr_t last = canary_end(old, end), from = new < old ? new : old;
    /* A check by another thread leaves it alone from now on. */
    if (!state_claim(&hardened->bins[zone->class], state, made))
        return false;
    memset((void *)from, 0, last - from);
    canary_put_behind(address, new, end);
    /* release: who finds the state finds the canary (hard_check.c) */
    __atomic_store_n(state, (uint16_t)(maker + STATE_LIVE + end - new), __ATOMIC_RELEASE);
    return true;
}

/* ---- The whole ---- */

COLD size_t hard_trim(struct hardened *hardened)
{
    bool more = true;
    while (more) {
        struct hard_entry entry;
        lock_acquire(&hardened->wait_lock);
        more = hardened->wait.count != 0;
        if (more)
            entry = wait_take(&hardened->wait);
        lock_release(&hardened->wait_lock);
        if (more)
            hard_entry_retire(hardened, entry);
    }
    hard_large_drop(&hardened->large, false);
    size_t purged = 0;
    for (size_t class = 1; class < HARD_CLASSES; class++)
        purged += hard_bin_trim(&hardened->bins[class], &hardened->zones);
    return purged;
}
