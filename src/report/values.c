/*
 * Reading the statistics. See values.h.
 */
#include "report/values.h"

#include <string.h>

#include "base/bits.h"
#include "platform/clock.h"
#include "platform/lock.h"
#include "platform/output.h"
#include "platform/process.h"

_Static_assert((int)SAMPLE_CLASSES == (int)CLASS_COUNT, "a sample for each class");

static uint64_t sample_sum(struct peek *peek, const struct tallies *from, size_t field,
                           size_t class)
{
    size_t at = offsetof(struct tally, samples) + class * sizeof(struct sample);
    return tallies_sum(peek, from, at + field);
}

/* Estimates, from samples, how many bytes the program asked for in `live` objects of one class. */
static uint64_t estimate_class(uint64_t live, struct peek *peek, const struct tallies *from,
                               size_t class)
{
    uint64_t requests = sample_sum(peek, from, offsetof(struct sample, requests), class);
    if (requests == 0)
        return live * class_bytes(class);
    uint64_t bytes = sample_sum(peek, from, offsetof(struct sample, bytes), class);
    return scale(live, bytes, requests);
}

/* The same for all small objects. */
static uint64_t estimate(const struct heap_totals *totals, struct peek *peek,
                         const struct tallies *from)
{
    uint64_t bytes = 0;
    for (size_t class = 1; class < CLASS_COUNT; class++)
        bytes += estimate_class(totals->live[class], peek, from, class);
    return bytes;
}

/* What is not known of a process stays UNKNOWN. */
static struct os_usage usage_of(int process, enum values_depth depth)
{
    struct os_usage usage = {UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN};
    os_process_usage(process, depth != VALUES_QUICK, &usage);
    /* The kernel raises its mark only now and then, so the present value may be higher. */
    usage.resident_peak = size_max(usage.resident_peak, usage.resident);
    return usage;
}

#define CALLS(name) PEEK(peek, anchor->os_calls->name)
#define WAITS(rank) PEEK(peek, anchor->lock_waits[RANK_##rank])
#define GUARDED(name) PEEK(peek, anchor->guard->name)
#define UNLESS_HARDENED(bytes) (totals->hardened.mapped == 0 ? (bytes) : UNKNOWN)
#define AT_PEAK(name) (peak == NULL ? UNKNOWN : peak->name)

/* Reads each gauge, in the order of the table: a source may use the gauges before it. */
static void read_gauges(struct values *values, struct peek *peek, const struct anchor *anchor,
                        const struct heap_totals *totals, struct os_usage usage)
{
    const struct values_more *more = values->more;
    const struct peak *peak = more != NULL && more->peak.sequence != 0 ? &more->peak : NULL;
#define GAUGE(group, name, unit, source, text) values->name = (source);
#include "report/gauges.def"
#undef GAUGE
}

/* Walks all pages, and if `medium` all medium blocks. In this process the page heap's lock is held
 * meanwhile; if it is taken, nothing is walked: a signal handler must not wait for it. */
static void walk_heap(struct values *values, struct peek *peek, const struct anchor *anchor,
                      int process, bool medium)
{
    const struct heap *heap = anchor->heap;
    struct lock *lock = (struct lock *)&heap->page_heap.lock;
    if (PEEK(peek, heap->page_heap.meta) == NULL || (peek == NULL && !lock_try(lock)))
        return;
    struct peek apart;
    values_read_resident(values, peek_apart(&apart, peek), heap, process);
    struct medium_walk walk = {.looks = SIZE_MAX, .each = SIZE_MAX, .every = 1};
    if (medium && medium_walk(&walk, peek_apart(&apart, peek), heap, values->mapped)) {
        memcpy(values->more->medium, walk.rows, sizeof(walk.rows));
        values->more->medium_known = true;
    }
    if (peek == NULL)
        lock_release(lock);
}

bool values_read(struct values *values, struct values_more *more, struct peek *peek,
                 const struct anchor *anchor, int process, enum values_depth depth)
{
    memset(values, 0, sizeof(*values));
    values->more = more;
    if (more != NULL)
        memset(more, 0, sizeof(*more));
    struct heap_totals totals;
    heap_totals_read(peek, anchor->heap, more == NULL ? NULL : more->classes, &totals);
    values->counters = counters_read(peek, anchor->tallies);
    values->process = process == 0 ? os_process_id() : process;
    uint64_t started = PEEK(peek, anchor->events->started); /* 0: the process has no heap yet */
    values->milliseconds = started == 0 ? 0 : (os_clock() - started) / 1000000;
    if (more != NULL) {
        more->large = totals.sizes;
        more->cells_gone = totals.cells_gone;
        if (!peak_read(peek, anchor->peak, &more->peak))
            memset(&more->peak, 0, sizeof(more->peak));
    }
    read_gauges(values, peek, anchor, &totals, usage_of(process, depth));
    if (more != NULL)
        values_read_heaps(values, peek, anchor, process, depth);
    if (depth != VALUES_QUICK)
        walk_heap(values, peek, anchor, process, depth == VALUES_WHOLE && more != NULL);
    return peek == NULL || !peek->failed;
}
