/*
 * The fast paths of small hardened blocks, for threads that have a cache: all of what hardened.h
 * promises, as long as nothing is wrong and nothing runs out.
 *
 * The idea: in all other cases these functions return without having changed anything, also if they
 * see that something is wrong. The long way then looks again, and says what it is. So there is
 * nothing here but the checks themselves, in the order in which they need the least, and no lock.
 *
 * Cost: about 75 instructions to take 64 bytes and 175 to free them; see
 * docs/decisions/0015-hardened.md.
 */
#ifndef SNUG_HARDENED_HARD_FAST_H
#define SNUG_HARDENED_HARD_FAST_H

#include "hardened/canary.h"
#include "hardened/hard_tags.h"
#include "hardened/hardened.h"

/* A block of fewer bytes than OBJECT_LONG if it `is_short`, or fewer than HARD_FAST_MOST. NULL: the
 * magazine is empty, or what is on top of it was written to. */
static ALWAYS_INLINE void *hard_pop(struct hard_cache *cache, size_t bytes, bool is_short)
{
    size_t class = bytes / MIN_ALIGN + 1, of_object = class * MIN_ALIGN;
    struct hard_magazine *magazine = &cache->magazines[class];
    uint32_t count = magazine->count;
    if (UNLIKELY(count == 0))
        return NULL;
    const struct hard_entry *entry = &magazine->entries[count - 1];
    uintptr_t object = entry_object(entry);
    if (UNLIKELY(!object_is_zero(object, of_object, is_short)))
        return NULL;
    canary_put_short(object, object + of_object, of_object - bytes);
    /* release: who finds the state finds the canary (hard_check.c) */
    __atomic_store_n(entry->state, (uint16_t)(STATE_LIVE + of_object - bytes), __ATOMIC_RELEASE);
    GAUGE_SET(magazine->count, count - 1);
    if (object == 0) /* so that callers test for NULL only once */
        __builtin_unreachable();
    return (void *)object;
}

/* The bits that are wrong in the last 16 bytes before an object that is not the first of its slab:
 * they are those of a short canary, or of a free object. Which of both is as good as random, so
 * nothing branches on it. (A longer canary looks damaged here, and is looked at again.) */
static ALWAYS_INLINE object_pair before_damage(uintptr_t object, size_t bytes,
                                               const uint16_t *state)
{
    uint16_t value = state[-1] & STATE_SIZE, slack = value - STATE_LIVE; /* free: more than any */
    uint64_t pattern = canary_of(object - bytes) & ((size_t)(value < STATE_LIVE) - 1);
    object_pair mask = canary_last(slack < CANARY_SHORT ? slack : CANARY_SHORT);
    return (*pair_at(object - CANARY_SHORT) ^ (object_pair){pattern, pattern}) & mask;
}

/* Whether nothing was written before the first object of a slab. */
static ALWAYS_INLINE bool first_is_sound(const struct hard_zone *zone, uintptr_t object, size_t id)
{
    size_t offset = object - zone->start;
    struct hard_place place = {.slab = (uint32_t)(offset >> zone->slab_shift), .id = (uint32_t)id};
    return hard_front_is_sound(zone, place, object);
}

/* As state_claim in hardened.c, but false if a check looks at the object. */
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

/* What a free found. HARD_NOT_PUSHED: nothing is done, and the long way is to look. HARD_NOT_HERE:
 * the same, but a call with `first` may do it. HARD_PUSHED_TURN: hard_cache_turn is to be called.
 * HARD_CLAIMED: the object is not in use any more, and hard_push_rest is to be called. */
enum hard_pushed { HARD_NOT_PUSHED, HARD_NOT_HERE, HARD_PUSHED, HARD_PUSHED_TURN, HARD_CLAIMED };

/* Frees what is at an address in a zone of the heap that the cache is of. The program says that it
 * is what it has `said`. HARD_NOT_PUSHED: it is no block, it has a longer canary, it is larger than
 * HARD_FAST_MOST, or something is wrong. HARD_CLAIMED: what is left to do of `*entry` takes more
 * than a few registers. `first`, a constant: frees the first object of a slab as well, which takes
 * the call of another function. */
static ALWAYS_INLINE enum hard_pushed hard_push(struct hard_cache *cache,
                                                const struct hard_zone *zone, uintptr_t address,
                                                struct said said, bool first,
                                                struct hard_entry *entry)
{
    size_t number, id;
    if (UNLIKELY(!zone_place_fast(zone, address, &number, &id)))
        return HARD_NOT_PUSHED;
    uint16_t *state = &zone->states[id];
    uint16_t value = __atomic_load_n(state, __ATOMIC_RELAXED); /* see state_of */
    /* Of another maker's: more than any. */
    size_t live = STATE_LIVE + ((size_t)said.maker << STATE_MAKER_SHIFT);
    size_t slack = (size_t)value - live, bytes = zone->bytes;
    if (UNLIKELY(slack > CANARY_SHORT) ||
        UNLIKELY(said.size != SIZE_UNSAID && said.size != bytes - slack))
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
    hard_untag(zone, address);
    *entry = hard_entry_of(address, zone->class, state);
    if (UNLIKELY(bytes > OBJECT_LONG) || UNLIKELY(!wait_is_full(&cache->wait)))
        return HARD_CLAIMED;
    object_clear(address, bytes, true);
    return UNLIKELY(hard_cache_change(cache, *entry, bytes)) ? HARD_PUSHED_TURN : HARD_PUSHED;
}

/* Does what hard_push has left of a free: clears the object, and puts it into quarantine. True:
 * hard_cache_turn is to be called. */
static inline bool hard_push_rest(struct hard_cache *cache, struct hard_entry entry)
{
    size_t bytes = hard_bytes_of(entry_hard_class(&entry));
    object_clear(entry_object(&entry), bytes, bytes <= OBJECT_LONG);
    return hard_cache_wait(cache, entry, bytes);
}

/* HARD_MOVES: the block has to move, and has `*old` bytes now. */
enum hard_resized { HARD_NOT_RESIZED, HARD_RESIZED, HARD_MOVES };

/* Resizes a block, of a class of HARD_FAST_MOST bytes at most, to `bytes` where it is, if that many
 * are of its class. HARD_NOT_RESIZED: as HARD_NOT_PUSHED, also if malloc did not make it. */
static ALWAYS_INLINE enum hard_resized
hard_resize_fast(const struct hard_zone *zone, uintptr_t address, size_t bytes, size_t *old)
{
    size_t number, id, of_object = zone->bytes;
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
