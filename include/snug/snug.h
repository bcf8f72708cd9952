/*
 * snug.h - the public face of the snug memory allocator.
 *
 * Every function here has the contract of its C or POSIX namesake and is the same code: a program
 * that is linked or preloaded with snug reaches it through malloc, free and friends, one that
 * wants to be explicit through these names. Pointers may be mixed freely between both sets.
 *
 * Common to all of them:
 *   Units        sizes and alignments are in bytes.
 *   Alignment    16 bytes (alignof(max_align_t)) unless a larger one is asked for.
 *   Errors       a request that overflows or cannot be had gives NULL with errno == ENOMEM (or
 *                the error number, for snug_posix_memalign); nothing is lost and a later, smaller
 *                request may succeed. A success leaves errno alone. Freeing keeps errno.
 *   Threads      any thread may call any function with any block; a block may be freed by another
 *                thread than the one that took it. Safe across fork in a threaded program. Not
 *                async-signal-safe.
 *   Misuse       a double free, or a pointer that snug did not hand out, ends in one line on
 *                stderr and abort(); see SNUG_MISUSE in docs/options.md.
 */
#ifndef SNUG_SNUG_H
#define SNUG_SNUG_H

#include <stddef.h>
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
 * that may be freed. Errors: NULL, ENOMEM. */
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
 * not needed and not trusted: it is the same as snug_free. */
SNUG_PUBLIC void snug_free_sized(void *block, size_t size) SNUG_NOTHROW;
SNUG_PUBLIC void snug_free_aligned_sized(void *block, size_t alignment, size_t size) SNUG_NOTHROW;

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
 * sizeof(void *). Returns 0, EINVAL or ENOMEM; errno and, on an error, `*result` are untouched. */
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

/* Accepts glibc's M_* parameters and returns 1. They tune a different allocator, so none of them
 * changes anything here; SNUG_* variables do (docs/options.md). An unknown parameter gives 0. */
SNUG_PUBLIC int snug_mallopt(int parameter, int value) SNUG_NOTHROW;

/* Totals of the heap, with the field layout of glibc's struct mallinfo2. All fields in bytes but
 * for the block counts. */
struct snug_mallinfo {
    size_t arena;    /* mapped for all but huge blocks */
    size_t ordblks;  /* number of free page runs */
    size_t smblks;   /* number of free small objects: in slabs, magazines and depots */
    size_t hblks;    /* number of huge blocks, which have mappings of their own */
    size_t hblkhd;   /* bytes in them */
    size_t usmblks;  /* 0, as in glibc */
    size_t fsmblks;  /* bytes in free small objects */
    size_t uordblks; /* bytes handed out to the program */
    size_t fordblks; /* bytes free */
    size_t keepcost; /* bytes that snug_malloc_trim could give back at least */
};

/* The current totals. Other threads go on meanwhile, so the fields are only as exact as a moving
 * target allows. Objects in the magazines of other threads count as handed out. */
SNUG_PUBLIC struct snug_mallinfo snug_mallinfo2(void) SNUG_NOTHROW;

/* Writes the totals as XML to `stream`, in the form of glibc's malloc_info. `options` must be 0.
 * Returns 0, or EINVAL. */
SNUG_PUBLIC int snug_malloc_info(int options, FILE *stream) SNUG_NOTHROW;

/* Writes the statistics as text to stderr. */
SNUG_PUBLIC void snug_malloc_stats(void) SNUG_NOTHROW;

/* Walks the whole heap and checks every invariant, in any build. Returns 0 if all hold; otherwise
 * 1, and the first violation is on stderr. Other threads may go on allocating. */
SNUG_PUBLIC int snug_check(void) SNUG_NOTHROW;

/* The version of the library that is loaded, such as "0.1.0". */
SNUG_PUBLIC const char *snug_version(void) SNUG_NOTHROW;

#if defined(__cplusplus)
}
#endif

#endif /* SNUG_SNUG_H */
