/*
 * Reading the statistics. See values.h.
 */
#include "report/values.h"

#include <string.h>

#include "platform/lock.h"
#include "platform/output.h"
#include "platform/process.h"
#include "platform/thread.h"

_Static_assert((int)SAMPLE_CLASSES == (int)CLASS_COUNT, "a sample for each class");

static void set_memory(struct values *values, const struct heap_totals *totals)
{
    values->mapped = totals->segments + totals->huge + totals->meta_mapped;
    values->live_small = totals->small_live;
    values->live_cells = totals->cells_live;
    values->live_large = totals->large;
    values->live_huge = totals->huge;
    values->waste = totals->slabs_waste + totals->cells_waste;
    values->cached_small = totals->small_cached;
    values->cached_cells = totals->cells_cached;
    values->depots = totals->small_depots;
    values->free_slabs = totals->small_free;
    values->free_cells = totals->cells_free;
    values->purge_pending = totals->dirty;
    values->free_clean = totals->clean;
    values->metadata = totals->meta_mapped;
    values->metadata_used = totals->meta_used;
    values->segment_cache = totals->segment_cache;
    values->mapped_peak = totals->mapped_peak;
    values->used_peak = totals->used_peak;
    values->blocks_small = totals->small_live_count;
    values->blocks_medium = totals->cells_count;
    values->blocks_large = totals->large_count;
    values->blocks_huge = totals->huge_count;
    values->free_runs = totals->free_runs;
    values->medium_taken = totals->cells_taken;
    values->live = values->live_small + values->live_cells + values->live_large + values->live_huge;
}

static uint64_t sample_sum(struct peek *peek, const struct tally *from, size_t field, size_t class)
{
    size_t at = offsetof(struct tally, samples) + class * sizeof(struct sample);
    return tallies_sum(peek, from, at + field);
}

/* What the program asked for, as far as samples tell, in the objects of one class. */
static uint64_t estimate_class(const struct values *values, struct peek *peek,
                               const struct tally *from, size_t class)
{
    uint64_t live = values->classes[class].live;
    uint64_t requests = sample_sum(peek, from, offsetof(struct sample, requests), class);
    if (requests == 0)
        return live * class_bytes(class);
    uint64_t bytes = sample_sum(peek, from, offsetof(struct sample, bytes), class);
    return (uint64_t)((double)live * ((double)bytes / (double)requests));
}

static void set_requested(struct values *values, struct peek *peek, const struct tally *from,
                          const struct heap_totals *totals)
{
    values->requested_small = 0;
    for (size_t class = 1; class < CLASS_COUNT; class++)
        values->requested_small += estimate_class(values, peek, from, class);
    values->requested_large = totals->large_requested;
    values->requested_huge = totals->huge_requested;
    values->requested = values->requested_small + values->live_cells + values->requested_large +
                        values->requested_huge;
}

static void set_counters(struct values *values, struct peek *peek, const struct anchor *anchor)
{
    values->counters = counters_read(peek, anchor->tallies);
    const struct os_calls *calls = anchor->os_calls;
    values->mmap_calls = PEEK(peek, calls->mmap_calls);
    values->mmap_bytes = PEEK(peek, calls->mmap_bytes);
    values->munmap_calls = PEEK(peek, calls->munmap_calls);
    values->munmap_bytes = PEEK(peek, calls->munmap_bytes);
    values->madvise_calls = PEEK(peek, calls->madvise_calls);
    values->madvise_bytes = PEEK(peek, calls->madvise_bytes);
    values->mremap_calls = PEEK(peek, calls->mremap_calls);
    values->mremap_bytes = PEEK(peek, calls->mremap_bytes);
    const uint64_t *waits = anchor->lock_waits;
    values->waits_arenas = PEEK(peek, waits[RANK_ARENAS]);
    values->waits_depots = PEEK(peek, waits[RANK_DEPOT]);
    values->waits_bins = PEEK(peek, waits[RANK_BIN]);
    values->waits_cells = PEEK(peek, waits[RANK_CELLS]);
    values->waits_spans = PEEK(peek, waits[RANK_PAGE_HEAP]);
    values->waits_meta = PEEK(peek, waits[RANK_META]);
}

static void set_guarded(struct values *values, struct peek *peek, const struct guard *from)
{
    values->guarded_blocks = PEEK(peek, from->live);
    values->guarded_live = PEEK(peek, from->live_bytes);
    values->guarded_mapped = PEEK(peek, from->bytes);
    values->guarded_taken = PEEK(peek, from->taken);
}

static void set_process(struct values *values, int process, enum values_depth depth)
{
    struct os_usage usage;
    values->resident = values->resident_peak = UNKNOWN;
    values->minor_faults = values->major_faults = UNKNOWN;
    values->resident_snug = values->resident_other = UNKNOWN;
    values->resident_excess = values->untouched = values->resident_heaps = UNKNOWN;
    if (!os_process_usage(process, depth != VALUES_QUICK, &usage))
        return;
    values->resident = usage.resident;
    /* The kernel raises its mark seldom: what is there now is part of the peak, too. */
    values->resident_peak = usage.resident_peak;
    if (usage.resident != UNKNOWN && values->resident_peak < usage.resident)
        values->resident_peak = usage.resident;
    values->minor_faults = usage.minor_faults;
    values->major_faults = usage.major_faults;
}

/* Walks all there is. In this process under the lock of page runs, if that can be had at once: a
 * signal handler must not wait for it. */
static void walk_heap(struct values *values, struct peek *peek, const struct anchor *anchor,
                      int process, bool medium)
{
    const struct heap *heap = anchor->heap;
    struct lock *lock = (struct lock *)&heap->page_heap.lock;
    if (PEEK(peek, heap->page_heap.meta) == NULL || (peek == NULL && !lock_try(lock)))
        return;
    values_read_resident(values, peek, heap, process);
    if (medium)
        values_read_medium(values, peek, anchor);
    if (peek == NULL)
        lock_release(lock);
}

static void read_peak(struct values *values, struct peek *peek, const struct anchor *anchor)
{
    struct peak *peak = &values->more->peak;
    if (!peak_read(peek, anchor->peak, peak)) {
        memset(peak, 0, sizeof(*peak));
        return;
    }
    values->peak_live = peak->small + peak->medium + peak->large;
    values->peak_small = peak->small;
    values->peak_medium = peak->medium;
    values->peak_large = peak->large;
    values->peak_heaps = peak->heaps;
    values->peak_cached = peak->cached;
    values->peak_threads = peak->threads;
    values->peak_milliseconds = peak->milliseconds;
}

bool values_read(struct values *values, struct values_more *more, struct peek *peek,
                 const struct anchor *anchor, int process, enum values_depth depth)
{
    memset(values, 0, sizeof(*values));
    values->more = more;
    struct heap_totals totals = heap_totals_of(peek, anchor->heap, values->classes);
    set_memory(values, &totals);
    set_requested(values, peek, anchor->tallies, &totals);
    set_counters(values, peek, anchor);
    set_guarded(values, peek, anchor->guard);
    values->taken_bytes = values->counters.refill_bytes + totals.cells_taken_bytes +
                          values->counters.large_taken_bytes;
    values->process = process == 0 ? os_process_id() : process;
    uint64_t started = PEEK(peek, anchor->events->started); /* 0: it has no heap yet */
    values->milliseconds = started == 0 ? 0 : (os_clock() - started) / 1000000;
    values->pinned = values->trimmable = UNKNOWN;
    values->peak_live = values->peak_small = values->peak_medium = values->peak_large = UNKNOWN;
    values->peak_heaps = values->peak_cached = UNKNOWN;
    values->peak_threads = values->peak_milliseconds = UNKNOWN;
    values->heaps = values->heaps_blocks = values->heaps_live = values->heaps_mapped = UNKNOWN;
    set_process(values, process, depth);
    if (more != NULL) {
        memset(more, 0, sizeof(*more));
        more->large = totals.sizes;
        read_peak(values, peek, anchor);
        values_read_heaps(values, peek, anchor, process, depth);
    }
    if (depth != VALUES_QUICK)
        walk_heap(values, peek, anchor, process, depth == VALUES_WHOLE && more != NULL);
    return peek == NULL || !peek->failed;
}
