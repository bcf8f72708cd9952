/*
 * Copying what is live at the highest point. See peak.h.
 */
#include "report/peak.h"

#include <string.h>

#include "heap/totals.h"
#include "pageheap/pages_in_use.h"
#include "platform/output.h"
#include "platform/thread.h"

/* One part in: of what was in use at the last copy, so much more makes the next. */
enum { GROWTH_SHARE = 16 };

/* Pages: with less growth than that, and than so much for each thread, a copy would cost as much as
 * the page faults that made it worth taking. */
enum { GROWTH_LEAST = 256, GROWTH_OF_THREAD = 32 };

struct peak peak_kept;

static size_t threads_count(void)
{
    size_t count = 0;
    const struct cache *cache = PEEK(NULL, heap_default.arenas.caches);
    for (; cache != NULL; cache = PEEK(NULL, cache->next))
        count++;
    return count;
}

/* Each word whole; release: who reads it finds the odd number that was written before. */
static void set(uint64_t *word, uint64_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

static void copy(struct peak *peak, size_t pages)
{
    static struct class_totals classes[CLASS_COUNT]; /* too much for the stacks of some threads */
    struct heap_totals totals = heap_totals_of(NULL, &heap_default, classes);
    set(&peak->pages, pages);
    set(&peak->milliseconds, (os_clock() - events.started) / 1000000);
    set(&peak->threads, threads_count());
    set(&peak->small, totals.small_live);
    set(&peak->medium, totals.cells_live);
    set(&peak->large, totals.large + totals.huge);
    set(&peak->heaps, __atomic_load_n(&pages_in_use.others, __ATOMIC_RELAXED) << PAGE_SHIFT);
    set(&peak->cached, totals.small_cached + totals.cells_cached + totals.small_depots);
    set(&peak->blocks_medium, totals.cells_count);
    for (size_t class = 1; class < CLASS_COUNT; class++)
        set(&peak->classes[class], classes[class].live);
    for (size_t row = 0; row < LARGE_ROWS; row++) {
        set(&peak->sizes.blocks[row], totals.sizes.blocks[row]);
        set(&peak->sizes.bytes[row], totals.sizes.bytes[row]);
    }
}

void peak_keep(void)
{
    /* Who takes again what waits asks once more. */
    size_t pages = pages_in_use_now() - PEEK(NULL, heap_default.page_heap.recent.pages);
    if (pages < __atomic_load_n(&pages_in_use.wanted, __ATOMIC_RELAXED))
        return; /* it went down meanwhile */
    struct peak *peak = &peak_kept;
    /* Odd while the words change. Who finds the same even number before and after has read one
     * copy: each word is written with release, and read with acquire. */
    __atomic_store_n(&peak->sequence, peak->sequence | 1, __ATOMIC_RELAXED);
    copy(peak, pages);
    __atomic_store_n(&peak->sequence, (peak->sequence | 1) + 1, __ATOMIC_RELEASE);
    size_t growth =
        size_max(pages / GROWTH_SHARE, GROWTH_LEAST + (size_t)peak->threads * GROWTH_OF_THREAD);
    __atomic_store_n(&pages_in_use.wanted, pages + growth, __ATOMIC_RELAXED);
}

/* Reads word by word. */
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
    return to->sequence != 0 && to->sequence % 2 == 0 && PEEK(peek, from->sequence) == to->sequence;
}
