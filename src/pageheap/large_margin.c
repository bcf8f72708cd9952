/*
 * Making margins of large blocks, and what is wrong with one, or with a block that waits. See
 * large_margin.h.
 */
#include "pageheap/large_margin.h"

#include "options/options.h"
#include "platform/lock.h"
#include "platform/memory.h"

static void word_make(struct margin_word word, uint64_t seal)
{
    if (!margin_word_is_sound(word, seal))
        *word.at = (*word.at & ~word.bits) | (seal & word.bits);
}

static void margin_seal(const struct span *span)
{
    uint64_t seal = span_seal(span);
    word_make(margin_first(span), seal);
    word_make(margin_last(span), seal);
}

/* Looks: so many in a row that tell nothing are nobody's loss, a page fault each. */
enum { VAIN_LOOKS_MOST = 64 };

/* Looks: one at a page that is not there, as the system says, counts as so many. */
enum { VAIN_ASKED = 8 };

/* Whether the system is asked before a page is looked at: before less is looked at, as a page that
 * is there costs none, and may have been filled with zeros. And one that is not there would be
 * faulted in twice, by the look and by the program's first byte, and for the second all processors
 * that run threads of the program are interrupted. So with several threads it is, once a look was
 * in vain. */
static bool must_ask(struct page_heap *page_heap, uint32_t vain)
{
    if (vain == 0 || options.check == CHECK_FULL || !page_heap_may_ask(page_heap))
        return false;
    return vain >= VAIN_LOOKS_MOST || (!lock_is_alone() && backoff_try(&page_heap->margins_asked));
}

static bool page_is_there(const struct span *span)
{
    size_t page = os_page_size();
    uintptr_t first = align_down((uintptr_t)margin_first(span).at, page);
    return os_resident_bytes((void *)first, page) != 0;
}

/* Whether anything was written to the page in which the margin begins, as far as these words tell:
 * the page's first, the last that is all the program's, and those of the margin. */
static bool page_is_written(const struct span *span)
{
    const uint64_t *first = margin_first(span).at, *last = margin_last(span).at;
    const uint64_t *page = (const uint64_t *)align_down((uintptr_t)first, PAGE_BYTES);
    return (*page | first[first == page ? 0 : -1] | *first | *last) != 0;
}

/* Notes whether it pays to look: whether that page is one that the program writes to. Of blocks
 * that were taken before fewer had a margin none tells that there should be fewer still. False:
 * the page is not there. */
static bool note_look(struct page_heap *page_heap, const struct span *span)
{
    /* relaxed: a count that gets lost puts the rest off by one look */
    uint32_t vain = __atomic_load_n(&page_heap->margins_in_vain, __ATOMIC_RELAXED);
    bool asks = must_ask(page_heap, vain), there = !asks || page_is_there(span);
    if (asks) /* it pays where the page is not there */
        backoff_note(&page_heap->margins_asked, !there);
    bool paid = there && page_is_written(span);
    if (vain >= VAIN_LOOKS_MOST && asks && there)
        vain /= 2; /* nothing was lost; but it may be there by a look alone */
    else
        vain += there ? 1 : VAIN_ASKED;
    vain = paid ? 0 : vain;
    bool many = vain > VAIN_LOOKS_MOST;
    if (!many)
        __atomic_store_n(&page_heap->margins_in_vain, vain, __ATOMIC_RELAXED);
    if (paid || (many && backoff_is_over(&page_heap->margins_seen)))
        backoff_note(&page_heap->margins_seen, paid);
    return there;
}

void margin_make(struct page_heap *page_heap, struct span *span, bool zero)
{
    span->margin = MARGIN_NONE;
    if (span->requested % PAGE_BYTES == 0 || page_heap->untouched)
        return;
    if (options.check != CHECK_FULL && !backoff_try(&page_heap->margins_seen))
        return;
    if (zero) {
        span->margin = MARGIN_FRESH;
    } else if (note_look(page_heap, span)) {
        span->margin = MARGIN_KNOWN;
        margin_seal(span);
    }
}

bool margin_is_sound_fresh(struct page_heap *page_heap, struct span *span)
{
    /* It is zero where its page is not there. So nobody asks again for this block. */
    span->margin = MARGIN_KNOWN;
    return !note_look(page_heap, span) || margin_is_sound(page_heap, span);
}

NOINLINE bool margin_is_sound_call(struct page_heap *page_heap, struct span *span)
{
    return margin_is_sound(page_heap, span);
}

NOINLINE struct misuse margin_misuse(struct page_heap *page_heap, struct span *span)
{
    if (LIKELY(margin_is_sound_call(page_heap, span)))
        return (struct misuse){.kind = MISUSE_NONE};
    struct margin_word first = margin_first(span);
    struct margin_word word =
        margin_word_is_sound(first, span_seal(span)) ? margin_last(span) : first;
    struct misuse misuse = {.kind = MISUSE_OVERFLOW,
                            .has_found = true,
                            .address = (uintptr_t)span->start,
                            .bytes = span->requested,
                            .found = *word.at & word.bits};
    margin_seal(span);
    return misuse;
}

struct misuse waiting_misuse(struct span *span)
{
    const uint64_t *words = (const uint64_t *)span->start;
    uint64_t seal = span_seal(span);
    while (*words == seal)
        words++;
    span->sealed = false;
    return (struct misuse){.kind = MISUSE_WRITTEN,
                           .has_found = true,
                           .address = (uintptr_t)span->start,
                           .bytes = span->requested,
                           .found = *words};
}
