/*
 * Heaps in the program's buffers. See placed.h.
 */
#include "heap/placed.h"

#include "platform/check.h"
#include "platform/file.h"
#include "platform/look.h"

/* Each has a range of the page map, so there are never more. */
BULKY static struct placed {
    struct heap_record *record; /* NULL: not in use */
    const char *range;          /* as there */
    uint64_t id;                /* of the heap */
    bool shared;                /* with other processes, when the program forked last */
} all[PAGE_MAP_RANGES];

static struct placed *placed_find(const struct heap_record *record)
{
    struct placed *placed = all;
    while (placed < all + PAGE_MAP_RANGES && placed->record != record)
        placed++;
    return placed < all + PAGE_MAP_RANGES ? placed : NULL;
}

void placed_add(struct list *heaps, struct heap_record *record)
{
    struct placed *placed = placed_find(NULL);
    CHECK(placed != NULL);
    *placed = (struct placed){record, record->range, record->heap.id, false};
    list_push(heaps->prev, &record->link); /* behind the last */
}

void placed_remove(struct heap_record *record)
{
    struct placed *placed = placed_find(record);
    list_remove(&record->link);
    if (placed != NULL)
        placed->record = NULL;
}

void placed_fork_before(void)
{
    for (struct placed *placed = all; placed < all + PAGE_MAP_RANGES; placed++)
        if (placed->record != NULL)
            placed->shared = os_is_shared((uintptr_t)placed->record);
}

/* Whether this process has what the heap was in the parent. */
static bool is_here(const struct placed *placed)
{
    return !placed->shared && os_is_readable((uintptr_t)placed->record) &&
           placed->record->heap.id == placed->id;
}

/* Takes all that are placed out of a list, which are its last. */
static void cut_off(struct list *heaps)
{
    struct list *last = heaps;
    while (last->next != heaps &&
           placed_find(CONTAINER_OF(last->next, struct heap_record, link)) == NULL)
        last = last->next;
    last->next = heaps;
    heaps->prev = last;
}

void placed_fork_in_child(struct list *heaps)
{
    cut_off(heaps);
    for (struct placed *placed = all; placed < all + PAGE_MAP_RANGES; placed++) {
        if (placed->record == NULL)
            continue;
        if (is_here(placed)) {
            list_push(heaps->prev, &placed->record->link);
        } else {
            page_map_remove_range(placed->range);
            placed->record = NULL;
        }
    }
}
