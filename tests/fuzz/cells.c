/*
 * Cells: taking (best fit, alignment), giving back, resizing, purging, misuse and damage.
 */
#include <string.h>

#include "cell/cell_list.h"
#include "cell_shadow.h"
#include "world.h"

/* Two, as two arenas have, on the same spans. */
enum { BATCH_MOST = 16 };
static struct cells cells[OWNERS];

void cells_begin(uint8_t settings)
{
    static const uint32_t split_least[] = {0, 2, 33, 257};
    for (size_t i = 0; i < OWNERS; i++) {
        struct free_links **table = cells[i].free; /* is mapped once and kept */
        if (table != NULL)
            memset(table, 0, CELL_LISTS * sizeof(*table));
        cells[i] = (struct cells){.free = table};
        cells_init(&cells[i], &page_heap);
        if (settings % 4 != 0)
            cells[i].split_least = split_least[settings % 4];
        settings /= 4;
    }
    shadow_clear();
}

/* ---- Decoding ---- */

/* Sizes as programs ask for them, sizes around those of free cells, and the largest. */
static size_t bytes_decode(struct input *input)
{
    uint16_t pair = input_pair(input);
    size_t value = pair / 4;
    const struct shadow_cell *cell = NULL;
    switch (pair % 4) {
    case 0:
        return value + 1;
    case 1:
        return size_min(value * 8 + 8, CELL_MOST);
    case 2:
        cell = shadow_choose(value % 64, true);
        if (cell != NULL) /* up to 128 bytes more or less */
            return size_max(1, size_min(shadow_bytes(cell) + value / 64 - 128, CELL_MOST));
        return 1 + value / 4;
    default:
        return CELL_MOST - value % 64 * (value / 64);
    }
}

static size_t units_of(size_t bytes)
{
    size_t units = (bytes + 8 + 15) / 16;
    return units < 2 ? 2 : units;
}

static bool is_live(uintptr_t block)
{
    return cell_is_live(cell_of(block));
}

static struct shadow_cell *used_decode(struct input *input)
{
    return shadow_count == 0 ? NULL : shadow_choose(input_index(input, shadow_count), false);
}

/* ---- Taking ---- */

/* How far into a free cell a block with an alignment begins: a free cell must fit in front. */
static size_t front_units(const struct shadow_cell *cell, size_t alignment)
{
    uintptr_t block = shadow_block(cell);
    size_t front = 0;
    while ((block + front) % alignment != 0 || front == CELL_UNIT)
        front += CELL_UNIT;
    return front / CELL_UNIT;
}

/* The new span that a block must be in. */
static struct shadow_cell *span_enter(uintptr_t block, unsigned owner)
{
    uintptr_t entry = page_map_entry(block);
    EXPECT(entry_is_span(entry), "a block is in no span");
    const struct span *span = (const struct span *)entry;
    EXPECT(span->kind == SPAN_CELLS && span->owner == &cells[owner], "a block is in a wrong span");
    return shadow_span_enter((uintptr_t)span->start, owner);
}

/* That a cell, cut for a request of `units` where there are `room` units, has as many as asked for,
 * or all of them, if the rest is not worth cutting off. */
static void expect_cut(size_t cut, size_t units, size_t room, unsigned owner)
{
    if (cut == units && room - units != 1)
        return;
    EXPECT(cut == room, "a cell of %zu units for a request of %zu", cut, units);
    EXPECT(room - units < cells[owner].split_least, "%zu units were not cut off", room - units);
}

static void expect_taken(uintptr_t block, unsigned owner, size_t bytes, size_t alignment,
                         bool may_grow)
{
    size_t slack = alignment <= CELL_UNIT ? 0 : alignment / CELL_UNIT + CELL_LEAST_UNITS;
    size_t units = units_of(bytes);
    const struct shadow_cell *best = shadow_best(owner, units + slack);
    if (best == NULL) {
        EXPECT(may_grow, "a block of %zu bytes is taken from no free cell", bytes);
        best = span_enter(block, owner);
    }
    struct shadow_cell *cell = shadow_find(block);
    EXPECT(cell != NULL && cell->state == CELL_FREE && cell->owner == owner,
           "a block is taken from where no cell is free");
    EXPECT(
        shadow_rank(cell->units) == shadow_rank(best->units) &&
            shadow_is_top(cell) == shadow_is_top(best),
        "not the best fit: a request of %zu units was served by a free cell of %zu%s, but there is "
        "one of %zu%s",
        units + slack, cell->units, shadow_is_top(cell) ? ", the top" : "", best->units,
        shadow_is_top(best) ? ", the top" : "");
    size_t front = front_units(cell, alignment);
    EXPECT(block == shadow_block(cell) + front * CELL_UNIT,
           "a block does not begin where it should");
    EXPECT(is_live(block), "a block that was just taken is not live");
    size_t cut = cell_of(block)->units;
    expect_cut(cut, units, cell->units - front, owner);
    cell = shadow_cut(cell, front, cut);
    cell->id = pattern_new();
    pattern_fill(block, shadow_bytes(cell), cell->id);
}

static void take_with(unsigned owner, size_t bytes, size_t alignment, bool may_grow)
{
    if (shadow_count + 3 > CELLS_MOST)
        return;
    struct misuse misuse = {.kind = MISUSE_NONE};
    size_t refused = fuzz_provider.refused;
    size_t dirty;
    void *block = cells_alloc(&cells[owner], bytes, alignment, may_grow ? CELLS_NEW : CELLS_HELD,
                              &misuse, &dirty);
    EXPECT(misuse.kind == MISUSE_NONE, "cells_take says that cells are damaged");
    if (block != NULL) {
        expect_taken((uintptr_t)block, owner, bytes, alignment, may_grow);
        return;
    }
    size_t slack = alignment <= CELL_UNIT ? 0 : alignment / CELL_UNIT + CELL_LEAST_UNITS;
    EXPECT(shadow_best(owner, units_of(bytes) + slack) == NULL, "no block, but a cell is free");
    EXPECT(!may_grow || fuzz_provider.refused != refused,
           "no block, but the provider was not asked");
}

static void take(struct input *input)
{
    uint8_t how = input_byte(input);
    take_with(how % OWNERS, bytes_decode(input), CELL_UNIT, how < 224);
}

static void take_many(struct input *input)
{
    uint8_t how = input_byte(input);
    size_t bytes = bytes_decode(input);
    for (size_t i = 0; i < 2u + how / 2 % 8; i++)
        take_with(how % OWNERS, bytes, CELL_UNIT, true);
}

static void alloc_aligned(struct input *input)
{
    uint8_t how = input_byte(input);
    size_t alignment = CELL_UNIT << how / 2 % 9; /* up to a page */
    take_with(how % OWNERS, size_min(bytes_decode(input), CELL_MOST - alignment), alignment,
              how < 224);
}

/* ---- Giving back ---- */

/* Takes a block from the shadow, and marks it as the library wants blocks that come back. */
static uintptr_t cell_leave(struct shadow_cell *cell)
{
    uintptr_t block = shadow_block(cell);
    pattern_expect(block, shadow_bytes(cell), shadow_bytes(cell), cell->id);
    cell_mark(cell_of(block), CELL_CACHED);
    shadow_free(cell);
    return block;
}

static void give(struct input *input)
{
    uint8_t how = input_byte(input);
    size_t count = how % 4 == 0 ? 1 + how / 4 % BATCH_MOST : 1;
    uintptr_t blocks[BATCH_MOST];
    size_t given = 0;
    for (; given < count; given++) {
        struct shadow_cell *cell = used_decode(input);
        if (cell == NULL)
            break;
        blocks[given] = cell_leave(cell);
    }
    cells_free(blocks, given);
}

/* Lets a block wait as in a magazine, or takes it out of there. */
static void cache(struct input *input)
{
    struct shadow_cell *cell = used_decode(input);
    if (cell == NULL)
        return;
    cell->state = cell->state == CELL_LIVE ? CELL_CACHED : CELL_LIVE;
    cell_set(cell_of(shadow_block(cell)), cell_of(shadow_block(cell))->units, cell->state);
}

/* ---- Resizing ---- */

static void resize(struct input *input)
{
    struct shadow_cell *cell = used_decode(input);
    size_t bytes = bytes_decode(input);
    if (cell == NULL || cell->state != CELL_LIVE || shadow_count == CELLS_MOST)
        return;
    uintptr_t block = shadow_block(cell);
    size_t old_bytes = shadow_bytes(cell);
    size_t room = shadow_room(cell);
    size_t units = units_of(bytes);
    bool done = cell_resize(block, bytes, 0);
    EXPECT(done == (units <= room), "resizing a block from %zu to %zu bytes %s", old_bytes, bytes,
           done ? "went, but there is no room" : "failed, but there is room");
    EXPECT(is_live(block), "a block that was resized is not live");
    size_t cut = cell_of(block)->units;
    if (done && cut != cell->units)
        expect_cut(cut, units, room, cell->owner);
    else
        EXPECT(cut == cell->units && (!done || cut - units < cells[cell->owner].split_least),
               "a block of %zu units has %zu after it was to have %zu", cell->units, cut, units);
    shadow_resize(cell, cut);
    pattern_expect(block, old_bytes, size_min(old_bytes, shadow_bytes(cell)), cell->id);
    pattern_fill(block, shadow_bytes(cell), cell->id);
}

/* ---- Purging ---- */

/* An empty span that stayed may go with what is idle; with all it must. */
static void purge_one(unsigned owner, bool all)
{
    struct shadow_cell top;
    bool yielded = shadow_yield_top(owner, &top);
    size_t bytes = cells_purge(&cells[owner], all);
    EXPECT(bytes % PAGE_BYTES == 0, "%zu bytes were purged", bytes);
    bool stays = yielded && cells[owner].top != NULL;
    EXPECT(!all || !stays, "an empty span outlives a purge of all");
    if (stays)
        shadow_keep_top(&top);
}

static void purge(struct input *input)
{
    uint8_t how = input_byte(input);
    purge_one(how % OWNERS, how % 4 < 2);
}

/* The heap ticks, or slabs have taken fresh pages, and the next block that comes back is one at
 * which what is kept is looked at. */
static void make_tick(struct input *input)
{
    unsigned owner = (unsigned)input_index(input, OWNERS);
    struct cells *ticking = &cells[owner];
    struct shadow_cell top;
    bool yielded = shadow_yield_top(owner, &top);
    uint8_t fresh = input_byte(input);
    if (fresh % 2 == 0)
        cells_tick(ticking);
    else
        cells_end_epoch(ticking, fresh);
    if (yielded && ticking->top != NULL)
        shadow_keep_top(&top);
    ticking->look_step = 0;
    ticking->kept_least = 0;
}

/* ---- Misuse and damage ---- */

/* The bytes of the block that was at the beginning of a cell; of the smallest cells, which have no
 * room to remember it, their own. */
static size_t former_bytes(const struct shadow_cell *cell)
{
    if (cell->state != CELL_FREE || cell->units == CELL_LEAST_UNITS)
        return shadow_bytes(cell);
    return cell->former == 0 ? 0 : cell->former * CELL_UNIT - CELL_HEADER;
}

/* Asks what is wrong with an address in or near a cell. */
static void look_up(struct input *input)
{
    if (shadow_count == 0)
        return;
    const struct shadow_cell *cell = &shadow_cells[input_index(input, shadow_count)];
    uintptr_t block = shadow_block(cell);
    uintptr_t address = cell->address + input_pair(input) % (cell->units * CELL_UNIT);
    if (input_byte(input) % 4 == 0)
        address = block;
    struct misuse misuse = cell_misuse(address);
    if (cell->state == CELL_LIVE && address == block) {
        EXPECT(misuse.kind == MISUSE_NONE, "a live block is taken for misuse");
        return;
    }
    EXPECT(misuse.kind != MISUSE_NONE, "%#zx is taken for a live block", (size_t)address);
    EXPECT(misuse.kind != MISUSE_DAMAGED, "a sound cell is taken for damaged");
    EXPECT(misuse.address == address, "another address is reported");
    if (address == block)
        EXPECT(misuse.kind == MISUSE_DOUBLE_FREE && misuse.bytes == former_bytes(cell),
               "a block of %zu bytes that was freed is said to have had %zu", former_bytes(cell),
               misuse.bytes);
    if (misuse.kind == MISUSE_INSIDE)
        EXPECT(cell->state != CELL_FREE && misuse.start == block &&
                   misuse.bytes == shadow_bytes(cell),
               "a pointer is said to be inside of a block that it is not in");
}

/* A program overruns a block: the header behind is not what it was, and is found damaged. */
static void damage_header(struct input *input)
{
    struct shadow_cell *cell = used_decode(input);
    uint16_t bits = input_pair(input);
    if (cell == NULL || bits == 0)
        return;
    uintptr_t block = shadow_block(cell);
    struct cell kept = *cell_of(block);
    cell_mark(cell_of(block), CELL_CACHED);
    cell_of(block)->units ^= bits;
    misuse_expect();
    cells_free(&block, 1);
    size_t count;
    struct misuse misuse = misuse_expected(&count);
    EXPECT(count == 1 && misuse.kind == MISUSE_DAMAGED && misuse.address == block,
           "a cell with a damaged header was freed");
    cell_of(block)->units = kept.units;
    cell_set(cell_of(block), kept.units, (enum cell_state)kept.state);
}

/* A program writes over the links of the free cell that the next request wants. */
static void damage_links(struct input *input)
{
    unsigned owner = input_byte(input) % OWNERS;
    size_t bytes = bytes_decode(input);
    uint16_t bits = input_pair(input);
    const struct shadow_cell *best = shadow_best(owner, units_of(bytes));
    if (best == NULL || shadow_is_top(best) || bits == 0)
        return;
    /* The one that will be taken: of those of this size, the one freed last. */
    struct free_links *links = cells[owner].free[shadow_rank(best->units)];
    EXPECT(links != NULL, "a free cell of %zu units is in no list", best->units);
    struct free_links kept = *links;
    uintptr_t wild = (uintptr_t)bits << 4 << bits % 32;
    if (bits % 2 == 0)
        links->next = (struct free_links *)wild;
    else
        links->prev = (struct free_links *)wild;
    struct misuse misuse = {.kind = MISUSE_NONE};
    size_t dirty;
    void *block = cells_alloc(&cells[owner], bytes, CELL_UNIT, CELLS_HELD, &misuse, &dirty);
    EXPECT(block == NULL && misuse.kind == MISUSE_WRITTEN, "a cell with damaged links was taken");
    *links = kept;
}

/* A program writes over the trailer of a free cell, and the cell behind it is freed. */
static void damage_trailer(struct input *input)
{
    struct shadow_cell *cell = used_decode(input);
    uint16_t bits = input_pair(input);
    const struct shadow_cell *before = cell == NULL ? NULL : shadow_previous(cell);
    if (before == NULL || before->state != CELL_FREE || bits == 0)
        return;
    uintptr_t block = shadow_block(cell);
    uint64_t *trailer = (uint64_t *)cell->address - 1;
    *trailer ^= (uint64_t)bits << bits % 48;
    cell_mark(cell_of(block), CELL_CACHED);
    misuse_expect();
    cells_free(&block, 1);
    size_t count;
    struct misuse misuse = misuse_expected(&count);
    EXPECT(count == 1 && misuse.kind == MISUSE_DAMAGED, "a damaged trailer was not noticed");
    *trailer = before->units;
    cell_set(cell_of(block), cell_of(block)->units, cell->state);
}

const struct operation cells_operations[] = {
    {"cells_alloc", take, 20},
    {"cells_take many", take_many, 4},
    {"cells_take aligned", alloc_aligned, 6},
    {"cells_free", give, 20},
    {"cell cached", cache, 3},
    {"cell_resize", resize, 12},
    {"cells_purge", purge, 2},
    {"tick", make_tick, 1},
    {"cell_misuse", look_up, 3},
    {"damaged header", damage_header, 1},
    {"damaged links", damage_links, 1},
    {"damaged trailer", damage_trailer, 1},
    {NULL, NULL, 0},
};

/* ---- The whole ---- */

/* That the library's cells are those of the shadow. */
static void expect_same_cells(void)
{
    size_t free_units[OWNERS] = {0};
    size_t span_count[OWNERS] = {0};
    for (size_t i = 0; i < shadow_count; i++) {
        const struct shadow_cell *each = &shadow_cells[i];
        const struct cell *cell = (const struct cell *)each->address;
        EXPECT(cell->units == each->units &&
                   cell->state == cell_state_for(each->units, each->state) && cell_is_sound(cell),
               "a cell of %zu units in state %#x has %u in state %#x", each->units,
               (unsigned)each->state, cell->units, cell->state);
        if (each->state == CELL_FREE)
            free_units[each->owner] += each->units;
        if (each->address == each->span + CELL_HEADER)
            span_count[each->owner]++;
    }
    for (size_t i = 0; i < OWNERS; i++) {
        EXPECT(cells[i].free_units == free_units[i], "%zu units are free, not %zu",
               cells[i].free_units, free_units[i]);
        EXPECT((uintptr_t)cells[i].top == shadow_top[i], "the top is %p, not %#zx",
               (void *)cells[i].top, (size_t)shadow_top[i]);
        EXPECT(cells[i].span_count == span_count[i], "there are %zu spans of cells, not %zu",
               cells[i].span_count, span_count[i]);
    }
}

void cells_expect_sound(void)
{
    for (size_t i = 0; i < OWNERS; i++) {
        const char *wrong = cells_check(&cells[i]);
        EXPECT(wrong == NULL, "cells_check: %s", wrong);
    }
    expect_same_cells();
}

size_t cells_pages(void)
{
    size_t pages = 0;
    for (size_t i = 0; i < OWNERS; i++)
        pages += cells[i].span_count * (CELL_SPAN_BYTES >> PAGE_SHIFT);
    return pages;
}

void cells_end(void)
{
    struct shadow_cell *cell;
    while ((cell = shadow_choose(0, false)) != NULL) {
        uintptr_t block = cell_leave(cell);
        cells_free(&block, 1);
    }
    cells_expect_sound();
    for (unsigned i = 0; i < OWNERS; i++)
        purge_one(i, true);
    for (size_t i = 0; i < OWNERS; i++)
        EXPECT(cells[i].span_count == 0, "%zu spans of cells stay after all blocks were freed",
               cells[i].span_count);
}
