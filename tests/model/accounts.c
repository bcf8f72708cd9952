/*
 * The heap's own totals against the shadow: every object of every class is live, free in a slab,
 * waiting in a depot or in this thread's magazines; so is every cell; every page belongs to a slab,
 * a span of cells, a large block or a free run. What is lost or counted twice shows here long
 * before memory runs out.
 */
#include "expect.h"
#include "hardened/hardened.h"
#include "heap/totals.h"
#include "shadow.h"

#if !defined(heap_hardened)
#define heap_hardened() (heap_default.hardened)
#endif

/* What is live according to the shadow. */
struct live {
    size_t objects[CLASS_COUNT]; /* by size class */
    size_t small;                /* bytes of all of them */
    size_t cells;                /* bytes of cells, without their headers */
    size_t cell_count;
    size_t large; /* bytes of large and huge blocks, as asked for */
};

static void count_block(struct live *live, const struct block *block)
{
    uintptr_t entry = page_map_entry((uintptr_t)block->start);
    const struct span *span = (const struct span *)entry;
    size_t class = !entry_is_span(entry)      ? 0
                   : span->kind == SPAN_SLAB  ? span->class
                   : span->kind == SPAN_CELLS ? (size_t)PAGE_MAP_CELL
                                              : 0;
    if (class == 0) {
        live->large += block->usable;
    } else if (class == PAGE_MAP_CELL) {
        live->cells += block->usable;
        live->cell_count++;
    } else {
        EXPECT(class < CLASS_COUNT && class_bytes(class) == block->usable,
               "block %p of class %zu has %zu usable bytes", (void *)block->start, class,
               block->usable);
        live->objects[class]++;
        live->small += block->usable;
    }
}

static void class_check(size_t class, size_t live)
{
    struct class_totals totals = heap_class_totals(class);
    EXPECT(totals.total == live + totals.free + totals.depots + totals.cached,
           "accounts of class %zu (%zu bytes): %zu objects in %zu slabs, but %zu live + %zu free + "
           "%zu waiting + %zu cached",
           class, class_bytes(class), totals.total, totals.slabs, live, totals.free, totals.depots,
           totals.cached);
}

/* In a span of cells, one unit is no cell's: half of it before the first, half behind the last. */
static void cells_check_bytes(const struct heap_totals *totals, const struct live *live)
{
    size_t page_heap = totals->cells / CELL_SPAN_BYTES;
    size_t waste = live->cell_count * CELL_HEADER + page_heap * CELL_UNIT;
    EXPECT(totals->cells == live->cells + totals->cells_free + totals->cells_cached + waste,
           "accounts of cells: %zu bytes in %zu spans, but %zu live + %zu free + %zu cached",
           totals->cells, page_heap, live->cells, totals->cells_free, totals->cells_cached);
    EXPECT(totals->cells_live == live->cells && totals->cells_count == live->cell_count,
           "accounts of cells: %zu live of %zu bytes in the heap, %zu of %zu in the shadow",
           totals->cells_count, totals->cells_live, live->cell_count, live->cells);
}

static void whole_check(const struct live *live)
{
    struct heap_totals totals = heap_totals();
    cells_check_bytes(&totals, live);
    EXPECT(totals.small_live == live->small,
           "accounts of small objects: %zu bytes live in the heap, %zu in the shadow",
           totals.small_live, live->small);
    EXPECT(totals.large_requested + totals.huge_requested == live->large,
           "accounts of large blocks: %zu bytes large + %zu huge in the heap, %zu in the shadow",
           totals.large_requested, totals.huge_requested, live->large);
    EXPECT(totals.large >= totals.large_requested && totals.huge >= totals.huge_requested,
           "accounts of large blocks: more was asked for than there is");
    size_t pages = totals.slabs + totals.cells + totals.large + totals.dirty + totals.clean;
    EXPECT(totals.segments == pages,
           "accounts of pages: %zu bytes of segments, but %zu slabs + %zu cells + %zu large + "
           "%zu dirty + %zu clean",
           totals.segments, totals.slabs, totals.cells, totals.large, totals.dirty, totals.clean);
    size_t objects =
        totals.small_live + totals.small_free + totals.small_depots + totals.small_cached;
    EXPECT(totals.slabs == objects + totals.slabs_waste,
           "accounts of slabs: %zu bytes of objects and %zu of waste in %zu of slabs", objects,
           totals.slabs_waste, totals.slabs);
}

/* Of a hardened heap: each block is in use, and its bytes, rounded up to those of its object, are.
 */
static void hardened_check(const struct hardened *hardened, const struct shadow *shadow)
{
    struct hard_totals totals = hard_totals_of(NULL, hardened);
    size_t live = 0, count = 0;
    for (size_t i = 0; i < shadow->count; i++) {
        live += shadow->blocks[i]->usable;
        /* Blocks of no bytes lie elsewhere. */
        count += page_map_class((uintptr_t)shadow->blocks[i]->start) == PAGE_MAP_HARDENED;
    }
    EXPECT(totals.live_count == count,
           "accounts of hardened blocks: %zu live in the heap, %zu in the shadow",
           totals.live_count, count);
    EXPECT(totals.live >= live, "accounts of hardened blocks: %zu bytes live, %zu in the shadow",
           totals.live, live);
}

void accounts_check(const struct shadow *shadow)
{
    if (heap_hardened() != NULL) {
        hardened_check(heap_hardened(), shadow);
        return;
    }
    struct live live = {0};
    for (size_t i = 0; i < shadow->count; i++)
        count_block(&live, shadow->blocks[i]);
    for (size_t class = 1; class < CLASS_COUNT; class++)
        class_check(class, live.objects[class]);
    whole_check(&live);
}
