/*
 * Threads' caches of a hardened heap, and where freed objects wait. See hard_cache.h.
 */
#include "hardened/hard_cache.h"

#include <string.h>

#include "meta/meta.h"

/* Threads: each has a part of what may wait in all, and of what caches may hold, as if there were
 * so many; if there are more they share it. */
enum { THREAD_SHARE = 16 };

/* Objects: a thread's first magazine of a class has room for so many. Whenever it is empty, or
 * full, it gets twice as much, up to what the class has (hard_class.magazine): a thread that calls
 * seldom holds little. */
enum { MAGAZINE_FIRST = 2 };

BULKY struct hard_cache hard_cache_none;

/* ---- Emptying without a look ---- */

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

/* ---- Taking ---- */

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

/* The room that a magazine gets next. It takes at most half of what the cache has left, so that the
 * classes which a thread uses first do not take all of it. */
static size_t room_next(const struct hard_cache *cache, const struct hard_magazine *magazine,
                        const struct hard_class *row)
{
    size_t wanted = size_min(size_max(2 * (size_t)magazine->most, MAGAZINE_FIRST), row->magazine);
    return size_min(wanted, magazine->most + cache->room / 2 / row->bytes);
}

/* Gives a thread's magazine of a class more room, if the class and the cache let it. */
static COLD void magazine_grow(struct hard_cache *cache, size_t class)
{
    struct hard_magazine *magazine = &cache->magazines[class], old = *magazine;
    const struct hard_class *row = &hard_classes[class];
    size_t most = room_next(cache, magazine, row);
    if (most <= old.most)
        return;
    struct hard_entry *entries = meta_alloc(most * sizeof(struct hard_entry));
    if (entries == NULL)
        return;
    if (old.count != 0)
        memcpy(entries, old.entries, old.count * sizeof(struct hard_entry));
    lock_acquire(&cache->home->wait_lock); /* a fork finds the old one whole, or the new one */
    magazine->entries = entries;
    magazine->most = (uint32_t)most;
    lock_release(&cache->home->wait_lock);
    if (old.most != 0)
        meta_free(old.entries, old.most * sizeof(struct hard_entry));
    cache->room -= (most - old.most) * row->bytes;
}

/* A thread's magazine of a class, which may have grown; NULL: it has none. */
static struct hard_magazine *magazine_of(struct hard_cache *cache, size_t class)
{
    if (cache == NULL || class >= HARD_KEPT)
        return NULL;
    magazine_grow(cache, class);
    return cache->magazines[class].most != 0 ? &cache->magazines[class] : NULL;
}

bool hard_entry_take(struct hardened *hardened, struct hard_cache *cache, size_t class,
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

/* ---- Waiting ---- */

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

COLD void hard_entry_retire(struct hardened *hardened, struct hard_entry entry)
{
    size_t class = entry_hard_class(&entry);
    if (UNLIKELY(!hard_entry_is_sound(hardened, &entry, hard_classes[class].bytes)))
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

void hard_entry_wait(struct hardened *hardened, struct hard_cache *cache,
                     const struct hard_class *row, struct hard_entry entry)
{
    if (cache == NULL || row->magazine == 0)
        wait_shared(hardened, entry, row->bytes);
    else if (hard_cache_wait(cache, entry, row->bytes))
        hard_cache_turn(cache);
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
        hard_entry_retire(cache->home, oldest);
    }
    for (size_t class = 1; class < HARD_KEPT; class++)
        magazine_flush(cache->home, &cache->magazines[class], 0);
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
