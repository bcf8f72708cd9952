/*
 * The heap: the layers below put together. Requests and pointers go to the layer that serves them,
 * threads get and lose their caches, and fork and exit are handled.
 *
 * Sizes and alignments are those of the program's request, unchecked unless a comment says so. An
 * allocation that returns NULL leaves ENOMEM in errno; freeing leaves errno as it was.
 */
#ifndef SNUG_HEAP_HEAP_H
#define SNUG_HEAP_HEAP_H

#include <errno.h>

#include "magazine/cache.h"
#include "pageheap/large.h"

struct heap {
    struct page_heap page_heap;
    struct arenas arenas;
    struct hardened *hardened; /* all its blocks, if it is hardened; otherwise NULL */
    uint64_t id;               /* no other heap of the process has, or had, the same; 0: malloc's */
    struct heap_record *record; /* NULL for malloc's; see user_heaps.h */
};

/* The heap behind malloc. */
extern INTERNAL struct heap heap_default;

/* ---- Taking and freeing: what the fast path leaves, in any heap (alloc.c, free.c) ----
 *
 * Each looks once whether something is asked for (stats/event.h), on the way in. */

/* What is left to do for a request that ends with `block`. */
static inline void *or_no_memory(void *block)
{
    if (UNLIKELY(block == NULL))
        errno = ENOMEM;
    return block;
}

/* A block that neither magazines nor quick lists serve, or NULL. */
void *heap_alloc_slow(size_t bytes, struct heap *heap);

/* The same of at most SMALL_MOST bytes. `cache`: the thread's of that heap; it may be `cache_none`.
 */
void *heap_alloc_small(size_t bytes, struct heap *heap, struct cache *cache);

/* A large block, or one of any size while requests are looked at (magazine/counted.h). */
void *heap_alloc_counted(size_t bytes, struct heap *heap, struct cache *cache);

/* A block that is all zero. */
void *heap_alloc_zero_in(struct heap *heap, size_t bytes);

/* A block at a multiple of `alignment`, a power of two. */
void *heap_alloc_aligned_in(struct heap *heap, size_t alignment, size_t bytes);

/* The same for malloc's heap. */
static inline void *heap_alloc_zero(size_t bytes)
{
    return heap_alloc_zero_in(&heap_default, bytes);
}

static inline void *heap_alloc_aligned(size_t alignment, size_t bytes)
{
    return heap_alloc_aligned_in(&heap_default, alignment, bytes);
}

/* Frees a block of any heap, whose page has this class byte, and which neither a magazine of
 * malloc's heap nor a quick list took. A pointer that is no block is reported as misuse; freeing
 * NULL does nothing. */
void heap_free_slow(void *block, size_t byte);

/* The same where the block must be of heap `only`. */
void heap_free_of(struct heap *only, void *block, size_t byte);

/* ---- Hardened heaps (alloc_hardened.c) ---- */

/* A block of a hardened heap, all zero, or NULL. */
void *heap_alloc_hardened(struct heap *heap, size_t alignment, size_t bytes);

/* The same at a multiple of MIN_ALIGN. */
void *heap_malloc_hardened(size_t bytes, struct heap *heap);

/* Frees a hardened block of heap `only`, or of any if that is NULL. */
void heap_free_hardened(struct heap *only, void *block, struct said said);

/* The same of any heap, as free. */
void heap_free_plain_hardened(void *block);

/* Whether blocks of malloc's heap, which is hardened then, are to be freed by the function that
 * belongs to the one which made them. Written before the program's own code runs. */
extern INTERNAL bool heap_makers_count;

/* Begins that, before any other function than malloc has made one, if the heap is hardened and
 * SNUG_CHECK_DELETE says so. */
bool heap_makers_are_wanted(void);
void heap_makers_begin(void);

/* Notes who made a block, which nobody else has yet. */
void heap_set_maker(void *block, enum maker maker);

/* As heap_resize, of a block of a hardened heap. */
void *heap_resize_hardened(void *block, size_t bytes);

/* The bytes of a block of a hardened heap that the program asked for; or what is wrong with the
 * address. */
struct misuse heap_usable_hardened(uintptr_t address, size_t *bytes);

/* Resizes as realloc does, in the heap that the block is of. `block` is not NULL and `bytes` not 0.
 * The first is told how many bytes of it may be used, or 0: that is not known. (resize.c) */
void *heap_resize_known(void *block, size_t bytes, size_t old_bytes);

static inline void *heap_resize(void *block, size_t bytes)
{
    return heap_resize_known(block, bytes, 0);
}

/* The usable bytes of a block of any heap. A pointer that is no block is reported as misuse of
 * `call`; then 0. */
size_t heap_usable(const void *block, const char *call);

/* Whether to move a block would help to give memory back, and moves it: where it is now, or NULL if
 * it stays. What is no live block stays, and is not reported. (move.c) */
bool heap_should_move(const void *block);
void *heap_move(void *block);

/* The heap that a block is of. For an address that is in no heap, malloc's. */
struct heap *heap_of(const void *block);

/* ---- The whole heap ---- */

/* Gives free memory back, down to `keep` bytes of dirty pages. Returns the bytes given.
 * (reclaim.c) */
size_t heap_trim_of(struct heap *heap, size_t keep);

/* The same for malloc's. */
size_t heap_trim(size_t keep);

/* NULL if every invariant holds, otherwise the first that does not; of one heap, or of all.
 * (user_heaps.c) */
const char *heap_check_of(struct heap *heap);
const char *heap_check(void);

/* The same of all heaps, but not of what the calling thread has for itself. */
const char *heap_check_shared(void);

/* ---- Start and exit ---- */

/* Makes malloc's heap usable and reads the options, if nobody has; called by the first slow path.
 * (init.c) */
void heap_init(void);

/* How requests are served, of every thread from the next on: by magazines and quick lists; by
 * these, but counted (magazine/counted.h); each by alloc.c. Frees go as ever. */
enum heap_way { HEAP_FAST, HEAP_COUNTED, HEAP_LONG };
void heap_serve(enum heap_way way);

extern INTERNAL bool heap_made;

/* Whether malloc's heap is made. */
static inline bool heap_is_made(void)
{
    /* acquire: pairs with the release in make */
    return __atomic_load_n(&heap_made, __ATOMIC_ACQUIRE);
}

/* Has `act` called once it is: at once, or by the call that makes it, with no lock held. No other
 * thread is there at that time, since libc allocates for the first one that it starts. */
void heap_when_made(void (*act)(void));

/* Reads the options if that was not done and there is an environment. True: there were some. */
bool heap_read_options(char **environment);

/* The lock of heap_init, for fork. */
struct lock *heap_init_lock(void);

/* Does what was too early at the first allocation: reads the options, and has registered what must
 * be told to libc, thread exit and fork. (start.c) */
void heap_start(char **environment);

/* Checks what still waits in the exiting thread's magazines and in depots, by giving it back. */
void heap_exit(void);

/* Before fork, and after it in the parent and in the child (fork.c). */
void heap_fork_before(void);
void heap_fork_in_parent(void);
void heap_fork_in_child(void);

#endif
