/*
 * Cells in thread caches: how much may wait in the quick lists, and what happens at their edges.
 * See quick.h.
 */
#include "magazine/cache_magazines.h"
#include "meta/meta.h"

/* Times: of what a thread may hold, so much may wait in its lists, if it is missed. */
enum { LEARNED_TIMES = 2 };

/* One part in: of what may wait, so much goes back at a time, so that the next cells need not. */
enum { EVICT_SHARE = 4 };

/* One part in: of the cells in use, so much may wait in the lists of all threads. With a sixteenth
 * random sizes of up to 30,000 bytes take a quarter more time, with an eighth small programs take 2
 * to 4 % more memory. */
enum { WAIT_SHARE = 12 };

/* One part in: of what goes back at a time, so little is missed that it hardly was of use. */
enum { CALM_SHARE = 4 };

/* One part in: of what a heap keeps in any case, so much may wait in the lists of all its threads
 * where most cells are free. */
enum { SPARSE_SHARE = 4 };

/* Times: so often cells were hardly of use before less may wait, so that one quiet moment does not
 * count; a large cell goes back so often before it may wait. */
enum { CALM_MOST = 4 };

/* One part in: of what is spared, if more of what was joined is missed that was in vain. */
enum { VAIN_SHARE = 2 };

/* One part in: of what is spared, a heap that had to touch more since the last time grows. */
enum { GROWN_SHARE = 8 };

/* Times: so often in vain in one step of the clock, some milliseconds, before more is spared. It is
 * a fiftieth of the time, or more; what happens less often costs nothing. */
enum { VAIN_MOST = 32 };

static bool quick_exists(const struct quick *quick)
{
    return quick != &quick_none;
}

/* Sets what may wait in the lists of a cache. What of that was learned counts as kept: so much less
 * of what is free elsewhere is, and the thread's magazines have no less for it. Mostly it stays,
 * and then nothing is counted: cells have just been written to that are in no cache, for which an
 * atomic instruction would wait. */
static NOINLINE void limit_set(struct cache *cache, struct quick *quick, size_t limit,
                               size_t learned)
{
    quick->lent = false;
    if (limit == quick->limit)
        return;
    size_t kept = learned >> PAGE_SHIFT, more = kept - quick->kept;
    size_t held = quick_held(quick);
    quick->kept = (uint32_t)kept;
    quick_set_limit(quick, limit);
    cache_hold(cache, quick_held(quick) - held); /* modulo 2^64, as `more`, if it is less */
    page_heap_note_lists(cache->arenas->page_heap, more);
}

static size_t limit_most(const struct cache *cache)
{
    return cache_part(cache) * LEARNED_TIMES;
}

/* What may wait in one thread's lists of what all threads share. */
static size_t part_of_thread(const struct cache *cache, size_t bytes)
{
    /* relaxed: a hint */
    return bytes / size_max(__atomic_load_n(&cache->arenas->threads, __ATOMIC_RELAXED), 1);
}

/* A heap keeps SNUG_DIRTY of free memory in any case. A part of that may wait in quick lists as
 * well, however little is in use: for one thread, with a quarter of it small programs took up to
 * twice the time, and four times as much was 3 % of memory. */
static size_t limit_least(const struct cache *cache)
{
    size_t part = part_of_thread(cache, options.dirty / ONE_OF_MANY);
    return size_min(size_max(QUICK_LIMIT_LEAST, part), options.thread_cache / 2);
}

/* Whether most cells are free, as after a peak: then each that waits may keep a whole span. If all
 * are no more than the base, or not many more than may wait, that does not matter. */
static bool cells_are_sparse(const struct cache *cache, const struct cells_use *use)
{
    return use->used < use->total / MOST_SHARE &&
           use->total > size_max(options.dirty, limit_most(cache) * MOST_SHARE);
}

/* The most that may wait in all threads' lists if it is missed: however little is in use, as much
 * as a heap keeps in any case. */
static size_t learned_most_of_all(const struct cache *cache, const struct cells_use *use)
{
    size_t small = 0;
    if (options.purge_delay != 0) /* or nothing is kept in any case */
        small = size_min(use->total, options.dirty);
    if (UNLIKELY(cells_are_sparse(cache, use)))
        small = size_min(small, options.dirty / SPARSE_SHARE);
    return size_min(size_max(use->used / WAIT_SHARE, small), cache->arenas->held_most);
}

/* The same in one thread's: its part, and no more than threads that may all be asleep have left. */
static size_t limit_learned_most(const struct cache *cache, const struct cells_use *use)
{
    size_t all = learned_most_of_all(cache, use);
    /* relaxed: two threads that learn at the same time may go over it, by as much as one learns */
    size_t kept = __atomic_load_n(&cache->arenas->page_heap->lists_kept, __ATOMIC_RELAXED);
    size_t others = (kept - size_min(kept, cache->quick->kept)) << PAGE_SHIFT;
    return size_min(limit_most(cache),
                    size_min(part_of_thread(cache, all), all - size_min(all, others)));
}

/* The lists of a cache, made at the first use; NULL if there can be none. */
static struct quick *cache_quick(struct cache *cache)
{
    if (!cache_exists(cache) ||
        (cache->quick->limit == 0 && cache_may_hold(cache) < limit_least(cache)))
        return NULL;
    struct quick *quick = cache->quick;
    if (!quick_exists(quick)) {
        quick = meta_alloc_optional(sizeof(*quick));
        if (quick == NULL)
            return NULL;
        *quick = quick_none;
        /* release: who looks at the cache for the statistics finds the lists empty */
        __atomic_store_n(&cache->quick, quick, __ATOMIC_RELEASE);
    }
    if (quick->limit == 0)
        limit_set(cache, quick, limit_least(cache), 0);
    return quick;
}

/* What the limit is to be by what was asked for in vain, as soon as that is as much as goes back at
 * a time; see quick.h. Larger and smaller parts were tried; see docs/measurements/0003-cells.md. */
static size_t limit_judged(struct quick *quick)
{
    size_t limit = quick->limit, part = limit / EVICT_SHARE / CELL_UNIT;
    if (quick->wanted < part)
        return limit;
    if (quick->regret >= part) {
        limit *= 2;
        quick->calm = 0;
    } else if (quick->regret < part / CALM_SHARE && ++quick->calm == CALM_MOST) {
        limit /= 2;
        quick->calm = 0;
    }
    quick_forget_misses(quick);
    return limit;
}

/* What is spared is judged when all are joined: what was missed since the last time was joined in
 * vain, unless the heap grew meanwhile, as then all that was spared would have been memory more. */
static void spared_judge(struct quick *quick, uint32_t now, uint32_t fresh)
{
    uint32_t spared = (uint32_t)(quick_spared(quick) / CELL_UNIT);
    uint32_t missed = quick->regret - quick->seen, grown = fresh - quick->fresh;
    quick->seen = quick->regret;
    quick->fresh = fresh;
    if (grown > spared / GROWN_SHARE) {
        quick->vain = 0;
        quick->spared -= quick->spared != 0;
    } else if (missed > spared / VAIN_SHARE) {
        quick->vain = quick->clock != now ? 1 : quick->vain + 1;
        quick->spared += quick->vain == VAIN_MOST && quick_spared(quick) < quick->limit;
        quick->clock = now;
    }
}

void cache_join_cells(struct cache *cache)
{
    const struct page_heap *page_heap = cache->arenas->page_heap;
    spared_judge(cache->quick, (uint32_t)page_heap->now(), page_heap_fresh(page_heap));
    quick_evict(cache->quick, 0);
}

/* Sets how much may wait from now on. */
static void limit_adapt(struct cache *cache, struct quick *quick, const struct cells_use *use)
{
    size_t limit = size_min(limit_judged(quick), limit_learned_most(cache, use));
    size_t least = limit_least(cache);
    limit = size_max(limit, least);
    if (least <= quick_held(quick) || least - quick_held(quick) <= cache_may_hold(cache))
        limit_set(cache, quick, limit, limit - least);
}

/* A cell larger than all that may wait waits alone, if the program takes and frees one of its size
 * over and over, and misses nothing else in between. */
static bool limit_lend(struct cache *cache, struct quick *quick, size_t bytes)
{
    if (bytes <= quick->limit || bytes > limit_most(cache) ||
        quick_list_of(bytes / CELL_UNIT) != quick->asked)
        return false;
    if (quick->turns < CALM_MOST) {
        quick->turns++;
        return false;
    }
    if (bytes - quick_held(quick) > cache_may_hold(cache))
        return false;
    quick_evict(quick, 0);
    limit_set(cache, quick, bytes, 0);
    quick->lent = true;
    return true;
}

/* It waits until a request finds nothing: joined with its neighbours it may serve that. */
static void limit_take_back(struct cache *cache, struct quick *quick)
{
    quick_evict(quick, 0);
    limit_set(cache, quick, limit_least(cache), 0);
}

/* Takes note of a request for so many units that found nothing. */
static void note_miss(struct cache *cache, struct quick *quick, size_t units)
{
    quick_note_miss(quick, units);
    if (UNLIKELY(quick->lent))
        limit_take_back(cache, quick);
}

void cache_miss_cell(struct cache *cache, size_t bytes)
{
    struct quick *quick = cache->quick;
    if (!quick_exists(quick))
        return;
    size_t units = cell_units(bytes);
    note_miss(cache, quick, units);
    size_t list = quick_list_of(units);
    uint64_t found = list < QUICK_LISTS ? quick_find(quick, list, units) : 0;
    if (LIKELY(found == 0))
        return;
    /* It is left where cache_pop_cell found it. */
    struct misuse misuse = quick_drop_list(quick, list + quick_first(found));
    misuse_report("malloc", &misuse);
}

void cache_miss_cell_aligned(struct cache *cache, size_t bytes)
{
    if (quick_exists(cache->quick))
        note_miss(cache, cache->quick, cell_units(bytes));
}

/* Makes room for a cell of `bytes`, if there may be that much. */
static bool make_room(struct cache *cache, size_t bytes)
{
    struct quick *quick = cache_quick(cache);
    if (quick == NULL)
        return false;
    if (quick_bytes(quick) + bytes <= quick->limit)
        return true;
    if (quick->lent)
        limit_take_back(cache, quick);
    struct cells_use use = arenas_cells_use(cache->arenas);
    if (UNLIKELY(cells_are_sparse(cache, &use)))
        quick_evict(quick, 0);
    limit_adapt(cache, quick, &use);
    if (limit_lend(cache, quick, bytes))
        return true;
    bool fits = bytes <= quick->limit / MOST_SHARE; /* or it would drive out most others */
    size_t part = quick->limit / EVICT_SHARE;
    if (quick_bytes(quick) + (fits ? bytes : 0) > quick->limit)
        quick_evict(quick, part * (EVICT_SHARE - 1) - (fits ? size_min(bytes, part) : 0));
    return fits;
}

void cache_free_cell(struct cache *cache, uintptr_t block)
{
    if (make_room(cache, cell_of(block)->units * CELL_UNIT) && quick_put(cache->quick, block))
        return;
    cell_mark(cell_of(block), CELL_CACHED); /* of which the check value is the same */
    cells_free(&block, 1);
}

void cache_flush_cells(struct cache *cache)
{
    struct quick *quick = cache->quick;
    if (!quick_exists(quick))
        return;
    quick_evict(quick, 0);
    limit_set(cache, quick, 0, 0);
}

void cache_clear_cells(struct cache *cache)
{
    struct quick *quick = cache->quick;
    if (!quick_exists(quick))
        return;
    limit_set(cache, quick, 0, 0);
    *quick = quick_none;
}
