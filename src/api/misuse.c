/*
 * Misuse, told to the program itself: snug_set_misuse_handler.
 */
#include "meta/misuse.h"
#include "heap/thread.h"
#include "snug/snug.h"

static snug_misuse_handler program_handler; /* release and acquire: as any function pointer */

static const uintptr_t *frames_or_none(const struct misuse_stack *stack)
{
    return stack->count == 0 ? NULL : stack->frames;
}

static COLD void tell(const struct misuse_report *report)
{
    const struct misuse *misuse = report->misuse;
    snug_misuse_handler handler = __atomic_load_n(&program_handler, __ATOMIC_ACQUIRE);
    if (handler == NULL)
        return;
    bool inside = misuse->kind == MISUSE_INSIDE || misuse->kind == MISUSE_COPY;
    struct snug_misuse told = {
        .kind = report->name,
        .call = report->call,
        .line = report->line,
        .address = (const void *)misuse->address,
        .start = inside ? (const void *)misuse->start : NULL,
        .bytes = misuse->bytes,
        .found = misuse->has_found ? misuse->found : 0,
        .has_found = misuse->has_found,
        .allocated_count = report->allocated.count,
        .allocated = frames_or_none(&report->allocated),
        .freed_count = report->freed.count,
        .freed = frames_or_none(&report->freed),
    };
    bool pinned = heap_pin();
    handler(&told);
    heap_unpin(pinned);
}

void snug_set_misuse_handler(snug_misuse_handler handler)
{
    __atomic_store_n(&program_handler, handler, __ATOMIC_RELEASE);
    misuse_set_listener(tell);
}
