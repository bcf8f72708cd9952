/*
 * Stated sizes. See sized.h.
 */
#include "api/sized.h"

#include "heap/alloc.h"
#include "heap/empty.h"
#include "magazine/arena.h"

/* Bytes: a cell may be so much larger than was asked for, besides EXCESS_PART of it, by a remainder
 * that was not split off. */
enum { CELL_EXCESS = 512 };

/* One part in: a cell from a quick list is a quarter too large at most. */
enum { EXCESS_PART = 2 };

/* The most bytes that a block may have that was asked for with this size; `asked` is the size
 * rounded up to the alignment. */
static size_t usable_most(struct place place, size_t size, size_t asked, enum maker maker)
{
    if (maker == MADE_BY_MALLOC) /* see object_stays */
        return size_max(MOST_SHARE * asked + PAGE_BYTES, STAYS_MOST);
    if (place.heap->page_heap.compact)
        return SIZE_MAX;
    if (place.class == 0) /* what was asked for is known */
        return size_max(size, 1);
    if (class_byte_is_small(place.class)) {
        size_t most = align_up(asked, MIN_ALIGN);
        return arenas_have_lent(&place.heap->arenas) ? most + most / LENT_SHARE : most;
    }
    return asked + asked / EXCESS_PART + CELL_EXCESS;
}

COLD bool size_is_possible(const void *block, size_t alignment, size_t size, enum maker maker)
{
    const char *call = maker == MADE_BY_MALLOC ? "free_sized" : "operator delete";
    uintptr_t address = (uintptr_t)block;
    struct place place = place_of(address, page_map_class_call(address));
    size_t usable = place_usable(place, address, call);
    if (usable == 0 && !empty_covers(address))
        return false; /* which was reported */
    size_t asked = size > MAX_REQUEST ? size : align_up(size_max(size, 1), alignment);
    bool aligned = alignment <= MIN_ALIGN || (address & (alignment - 1)) == 0;
    if (aligned && size <= usable && usable <= usable_most(place, size, asked, maker))
        return true;
    struct misuse misuse = {.kind = aligned ? MISUSE_SIZE : MISUSE_ALIGNMENT,
                            .address = address,
                            .bytes = usable,
                            .said = aligned ? size : alignment};
    misuse_report(call, &misuse);
    return false;
}
