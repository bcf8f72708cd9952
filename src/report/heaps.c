/*
 * Heaps of the program's own in the statistics: one row for all that have the same name.
 *
 * The idea: a program has a few kinds of heaps and perhaps many of each, one for every request. So
 * heaps of the same name, provider and quota share a row, and metrics whose labels are names do not
 * grow with the heaps that come and go. If there are more kinds than rows, the last row has all
 * others.
 *
 * This process reads the list of heaps under its lock; if that is taken, the heaps stay unknown: a
 * signal handler must not wait for it. From outside the list is followed without a lock, for as
 * many steps as there can be heaps.
 *
 * Cost: some microseconds for each heap, to sum it up.
 */
#include <string.h>

#include "platform/output.h"
#include "platform/process.h"
#include "report/values.h"

/* Heaps: a list of another process with more of them leads in a circle. */
enum { HEAPS_MOST = 1 << 20 };

const char *provider_name(uint64_t kind)
{
    switch (kind) {
    case KIND_SYSTEM:
        return "system";
    case KIND_PREALLOC:
        return "prealloc";
    case KIND_FILES:
        return "file";
    case KIND_BUFFER:
        return "buffer";
    case KIND_FUNCTIONS:
        return "functions";
    default:
        return "several";
    }
}

/* Bytes of the UTF-8 character at `text`; 0: there is none, or it is a control character. */
static size_t character_bytes(const unsigned char *text, size_t most)
{
    size_t bytes = text[0] < 0x80                      ? 1
                   : text[0] >= 0xc2 && text[0] < 0xe0 ? 2
                   : (text[0] & 0xf0) == 0xe0          ? 3
                   : text[0] >= 0xf0 && text[0] < 0xf5 ? 4
                                                       : 0;
    if (bytes == 0 || bytes > most || text[0] < ' ' || text[0] == 0x7f ||
        (text[0] == 0xc2 && text[1] < 0xa0)) /* terminals take these for escape sequences, too */
        return 0;
    for (size_t i = 1; i < bytes; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    bool surrogate = text[0] == 0xed && text[1] >= 0xa0;
    bool too_long = (text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xf0 && text[1] < 0x90);
    bool too_large = text[0] == 0xf4 && text[1] >= 0x90;
    return surrogate || too_long || too_large ? 0 : bytes;
}

/* Replaces by `?` what is not readable UTF-8: a name is whatever bytes the program gave, and may be
 * cut within a character. */
static void make_readable(char name[HEAP_NAME_MOST])
{
    name[HEAP_NAME_MOST - 1] = 0;
    size_t length = strlen(name);
    for (size_t i = 0; i < length;) {
        size_t bytes = character_bytes((unsigned char *)name + i, length - i);
        if (bytes == 0)
            name[i] = '?';
        i += size_max(bytes, 1);
    }
}

static void read_name(struct peek *peek, const struct heap_record *record,
                      char name[HEAP_NAME_MOST])
{
    for (size_t i = 0; i < HEAP_NAME_MOST; i++)
        name[i] = (char)PEEK(peek, record->name[i]);
    make_readable(name);
}

/* One heap as a row of its own. */
static struct heap_row row_of(struct peek *peek, const struct heap_record *record)
{
    struct heap_row row = {.heaps = 1};
    struct heap_totals totals = heap_totals_of(peek, &record->heap, NULL);
    read_name(peek, record, row.name);
    row.provider = PEEK(peek, PEEK(peek, record->quota.under)->kind);
    row.mapped = totals.segments + totals.huge + totals.hardened.mapped;
    row.live =
        totals.small_live + totals.cells_live + totals.large + totals.huge + totals.hardened.live;
    row.blocks = totals.small_live_count + totals.cells_count + totals.large_count +
                 totals.huge_count + totals.hardened.live_count;
    row.peak = PEEK(peek, record->quota.peak);
    size_t limit = PEEK(peek, record->quota.limit);
    row.quota = limit == SIZE_MAX ? 0 : limit;
    if (row.provider == KIND_BUFFER) {
        row.peak = totals.used_peak + totals.hardened.mapped;
        row.quota = totals.segments + PEEK(peek, record->fixed_bytes);
    }
    return row;
}

static bool row_is_like(const struct heap_row *a, const struct heap_row *b)
{
    return a->provider == b->provider && a->quota == b->quota && strcmp(a->name, b->name) == 0;
}

/* The row for heaps like this one; if there is none, a new one, or the last if all are taken. */
static struct heap_row *row_find(struct heap_rows *rows, const struct heap_row *like)
{
    for (size_t i = 0; i < rows->count; i++)
        if (row_is_like(&rows->rows[i], like))
            return &rows->rows[i];
    struct heap_row *last = &rows->rows[HEAP_ROWS - 1];
    if (rows->count == HEAP_ROWS) {
        strcpy(last->name, "(others)");
        last->provider = HEAP_MIXED;
        last->quota = 0;
        return last;
    }
    struct heap_row *row = &rows->rows[rows->count++];
    *row = (struct heap_row){.provider = like->provider, .quota = like->quota};
    memcpy(row->name, like->name, sizeof(row->name));
    return row;
}

void heap_rows_add(struct heap_rows *rows, struct peek *peek, const struct heap_record *record)
{
    struct heap_row one = row_of(peek, record);
    if (peek != NULL && peek->failed)
        return;
    struct heap_row *row = row_find(rows, &one);
    row->heaps++;
    row->blocks += one.blocks;
    row->live += one.live;
    row->mapped += one.mapped;
    if (row->peak < one.peak)
        row->peak = one.peak;
}

void heap_rows_make_readable(struct heap_rows *rows)
{
    if (rows->count > HEAP_ROWS)
        rows->count = 0;
    for (size_t i = 0; i < rows->count; i++)
        make_readable(rows->rows[i].name);
}

/* Adds the resident bytes of a heap. If its lock is taken, or the walk fails, nothing is added, and
 * those bytes count as not snug's. */
static void add_resident(struct values *values, struct peek *peek, const struct heap *heap,
                         int pagemap)
{
    struct lock *lock = (struct lock *)&heap->page_heap.lock;
    uint64_t bytes = 0;
    if (pagemap < 0 || (peek == NULL && !lock_try(lock)))
        return;
    if (heap_read_resident(peek, heap, pagemap, &bytes))
        values->resident_heaps += bytes;
    if (peek == NULL)
        lock_release(lock);
}

/* False: the walk led astray. */
static bool walk_heaps(struct values *values, struct peek *peek, const struct anchor *anchor,
                       int pagemap)
{
    size_t steps = HEAPS_MOST;
    const struct list *node = PEEK(peek, anchor->heaps->next);
    while (node != anchor->heaps) {
        if (node == NULL || steps-- == 0)
            return false;
        const struct heap_record *record = CONTAINER_OF(node, struct heap_record, link);
        heap_rows_add(&values->more->heaps, peek, record);
        if (peek != NULL && peek->failed)
            return false;
        add_resident(values, peek, &record->heap, pagemap);
        node = PEEK(peek, node->next);
    }
    return true;
}

void values_read_heaps(struct values *values, struct peek *peek, const struct anchor *anchor,
                       int process, enum values_depth depth)
{
    struct values_more *more = values->more;
    /* A list that changes under a reader from outside may lead anywhere. That spoils this walk
     * only: the other numbers stay known. */
    struct peek apart;
    if (peek == NULL && !lock_try(&heaps_lock))
        return;
    values->heaps = values->heaps_blocks = values->heaps_live = values->heaps_mapped = 0;
    int pagemap = depth == VALUES_QUICK ? -1 : os_pagemap_open(process);
    if (pagemap >= 0)
        values->resident_heaps = 0;
    more->heaps_known = walk_heaps(values, peek_apart(&apart, peek), anchor, pagemap);
    if (pagemap >= 0)
        os_close(pagemap);
    if (peek == NULL)
        lock_release(&heaps_lock);
    for (size_t i = 0; i < more->heaps.count; i++) {
        values->heaps += more->heaps.rows[i].heaps;
        values->heaps_blocks += more->heaps.rows[i].blocks;
        values->heaps_live += more->heaps.rows[i].live;
        values->heaps_mapped += more->heaps.rows[i].mapped;
    }
}
