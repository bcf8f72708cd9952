/*
 * Making margins of large blocks, and what is wrong with one, or with a block that waits. See
 * large_margin.h.
 */
#include "pageheap/large_margin.h"

static void word_make(struct margin_word word, uint64_t seal)
{
    if (!margin_word_is_sound(word, seal))
        *word.at = (*word.at & ~word.bits) | (seal & word.bits);
}

void margin_make(const struct page_heap *page_heap, const struct span *span)
{
    if (!margin_exists(page_heap, span))
        return;
    uint64_t seal = span_seal(span);
    word_make(margin_first(span), seal);
    word_make(margin_last(span), seal);
}

struct misuse margin_misuse(const struct page_heap *page_heap, const struct span *span)
{
    struct margin_word first = margin_first(span);
    struct margin_word word =
        margin_word_is_sound(first, span_seal(span)) ? margin_last(span) : first;
    struct misuse misuse = {.kind = MISUSE_OVERFLOW,
                            .has_found = true,
                            .address = (uintptr_t)span->start,
                            .bytes = span->requested,
                            .found = *word.at & word.bits};
    margin_make(page_heap, span);
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
