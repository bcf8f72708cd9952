/*
 * The heap: what the layers below make together. Any pointer goes to the layer that has it; threads
 * get and lose their caches here; fork and exit are survived here.
 *
 * Sizes and alignments are those of the program's request, unchecked but for what is said. Nothing
 * here sets errno; freeing keeps it.
 */
#ifndef SNUG_HEAP_HEAP_H
#define SNUG_HEAP_HEAP_H

#include "magazine/cache.h"
#include "span/large.h"

struct heap {
    struct spans spans;
    struct arenas arenas;
    uint64_t id; /* no other heap of the process has, or had, the same; 0: malloc's */
    struct heap_record *record; /* NULL for malloc's; see heaps.h */
};

/* The heap behind malloc. */
extern struct heap heap_default;

/* ---- Slow paths: what cache_pop and cache_push leave ---- */

/* A block of `bytes` of a heap, or NULL. */
void *heap_take_in(struct heap *heap, size_t bytes);

/* The same, all zero. */
void *heap_take_zero_in(struct heap *heap, size_t bytes);

/* The same, at a multiple of `alignment`, a power of two. */
void *heap_take_aligned_in(struct heap *heap, size_t alignment, size_t bytes);

/* The three for malloc's heap. */
void *heap_take(size_t bytes);
void *heap_take_zero(size_t bytes);
void *heap_take_aligned(size_t alignment, size_t bytes);

/* Frees any block of any heap, NULL included; reports what is none. */
void heap_give(void *block);

/* Resizes as realloc does, in the heap that the block is of. `block` is not NULL and `bytes` not 0.
 */
void *heap_resize(void *block, size_t bytes);

/* The usable bytes of a block of any heap; 0, after a report as misuse of `call`, for what is none.
 */
size_t heap_usable(const void *block, const char *call);

/* The heap that a block is of. For an address that is in no heap, malloc's. */
struct heap *heap_of(const void *block);

/* ---- The whole heap ---- */

/* Gives free memory back, down to `keep` bytes of dirty pages. Returns the bytes given. */
size_t heap_trim_of(struct heap *heap, size_t keep);

/* The same for malloc's. */
size_t heap_trim(size_t keep);

/* NULL if every invariant holds, otherwise the first that does not; of one heap, or of all. */
const char *heap_check_of(struct heap *heap);
const char *heap_check(void);

/* What the heap consists of, in bytes where nothing else is said. The parts add up:
 *   segments == slabs + cells + large + dirty + clean
 *   slabs >= small_live + small_free + small_waiting + small_cached */
struct heap_totals {
    size_t segments;     /* taken from the provider for all but huge blocks */
    size_t slabs;        /* pages of slabs */
    size_t cells;        /* pages of cell spans */
    size_t cells_free;   /* free cells in them */
    size_t cells_cached; /* cells in the calling thread's magazines */
    size_t large;        /* pages of large blocks */
    size_t dirty;        /* free pages that still occupy memory */
    size_t clean;        /* free pages that do not */
    size_t free_runs;    /* how many runs they form */
    size_t huge;         /* mappings of huge blocks */
    size_t huge_count;
    size_t small_live;       /* objects handed out, those in other threads' magazines included */
    size_t small_free;       /* objects free in slabs */
    size_t small_waiting;    /* objects in depots */
    size_t small_cached;     /* objects in the calling thread's magazines */
    size_t small_free_count; /* number of objects in the last three */
    size_t meta_used; /* descriptors, magazines, and the page map's entries of the segments */
    size_t meta_mapped;
};

struct heap_totals heap_totals_of(struct heap *heap);
struct heap_totals heap_totals(void); /* of malloc's heap */

/* Bytes of cells handed out, those in other threads' magazines included. */
size_t heap_cells_live(const struct heap_totals *totals);

/* One class of them, numbers of objects. */
struct arena_totals heap_class_totals_of(struct heap *heap, size_t class, size_t *cached);
struct arena_totals heap_class_totals(size_t class, size_t *cached); /* of malloc's heap */

/* ---- Start, threads, exit (lifecycle.c) ---- */

/* Makes the heap usable; called by the first slow path. */
void heap_init(void);

/* The calling thread's cache. One is made once the thread has allocated a little, so a thread that
 * hardly does costs nothing; until then, and after its end, it is `cache_none`. */
struct cache *heap_thread_cache(void);

/* Whether the calling thread is one that may have caches at all. */
bool heap_thread_may_cache(void);

/* Reads the options if that was too early at the first allocation, and registers what must be told
 * to libc: thread exit and fork. */
void heap_start(char **environment);

/* Looks at what still waits in the exiting thread's magazines. */
void heap_exit(void);

/* The lock of heap_init, for fork. */
struct lock *heap_init_lock(void);

/* Before fork, and after it in the parent and in the child (fork.c). */
void heap_fork_before(void);
void heap_fork_in_parent(void);
void heap_fork_in_child(void);

#endif
