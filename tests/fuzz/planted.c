/*
 * Planted faults, to show that the harness can fail: a second cell.c for the program, in which some
 * of the functions it calls now and then do something wrong, and wrong versions of functions of
 * other files (the linker's --wrap). PLANTED in the environment says which; without it, none is.
 *
 *   no_join      a freed cell is not joined with a large free one behind it
 *   not_best     the second best free cell is taken
 *   free_bit     the bitmap keeps the bit of a list that is empty
 *   lost_object  one object of a batch that comes back is dropped
 *   dirty_zero   pages count as purged, and are not
 *   not_cleared  a freed hardened object of pages keeps its contents
 *   front        what is before a hardened object is not looked at
 */
#include <stdlib.h>
#include <string.h>

#include "cell/cell_list.h"
#include "cell/cell_span.h"
#include "hardened/hard_pages.h"
#include "hardened/hardened.h"
#include "platform/memory.h"
#include "slab/slab.h"

static bool planted(const char *fault)
{
    static const char *value;
    if (value == NULL)
        value = getenv("PLANTED");
    return value != NULL && strcmp(value, fault) == 0;
}

/* ---- In cell.c ---- */

static bool wrong_is_free(const struct cell *cell, const char *caller)
{
    if (planted("no_join") && strcmp(caller, "free_locked") == 0 && cell->units > 128)
        return false;
    return cell_is_free(cell);
}

static size_t wrong_list_best(const struct cells *cells, size_t units)
{
    size_t best = cell_list_best(cells, units);
    if (!planted("not_best") || best == CELL_LISTS)
        return best;
    size_t has = cell_of_links(cells->free[best])->units;
    size_t second = has == units ? CELL_LISTS : cell_list_best(cells, has + 1);
    return second != CELL_LISTS ? second : best;
}

static void wrong_list_remove_first(struct cells *cells, size_t list, struct cell *cell)
{
    size_t units = cell->units;
    cell_list_remove_first(cells, list, cell);
    if (planted("free_bit") && units % 8 == 0 && units < CELL_AGED_UNITS)
        bitmap_set(cells->bitmap, units);
}

#define cell_is_free(cell) wrong_is_free(cell, __func__)
#define cell_list_best wrong_list_best
#define cell_list_remove_first wrong_list_remove_first
#include "cell/cell.c"

/* ---- Elsewhere ---- */

void __real_slabs_free(uintptr_t *objects, size_t count, const char *call);
void __wrap_slabs_free(uintptr_t *objects, size_t count, const char *call);
void __wrap_slabs_free(uintptr_t *objects, size_t count, const char *call)
{
    __real_slabs_free(objects, count - (planted("lost_object") && count > 8), call);
}

bool __real_os_purge(void *start, size_t bytes);
bool __wrap_os_purge(void *start, size_t bytes);
bool __wrap_os_purge(void *start, size_t bytes)
{
    return (planted("dirty_zero") && bytes < 256 * KIB) || __real_os_purge(start, bytes);
}

void __real_pages_clear(const struct provider *provider, uintptr_t object, size_t bytes);
void __wrap_pages_clear(const struct provider *provider, uintptr_t object, size_t bytes);
void __wrap_pages_clear(const struct provider *provider, uintptr_t object, size_t bytes)
{
    if (!planted("not_cleared"))
        __real_pages_clear(provider, object, bytes);
}

bool __real_hard_front_is_sound(const struct hard_zone *zone, struct hard_place place,
                                uintptr_t object);
bool __wrap_hard_front_is_sound(const struct hard_zone *zone, struct hard_place place,
                                uintptr_t object);
bool __wrap_hard_front_is_sound(const struct hard_zone *zone, struct hard_place place,
                                uintptr_t object)
{
    return planted("front") || __real_hard_front_is_sound(zone, place, object);
}
