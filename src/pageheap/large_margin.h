/*
 * The margins of large blocks: what is between the last byte that was asked for and the end of the
 * last page. Nobody writes there rightly, as malloc_usable_size says what was asked for.
 *
 *     start                          requested            end of the pages
 *     | the block                    | first word | ...... | last word |
 *
 * The idea: a page that was never in use is zero, and a margin that is not is sealed: its first and
 * its last word are then a secret of their address. When the block is freed, resized or measured
 * each of the two must be zero or its seal. The first is what an overflow of this block runs into,
 * the last what is written by who goes below the beginning of the block behind. A word that is zero
 * stays zero, so that no page becomes present that the program does not touch.
 *
 * A look at a page that nobody touched is a page fault, and tells nothing. A program whose blocks
 * end in such pages, buffers that it never fills, has after some looks in vain the margins of few
 * of them looked at, by back-off (base/backoff.h): one that pays, where the page has been written
 * to, begins anew. Which blocks have one is decided when they are taken. Before fewer have the
 * system is asked whether the page is there (mincore): then it may be full of zeros, and half of
 * the looks in vain are forgotten. Where there are threads it is asked sooner, by back-off as long
 * as pages are there, and one that is not counts as eight: a block that gets pages that others had
 * before has no margin there.
 *
 * A block that waits after its free (recent.h) is sealed in its first line likewise, unless its
 * first word is zero, and is looked at when it is taken again, and at exit.
 *
 * Cost: two lines of cache, which the program has mostly just written; for one in a thousand of the
 * blocks whose last page it never touches a page fault, of a page that is zero for all. Nothing is
 * looked at of a block whose length is a multiple of a page.
 */
#ifndef SNUG_PAGEHEAP_LARGE_MARGIN_H
#define SNUG_PAGEHEAP_LARGE_MARGIN_H

#include "meta/misuse.h"
#include "meta/page_map.h"
#include "pageheap/page_heap_state.h"

/* Two words that are compared at once; a line of cache has four such pairs. */
typedef uint64_t word_pair __attribute__((vector_size(16), may_alias));

/* The word in the margin of a block, and in its first line while it waits. No byte of it is zero,
 * so that a zero byte over it is noticed, such as the end of a text that is too long, and none is
 * the same for all blocks: who writes one byte too far, always the same, would go unseen in one
 * process of 128. Half of the key is left out: a reader of seals does not have it. */
static inline uint64_t span_seal(const struct span *span)
{
    uint64_t page = (uintptr_t)span->start >> PAGE_SHIFT;
    return (page * 0xbf58476d1ce4e5b9u ^ page_map.seal) | 0x0101010101010101u;
}

/* A word of a margin, and which of its bits are. */
struct margin_word {
    uint64_t *at;
    uint64_t bits;
};

static inline struct margin_word margin_first(const struct span *span)
{
    uintptr_t end = (uintptr_t)span->start + span->requested;
    return (struct margin_word){(uint64_t *)align_down(end, sizeof(uint64_t)),
                                ~(uint64_t)0 << (end * 8 % 64)};
}

static inline struct margin_word margin_last(const struct span *span)
{
    struct margin_word first = margin_first(span);
    uint64_t *last = (uint64_t *)span_end(span) - 1;
    return last == first.at ? first : (struct margin_word){last, ~(uint64_t)0};
}

static inline bool margin_word_is_sound(struct margin_word word, uint64_t seal)
{
    uint64_t found = *word.at & word.bits;
    return found == 0 || found == (seal & word.bits);
}

/* Looks at a fresh one for the first time. */
bool margin_is_sound_fresh(struct page_heap *page_heap, struct span *span);

static inline bool margin_is_sound(struct page_heap *page_heap, struct span *span)
{
    if (span->margin < 0)
        return true;
    if (UNLIKELY(span->margin > 0))
        return margin_is_sound_fresh(page_heap, span);
    struct margin_word first = margin_first(span), last = margin_last(span);
    if (((*first.at & first.bits) | (*last.at & last.bits)) == 0)
        return true;
    uint64_t seal = span_seal(span);
    return LIKELY(margin_word_is_sound(first, seal)) && LIKELY(margin_word_is_sound(last, seal));
}

/* The same as a function, for who need not spare a call: inline it is long. */
bool margin_is_sound_call(struct page_heap *page_heap, struct span *span);

/* Gives a block that has new pages, or another length, a margin. `zero`: nobody has touched it. */
void margin_make(struct page_heap *page_heap, struct span *span, bool zero);

/* What is wrong with a margin; MISUSE_NONE: it is sound. It is sealed anew, so that it is reported
 * once. */
struct misuse margin_misuse(struct page_heap *page_heap, struct span *span);

/* ---- Blocks that wait ---- */

/* Seals a block that begins to wait. */
static inline void waiting_seal(struct span *span)
{
    span->sealed = *(const uint64_t *)span->start != 0;
    if (!span->sealed)
        return;
    word_pair *pairs = (word_pair *)span->start;
    uint64_t seal = span_seal(span);
    pairs[0] = pairs[1] = pairs[2] = pairs[3] = (word_pair){seal, seal};
}

/* Whether one that waits is as it was then. */
static inline bool waiting_is_sound(const struct span *span)
{
    if (!span->sealed)
        return true;
    const word_pair *pairs = (const word_pair *)span->start;
    uint64_t seal = span_seal(span);
    word_pair seals = {seal, seal};
    word_pair differs =
        (pairs[0] ^ seals) | (pairs[1] ^ seals) | (pairs[2] ^ seals) | (pairs[3] ^ seals);
    return (differs[0] | differs[1]) == 0;
}

/* A report of a block that was written to while it waited; it counts as sound then. */
struct misuse waiting_misuse(struct span *span);

#endif
