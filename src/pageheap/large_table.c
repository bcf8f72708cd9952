/*
 * Descriptors of large blocks by address. See large_table.h.
 */
#include "pageheap/large_table.h"

#include "meta/meta.h"
#include "pageheap/span.h"
#include "platform/check.h"

/* Log2 (table): of the slots of the first table, which fill one block of metadata of 512 bytes. */
enum { LOG_LEAST = 6 };

/* Parts of 64: the table may be so full before it grows; one step finds most blocks then. */
enum { LOAD_WANTED = 32 };

static size_t slot_mask(const struct large_table *table)
{
    return ((size_t)1 << table->log) - 1;
}

static void slots_put(const struct large_table *table, struct span *span)
{
    size_t slot = large_table_home(table, span->start);
    while (table->slots[slot] != NULL)
        slot = (slot + 1) & slot_mask(table);
    table->slots[slot] = span;
}

static struct span **slots_new(struct meta *meta, size_t bytes)
{
    if (bytes > META_MOST)
        return meta->grows ? meta_map(bytes) : NULL;
    struct span **slots = meta_alloc_from(meta, bytes);
    for (size_t i = 0; slots != NULL && i < bytes / sizeof(*slots); i++)
        slots[i] = NULL;
    return slots;
}

/* Makes a table twice as large. Memory of meta_map is never given back; all smaller tables together
 * are less than the one in use. */
static bool table_grow(struct large_table *table, struct meta *meta)
{
    struct large_table old = *table;
    unsigned log = old.slots == NULL ? LOG_LEAST : old.log + 1;
    size_t bytes = sizeof(*old.slots) << log;
    struct span **slots = old.spare != NULL ? old.spare : slots_new(meta, bytes);
    table->lacks = slots == NULL ? bytes : 0;
    table->spare = NULL;
    if (slots == NULL)
        return false;
    table->slots = slots;
    table->log = log;
    if (old.slots == NULL)
        return true;
    for (size_t i = 0; i <= slot_mask(&old); i++)
        if (old.slots[i] != NULL)
            slots_put(table, old.slots[i]);
    if (sizeof(*slots) << old.log <= META_MOST)
        meta_free_to(meta, old.slots, sizeof(*slots) << old.log);
    return true;
}

bool large_table_reserve(struct large_table *table, struct meta *meta)
{
    size_t slots = table->slots == NULL ? 0 : slot_mask(table) + 1;
    size_t count = table->count + table->out + 1;
    bool full = count > slots - slots / SLACK_SHARE; /* a fuller one is slower */
    if (count <= slots / 64 * LOAD_WANTED || (table->lacks != 0 && !full))
        return true; /* what was refused is asked for again when it is needed */
    return table_grow(table, meta) || !full;
}

void large_table_add(struct large_table *table, struct span *span)
{
    CHECK(table->count + table->out < slot_mask(table));
    slots_put(table, span);
    table->count++;
}

static size_t slot_of(const struct large_table *table, const char *start)
{
    size_t slot = large_table_home(table, start);
    while (table->slots[slot] != NULL && table->slots[slot]->start != start)
        slot = (slot + 1) & slot_mask(table);
    return slot;
}

void large_table_remove(struct large_table *table, const struct span *span)
{
    size_t hole = slot_of(table, span->start), mask = slot_mask(table);
    CHECK(table->slots[hole] == span);
    /* The entries behind it move up, unless their search begins behind the hole. */
    for (size_t next = (hole + 1) & mask; table->slots[next] != NULL; next = (next + 1) & mask) {
        size_t home = large_table_home(table, table->slots[next]->start);
        if (((next - home) & mask) < ((next - hole) & mask))
            continue;
        table->slots[hole] = table->slots[next];
        hole = next;
    }
    table->slots[hole] = NULL;
    table->count--;
}

void large_table_clear(struct large_table *table)
{
    for (size_t i = 0; table->count != 0 && i <= slot_mask(table); i++)
        table->slots[i] = NULL;
    table->count = 0;
}

struct span *large_table_find(const struct large_table *table, const char *start)
{
    return table->slots == NULL ? NULL : table->slots[slot_of(table, start)];
}
