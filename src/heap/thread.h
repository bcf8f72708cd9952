/*
 * Threads: their caches, of malloc's heap and of others, from the first slow call to the end.
 *
 * A thread gets a cache of a heap at its 24th slow call: a cache costs about a kilobyte, what it
 * saves per call is about 50 ns, and who calls less often is better off without. One of many
 * threads gets it at its 256th. Without one it shares that of its processor (magazine/shared.h),
 * in malloc's heap. The thread's cache of that is in `thread_self`; those of others are found
 * through a small table (struct heap_slot).
 *
 * A cache of another heap belongs to its heap as well as to its thread: destroying the heap frees
 * the caches of all threads. What such a thread's table says then is stale, and harmless, since no
 * other heap ever has the same id; and a thread that ends believes only what the cache itself still
 * says, under the lock of the list of heaps.
 *
 * A thread's end: libc calls the destructor of a key, perhaps before other destructors that
 * allocate and free. From then on the thread works without a cache of its own, however
 * long it goes on. Nothing is made twice, nothing is left behind.
 */
#ifndef SNUG_HEAP_THREAD_H
#define SNUG_HEAP_THREAD_H

#include "heap/heap.h"

/* Guards the list of heaps and the threads' caches of them. */
extern INTERNAL struct lock heaps_lock;

/* Takes it for something that may find misuse, and releases it; then the reports are made. */
void heaps_hold(struct misuse_waits *waits);
void heaps_let_go(struct misuse_waits *waits);

/* Around a call of the program's own function: meanwhile the thread keeps the caches that it has of
 * other heaps, as who calls goes on with one. What heap_pin returned is for heap_unpin. A function
 * that jumps out leaves it so, which costs a thread of more than HEAP_SLOTS heaps some caches. */
bool heap_pin(void);
void heap_unpin(bool was);

/* The calling thread's cache of a heap if it is there without looking further. */
static ALWAYS_INLINE struct cache *heap_cache_fast(const struct heap *heap)
{
    const struct heap_slot *slot = &thread_self.slots[heap->id % HEAP_SLOTS];
    return LIKELY(slot->id == heap->id) ? slot->cache : (struct cache *)&cache_none;
}

/* The same of any heap, malloc's as well. */
static inline struct cache *heap_cache_if_any(const struct heap *heap)
{
    return heap == &heap_default ? thread_self.cache : heap_cache_fast(heap);
}

/* Makes a cache of a heap for a thread that has none, once it has allocated a little, so a thread
 * that hardly does costs nothing; until then, and after its end, it is `cache_none`. Makes malloc's
 * heap ready as well. */
struct cache *heap_cache_new(struct heap *heap);

/* The calling thread's cache of a heap: `cache`, or a new one if that is `cache_none`. */
static inline struct cache *heap_cache_or_new(struct heap *heap, struct cache *cache)
{
    return LIKELY(cache_exists(cache)) ? cache : heap_cache_new(heap);
}

/* The calling thread's cache of a heap. */
static inline struct cache *heap_cache(struct heap *heap)
{
    return heap_cache_or_new(heap, heap_cache_if_any(heap));
}

/* The calling thread's cache of a hardened heap other than malloc's, or NULL. It is made once it is
 * worth having. */
struct hard_cache *heap_hard_cache(struct heap *heap);

/* Where a thread has its cache of a hardened heap, by the number of its slot: behind its table. */
static inline struct hard_cache **heap_hard_place(struct heap_slot *slots, size_t number)
{
    return (struct hard_cache **)(slots + HEAP_SLOTS) + number;
}

/* The same, if it is made already. */
static inline struct hard_cache *heap_hard_cache_if_any(const struct heap *heap)
{
    const struct heap_slot *slot = &thread_self.slots[heap->id % HEAP_SLOTS];
    return slot->id == heap->id ? *heap_hard_place(thread_self.slots, heap->id % HEAP_SLOTS) : NULL;
}

/* Calls: that were slow before a thread gets a cache of a heap, which takes more than a kilobyte.
 */
enum { CALLS_BEFORE_CACHE = 24 };

/* Calls: the same of one of many threads, which has the cache of its processor until then. */
enum { CALLS_OF_MANY = 256 };

/* Whether the calling thread may have caches. */
bool heap_thread_may_cache(void);

/* Has the thread's end told, with a word that is not NULL. Arming may allocate, in this thread:
 * that call does without a cache. It may write errno, which is the program's: a thread may get its
 * cache in free. False: it cannot be told. */
bool heap_thread_arm(void *word);

/* Ends the caches of the calling thread, which is about to end. The argument is ignored; libc wants
 * one. */
void heap_thread_end(void *argument);

/* ---- All threads' caches of one heap other than malloc's; the lock is held ---- */

/* Forgets what is in them; `end` frees the caches too. */
void heap_forget_caches(struct heap_record *record, bool end);

/* In a child of fork: takes back what waits in the caches of threads that it does not have. */
void heap_end_orphans_locked(struct heap_record *record);

/* The same; takes the lock. */
void heap_end_orphans(struct arenas *arenas);

/* In a child of fork, after all caches were made orphans: keeps those of the calling thread. */
void heap_keep_caches(void);

#endif
