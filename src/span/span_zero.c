/*
 * Memory that the system makes zero for less than it takes to write.
 *
 * The idea: what was handed out and freed counts as dirty, but a program may have touched little of
 * it, and writing zeros to the rest would make it present. So the system is asked what is there,
 * which takes some 10 ns a page; where that is little, or the range is long, it goes back and is
 * zero when it is touched again.
 *
 * Costs: writing zeros takes 0.5 us a page, and 1.5 more for each that is not there; giving pages
 * back 0.2 us for each that is there, and 1.5 for each that is touched again.
 */
#include <string.h>

#include "platform/memory.h"
#include "span/large.h"
#include "span/span_runs.h"

/* Less than this is written in less time than the system needs to be asked. */
#define SYSTEM_ZERO_LEAST (128 * KIB)

/* More than this is always left to the system. What was touched throughout once, and cleared by
 * hand ever since, would stay in memory for ever, however little of it is touched now. */
#define HAND_ZERO_MOST (32 * MIB)

/* If as many pages will be touched as were, both ways take as long where five of eight are there.
 */
static bool is_mostly_resident(const char *start, size_t bytes)
{
    return os_resident_bytes(start, bytes) / 5 >= bytes / 8;
}

static bool zero_by_system(struct spans *spans, char *start, size_t bytes)
{
    if (bytes < HAND_ZERO_MOST && is_mostly_resident(start, bytes))
        return false;
    return spans->provider->purge(spans->provider, start, bytes);
}

void large_zero(struct spans *spans, void *block, size_t bytes)
{
    char *start = block;
    size_t whole = align_down(bytes, os_page_size());
    if (whole < SYSTEM_ZERO_LEAST || !zero_by_system(spans, start, whole))
        whole = 0;
    memset(start + whole, 0, bytes - whole);
}

/* Of a span for many blocks it is not known whether they have to be zero: only what is nearly all
 * untouched is worth it. */
enum { HARDLY_RESIDENT = 8 };

void span_zero_if_hardly_there(struct spans *spans, struct span *span)
{
    size_t bytes = (size_t)span->pages << PAGE_SHIFT;
    if (!span->zero && os_resident_bytes(span->start, bytes) <= bytes / HARDLY_RESIDENT)
        span->zero = spans->provider->purge(spans->provider, span->start, bytes);
}
