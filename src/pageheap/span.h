/*
 * Spans: the rows of pages that tile a segment, each in use, as a slab, as cells or as a large
 * block, or free. A free span is called a run.
 *
 * A span knows its neighbours, so a run that becomes free is joined with those that are free at
 * once. Runs are of two kinds that are never joined: dirty ones, which still occupy memory, and
 * clean ones, which are known to be zero and occupy none.
 *
 * The functions here touch the links of a segment only. Not thread-safe: under the page heap's
 * lock.
 */
#ifndef SNUG_PAGEHEAP_SPAN_H
#define SNUG_PAGEHEAP_SPAN_H

#include "base/list.h"
#include "meta/meta.h"
#include "pageheap/segment.h"

enum span_kind {
    SPAN_DIRTY,  /* free, with leftovers in it */
    SPAN_CLEAN,  /* free and zero */
    SPAN_RECENT, /* a large block that was freed, but is not a run yet: see recent.h */
    SPAN_BUSY,   /* free, and being made present or purged, without the lock: see run.h; or
                    metadata for good: see meta_pages.c */
    SPAN_SLAB,
    SPAN_CELLS,
    SPAN_LARGE,
    SPAN_HUGE,    /* not in a segment: a mapping of its own */
    SPAN_HARDENED /* not in a segment: hardened blocks of one size (hardened/zone.h) */
};

/* Layout: what is known of the margin of a large block (large_margin.h); the sign alone tells. */
enum margin {
    MARGIN_NONE = -1, /* there is none, or nothing is known of it */
    MARGIN_KNOWN,     /* its words were looked at: each is zero or a seal */
    MARGIN_FRESH      /* zero, in a page that perhaps nobody touched yet */
};

/* A span, or the head of a larger descriptor that begins with one. The spans of a segment tile it:
 * right->start == start + pages, and right->left == this one. */
struct span {
    union {
        struct list link; /* free: in its bin; slab: in its arena's lists */
        struct {
            size_t requested;   /* large and huge: what the program asked for */
            size_t dirty_bytes; /* so many from `start` on may not have been zero at first */
        };
    };
    struct span *left;  /* its neighbours in the segment, NULL at the ends; huge: in the list of */
    struct span *right; /* all huge ones */
    char *start;
    struct segment *segment; /* NULL for huge spans */
    union {
        void *owner; /* slab: its bin; cells: their struct cells; huge: its page heap; large: where
                        it may be known or wait (nearby.h), or NULL */
        size_t
            former_bytes; /* not used: the size of the objects that were at `start`, 0 if unknown */
    };
    uint32_t pages;
    union {
        struct {
            union {
                uint8_t class; /* of a slab */
                bool sealed;   /* a large block that waits: see large_margin.h */
            };
            union {
                bool zero;     /* in use: it was all zero when it was taken */
                int8_t margin; /* a large block, from then on: enum margin */
            };
        };
        uint16_t freed; /* free: runs->frees when its youngest part became so */
    };
    uint8_t kind;  /* enum span_kind */
    uint8_t units; /* what the descriptor occupies, in units of META_LEAST */
};
_Static_assert(sizeof(struct span) <= META_LEAST, "a descriptor is the least block of metadata");

static inline char *span_end(const struct span *span)
{
    return span->start + ((size_t)span->pages << PAGE_SHIFT);
}

static inline size_t span_bytes(const struct span *span)
{
    return (size_t)span->pages << PAGE_SHIFT;
}

static inline bool span_is_free(const struct span *span)
{
    return span->kind <= SPAN_CLEAN;
}

/* Whether it is a block, or is for blocks. */
static inline bool span_is_used(const struct span *span)
{
    return span->kind > SPAN_BUSY;
}

/* The page heap that a span is of; so every pointer leads to its heap. */
static inline struct page_heap *span_home(const struct span *span)
{
    return span->segment != NULL ? span->segment->page_heap : (struct page_heap *)span->owner;
}

/* All spans of a segment, from left to right. */
#define EACH_SPAN(each, segment) \
    for (struct span *each = (segment)->first; each != NULL; each = each->right)

/* Makes `span` the right neighbour of `left`, or the left one of `right`. */
static inline void span_link_right(struct span *left, struct span *span)
{
    span->left = left;
    span->right = left->right;
    if (left->right != NULL)
        left->right->left = span;
    left->right = span;
}

static inline void span_link_left(struct span *right, struct span *span)
{
    span->left = right->left;
    span->right = right;
    if (right->left != NULL)
        right->left->right = span;
    else
        right->segment->first = span;
    right->left = span;
}

/* Takes a span out from between its neighbours. */
static inline void span_unlink(struct span *span)
{
    if (span->left != NULL)
        span->left->right = span->right;
    else
        span->segment->first = span->right;
    if (span->right != NULL)
        span->right->left = span->left;
}

/* Makes a descriptor the only span of a segment, of a free kind. */
static inline void span_link_only(struct span *span, struct segment *segment, enum span_kind kind)
{
    *span = (struct span){.start = segment->start,
                          .segment = segment,
                          .pages = (uint32_t)segment->pages,
                          .kind = (uint8_t)kind,
                          .units = 1};
    segment->first = span;
}

#endif
