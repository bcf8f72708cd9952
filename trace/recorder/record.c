/*
 * record.c - the names of malloc: each calls the next malloc's and notes what was done.
 *
 * Not recorded, as they change nothing: calls that fail, free(NULL), malloc_usable_size. C++'s
 * operators call malloc and are recorded as that.
 */
#include "next.h"
#include "stream.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#define PUBLIC __attribute__((visibility("default")))

PUBLIC void *malloc(size_t size);
PUBLIC void *calloc(size_t count, size_t size);
PUBLIC void *realloc(void *block, size_t size);
PUBLIC void *reallocarray(void *block, size_t count, size_t size);
PUBLIC void free(void *block);
PUBLIC void cfree(void *block);
PUBLIC void free_sized(void *block, size_t size);
PUBLIC void free_aligned_sized(void *block, size_t alignment, size_t size);
PUBLIC void *aligned_alloc(size_t alignment, size_t size);
PUBLIC void *memalign(size_t alignment, size_t size);
PUBLIC int posix_memalign(void **block, size_t alignment, size_t size);
PUBLIC void *valloc(size_t size);
PUBLIC void *pvalloc(size_t size);

static inline __attribute__((always_inline)) void
record_new(enum event_kind kind, const void *block, size_t size, size_t alignment)
{
    stream_record((struct stream_event){
        .kind = kind,
        .ticket = stream_ticket_read(),
        .block = (uintptr_t)block,
        .size = size,
        .alignment = (uint8_t)(alignment == 0 ? 0 : __builtin_ctzl(alignment)),
    });
}

static inline __attribute__((always_inline)) void record_free(uint64_t ticket, const void *block)
{
    stream_record(
        (struct stream_event){.kind = EVENT_FREE, .ticket = ticket, .block = (uintptr_t)block});
}

void *malloc(size_t size)
{
    if (!next_ready())
        return bootstrap_take(size, 0);
    void *block = next.malloc(size);
    if (block != NULL)
        record_new(EVENT_MALLOC, block, size, 0);
    return block;
}

void *calloc(size_t count, size_t size)
{
    if (!next_ready()) /* dlsym multiplies no large numbers */
        return bootstrap_take(count * size, 0);
    void *block = next.calloc(count, size);
    if (block != NULL)
        record_new(EVENT_CALLOC, block, count * size, 0);
    return block;
}

void free(void *block)
{
    if (block == NULL || bootstrap_has(block))
        return;
    record_free(stream_ticket(), block);
    if (next_ready())
        next.free(block);
}

static void *move_from_bootstrap(const void *block, size_t size)
{
    void *moved = malloc(size);
    size_t old = bootstrap_size(block);
    if (moved != NULL)
        memcpy(moved, block, old < size ? old : size);
    return moved;
}

void *realloc(void *block, size_t size)
{
    if (block == NULL)
        return malloc(size);
    if (bootstrap_has(block))
        return move_from_bootstrap(block, size);
    uint64_t ticket = stream_ticket();
    void *moved = next.realloc(block, size);
    if (moved != NULL)
        stream_record((struct stream_event){
            .kind = EVENT_REALLOC,
            .ticket = ticket,
            .block = (uintptr_t)block,
            .size = size,
            .moved_to = (uintptr_t)moved,
            .second = stream_ticket_read(),
        });
    else if (size == 0) /* then it was a free, for glibc */
        record_free(ticket, block);
    return moved;
}

void *reallocarray(void *block, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(block, bytes);
}

void cfree(void *block)
{
    free(block);
}

void free_sized(void *block, size_t size)
{
    (void)size;
    free(block);
}

void free_aligned_sized(void *block, size_t alignment, size_t size)
{
    (void)alignment, (void)size;
    free(block);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    if (!next_ready())
        return bootstrap_take(size, alignment);
    void *block = next.aligned_alloc(alignment, size);
    if (block != NULL)
        record_new(EVENT_ALIGNED, block, size, alignment);
    return block;
}

void *memalign(size_t alignment, size_t size)
{
    if (!next_ready())
        return bootstrap_take(size, alignment);
    void *block = next.memalign(alignment, size);
    if (block != NULL)
        record_new(EVENT_ALIGNED, block, size, alignment);
    return block;
}

int posix_memalign(void **block, size_t alignment, size_t size)
{
    if (!next_ready())
        return ENOMEM;
    int error = next.posix_memalign(block, alignment, size);
    if (error == 0 && *block != NULL)
        record_new(EVENT_ALIGNED, *block, size, alignment);
    return error;
}

void *valloc(size_t size)
{
    return memalign((size_t)sysconf(_SC_PAGESIZE), size);
}

void *pvalloc(size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), whole;
    if (__builtin_add_overflow(size, page - 1, &whole)) {
        errno = ENOMEM;
        return NULL;
    }
    return memalign(page, whole & ~(page - 1));
}
