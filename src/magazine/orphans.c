/*
 * What waits in the caches of threads that a child of fork does not have.
 *
 * Those threads were in the middle of anything, without a lock, when memory was copied. What is in
 * the child nevertheless is known, for these reasons:
 *
 * - The copy is of one moment for each thread: fork makes the parent's pages read-only, and lets
 *   nobody write to them again before every processor knows. So all stores of a thread up to one of
 *   its instructions are in the child, and none after it. (What a thread does to two pages at
 *   different times cannot be seen in the other order.)
 * - A thread's magazine is its own from before a top leads to it until after none does, an object
 *   its own while it is in a slot above the top, a cell while it is in a list. The top is moved
 *   after the slot is written, and a magazine is unloaded before its objects or itself go
 * elsewhere.
 * - What others own changes hands under a lock only, and the forking thread holds all locks.
 *
 * So what is in a slot above a top here is in no other magazine, no depot and no slab, and nobody
 * else in the child has it. Slots below the top say nothing: those objects went on to others.
 *
 * One object for each thread and class may have lost its key, as it was about to be handed out, and
 * some may have been written to after they were freed. These are left where they are: a free object
 * must carry its key. If the copy was of several moments after all, as memory in files is
 * (provider_file.c), the key also tells that the object was free at the moment its page was copied:
 * who has it since got it without a lock that the forking thread holds, and nobody in the child can
 * rely on what such a thread did. The slab's own bit sees to it that nothing goes back twice.
 *
 * A thread that was moving things between two places may have had them in neither; at most a few
 * magazines are lost so. So it is with the object that was freed last: it is the newest before the
 * one that was so is in a magazine.
 *
 * This is done late, when the child would take fresh memory: most children call exec before.
 */
#include "magazine/cache_magazines.h"
#include "meta/meta.h"

uint32_t cache_generation = 1;

void caches_orphan(void)
{
    cache_generation++;
}

void arenas_orphan(struct arenas *arenas, void (*end)(struct arenas *arenas))
{
    if (arenas->threads != 0)
        arenas->end_orphans = end;
    arenas->threads = 0;
    arenas->magazine_bytes = 0;
    arenas->page_heap->lists_kept = 0;
}

void cache_keep(struct cache *cache)
{
    cache->generation = cache_generation;
    if (cache->shared)
        return;
    cache->arenas->threads++;
    cache->arenas->magazine_bytes += cache->held_bytes;
    cache->arenas->page_heap->lists_kept += cache->quick->kept;
}

/* ---- Small objects ---- */

static void objects_free(const struct page_heap *page_heap, size_t class, const uintptr_t *objects,
                         size_t count)
{
    uintptr_t given[MAGAZINE_SLOTS_MOST];
    size_t found = 0;
    for (size_t i = 0; i < count; i++)
        if (object_waits(page_heap, class, objects[i]))
            given[found++] = objects[i];
    slabs_free(given, found, NULL);
}

static void class_end_orphan(struct cache *cache, size_t class, bool give)
{
    const struct page_heap *page_heap = cache->arenas->page_heap;
    struct magazine_part part = magazine_above(cache->top[class]);
    struct magazine *spare = NULL;
    cache_load(cache, class, NULL, NO_MAGAZINE);
    if (part.magazine == NULL)
        return;
    if (part.magazine->link != NULL)
        spare = magazine_above(magazine_begin(part.magazine->link)).magazine;
    if (give) {
        objects_free(page_heap, class, part.objects, part.count);
        if (spare != NULL && spare->count != 0)
            objects_free(page_heap, class, magazine_begin(spare), magazine_capacity(spare->log));
    }
    magazine_free(part.magazine);
    if (spare != NULL)
        magazine_free(spare);
}

/* Its class may be that of the one before, and then it is lost. */
static void newest_end_orphan(struct cache *cache, bool give)
{
    uintptr_t newest = cache->newest;
    size_t class = cache->newest_class;
    cache_set_newest(cache, 0, 0);
    if (give && newest != 0)
        objects_free(cache->arenas->page_heap, class, &newest, 1);
}

/* ---- Cells ---- */

/* Gives the cells of a list back one by one: if it does not end, it comes to one that is free. */
static void list_give(uint64_t entry)
{
    for (bool first = true; entry != 0; first = false) {
        uintptr_t block = quick_block(entry);
        if (!page_map_covers(block) || !quick_entry_is_sound(entry))
            return;
        const struct cell *cell = cell_of(block);
        uint64_t next = quick_next(entry);
        bool waits =
            cell->state == CELL_CACHED && cell_is_sound(cell) && quick_cell_is_sound(cell, next);
        /* The first may be on its way out, marked but still in the list. */
        if (!waits && !first)
            return;
        entry = next;
        if (waits)
            cells_free(&block, 1);
    }
}

static void cells_end_orphan(struct cache *cache, bool give)
{
    struct quick *quick = cache->quick;
    if (quick == &quick_none)
        return;
    for (size_t list = 0; give && list < QUICK_LISTS; list++)
        list_give(quick->list[list]);
    *quick = quick_none;
}

/* ---- All of it ---- */

void cache_end_orphan(struct cache *cache, bool give)
{
    newest_end_orphan(cache, give);
    for (size_t class = 1; class < CLASS_COUNT; class++)
        class_end_orphan(cache, class, give);
    cells_end_orphan(cache, give);
    cache->held_bytes = 0;
    cache->generation = 0;
}

void arenas_end_orphans(struct arenas *arenas)
{
    struct misuse_waits waits;
    misuse_hold(&waits);         /* a handler may allocate, for which the lock is needed */
    lock_acquire(&arenas->lock); /* to the end: another fork must not meet a half of one */
    for (struct cache *cache = arenas->caches; cache != NULL; cache = cache->next)
        if (cache_is_orphan(cache)) {
            cache_end_orphan(cache, true);
            cache->waits = arenas->idle_caches;
            arenas->idle_caches = cache;
        }
    __atomic_store_n(&arenas->end_orphans, NULL, __ATOMIC_RELAXED);
    lock_release(&arenas->lock);
    misuse_let_go(&waits);
}
