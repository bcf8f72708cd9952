/*
 * Objects of several pages. See hard_pages.h.
 */
#include "hardened/hard_pages.h"

/* Layout: no kernel's pages are smaller. */
enum { PAGES_MOST = (128 << 10) >> 12 };

_Static_assert(HARD_MOST / PAGES_MOST == 4 * KIB, "a byte for each page of the largest object");

/* Pages: of a freed object, that stay present for the next block; more of them go back. */
enum { PAGES_STAY = 4 };

/* What the system says of an object; false: all of it has to be taken for present. */
static bool ask(const struct provider *provider, uintptr_t object, size_t bytes,
                uint8_t present[PAGES_MOST])
{
    return provider->kind == KIND_SYSTEM && bytes % os_kernel_page_size() == 0 &&
           os_which_resident((const void *)object, bytes, present);
}

COLD uint32_t pages_there(const struct provider *provider, uintptr_t start, size_t bytes)
{
    uint8_t present[PAGES_MOST];
    uint32_t there = 0;
    if (ask(provider, start, bytes, present))
        for (size_t i = 0; i < bytes / os_kernel_page_size(); i++)
            there |= (uint32_t)(present[i] & 1) << i;
    return there;
}

bool pages_are_zero(const struct provider *provider, uintptr_t object, size_t bytes)
{
    uint8_t present[PAGES_MOST];
    size_t page = os_kernel_page_size();
    if (!ask(provider, object, bytes, present))
        return words_are_zero(object, object + bytes);
    for (size_t at = 0; at < bytes; at += page)
        if ((present[at / page] & 1) != 0 && !words_are_zero(object + at, object + at + page))
            return false;
    return true;
}

bool object_rests(const struct provider *provider, uintptr_t object, size_t bytes)
{
    return has_pages(bytes) ? pages_are_zero(provider, object, bytes)
                            : words_are_zero(object, object + bytes);
}

/* Drops a range, and clears what cannot be dropped. The system drops whole pages of its own, and
 * takes a part of one for all of it: the rest of such a page is another object. */
static void purge(const struct provider *provider, uintptr_t at, size_t bytes)
{
    uintptr_t end = at + bytes;
    uintptr_t first = align_up(at, os_page_size());
    uintptr_t past = align_down(end, os_page_size());
    if (first >= past || !provider->purge(provider, (void *)first, past - first))
        first = past = end;
    words_clear(at, first);
    words_clear(past, end);
}

void pages_clear(const struct provider *provider, uintptr_t object, size_t bytes)
{
    uint8_t present[PAGES_MOST];
    size_t page = os_kernel_page_size(), next, count = 0;
    bool asked = ask(provider, object, bytes, present);
    for (size_t at = 0; asked && at < bytes; at += page)
        count += present[at / page] & 1;
    if (!asked || count > PAGES_STAY) {
        purge(provider, object, bytes);
        return;
    }
    for (size_t at = 0; at < bytes; at = next) { /* pages in a row that are there, or are not */
        bool is_there = (present[at / page] & 1) != 0;
        for (next = at + page; next < bytes && (present[next / page] & 1) == is_there;)
            next += page;
        if (is_there)
            __builtin_memset((void *)(object + at), 0, next - at);
        else
            purge(provider, object + at, next - at); /* perhaps it is swapped out */
    }
}
