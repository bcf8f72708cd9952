/*
 * Quick lists: giving cells back, and checking. See quick.h.
 */
#include "magazine/quick.h"

#include "platform/check.h"

/* As a function: nothing here is in a hurry. */
static COLD bool entry_is_sound(uint64_t entry)
{
    return quick_entry_is_sound(entry);
}

/* Cells (table): so many are given back at a time, under one lock if they are of one arena. */
enum { BATCH = 32 };

/* Cells: so many of one list go at a time; then the hand moves on, or a size that is freed much
 * would keep it. */
enum { OF_ONE_LIST = 8 };

READ_BY_ALL const struct quick quick_none = {0};

/* Adds up the cells that wait in a list. It ends at a link that was overwritten, and returns the
 * entry there; otherwise 0. */
static uint64_t list_walk(const struct quick *quick, size_t list, size_t *bytes, size_t *count)
{
    for (uint64_t entry = quick->list[list]; entry != 0; entry = quick_next(entry)) {
        *bytes += quick_units(entry) * CELL_UNIT;
        ++*count;
        if (!entry_is_sound(quick_next(entry)))
            return entry;
    }
    return 0;
}

/* A report of a cell that was written to while it waited. If its link leads to a cell, the word
 * behind that was overwritten. */
static struct misuse misuse_written(uint64_t entry)
{
    uint64_t *words = cell_link(cell_of(quick_block(entry)));
    bool first = !entry_is_sound(words[0] ^ page_map.key);
    return (struct misuse){.kind = MISUSE_WRITTEN,
                           .has_found = true,
                           .address = quick_block(entry),
                           .bytes = quick_units(entry) * CELL_UNIT - CELL_HEADER,
                           .found = words[first ? 0 : 1]};
}

/* Whether the header of a cell that waits is sound. Its link is not looked at. */
static bool header_is_sound(uint64_t entry)
{
    const struct cell *cell = cell_of(quick_block(entry));
    return cell->state == CELL_CACHED && cell->units == quick_units(entry) && cell_is_sound(cell);
}

/* When so many bytes wait. */
static void quick_set_room(struct quick *quick, size_t bytes)
{
    GAUGE_SET(quick->room, (int32_t)(quick->limit / CELL_UNIT) - (int32_t)(bytes / CELL_UNIT));
}

COLD struct misuse quick_drop_list(struct quick *quick, size_t list)
{
    uint64_t entry = quick->list[list];
    struct misuse misuse = {.kind = MISUSE_DAMAGED, .address = quick_block(entry)};
    if (header_is_sound(entry))
        misuse = misuse_written(entry);
    quick->list[list] = 0;
    size_t bytes = 0, rounds = 0;
    for (size_t i = 0; i < QUICK_LISTS; i++) {
        size_t count = 0;
        list_walk(quick, i, &bytes, &count);
        GAUGE_SET(quick->waits[i], (uint8_t)count);
        rounds += count >> 8;
    }
    GAUGE_SET(quick->rounds, (uint32_t)rounds);
    quick_set_room(quick, bytes);
    return misuse;
}

void quick_set_limit(struct quick *quick, size_t limit)
{
    size_t bytes = quick_bytes(quick);
    GAUGE_SET(quick->limit, (uint32_t)limit);
    quick_set_room(quick, bytes);
}

static uint32_t *ghosts_of(struct quick *quick, size_t list)
{
    return &quick->ghosts[list / QUICK_WINDOW];
}

/* Takes up to `most` cells of a list. */
static size_t list_take(struct quick *quick, size_t list, uintptr_t *blocks, size_t most)
{
    size_t count = 0;
    while (count < most && quick->list[list] != 0) {
        uint64_t entry = quick->list[list];
        uintptr_t block = quick_block(entry);
        /* The header behind it is looked at when it is joined, and is mostly in no cache. */
        __builtin_prefetch((char *)cell_of(block) + quick_units(entry) * CELL_UNIT, 1);
        *ghosts_of(quick, list) += (uint32_t)quick_units(entry);
        if (UNLIKELY(quick_alloc(quick, list, false) == 0)) {
            struct misuse misuse = quick_drop_list(quick, list);
            misuse_report("free", &misuse);
            break;
        }
        blocks[count++] = block;
    }
    return count;
}

void quick_note_miss(struct quick *quick, size_t units)
{
    size_t list = quick_list_of(units);
    if (list != quick->asked) {
        quick->asked = (uint8_t)size_min(list, UINT8_MAX);
        quick->turns = 0;
    }
    if (list >= QUICK_LISTS)
        return;
    uint32_t *ghosts = ghosts_of(quick, list);
    uint32_t missed = (uint32_t)size_min(units, *ghosts);
    *ghosts -= missed;
    quick->wanted += (uint32_t)units;
    quick->regret += missed;
}

/* What went back twice as long ago counts half as much. */
static void ghosts_fade(struct quick *quick)
{
    for (size_t i = 0; i < sizeof(quick->ghosts) / sizeof(*quick->ghosts); i++)
        quick->ghosts[i] /= 2;
}

/* The first list from `list` on that has a cell; QUICK_LISTS if there is none. */
static size_t list_filled(const struct quick *quick, size_t list)
{
    while (list < QUICK_LISTS && quick->list[list] == 0) {
        uint64_t waits;
        memcpy(&waits, &quick->waits[list], sizeof(waits));
        bool skip = waits == 0 && quick->rounds == 0; /* or a list of 256 would be passed */
        list += skip ? QUICK_WINDOW : 1;
    }
    return size_min(list, QUICK_LISTS);
}

void quick_evict(struct quick *quick, size_t keep)
{
    uintptr_t blocks[BATCH];
    size_t count = 0;
    if (quick_bytes(quick) > keep)
        ghosts_fade(quick);
    while (quick_bytes(quick) > keep) {
        size_t list = list_filled(quick, quick->hand);
        if (list == QUICK_LISTS) {
            if (quick->hand == 0)
                break;
            quick->hand = 0;
            continue;
        }
        count += list_take(quick, list, blocks + count, size_min(BATCH - count, OF_ONE_LIST));
        quick->hand = (uint8_t)(list + 1 < QUICK_LISTS ? list + 1 : 0);
        if (count == BATCH) {
            cells_free(blocks, count);
            count = 0;
        }
    }
    if (count != 0)
        cells_free(blocks, count);
}

COLD const char *quick_check(const struct quick *quick)
{
    size_t bytes = 0, rounds = 0;
    for (size_t list = 0; list < QUICK_LISTS; list++) {
        uint64_t entry = quick->list[list];
        size_t count = 0;
        if (!entry_is_sound(entry))
            return "an entry of a quick list is no cell";
        while (entry != 0) {
            uintptr_t block = quick_block(entry);
            const struct cell *cell = cell_of(block);
            if (!entry_is_sound(quick_next(entry)))
                return check_found(cell + 1, "a medium block was written to when it was free");
            if (!cell_is_sound(cell))
                return check_found(cell + 1, "a cell's header is damaged");
            if (cell->state != CELL_CACHED || cell->units != quick_units(entry))
                return check_found(cell + 1, "a cell in a quick list is of another state or size");
            if (!quick_cell_is_sound(cell, quick_next(entry)))
                return check_found(cell + 1, "a medium block was written to when it was free");
            if (quick_list_of(cell->units) != list)
                return check_found(cell + 1, "a cell is in the quick list of another size");
            bytes += cell->units * CELL_UNIT;
            count++;
            entry = quick_next(entry);
        }
        if (quick->waits[list] != (uint8_t)count)
            return "a quick list's byte is wrong";
        rounds += count >> 8;
    }
    return bytes == quick_bytes(quick) && rounds == quick->rounds ? NULL
                                                                  : "the quick lists do not add up";
}
