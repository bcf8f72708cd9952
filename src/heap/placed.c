/*
 * Heaps in the program's buffers. See placed.h.
 */
#include "heap/placed.h"

#include "platform/check.h"
#include "platform/file.h"
#include "platform/look.h"
#include "provider/provider_file.h"

/* Each has a range of the page map, so there are never more. */
BULKY static struct placed {
    struct heap_record *record; /* NULL: not in use */
    const char *range;          /* as there */
    uint64_t id;                /* of the heap */
    bool shared;                /* with other processes, while the program forks */
    bool listed;                /* false: it is the parent's, whose list it stands in */
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
    *placed = (struct placed){record, record->range, record->heap.id, false, true};
    list_push(heaps->prev, &record->link); /* behind the last */
}

bool placed_remove(struct heap_record *record)
{
    struct placed *placed = placed_find(record);
    if (placed == NULL || !placed->listed)
        return false;
    list_remove(&record->link);
    placed->record = NULL;
    return true;
}

/* Files of snug's own are shared mappings as well, but a child gets copies of them. */
static bool is_shared(const struct heap_record *record)
{
    (void)*(const volatile char *)record; /* of a page that is not there the system tells nothing */
    return os_is_shared((uintptr_t)record) && !provider_files_have((uintptr_t)record);
}

void placed_set_forking(bool forking)
{
    for (struct placed *placed = all; placed < all + PAGE_MAP_RANGES; placed++)
        placed->shared = forking && placed->record != NULL && is_shared(placed->record);
}

bool placed_is_shared(const struct heap_record *record)
{
    const struct placed *placed = placed_find(record);
    return placed != NULL && placed->shared;
}

/* Whether this process has the heap. */
static bool is_here(const struct placed *placed)
{
    return os_is_readable((uintptr_t)placed->record) && placed->record->heap.id == placed->id;
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
        if (placed->shared) {
            placed->listed = false;
        } else if (is_here(placed)) {
            if (placed->listed)
                list_push(heaps->prev, &placed->record->link);
        } else {
            page_map_remove_range(placed->range);
            placed->record = NULL;
        }
    }
}
