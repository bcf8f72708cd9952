/*
 * snug.h - the public face of the snug memory allocator.
 *
 * Every function here has the contract of its C or POSIX namesake and is the same code: a program
 * that is linked or preloaded with snug reaches it through malloc, free and friends, one that
 * wants to be explicit through these names. Pointers may be mixed freely between both sets.
 *
 * Units: sizes and alignments are in bytes.
 *
 * Alignment: 16 bytes (alignof(max_align_t)) unless a larger one is asked for.
 *
 * Errors: a request that overflows or cannot be had gives NULL with errno == ENOMEM
 * (snug_posix_memalign returns the number as well); nothing is lost and a later, smaller request
 * may succeed. A success leaves errno alone. Freeing keeps errno.
 *
 * Threads: any thread may call any function with any block; a block may be freed by another thread
 * than the one that took it. Safe across fork in a threaded program. Not async-signal-safe.
 *
 * Misuse: a double free, a pointer that snug did not hand out, or a write to freed memory that is
 * noticed, ends in one line on stderr and abort(); see SNUG_MISUSE in docs/options.md, and
 * snug_set_misuse_handler below.
 */
#ifndef SNUG_SNUG_H
#define SNUG_SNUG_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define SNUG_VERSION_MAJOR 0
#define SNUG_VERSION_MINOR 1
#define SNUG_VERSION_PATCH 0
#define SNUG_VERSION_STRING "0.1.0"

#if defined(__GNUC__)
#define SNUG_PUBLIC __attribute__((visibility("default")))
#define SNUG_ALLOC_SIZE(...) __attribute__((alloc_size(__VA_ARGS__)))
#define SNUG_MALLOC_LIKE __attribute__((malloc))
#else
#define SNUG_PUBLIC
#define SNUG_ALLOC_SIZE(...)
#define SNUG_MALLOC_LIKE
#endif

#if defined(__cplusplus)
#define SNUG_NOTHROW noexcept
extern "C" {
#else
#define SNUG_NOTHROW
#endif

/* ---- Allocate, resize, free ------------------------------------------------------------------ */

/* A block of at least `size` bytes, with undefined contents. A size of 0 gives a unique pointer
 * that may be freed and resized, to memory that can be neither read nor written as long as there
 * are less than some ten thousand such blocks; so do the other functions, but for an alignment
 * above 16 and for heaps of snug_heap_create. Its usable size is 0. Errors: NULL, ENOMEM. */
SNUG_PUBLIC void *snug_malloc(size_t size) SNUG_NOTHROW SNUG_MALLOC_LIKE SNUG_ALLOC_SIZE(1);

/* A block of `count * size` bytes, all zero. Errors: NULL, ENOMEM, also when the product overflows.
 * Memory that is fresh from the system is not cleared again. */
SNUG_PUBLIC void *snug_calloc(size_t count, size_t size) SNUG_NOTHROW SNUG_MALLOC_LIKE
    SNUG_ALLOC_SIZE(1, 2);

/* Changes the size of `block` to `size` bytes and returns where it is now; the contents up to the
 * smaller of both sizes are kept. NULL as `block` allocates; a `size` of 0 with a block frees it
 * and returns NULL, as glibc does. Large blocks grow in place or are moved by the page table
 * (mremap), not copied, where the system can. Errors: NULL, ENOMEM, and `block` is untouched. */
SNUG_PUBLIC void *snug_realloc(void *block, size_t size) SNUG_NOTHROW SNUG_ALLOC_SIZE(2);

/* snug_realloc to `count * size` bytes. Errors: NULL, ENOMEM, also when the product overflows. */
SNUG_PUBLIC void *snug_reallocarray(void *block, size_t count, size_t size) SNUG_NOTHROW
    SNUG_ALLOC_SIZE(2, 3);

/* Frees `block`; NULL is ignored. errno is kept. */
SNUG_PUBLIC void snug_free(void *block) SNUG_NOTHROW;

/* C23: free a block whose requested `size` (and `alignment`) the caller states. The statement is
 * not needed and not trusted: it is the same as snug_free, but that with SNUG_CHECK=full a size
 * that cannot be the block's is reported as misuse. So it is with operator delete. */
SNUG_PUBLIC void snug_free_sized(void *block, size_t size) SNUG_NOTHROW;
SNUG_PUBLIC void snug_free_aligned_sized(void *block, size_t alignment, size_t size) SNUG_NOTHROW;

/* ---- Misuse ---------------------------------------------------------------------------------- */

/* What was found wrong. The structure, and all that it leads to, is there until the handler
 * returns. Later versions may append fields. */
struct snug_misuse {
    const char *kind;    /* as in JSON: "double-free", "use-after-free", ... (docs/options.md) */
    const char *call;    /* what the program called, "free", where it was noticed */
    const char *line;    /* what was said about it on stderr, without its end; of a guarded block
                            that was said in other words (docs/guard.md) */
    const void *address; /* the pointer, or the block */
    const void *start;   /* of the block that the pointer leads into, or NULL */
    size_t bytes;        /* of the block; 0: not known */
    uint64_t found;      /* what stands where something else should, if has_found */
    int has_found;
    size_t
        allocated_count; /* of the stacks on which the block was allocated and freed: addresses */
    const uintptr_t *allocated; /* of code, the innermost first; 0 if they are not known, which */
    size_t freed_count;         /* they are of blocks that a profile has sampled */
    const uintptr_t *freed;
};

/* Has `handler` called for all misuse that is noticed from now on, in the thread that notices it,
 * after the line on stderr; NULL: for none. If it returns, what SNUG_MISUSE says follows: by
 * default abort(). It need not return: it may end the process or jump out, and blocks that were on
 * their way back at that moment are then lost. It is called wherever malloc and free are, signal
 * handlers included, and several threads may call it at once; with no lock held, and when the call
 * that found the misuse has done its work. So it may allocate and free, of the same size too, and
 * use heaps of snug_heap_create, but neither clear nor destroy one that the call may be about. Of
 * what one call finds the first 32 are told, the others only said. */
typedef void (*snug_misuse_handler)(const struct snug_misuse *misuse);
SNUG_PUBLIC void snug_set_misuse_handler(snug_misuse_handler handler) SNUG_NOTHROW;

/* ---- Aligned --------------------------------------------------------------------------------- */

/* A block of `size` bytes at a multiple of `alignment`, which must be a power of two. Errors: NULL
 * with EINVAL for an alignment that is not, else ENOMEM. `size` need not be a multiple of it. */
SNUG_PUBLIC void *snug_aligned_alloc(size_t alignment, size_t size) SNUG_NOTHROW SNUG_MALLOC_LIKE
    SNUG_ALLOC_SIZE(2);

/* As snug_aligned_alloc, but an `alignment` that is not a power of two is rounded up to the next,
 * as glibc does. */
SNUG_PUBLIC void *snug_memalign(size_t alignment, size_t size) SNUG_NOTHROW SNUG_MALLOC_LIKE
    SNUG_ALLOC_SIZE(2);

/* Stores the block in `*result`. `alignment` must be a power of two and a multiple of
 * sizeof(void *). Returns 0, EINVAL or ENOMEM; on an error `*result` is untouched. As with glibc,
 * errno is ENOMEM then too, and untouched otherwise. */
SNUG_PUBLIC int snug_posix_memalign(void **result, size_t alignment, size_t size) SNUG_NOTHROW;

/* A block of `size` bytes at a page boundary; snug_pvalloc rounds the size up to whole pages. */
SNUG_PUBLIC void *snug_valloc(size_t size) SNUG_NOTHROW SNUG_MALLOC_LIKE SNUG_ALLOC_SIZE(1);
SNUG_PUBLIC void *snug_pvalloc(size_t size) SNUG_NOTHROW SNUG_MALLOC_LIKE;

/* ---- Ask and tune ---------------------------------------------------------------------------- */

/* How many bytes of `block` may be used: at least what was asked for. All of them may be written,
 * and a later realloc keeps them. NULL gives 0. */
SNUG_PUBLIC size_t snug_malloc_usable_size(void *block) SNUG_NOTHROW;

/* Gives free memory back to the system: the calling thread's magazines, the depots, and all free
 * pages but about `keep` bytes. Returns 1 if anything was given back, else 0. */
SNUG_PUBLIC int snug_malloc_trim(size_t keep) SNUG_NOTHROW;

/* For a program that can move its blocks, as caches and databases can that know every pointer to
 * them. A peak that is over leaves small blocks (up to 1 KiB) alone in pages that are otherwise
 * free; to move them into fuller ones lets the pages go.
 *
 * snug_should_move: 1 if moving `block` would help, else 0; a hint, as other threads go on.
 * snug_move: moves it if that helps: returns where it is now, with its contents, and `block` is
 * freed; or NULL, and `block` is as it was. The new place does not come from the thread's magazine,
 * nor goes the old one there, as malloc and free would do, so that the next move does not undo it.
 * For NULL, and what is no block, 0 and NULL. Larger blocks never move. Any thread; nobody may use
 * the block meanwhile. Call snug_malloc_trim(0) before and after a round, so that what waits in
 * magazines lets its pages go too. */
SNUG_PUBLIC int snug_should_move(const void *block) SNUG_NOTHROW;
SNUG_PUBLIC void *snug_move(void *block) SNUG_NOTHROW;

/* Accepts glibc's M_* parameters and returns 1. They tune a different allocator, so none of them
 * changes anything here; SNUG_* variables do (docs/options.md). An unknown parameter gives 0. */
SNUG_PUBLIC int snug_mallopt(int parameter, int value) SNUG_NOTHROW;

/* Totals of the heap, with the field layout of glibc's struct mallinfo2, and its relations:
 *   arena == uordblks + fordblks      uordblks + hblkhd: all that the program has
 *   fsmblks <= fordblks               keepcost <= fordblks
 * All fields in bytes but for the block counts. */
struct snug_mallinfo {
    size_t arena;    /* mapped for all but huge blocks */
    size_t ordblks;  /* number of free page runs, and 1 if medium blocks are free */
    size_t smblks;   /* number of free small objects: in slabs, magazines and depots */
    size_t hblks;    /* number of huge blocks, which have mappings of their own */
    size_t hblkhd;   /* bytes in them */
    size_t usmblks;  /* 0, as in glibc */
    size_t fsmblks;  /* bytes in free small objects */
    size_t uordblks; /* bytes in use, but for huge blocks; headers and ends of slabs included */
    size_t fordblks; /* bytes free */
    size_t keepcost; /* bytes that snug_malloc_trim could give back at least */
};

/* The current totals. Other threads go on meanwhile, so the fields are only as exact as a moving
 * target allows. */
SNUG_PUBLIC struct snug_mallinfo snug_mallinfo2(void) SNUG_NOTHROW;

/* Writes the totals as XML to `stream`, in the form of glibc's malloc_info. `options` must be 0.
 * Returns 0, or EINVAL. */
SNUG_PUBLIC int snug_malloc_info(int options, FILE *stream) SNUG_NOTHROW;

/* What malloc's heap consists of, in bytes where nothing else is said. While no other thread uses
 * the heap: mapped == live + waste + cached + free + purge_pending + metadata. How much of `cached`
 * are blocks of more than 1 KiB in the magazines of other threads is known within a sixteenth; what
 * is too much there is missing in `live`. New fields come at the end. */
struct snug_stats {
    uint64_t mapped;        /* taken from the system and not given back */
    uint64_t live;          /* blocks that the program has, as granted */
    uint64_t waste;         /* ends of slabs, headers of blocks above 1 KiB */
    uint64_t cached;        /* waiting in magazines and depots for the next request */
    uint64_t free;          /* free in slabs and spans, and free pages that occupy no memory */
    uint64_t purge_pending; /* free pages that still occupy memory */
    uint64_t metadata;      /* snug's own structures and tables, mostly address space only */
    uint64_t requested;     /* what the program asked for when it got `live`: an estimate */
    uint64_t blocks;        /* number of live blocks */
    uint64_t mapped_peak;   /* most that was mapped, but for metadata */
    uint64_t resident;      /* of the whole process, or SNUG_STATS_UNKNOWN */
    uint64_t resident_peak; /* the same */
    uint64_t taken_bytes;   /* handed to threads by refills and as larger blocks, ever */
    uint64_t map_calls;     /* numbers of system calls; here and below */
    uint64_t unmap_calls;
    uint64_t purge_calls;
    uint64_t purge_bytes; /* in them */
    uint64_t refills;     /* magazines that ran empty */
    uint64_t flushes;     /* magazines that ran full */
};

#define SNUG_STATS_UNKNOWN UINT64_MAX

/* Fills in `*stats`, of which the caller says the size: sizeof(struct snug_stats). Returns 0, or
 * EINVAL. Takes no lock and does not allocate; may be called in a signal handler. */
SNUG_PUBLIC int snug_stats_get(struct snug_stats *stats, size_t size) SNUG_NOTHROW;

/* Writes the statistics as text to stderr. */
SNUG_PUBLIC void snug_malloc_stats(void) SNUG_NOTHROW;

/* Walks the whole heap and checks every invariant, in any build. Returns 0 if all hold; otherwise
 * 1, and the first violation is on stderr. Other threads may go on allocating. */
SNUG_PUBLIC int snug_check(void) SNUG_NOTHROW;

/* The version of the library that is loaded, such as "0.1.0". */
SNUG_PUBLIC const char *snug_version(void) SNUG_NOTHROW;

/* ---- Heaps ----------------------------------------------------------------------------------- */

/*
 * A heap is a malloc of its own: its blocks lie apart from all others, can be counted and limited,
 * and can be freed all at once. docs/heaps.md is the guide.
 *
 * Any thread may allocate from any heap, and free any block. snug_free, snug_realloc and
 * snug_malloc_usable_size, and so free and realloc, take the blocks of every heap; a block that is
 * resized stays in its heap. Only clearing, destroying and visiting need that nobody else uses that
 * heap at the moment. Heaps are safe across fork: the child has its own copy of each. It has none
 * of a heap in a buffer that is shared between processes (MAP_SHARED), or that fork does not hand
 * on (MADV_DONTFORK, MADV_WIPEONFORK): it must leave such a heap and its blocks alone.
 */
typedef struct snug_heap snug_heap;

/* A source of memory for heaps. */
typedef struct snug_provider snug_provider;

/* What a heap is made with. Set `size` to sizeof(struct snug_heap_config), and everything else that
 * is not wanted to zero: later versions add fields at the end, and take older programs' configs. */
struct snug_heap_config {
    size_t size;
    const char *name; /* for statistics; the first 31 bytes are copied. NULL: none */
    /* Where memory comes from; it must outlive the heap. NULL: the system. */
    snug_provider *provider;
    /* Or: all the memory that there is for the heap, SNUG_HEAP_BUFFER_LEAST bytes or more at any
     * address. Nothing is taken from the system for such a heap. */
    void *buffer;
    size_t buffer_bytes;
    /* Bytes that the heap may take from its provider, in use or free; 0: any number. Over it, a
     * request gives NULL with ENOMEM, after what is cached has been given back. */
    size_t quota;
    /* What is beyond this is told to `on_limit`, whenever it has become more; 0: nothing is. */
    size_t soft_limit;
    /* Called by the thread that allocates, holding no lock: with the bytes taken beyond the soft
     * limit, or with the size of a request that would otherwise fail now, which is tried once more
     * afterwards. It may free blocks and allocate from any heap, but neither clear nor destroy this
     * one; while it runs it is not called again for the same heap. */
    void (*on_limit)(void *context, snug_heap *heap, size_t missing_bytes);
    void *context;
    unsigned flags; /* SNUG_HEAP_* */
};

#define SNUG_HEAP_BUFFER_LEAST ((size_t)65536)

/* Nothing is written to the heap's memory but by the program: snug keeps what it has to know
 * elsewhere, in the system's memory. For memory that the processor should not touch, or that others
 * see. Blocks above 1 KiB take whole pages then. */
#define SNUG_HEAP_OUTSIDE 1u

/* Misuse of the heap's blocks is found as with SNUG_PRESET=hardened: canaries, quarantine, guard
 * pages, complete checks of each free. Not together with a buffer or SNUG_HEAP_OUTSIDE. */
#define SNUG_HEAP_HARDENED 2u

/* A new heap. `config` may be NULL: the system's memory, no limits. Errors: NULL with EINVAL for a
 * config that contradicts itself, has a buffer that is too small, or sets what this version does
 * not know; else ENOMEM. */
SNUG_PUBLIC snug_heap *snug_heap_create(const struct snug_heap_config *config) SNUG_NOTHROW;

/* Frees all blocks of the heap at once, in a time that depends on its segments and slabs, not on
 * its blocks. The heap stays, and keeps as much memory for what comes next as if the blocks had
 * been freed one by one: up to SNUG_DIRTY bytes, and what was wanted again soon after it went back.
 */
SNUG_PUBLIC void snug_heap_clear(snug_heap *heap) SNUG_NOTHROW;

/* Frees all blocks, and the heap. NULL does nothing. */
SNUG_PUBLIC void snug_heap_destroy(snug_heap *heap) SNUG_NOTHROW;

/* As malloc, calloc, aligned_alloc, in a heap. Errors: NULL, ENOMEM (or EINVAL, for an alignment
 * that is not a power of two). */
SNUG_PUBLIC void *snug_heap_malloc(snug_heap *heap, size_t size) SNUG_NOTHROW SNUG_MALLOC_LIKE
    SNUG_ALLOC_SIZE(2);
SNUG_PUBLIC void *snug_heap_calloc(snug_heap *heap, size_t count,
                                   size_t size) SNUG_NOTHROW SNUG_MALLOC_LIKE SNUG_ALLOC_SIZE(2, 3);
SNUG_PUBLIC void *snug_heap_aligned_alloc(snug_heap *heap, size_t alignment,
                                          size_t size) SNUG_NOTHROW SNUG_MALLOC_LIKE
    SNUG_ALLOC_SIZE(3);

/* As realloc; NULL as `block` allocates from this heap. A block must be of this heap. */
SNUG_PUBLIC void *snug_heap_realloc(snug_heap *heap, void *block, size_t size) SNUG_NOTHROW
    SNUG_ALLOC_SIZE(3);

/* As free, for a block of this heap; one of another heap is reported as misuse. */
SNUG_PUBLIC void snug_heap_free(snug_heap *heap, void *block) SNUG_NOTHROW;

/* The heap that a block is of; NULL if it is malloc's, or no block. */
SNUG_PUBLIC snug_heap *snug_heap_of(const void *block) SNUG_NOTHROW;

/* The name that the heap was given, "" if none. */
SNUG_PUBLIC const char *snug_heap_name(const snug_heap *heap) SNUG_NOTHROW;

/* Calls `visit` with every live block of the heap and its usable size, until it returns 0. Returns
 * 1 if it never did. `visit` must not allocate from this heap, nor free to it, and must return: by
 * no longjmp, and no exception. A block that waits in the cache of another thread is free, and is
 * not visited, unless it is one of more than 1 KiB that its thread freed just now. */
SNUG_PUBLIC int snug_heap_visit(snug_heap *heap,
                                int (*visit)(void *context, void *block, size_t bytes),
                                void *context);

/* Gives the heap's free memory back to its provider, and what the calling thread has cached of it.
 * Returns 1 if anything was given back. */
SNUG_PUBLIC int snug_heap_trim(snug_heap *heap) SNUG_NOTHROW;

/* Checks every invariant of the heap, as snug_check does of all. */
SNUG_PUBLIC int snug_heap_check(snug_heap *heap) SNUG_NOTHROW;

/* All in bytes. taken == used + free, but for what other threads do meanwhile. */
struct snug_heap_statistics {
    size_t size;  /* set it to sizeof(struct snug_heap_statistics) */
    size_t taken; /* from the provider, in use or free; of a buffer: what is for blocks */
    size_t peak;  /* the most that was taken */
    size_t quota; /* 0: none */
    size_t used;  /* by live blocks, with what their sizes were rounded up by, and by blocks in the
                     caches of other threads */
    size_t free;
    size_t fixed; /* of a buffer, that is not for blocks: what snug has to know */
};

/* Fills `statistics` up to its size. Returns 0, or EINVAL. */
SNUG_PUBLIC int snug_heap_get_statistics(snug_heap *heap,
                                         struct snug_heap_statistics *statistics) SNUG_NOTHROW;

/* ---- Providers ------------------------------------------------------------------------------- */

/* `bytes` of the system's memory, taken and present at once. With `fallback`, what has no room
 * there is taken from the system too; without, it is refused. Errors: NULL, ENOMEM. */
SNUG_PUBLIC snug_provider *snug_provider_prealloc(size_t bytes, int fallback) SNUG_NOTHROW;

/* Memory in files on a disk. They have no name once they are made, so they vanish when the provider
 * is destroyed or the process ends, however it ends. All of a file is reserved on the disk before
 * any of it is used. */
struct snug_file_config {
    size_t size;           /* sizeof(struct snug_file_config) */
    const char *directory; /* for the files; copied. NULL: /var/tmp, unless there is a path */
    const char *path;      /* or: the name, which is seen while the file is made; copied */
    size_t bytes;          /* of the first file; 0: 64 MiB */
    double grow_factor;    /* above 1: further files, so that the whole grows by that; 0: none */
    __extension__ union {
        int fallback; /* not 0: what has no room is taken from the system */
        int go_on;    /* the same by its old name */
    };
};

/* Errors: NULL with the errno of what failed, such as ENOENT or ENOSPC; EINVAL for the config. */
SNUG_PUBLIC snug_provider *snug_provider_file(const struct snug_file_config *config) SNUG_NOTHROW;

/* A source of the program's own. The functions may be called by any thread, but by one at a time,
 * whatever heaps the provider serves, with locks held: they must not call snug, nor malloc. Sizes
 * and alignments are multiples of the page size.
 */
struct snug_provider_functions {
    size_t size; /* sizeof(struct snug_provider_functions) */
    void *context;
    /* `bytes` at a multiple of `alignment`, or NULL; not in a block that malloc or a heap gave,
     * where only a heap's `buffer` may lie. */
    void *(*take)(void *context, size_t bytes, size_t alignment);
    /* Takes a range back that `take` gave. 0: it cannot; the heap goes on using it. NULL: never. */
    int (*give)(void *context, void *start, size_t bytes);
    /* Drops the contents of pages, which are zero afterwards. 0: they are as before. NULL: never.
     */
    int (*purge)(void *context, void *start, size_t bytes);
    int zeroed; /* what `take` gives is all zero */
};

SNUG_PUBLIC snug_provider *
snug_provider_create(const struct snug_provider_functions *functions) SNUG_NOTHROW;

/* Ends a provider that no heap uses any more. NULL does nothing. */
SNUG_PUBLIC void snug_provider_destroy(snug_provider *provider) SNUG_NOTHROW;

/* ---- Profiles ---- */

/* From now on, and until it is ended, it is noted which code allocates what, in all threads, as
 * with SNUG_PROFILE=1; `snug profile` reads it. 0, or ENOMEM. */
SNUG_PUBLIC int snug_profile_begin(void) SNUG_NOTHROW;

/* Ends that; what was noted stays, and blocks that were are still seen to be freed. */
SNUG_PUBLIC void snug_profile_end(void) SNUG_NOTHROW;

#if defined(__cplusplus)
}
#endif

#endif /* SNUG_SNUG_H */
