/*
 * The state of a hardened heap, and where its objects wait: in the magazines and the quarantine of
 * a thread, in the quarantine of all, in their bins. See hardened.h.
 *
 * Thread-safe where it is of all threads; takes RANK_HARD_WAIT, and RANK_HARD_BIN and what is below
 * it, one at a time.
 */
#ifndef SNUG_HARDENED_HARD_CACHE_H
#define SNUG_HARDENED_HARD_CACHE_H

#include "hardened/hard_large.h"
#include "hardened/hard_pages.h"
#include "hardened/wait.h"

struct hard_magazine {
    struct hard_entry *entries; /* room for `most`, which is 0 until the thread needs some */
    uint32_t count;
    uint32_t most;
};

/* A thread's cache of a hardened heap. */
struct hard_cache {
    struct hard_magazine magazines[HARD_KEPT];
    struct hard_wait wait;
    struct hard_entry left; /* has left quarantine, but its magazine was full; or all zero */
    size_t room;            /* bytes that further magazines may have */
    struct hardened *home;
    const void *owner;       /* home->zones.owner */
    struct hard_cache *next; /* in the list of all; a cache is never freed, so it can be read */
    uint64_t user;           /* the heap's id while a thread has it; unused in malloc's heap */
    uint32_t generation;     /* the heap's, when a thread got it; 0: no thread has it */
};

struct hardened {
    struct hard_zones zones;
    struct hard_large large;
    struct lock wait_lock;
    struct hard_wait wait; /* of all threads */
    struct hard_cache *caches;
    struct hardened *next; /* in the list of those that no heap uses */
    size_t held_most;      /* bytes: in a thread's cache */
    uint32_t threads;      /* with a cache */
    uint32_t generation;   /* grows by 1 in each child of fork; from 1 on */
    bool orphans;          /* in a child: what other threads had is still to be taken back */
    struct hard_bin bins[HARD_CLASSES];
};

/* Stands for the cache of a thread that has none. It belongs to no heap. */
extern INTERNAL struct hard_cache hard_cache_none;

/* ---- Threads ---- */

struct hard_cache *hard_cache_new(struct hardened *hardened);

/* Gives back all objects in a cache; hard_cache_free then leaves it to another thread. */
void hard_cache_flush(struct hard_cache *cache);
void hard_cache_free(struct hard_cache *cache);

/* For a heap that is cleared: forgets what is in all caches. `ends`: no thread has them any
 * more. */
void hard_caches_clear(struct hardened *hardened, bool ends);

/* Finds room for the object that has left quarantine (`left`), and lets further ones leave as long
 * as the quarantine is over its bound. */
void hard_cache_turn(struct hard_cache *cache);

/* Puts an object into a magazine; false: that has no room. */
static ALWAYS_INLINE bool hard_magazine_put(struct hard_magazine *magazine, struct hard_entry entry)
{
    uint32_t count = magazine->count;
    if (UNLIKELY(count == magazine->most))
        return false;
    magazine->entries[count] = entry;
    __atomic_signal_fence(__ATOMIC_RELEASE);
    GAUGE_SET(magazine->count, count + 1);
    return true;
}

/* Puts a freed object into a thread's quarantine, which is full, and the object that leaves for it
 * into a magazine. True: hard_cache_turn has to be called. */
static ALWAYS_INLINE bool hard_cache_change(struct hard_cache *cache, struct hard_entry entry,
                                            size_t bytes)
{
    struct hard_entry leaves = wait_change(&cache->wait, entry, bytes);
    if (UNLIKELY(!hard_magazine_put(&cache->magazines[entry_hard_class(&leaves)], leaves))) {
        cache->left = leaves;
        return true;
    }
    return wait_has_turn(&cache->wait);
}

/* The same for a quarantine that may not be full. */
static inline bool hard_cache_wait(struct hard_cache *cache, struct hard_entry entry, size_t bytes)
{
    if (LIKELY(wait_is_full(&cache->wait)))
        return hard_cache_change(cache, entry, bytes);
    wait_add(&cache->wait, entry, bytes);
    return wait_has_turn(&cache->wait);
}

/* In a child of fork, with all locks held; `own` is the caller's cache or NULL. */
void hard_forked(struct hardened *hardened, struct hard_cache *own);

/* In every child of fork: what comes by chance there is not what comes in its parent. */
void hard_fork_dice(struct hardened *hardened);

/* ---- For one object ---- */

/* Whether an object is as it was left. One that is larger than a page and new is not looked at:
 * that would touch it. */
static ALWAYS_INLINE bool hard_entry_is_sound(const struct hardened *hardened,
                                              const struct hard_entry *entry, size_t bytes)
{
    if (bytes <= PAGE_BYTES)
        return words_are_zero(entry_object(entry), entry_object(entry) + bytes);
    return state_of(entry->state) == STATE_NEW ||
           object_rests(hardened->zones.provider, entry_object(entry), bytes);
}

/* Takes an object for a request: from the bin, where a thread's magazine is filled as well. False:
 * there is no memory. */
bool hard_entry_take(struct hardened *hardened, struct hard_cache *cache, size_t class,
                     struct hard_entry *entry);

/* The same, from the thread's magazine if that has some. `cache` may be NULL. */
static inline bool hard_entry_pop(struct hardened *hardened, struct hard_cache *cache, size_t class,
                                  struct hard_entry *entry)
{
    if (cache == NULL || class >= HARD_KEPT || cache->magazines[class].count == 0)
        return hard_entry_take(hardened, cache, class, entry);
    struct hard_magazine *magazine = &cache->magazines[class];
    uint32_t last = magazine->count - 1;
    *entry = magazine->entries[last];
    GAUGE_SET(magazine->count, last);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    return true;
}

/* Puts a freed object that is cleared into a quarantine: the thread's, or that of all if `cache` is
 * NULL, or if threads keep none of its class. */
void hard_entry_wait(struct hardened *hardened, struct hard_cache *cache,
                     const struct hard_class *row, struct hard_entry entry);

/* Puts an object into its bin that leaves a quarantine which is emptied. It is looked at now, since
 * perhaps nobody ever takes it again. If it was written to, that is reported, and nobody gets it
 * any more. */
void hard_entry_retire(struct hardened *hardened, struct hard_entry entry);

#endif
