/*
 * Memory that may not grow. See bounds.h.
 */
#include "bounds.h"

#include <stdio.h>

#include "base/common.h"
#include "expect.h"
#include "heap/totals.h"

struct bounds bounds_now(void)
{
    struct heap_totals totals = heap_totals();
    return (struct bounds){
        /* Without what is only addresses: empty segments wait in a cache. */
        .segments = totals.segments - totals.clean + totals.huge,
        .meta = totals.meta_used,
        .resident = sanitized() ? 0 : resident_bytes(),
    };
}

void bounds_raise(struct bounds *most, struct bounds now)
{
    most->segments = size_max(most->segments, now.segments);
    most->meta = size_max(most->meta, now.meta);
    most->resident = size_max(most->resident, now.resident);
}

static void expect_one(const char *what, const char *when, size_t now, size_t mark, size_t slack)
{
    EXPECT(now <= mark + slack, "%s grew %s from %zu to %zu KiB, more than by %zu KiB", what, when,
           mark / KIB, now / KIB, slack / KIB);
}

void expect_within(struct bounds now, struct bounds mark, size_t slack, const char *when)
{
    expect_one("the heap", when, now.segments, mark.segments, slack);
    expect_one("metadata", when, now.meta, mark.meta, slack / 4);
    expect_one("resident memory", when, now.resident, mark.resident, slack);
}

void bounds_print(const char *test, struct bounds mark, struct bounds most)
{
    printf("%s: KiB at the mark, and at most since: heap %zu %zu, metadata %zu %zu, resident %zu "
           "%zu\n",
           test, mark.segments / KIB, most.segments / KIB, mark.meta / KIB, most.meta / KIB,
           mark.resident / KIB, most.resident / KIB);
}
