/*
 * Copying what is live at the highest point. See peak.h.
 */
#include "report/peak.h"

#include <string.h>

#include "base/bits.h"
#include "heap/totals.h"
#include "heap/user_heaps.h"
#include "pageheap/pages_in_use.h"
#include "pageheap/segments.h"
#include "platform/clock.h"
#include "platform/output.h"

/* One part in: of what was in use at the last copy, so much more makes the next. */
enum { GROWTH_SHARE = 16 };

/* Pages: with less growth than that, and than so much for each thread and each heap, a copy would
 * cost as much as the page faults that made it worth taking. */
enum { GROWTH_LEAST = 256, GROWTH_OF_THREAD = 32, GROWTH_OF_HEAP = 8 };

/* Headers of medium blocks, and spans: a copy looks at so many. Most are in no cache and take 0.1
 * us each; the faults of the least growth take eight times as long as all of them. Headers: in one
 * span at least so many are looked at, since blocks of one size lie side by side. */
enum { LOOKS = 512, LOOKS_OF_SPAN = 8 };

BULKY struct peak peak_kept;

/* Writes a word as a whole. release: a reader that finds the new word finds the odd sequence number
 * that was written before it. */
static void set(uint64_t *word, uint64_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

static void set_all(void *words, const void *values, size_t bytes)
{
    for (size_t i = 0; i < bytes / sizeof(uint64_t); i++)
        set((uint64_t *)words + i, ((const uint64_t *)values)[i]);
}

/* Log2 (layout): parts of a byte in which sizes are compared. */
enum { SIZE_PARTS_LOG = 16 };

/* Makes rows of a part of the blocks stand for all, of which there are so many with so many bytes.
 * Rows whose blocks are smaller than the average of all get one factor, those with larger ones
 * another, so that both numbers come out and no row's blocks become of another size. False: they
 * cannot, since no larger or no smaller ones were seen. Of the few blocks that a copy looks at, all
 * products have room in 64 bits. */
static bool rows_stand_for(struct medium_row rows[MEDIUM_ROWS], uint64_t blocks, uint64_t bytes)
{
    int64_t average = (int64_t)((bytes << SIZE_PARTS_LOG) / blocks), over[MEDIUM_ROWS];
    int64_t seen[2] = {0, 0}, off[2] = {0, 0}; /* of smaller ones, and of larger ones */
    for (size_t i = 0; i < MEDIUM_ROWS; i++) {
        over[i] = (int64_t)(rows[i].bytes << SIZE_PARTS_LOG) - (int64_t)rows[i].blocks * average;
        seen[over[i] > 0] += (int64_t)rows[i].blocks;
        off[over[i] > 0] += over[i];
    }
    int64_t factors[2] = {off[1], -off[0]};
    if (off[0] == 0 || off[1] == 0) {
        if (off[1] - off[0] > (seen[0] + seen[1]) * average / GROWTH_SHARE)
            return false;
        factors[0] = factors[1] = 1;
    }
    uint64_t whole = (uint64_t)(factors[0] * seen[0] + factors[1] * seen[1]);
    for (size_t i = 0; i < MEDIUM_ROWS; i++) {
        uint64_t part = rows[i].blocks * (uint64_t)factors[over[i] > 0];
        uint64_t count = scale_nearest(blocks, part, whole);
        rows[i].bytes = count == 0 ? 0 : scale(count, rows[i].bytes, rows[i].blocks);
        rows[i].blocks = count;
    }
    return true;
}

/* Fills in the rows of medium blocks. If there are many blocks, only the first ones of some spans
 * are looked at, and stand for all. While there are other threads there are no rows: they write
 * headers during the walk. */
static void copy_medium(struct peak *peak, const struct heap_totals *totals)
{
    set(&peak->medium_seen, 0);
    if (!lock_is_alone())
        return;
    struct lock *lock = &heap_default.page_heap.lock;
    size_t spans = totals->cells / CELL_SPAN_BYTES + 1;
    struct medium_walk walk = {.looks = LOOKS,
                               .each = size_max(LOOKS / spans, LOOKS_OF_SPAN),
                               .every = 1 + spans * LOOKS_OF_SPAN / LOOKS};
    uint64_t blocks = 0;
    lock_acquire(lock);
    medium_walk(&walk, NULL, &heap_default, totals->segments + totals->huge);
    lock_release(lock);
    for (size_t i = 0; i < MEDIUM_ROWS; i++)
        blocks += walk.rows[i].blocks;
    if (blocks == 0 || totals->cells_count == 0 ||
        !rows_stand_for(walk.rows, totals->cells_count, totals->cells_live))
        return;
    set_all(peak->rows, walk.rows, sizeof(walk.rows));
    set(&peak->medium_seen, blocks);
}

/* Copies the rows of the program's own heaps. Returns how many heaps there are, 0 if their list is
 * locked. */
static size_t copy_heaps(struct peak *peak)
{
    BULKY static struct heap_rows rows; /* static: too large for the stacks of some threads */
    size_t heaps = 0;
    rows.count = 0;
    bool at_rest = lock_try(&heaps_lock);
    set(&peak->heaps_known, at_rest);
    if (at_rest) {
        for (struct list *node = heaps_all.next; node != &heaps_all; node = node->next, heaps++)
            heap_rows_add(&rows, NULL, CONTAINER_OF(node, struct heap_record, link));
        lock_release(&heaps_lock);
    }
    set(&peak->by_name.count, rows.count);
    set_all(peak->by_name.rows, rows.rows, rows.count * sizeof(rows.rows[0]));
    return heaps;
}

/* Copies everything. Returns the pages of growth that the next copy waits for because of threads
 * and heaps. */
static size_t copy(struct peak *peak, size_t pages)
{
    BULKY static struct class_totals classes[CLASS_COUNT];
    struct heap_totals totals;
    heap_totals_read(NULL, &heap_default, classes, &totals);
    set(&peak->pages, pages);
    set(&peak->milliseconds, (os_clock() - events.started) / 1000000);
    set(&peak->threads, PEEK(NULL, heap_default.arenas.threads));
    set(&peak->small, totals.small_live);
    set(&peak->medium, totals.cells_live);
    set(&peak->large, totals.large + totals.huge);
    set(&peak->heaps, __atomic_load_n(&pages_in_use.others, __ATOMIC_RELAXED) << PAGE_SHIFT);
    set(&peak->cached, totals.small_cached + totals.cells_cached + totals.small_depots);
    set(&peak->blocks_medium, totals.cells_count);
    for (size_t class = 1; class < CLASS_COUNT; class++)
        set(&peak->classes[class], classes[class].live);
    set_all(&peak->sizes, &totals.sizes, sizeof(totals.sizes));
    copy_medium(peak, &totals);
    return peak->threads * GROWTH_OF_THREAD + copy_heaps(peak) * GROWTH_OF_HEAP;
}

void peak_want(void)
{
    pages_in_use.wanted = SEGMENT_PAGES_FIRST; /* more than a span of cells */
}

void peak_keep(void)
{
    /* Large blocks that were freed and wait (recent.h) count as in use there, but are not live. If
     * one is taken again, that asks for another look. */
    size_t blocks = 0, waiting = heap_waiting_pages(NULL, &heap_default.page_heap, &blocks);
    size_t pages = rest_of(pages_in_use_now(), waiting);
    if (pages < __atomic_load_n(&pages_in_use.wanted, __ATOMIC_RELAXED))
        return; /* fewer pages are in use by now */
    struct peak *peak = &peak_kept;
    /* The number is odd while the words change. A reader that finds the same even number before and
     * after has read one copy: each word is written with release and read with acquire. */
    __atomic_store_n(&peak->sequence, peak->sequence | 1, __ATOMIC_RELAXED);
    size_t least = GROWTH_LEAST + copy(peak, pages);
    __atomic_store_n(&peak->sequence, (peak->sequence | 1) + 1, __ATOMIC_RELEASE);
    size_t growth = size_max(pages / GROWTH_SHARE, least);
    __atomic_store_n(&pages_in_use.wanted, pages + growth, __ATOMIC_RELAXED);
}

static void read_words(struct peek *peek, const struct peak *from, struct peak *to)
{
    const uint64_t *words = (const uint64_t *)from;
    uint64_t *into = (uint64_t *)to;
    for (size_t i = 0; i < sizeof(*from) / sizeof(uint64_t); i++)
        into[i] =
            peek == NULL ? __atomic_load_n(&words[i], __ATOMIC_ACQUIRE) : PEEK(peek, words[i]);
}

bool peak_read(struct peek *peek, const struct peak *from, struct peak *to)
{
    _Static_assert(sizeof(struct peak) % sizeof(uint64_t) == 0, "words");
    read_words(peek, from, to);
    heap_rows_make_readable(&to->by_name);
    return to->sequence != 0 && to->sequence % 2 == 0 && PEEK(peek, from->sequence) == to->sequence;
}
