/*
 * What nearly every call does with a small hardened block of a thread that has a cache: all of what
 * hardened.h promises, as long as nothing is wrong and nothing runs out.
 *
 * The idea: both return without having changed anything in all other cases, also if they see that
 * something is wrong; then the long way looks again, and says what it is. So there is nothing here
 * but the checks themselves, in the order in which they need the least, and no lock.
 *
 * Cost: about 75 instructions to take 64 bytes and 175 to free them; see
 * docs/decisions/0015-hardened.md.
 */
#ifndef SNUG_HARDENED_HARD_FAST_H
#define SNUG_HARDENED_HARD_FAST_H

#include "hardened/canary.h"
#include "hardened/hardened.h"

/* A block of fewer bytes than HARD_FAST_MOST. NULL: the magazine is empty, or what is on top of it
 * was written to. */
static ALWAYS_INLINE void *hard_pop(struct hard_cache *cache, size_t bytes)
{
    size_t class = bytes / MIN_ALIGN + 1, of_object = class * MIN_ALIGN;
    struct hard_magazine *magazine = cache->magazines[class];
    uint32_t count = magazine->count;
    if (UNLIKELY(count == 0))
        return NULL;
    const struct hard_entry *entry = &magazine->entries[count - 1];
    uintptr_t object = entry_object(entry);
    if (UNLIKELY(!object_is_zero(object, of_object)))
        return NULL;
    canary_put_short(object, object + of_object, of_object - bytes);
    /* release: who finds the state finds the canary (hard_check.c) */
    __atomic_store_n(entry->state, (uint16_t)(STATE_LIVE + of_object - bytes), __ATOMIC_RELEASE);
    GAUGE_SET(magazine->count, count - 1);
    if (object == 0) /* callers then ask once only */
        __builtin_unreachable();
    return (void *)object;
}

/* What is wrong with the last 16 bytes before an object that is not the first of its slab: they are
 * those of a short canary, or of a free object. */
static ALWAYS_INLINE object_pair before_damage(uintptr_t object, size_t bytes,
                                               const uint16_t *state)
{
    size_t slack = (size_t)state[-1] - STATE_LIVE;
    if (LIKELY(slack <= CANARY_SHORT))
        return canary_short_damage(object - bytes, object, slack);
    return *pair_at(object - CANARY_SHORT);
}

/* Whether nothing was written before the first object of a slab. */
static ALWAYS_INLINE bool first_is_sound(const struct hard_zone *zone, uintptr_t object, size_t id)
{
    size_t offset = object - (uintptr_t)zone->span.start;
    struct hard_place place = {.slab = (uint32_t)(offset >> zone->row->slab_shift),
                               .id = (uint32_t)id};
    return hard_front_is_sound(zone, place, object);
}

/* As state_claim in hardened.c, but not if a check looks at the object. */
static ALWAYS_INLINE bool state_claim_fast(uint16_t *state, uint16_t value, bool alone)
{
    if (LIKELY(alone)) {
        __atomic_store_n(state, STATE_FREE, __ATOMIC_RELAXED);
        return true;
    }
    /* acquire: what the others did to the object before they gave it away */
    return __atomic_compare_exchange_n(state, &value, STATE_FREE, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_RELAXED);
}

/* Whether something was freed, and hard_cache_turn is to be called. HARD_NOT_HERE: nothing was, but
 * it may be by a call that says `first`. */
enum hard_pushed { HARD_NOT_PUSHED, HARD_NOT_HERE, HARD_PUSHED, HARD_PUSHED_TURN };

/* Frees what is at an address in a zone of the heap that the cache is of, of which the program says
 * that it has `size` bytes (SIZE_MAX: it does not). HARD_NOT_PUSHED: it is no block, it has a
 * longer canary, it is larger than HARD_FAST_MOST, or something is wrong. `first`, a constant: also
 * if it is the first of its slab, which is another function's work. */
static ALWAYS_INLINE enum hard_pushed hard_push(struct hard_cache *cache,
                                                const struct hard_zone *zone, uintptr_t address,
                                                size_t size, bool first)
{
    const struct hard_class *row = zone->row;
    size_t number, id;
    if (UNLIKELY(!zone_place_fast(zone, address, &number, &id)))
        return HARD_NOT_PUSHED;
    uint16_t *state = &zone->states[id];
    uint16_t value = __atomic_load_n(state, __ATOMIC_RELAXED); /* see state_of */
    size_t slack = (size_t)value - STATE_LIVE, bytes = row->bytes;
    if (UNLIKELY(slack > CANARY_SHORT) || UNLIKELY(size != SIZE_MAX && size != bytes - slack))
        return HARD_NOT_PUSHED;
    object_pair damage = canary_short_damage(address, address + bytes, slack);
    bool alone = lock_is_alone();
    if (LIKELY(alone)) {
        if (LIKELY(number != 0))
            damage |= before_damage(address, bytes, state);
        else if (!first)
            return HARD_NOT_HERE;
        else if (UNLIKELY(!first_is_sound(zone, address, id)))
            return HARD_NOT_PUSHED;
    }
    if (UNLIKELY(!pair_is_zero(damage)) || UNLIKELY(!state_claim_fast(state, value, alone)))
        return HARD_NOT_PUSHED;
    object_clear(address, bytes);
    bool turn = hard_cache_wait(cache, hard_entry_of(address, zone->class, state), bytes);
    return UNLIKELY(turn) ? HARD_PUSHED_TURN : HARD_PUSHED;
}

/* HARD_MOVES: it has to move, and has `*old` bytes now. */
enum hard_resized { HARD_NOT_RESIZED, HARD_RESIZED, HARD_MOVES };

/* Makes a block of a heap's class, which is HARD_FAST_MOST at most, one of `bytes` where it is, if
 * that many are of its class. HARD_NOT_RESIZED: as in hard_push. */
static ALWAYS_INLINE enum hard_resized
hard_resize_fast(const struct hard_zone *zone, uintptr_t address, size_t bytes, size_t *old)
{
    size_t number, id, of_object = zone->row->bytes;
    if (UNLIKELY(!zone_place_fast(zone, address, &number, &id)))
        return HARD_NOT_RESIZED;
    uint16_t *state = &zone->states[id];
    uint16_t value = __atomic_load_n(state, __ATOMIC_RELAXED); /* see state_of */
    size_t slack = (size_t)value - STATE_LIVE, left = of_object - bytes;
    if (UNLIKELY(slack > CANARY_SHORT))
        return HARD_NOT_RESIZED;
    *old = of_object - slack;
    if (left - 1 >= CANARY_SHORT)
        return HARD_MOVES;
    uintptr_t end = address + of_object;
    if (UNLIKELY(!pair_is_zero(canary_short_damage(address, end, slack))) ||
        UNLIKELY(!state_claim_fast(state, value, lock_is_alone())))
        return HARD_NOT_RESIZED;
    canary_move_short(address, end, slack, left);
    /* release: who finds the state finds the canary (hard_check.c) */
    __atomic_store_n(state, (uint16_t)(STATE_LIVE + left), __ATOMIC_RELEASE);
    return HARD_RESIZED;
}

#endif
