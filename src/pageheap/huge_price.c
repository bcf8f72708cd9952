/*
 * Comparing prices. See huge_price.h.
 */
#include "pageheap/huge_price.h"

bool huge_price_is_stale(const struct huge_price *price)
{
    return price->small_ns == 0 || price->age >= HUGE_PRICE_AGE;
}

void huge_price_note_small(struct huge_price *price, size_t pages, uint64_t elapsed)
{
    uint64_t each = size_min(elapsed / pages, UINT32_MAX - 1) + 1;
    /* An interruption makes one measurement too long, never too short: what is dearer than before
     * is believed by and by. */
    if (price->small_ns != 0 && each > 2 * (uint64_t)price->small_ns)
        each = size_min(2 * (uint64_t)price->small_ns, UINT32_MAX);
    price->small_ns = (uint32_t)each;
    price->age = 0;
}

bool huge_price_try(struct huge_price *price)
{
    price->age++;
    return price->small_ns != 0 && backoff_try(&price->backoff);
}

bool huge_price_note_huge(struct huge_price *price, size_t pages, uint64_t elapsed)
{
    /* Three quarters: no more than small pages cost is no reason for a huge one. */
    bool cheap = elapsed / pages < (uint64_t)price->small_ns * 3 / 4;
    backoff_note(&price->backoff, cheap);
    return cheap;
}
