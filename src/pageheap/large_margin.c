/*
 * Making margins of large blocks, and what is wrong with one, or with a block that waits. See
 * large_margin.h.
 */
#include "pageheap/large_margin.h"

#include "options/options.h"

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

/* Notes whether it paid to look: whether anything was written to the page in which the margin
 * begins, as far as two of its words tell. */
static void note_look(struct page_heap *page_heap, const struct span *span)
{
    struct margin_word first = margin_first(span);
    const uint64_t *page = (const uint64_t *)align_down((uintptr_t)first.at, PAGE_BYTES);
    bool paid = (*page | *first.at) != 0;
    /* relaxed: a count that gets lost puts the rest off by one look */
    uint32_t vain = __atomic_load_n(&page_heap->margins_in_vain, __ATOMIC_RELAXED);
    bool many = !paid && vain == VAIN_LOOKS_MOST;
    if (!many)
        __atomic_store_n(&page_heap->margins_in_vain, paid ? 0 : vain + 1, __ATOMIC_RELAXED);
    if (paid || many)
        backoff_note(&page_heap->margins_seen, paid);
}

void margin_make(struct page_heap *page_heap, struct span *span, bool zero)
{
    span->margin = MARGIN_NONE;
    if (span->requested % PAGE_BYTES == 0 || page_heap->untouched)
        return;
    if (options.check != CHECK_FULL && !backoff_try(&page_heap->margins_seen))
        return;
    span->margin = zero ? MARGIN_FRESH : MARGIN_KNOWN;
    if (zero)
        return;
    note_look(page_heap, span);
    margin_seal(span);
}

bool margin_is_sound_fresh(struct page_heap *page_heap, struct span *span)
{
    span->margin = MARGIN_KNOWN;
    note_look(page_heap, span);
    return margin_is_sound(page_heap, span);
}

struct misuse margin_misuse(const struct span *span)
{
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
