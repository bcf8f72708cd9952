/*
 * Included before the sources of a model or stress test: its calls go to one heap of its own
 * instead of malloc's. Which, SNUG_TEST_HEAP says: os, quota, prealloc, file, own, buffer or
 * outside.
 */
#ifndef SNUG_TESTS_HEAP_FACE_H
#define SNUG_TESTS_HEAP_FACE_H

#include "heap/totals.h"
#include "heap/user_heaps.h"
#include "snug/snug.h"

snug_heap *face_heap(void);
void *face_memalign(size_t alignment, size_t size);
int face_posix_memalign(void **result, size_t alignment, size_t size);

static inline struct heap *face_inside(void)
{
    return (struct heap *)face_heap();
}

/* What a heap in a buffer has in the end, and others have not; and whether free pages can go. */
#define SEGMENTS_LEFT (face_inside()->record->quota.under == &provider_none ? totals.segments : 0)
#define PURGES (face_inside()->record->quota.under == &provider_os)

/* snug_realloc and the ways to free are left as they are: they take blocks of every heap. */
#define snug_malloc(size) snug_heap_malloc(face_heap(), size)
#define snug_calloc(count, size) snug_heap_calloc(face_heap(), count, size)
#define snug_aligned_alloc(alignment, size) snug_heap_aligned_alloc(face_heap(), alignment, size)
#define snug_memalign(alignment, size) face_memalign(alignment, size)
#define snug_posix_memalign(result, alignment, size) face_posix_memalign(result, alignment, size)
#define snug_valloc(size) face_memalign(os_page_size(), size)
#define snug_pvalloc(size) \
    face_memalign(os_page_size(), align_up((size) + ((size) == 0), os_page_size()))
#define snug_malloc_trim(keep) heap_trim_of(face_inside(), keep)
#define heap_totals() heap_totals_of(NULL, face_inside(), NULL)
#define heap_hardened() (face_inside()->hardened)
#define heap_class_totals(class) heap_class_totals_of(NULL, face_inside(), class)

#include "platform/memory.h"

#endif
