/*
 * The bins. See runs.h.
 */
#include "pageheap/runs.h"

#include "base/bits.h"
#include "platform/check.h"

/* Layout: a bit for each bin. */
enum { BITMAP_WORDS = (RUN_BINS + 63) / 64 };

static size_t bin_of(size_t pages)
{
    CHECK(pages <= UINT32_MAX);
    if (pages <= RUN_EXACT)
        return pages - 1;
    unsigned log = bit_highest(pages);
    size_t step = (pages >> (log - 3)) - RUN_STEPS;
    return RUN_EXACT + (log - 4) * RUN_STEPS + step;
}

void runs_init(struct runs *runs)
{
    for (size_t i = 0; i < BITMAP_WORDS; i++)
        runs->bitmap[i] = 0;
    for (size_t i = 0; i < RUN_BINS; i++)
        list_init(&runs->bins[i]);
    runs->pages = 0;
    runs->count = 0;
    runs->frees = 0;
}

void runs_add(struct runs *runs, struct span *run)
{
    size_t bin = bin_of(run->pages);
    list_push(&runs->bins[bin], &run->link);
    bitmap_set(runs->bitmap, bin);
    GAUGE_ADD(runs->pages, run->pages);
    GAUGE_ADD(runs->count, 1);
}

void runs_remove(struct runs *runs, struct span *run)
{
    size_t bin = bin_of(run->pages);
    list_remove(&run->link);
    if (list_empty(&runs->bins[bin]))
        bitmap_clear(runs->bitmap, bin);
    CHECK(runs->pages >= run->pages);
    GAUGE_ADD(runs->pages, -(size_t)run->pages);
    GAUGE_ADD(runs->count, (size_t)-1);
}

/* Whether more of a's segment is in use than of b's. */
static bool is_in_fuller_segment(const struct span *a, const struct span *b)
{
    const struct segment *of_a = a->segment, *of_b = b->segment;
    return of_a != of_b && of_b->pages * of_a->used_pages > of_a->pages * of_b->used_pages;
}

static struct span *bin_find(const struct list *bin, size_t pages, size_t alignment)
{
    unsigned tries = RUNS_LOOKED_AT;
    struct span *best = NULL;
    LIST_EACH(node, bin) {
        struct span *run = CONTAINER_OF(node, struct span, link);
        if (run_fits(run, pages, alignment) && (best == NULL || is_in_fuller_segment(run, best)))
            best = run;
        if (--tries == 0)
            break;
    }
    return best;
}

struct span *runs_find(const struct runs *runs, size_t pages, size_t alignment)
{
    struct span *found = NULL;
    size_t bin = bitmap_next(runs->bitmap, BITMAP_WORDS, bin_of(pages));
    while (found == NULL && bin < RUN_BINS) {
        found = bin_find(&runs->bins[bin], pages, alignment);
        bin = bitmap_next(runs->bitmap, BITMAP_WORDS, bin + 1);
    }
    return found;
}

struct span *runs_find_long(const struct runs *runs, size_t most, size_t least,
                            run_predicate *suits)
{
    unsigned tries = RUNS_LOOKED_AT;
    size_t bin = bitmap_previous(runs->bitmap, bin_of(most));
    for (; bin != SIZE_MAX; bin = bin == 0 ? SIZE_MAX : bitmap_previous(runs->bitmap, bin - 1)) {
        LIST_EACH(node, &runs->bins[bin]) {
            struct span *run = CONTAINER_OF(node, struct span, link);
            if (run->pages < least || tries-- == 0)
                return NULL;
            if (suits == NULL || suits(run, most))
                return run;
        }
    }
    return NULL;
}

/* The first run from the end of a bin that is long enough and suits; NULL if it is not among the
 * last few. A bin's newest are in front, but for what was left of older ones. */
static struct span *bin_find_last(const struct list *bin, size_t least, run_predicate *suits)
{
    unsigned tries = RUNS_LOOKED_AT;
    for (const struct list *node = bin->prev; node != bin && tries-- != 0; node = node->prev) {
        struct span *run = CONTAINER_OF(node, struct span, link);
        if (run->pages >= least && suits(run, least))
            return run;
    }
    return NULL;
}

struct span *runs_find_oldest(const struct runs *runs, size_t least, run_predicate *suits)
{
    struct span *oldest = NULL;
    size_t bin = bitmap_next(runs->bitmap, BITMAP_WORDS, bin_of(least));
    for (; bin < RUN_BINS; bin = bitmap_next(runs->bitmap, BITMAP_WORDS, bin + 1)) {
        struct span *run = bin_find_last(&runs->bins[bin], least, suits);
        /* modulo 2^16: one that stays for as long may count as new for as long again */
        if (run != NULL && (oldest == NULL || (uint16_t)(runs->frees - run->freed) >
                                                  (uint16_t)(runs->frees - oldest->freed)))
            oldest = run;
    }
    return oldest;
}
