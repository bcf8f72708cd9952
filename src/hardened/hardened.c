/*
 * Hardened blocks: taking and freeing. See hardened.h.
 */
#include "hardened/hardened.h"

#include <string.h>

#include "hardened/hard_pages.h"
#include "hardened/hard_tags.h"
#include "meta/meta.h"
#include "meta/page_map.h"

/* Threads: each has a part of what may wait in all, and of what caches may hold, as if there were
 * so many; if there are more they share it. */
enum { THREAD_SHARE = 16 };

/* ---- What is found ---- */

COLD void hard_report_written(uintptr_t address, size_t class)
{
    struct misuse misuse = {
        .kind = MISUSE_WRITTEN, .address = address, .bytes = hard_classes[class].bytes};
    misuse_report("malloc", &misuse);
}

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

static void adopt_all(struct hardened *hardened);

/* Takes objects for a magazine, or one for a caller who has none. */
static size_t take_objects(struct hardened *hardened, size_t class, struct hard_entry *entries,
                           size_t count)
{
    struct hard_bin *bin = &hardened->bins[class];
    /* relaxed: who is late takes fresh memory instead */
    if (UNLIKELY(__atomic_load_n(&hardened->orphans, __ATOMIC_RELAXED)))
        adopt_all(hardened);
    return hard_bin_take(bin, &hardened->zones, entries, count);
}

struct hard_cache hard_cache_none;

/* A thread's magazine of a class; NULL: it has none. One that is made gets at most half of the room
 * that is left, so that the classes which a thread uses first do not take all of it. */
static struct hard_magazine *magazine_of(struct hard_cache *cache, size_t class)
{
    if (cache == NULL || class >= HARD_KEPT)
        return NULL;
    struct hard_magazine *magazine = &cache->magazines[class];
    if (magazine->most != 0)
        return magazine;
    const struct hard_class *row = &hard_classes[class];
    size_t most = size_min(row->magazine, cache->room / 2 / row->bytes);
    magazine->entries = most != 0 ? meta_alloc(most * sizeof(struct hard_entry)) : NULL;
    if (magazine->entries == NULL)
        return NULL;
    magazine->most = (uint32_t)most;
    cache->room -= most * row->bytes;
    return magazine;
}

static NOINLINE bool entry_take(struct hardened *hardened, struct hard_cache *cache, size_t class,
                                struct hard_entry *entry)
{
    struct hard_magazine *magazine = magazine_of(cache, class);
    if (magazine == NULL)
        return take_objects(hardened, class, entry, 1) != 0;
    size_t taken = take_objects(hardened, class, magazine->entries, (magazine->most + 1) / 2);
    if (taken == 0)
        return false;
    *entry = magazine->entries[taken - 1];
    __atomic_signal_fence(__ATOMIC_RELEASE);
    GAUGE_SET(magazine->count, (uint32_t)(taken - 1));
    return true;
}

static bool entry_pop(struct hardened *hardened, struct hard_cache *cache, size_t class,
                      struct hard_entry *entry)
{
    if (cache == NULL || class >= HARD_KEPT || cache->magazines[class].count == 0)
        return entry_take(hardened, cache, class, entry);
    struct hard_magazine *magazine = &cache->magazines[class];
    uint32_t last = magazine->count - 1;
    *entry = magazine->entries[last];
    GAUGE_SET(magazine->count, last);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    return true;
}

/* Whether an object is as it was left. One that is larger than a page and new is not looked at:
 * that would touch it. */
static ALWAYS_INLINE bool entry_is_sound(const struct hardened *hardened,
                                         const struct hard_entry *entry, size_t bytes)
{
    if (bytes <= PAGE_BYTES)
        return words_are_zero(entry_object(entry), entry_object(entry) + bytes);
    return state_of(entry->state) == STATE_NEW ||
           object_rests(hardened->zones.provider, entry_object(entry), bytes);
}

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
        if (UNLIKELY(!entry_pop(hardened, cache, class, &entry)))
            return NULL;
        uintptr_t object = entry_object(&entry);
        if (UNLIKELY(!entry_is_sound(hardened, &entry, of_object))) {
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

/* Puts objects of one class back into their bin. Nobody looks at them here: they are looked at when
 * they are handed out, or before their slab is purged. */
static void entries_to_bin(struct hardened *hardened, const struct hard_entry *entries,
                           size_t count)
{
    size_t class = entry_hard_class(entries);
    uintptr_t written = hard_bin_put(&hardened->bins[class], &hardened->zones, entries, count);
    if (UNLIKELY(written != 0))
        hard_report_written(written, class); /* as in hard_alloc */
}

/* The same for an object that leaves a quarantine that is emptied. It is looked at now, since
 * perhaps nobody ever takes it again. If it was written to, that is reported, and nobody gets it
 * any more. */
static COLD void entry_retire(struct hardened *hardened, struct hard_entry entry)
{
    size_t class = entry_hard_class(&entry);
    if (UNLIKELY(!entry_is_sound(hardened, &entry, hard_classes[class].bytes)))
        hard_report_written(entry_object(&entry), class);
    else
        entries_to_bin(hardened, &entry, 1);
}

/* Moves what is more than `keep` objects in a magazine to the bin. */
static NOINLINE void magazine_flush(struct hardened *hardened, struct hard_magazine *magazine,
                                    size_t keep)
{
    uint32_t count = magazine->count;
    if (count <= keep)
        return;
    GAUGE_SET(magazine->count, (uint32_t)keep);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    entries_to_bin(hardened, &magazine->entries[keep], count - keep);
}

/* Puts an object into a thread's magazine, where it makes room; without a magazine, into the
 * bin. */
static NOINLINE void entry_push(struct hard_cache *cache, struct hard_entry entry)
{
    struct hard_magazine *magazine = magazine_of(cache, entry_hard_class(&entry));
    if (magazine == NULL) {
        entries_to_bin(cache->home, &entry, 1);
        return;
    }
    if (magazine->count == magazine->most)
        magazine_flush(cache->home, magazine, magazine->most / 2);
    hard_magazine_put(magazine, entry);
}

NOINLINE void hard_cache_turn(struct hard_cache *cache)
{
    struct hard_wait *wait = &cache->wait;
    if (cache->left.state != NULL)
        entry_push(cache, cache->left);
    cache->left = (struct hard_entry){0, NULL};
    while (wait_is_over(wait)) {
        struct hard_entry leaves = wait_take(wait);
        if (UNLIKELY(!hard_magazine_put(&cache->magazines[entry_hard_class(&leaves)], leaves)))
            entry_push(cache, leaves);
    }
}

/* Objects: that leave the quarantine of all threads while its lock is held once. */
enum { SHARED_TURN = 32 };

/* Puts an object into the quarantine of all threads. What has to leave it goes to the bins. */
static void wait_shared(struct hardened *hardened, struct hard_entry entry, size_t bytes)
{
    struct hard_wait *wait = &hardened->wait;
    struct hard_entry leave[SHARED_TURN];
    size_t count = 0;
    lock_acquire(&hardened->wait_lock);
    if (wait_is_full(wait))
        leave[count++] = wait_change(wait, entry, bytes);
    else
        wait_add(wait, entry, bytes);
    bool turn = wait_has_turn(wait);
    do {
        while (turn && count < SHARED_TURN && wait_is_over(wait))
            leave[count++] = wait_take(wait);
        lock_release(&hardened->wait_lock);
        turn = count == SHARED_TURN;
        for (size_t i = 0; i < count; i++)
            entries_to_bin(hardened, &leave[i], 1);
        count = 0;
        if (turn)
            lock_acquire(&hardened->wait_lock);
    } while (turn);
}

static void entry_wait(struct hardened *hardened, struct hard_cache *cache,
                       const struct hard_class *row, struct hard_entry entry)
{
    if (cache == NULL || row->magazine == 0)
        wait_shared(hardened, entry, row->bytes);
    else if (hard_cache_wait(cache, entry, row->bytes))
        hard_cache_turn(cache);
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
    entry_wait(hardened, cache, row, hard_entry_of(address, zone->class, state));
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

/* ---- Threads ---- */

/* A cache that a thread has left, or NULL. The quarantine's lock must be held. */
static struct hard_cache *cache_find(struct hardened *hardened)
{
    struct hard_cache *cache = hardened->caches;
    while (cache != NULL && cache->generation != 0)
        cache = cache->next;
    return cache;
}

static COLD struct hard_cache *cache_make(struct hardened *hardened)
{
    struct hard_cache *cache = meta_alloc(sizeof(*cache));
    if (cache == NULL)
        return NULL;
    memset(cache, 0, sizeof(*cache));
    if (!hard_wait_init(&cache->wait, 0, hardened->wait.count_most)) {
        meta_free(cache, sizeof(*cache));
        return NULL;
    }
    cache->home = hardened;
    cache->next = hardened->caches;
    /* release: who finds the cache finds it whole */
    __atomic_store_n(&hardened->caches, cache, __ATOMIC_RELEASE);
    return cache;
}

COLD struct hard_cache *hard_cache_new(struct hardened *hardened)
{
    lock_acquire(&hardened->wait_lock);
    struct hard_cache *cache = cache_find(hardened);
    if (cache == NULL)
        cache = cache_make(hardened);
    if (cache != NULL) {
        cache->owner = hardened->zones.owner; /* of the heap that has this state now */
        cache->generation = hardened->generation;
        size_t share = size_max(THREAD_SHARE, ++hardened->threads);
        cache->room = hardened->held_most / share * THREAD_SHARE / 2;
        wait_limit(&cache->wait, size_min(hardened->wait.bytes_most / share, cache->room));
    }
    lock_release(&hardened->wait_lock);
    return cache;
}

COLD void hard_cache_flush(struct hard_cache *cache)
{
    while (cache->wait.count != 0) {
        struct hard_entry oldest = wait_take(&cache->wait);
        entry_retire(cache->home, oldest);
    }
    for (size_t class = 1; class < HARD_KEPT; class++)
        magazine_flush(cache->home, &cache->magazines[class], 0);
}

/* Forgets all that is in a cache. */
static COLD void cache_forget(struct hard_cache *cache)
{
    for (size_t class = 1; class < HARD_KEPT; class++)
        GAUGE_SET(cache->magazines[class].count, 0);
    wait_forget(&cache->wait);
    cache->left = (struct hard_entry){0, NULL};
}

/* Takes an empty cache from its thread: the next one may have it. */
static COLD void cache_leave(struct hard_cache *cache)
{
    for (size_t class = 1; class < HARD_KEPT; class++) {
        struct hard_magazine *magazine = &cache->magazines[class];
        if (magazine->most != 0)
            meta_free(magazine->entries, magazine->most * sizeof(struct hard_entry));
        magazine->most = 0;
    }
    cache->generation = 0;
    cache->user = 0;
}

COLD void hard_caches_clear(struct hardened *hardened, bool ends)
{
    for (struct hard_cache *cache = hardened->caches; cache != NULL; cache = cache->next) {
        cache_forget(cache);
        if (ends || cache->generation != hardened->generation)
            cache_leave(cache);
    }
    if (ends)
        hardened->threads = 0;
}

COLD void hard_cache_free(struct hard_cache *cache)
{
    struct hardened *hardened = cache->home;
    hard_cache_flush(cache);
    lock_acquire(&hardened->wait_lock);
    cache_leave(cache);
    hardened->threads--;
    lock_release(&hardened->wait_lock);
}

/* ---- Fork ---- */

void hard_forked(struct hardened *hardened, struct hard_cache *own)
{
    hardened->generation++;
    hardened->threads = own != NULL;
    if (own != NULL)
        own->generation = hardened->generation;
    hardened->orphans = true;
}

COLD void hard_fork_dice(struct hardened *hardened)
{
    for (struct hard_cache *cache = hardened->caches; cache != NULL; cache = cache->next)
        dice_fork(&cache->wait.random);
    dice_fork(&hardened->zones.random);
    dice_fork(&hardened->large.random);
    dice_fork(&hardened->wait.random);
    for (size_t class = 1; class < HARD_CLASSES; class++)
        dice_fork(&hardened->bins[class].random);
}

/* Puts into the bins what a cache has whose thread this process does not have. That thread may have
 * been anywhere at the fork. The counts of its cache hold all the same, but an entry may be half
 * written, or have been taken out a moment ago; hard_bin_adopt tells those. */
static COLD void cache_adopt(struct hardened *hardened, struct hard_cache *cache)
{
    struct hard_wait *wait = &cache->wait;
    for (uint32_t i = 0; i < wait->young + wait->old; i++) {
        const struct hard_entry *entry = wait_at(wait, i);
        hard_bin_adopt(&hardened->bins[entry_hard_class(entry)], &hardened->zones, entry);
    }
    for (size_t class = 1; class < HARD_KEPT; class++) {
        struct hard_magazine *magazine = &cache->magazines[class];
        for (uint32_t i = 0; i < magazine->count; i++)
            hard_bin_adopt(&hardened->bins[class], &hardened->zones, &magazine->entries[i]);
    }
    if (cache->left.state != NULL && entry_object(&cache->left) != 0)
        hard_bin_adopt(&hardened->bins[entry_hard_class(&cache->left)], &hardened->zones,
                       &cache->left);
    cache_forget(cache);
    cache_leave(cache);
}

static COLD void adopt_all(struct hardened *hardened)
{
    lock_acquire(&hardened->wait_lock);
    bool first = hardened->orphans;
    for (struct hard_cache *cache = hardened->caches; first && cache != NULL; cache = cache->next)
        if (cache->generation != 0 && cache->generation != hardened->generation)
            cache_adopt(hardened, cache);
    __atomic_store_n(&hardened->orphans, false, __ATOMIC_RELAXED);
    lock_release(&hardened->wait_lock);
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
            entry_retire(hardened, entry);
    }
    hard_large_drop(&hardened->large, false);
    size_t purged = 0;
    for (size_t class = 1; class < HARD_CLASSES; class++)
        purged += hard_bin_trim(&hardened->bins[class], &hardened->zones);
    return purged;
}
