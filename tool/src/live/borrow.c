/*
 * What the tool writes into another process when it borrows a thread of it: see
 * src/heap/outside_call.h. This is the face of those structures towards Rust (live/borrow.rs).
 */
#include <string.h>

#include "base/peek.h"
#include "report/anchor.h"

/* As in live/ffi.rs. */
struct outside_places {
    uint64_t entry; /* 0: this library lends no threads */
    uint64_t work;
    uint64_t call;
    uint64_t image;
    uint64_t image_bytes;
    uint64_t stack_top;
    uint64_t self;  /* where the offset of `thread_self` is */
    uint64_t cache; /* of it: from a thread's pointer plus that offset */
};

void outside_places(const struct anchor *anchor, struct outside_places *places);
size_t outside_call_bytes(size_t caches);
size_t outside_caches_most(void);
void outside_call_fill(struct outside_call *call, const struct anchor *anchor, unsigned what,
                       int thread, uint64_t mask, const uint64_t registers[BORROW_REGISTERS],
                       const uint64_t *caches, size_t count);
void outside_call_result(const struct outside_call *call, unsigned *outcome, uint64_t *wrong,
                         uint64_t *place);
size_t outside_caches(bool (*read)(void *, uintptr_t, void *, size_t), void *context,
                      const struct anchor *anchor, uint64_t *caches, size_t most);

void outside_places(const struct anchor *anchor, struct outside_places *places)
{
    const struct outside_area *area = anchor->outside;
    *places = (struct outside_places){
        .entry = (uintptr_t)anchor->borrow_entry,
        .work = (uintptr_t)anchor->outside_call,
        .call = (uintptr_t)&area->call,
        .image = (uintptr_t)area->image,
        .image_bytes = sizeof(area->image),
        .stack_top = (uintptr_t)area->stack + sizeof(area->stack),
        .self = (uintptr_t)anchor->outside_self,
        .cache = offsetof(struct thread, cache),
    };
}

/* Of a call with so many caches. */
size_t outside_call_bytes(size_t caches)
{
    return offsetof(struct outside_call, caches) + caches * sizeof(struct cache *);
}

size_t outside_caches_most(void)
{
    return OUTSIDE_CACHES_MOST;
}

void outside_call_fill(struct outside_call *call, const struct anchor *anchor, unsigned what,
                       int thread, uint64_t mask, const uint64_t registers[BORROW_REGISTERS],
                       const uint64_t *caches, size_t count)
{
    memset(call, 0, outside_call_bytes(0));
    call->borrow.state = BORROW_WORKING;
    call->borrow.thread = (uint32_t)thread;
    call->borrow.signal_mask = mask;
    call->borrow.floating = (uintptr_t)anchor->outside->image;
    memcpy(call->borrow.registers, registers, sizeof(call->borrow.registers));
    call->what = what;
    call->cache_count = count;
    memcpy(call->caches, caches, count * sizeof(*caches));
}

void outside_call_result(const struct outside_call *call, unsigned *outcome, uint64_t *wrong,
                         uint64_t *place)
{
    *outcome = call->outcome;
    *wrong = (uintptr_t)call->wrong;
    *place = call->place;
}

/* The threads' caches of malloc's heap; how many there are, of which `caches` gets `most`. */
size_t outside_caches(bool (*read)(void *, uintptr_t, void *, size_t), void *context,
                      const struct anchor *anchor, uint64_t *caches, size_t most)
{
    struct peek peek = {.read = read, .context = context, .failed = false};
    const struct cache *cache = PEEK(&peek, anchor->heap->arenas.caches);
    size_t count = 0;
    for (; cache != NULL && !peek.failed && count < most; count++) {
        caches[count] = (uintptr_t)cache;
        cache = PEEK(&peek, cache->next);
    }
    return peek.failed ? 0 : count;
}
