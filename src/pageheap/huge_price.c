/*
 * Comparing prices. See huge_price.h.
 */
#include "pageheap/huge_price.h"

/* Times: a price is believed to rise so much at once. An interruption makes one measurement too
 * long, never too short. */
enum { RISE_MOST = 2 };

/* Parts of 64: of the price of small pages; a huge page is cheap below that. If it costs as much as
 * they, there is no reason for it. */
enum { CHEAP_BELOW = 48 };

/* Times: of the price below which a huge page is cheap; no more is owed. An interruption makes one
 * dear, and the machine may be another by and by. */
enum { DEBT_MOST = 4 };

bool huge_price_is_stale(const struct huge_price *price)
{
    return price->small_ns == 0 || price->age >= HUGE_PRICE_AGE;
}

void huge_price_note_small(struct huge_price *price, size_t pages, uint64_t elapsed)
{
    uint64_t each = size_min(elapsed / pages, UINT32_MAX - 1) + 1;
    if (price->small_ns != 0 && each > RISE_MOST * (uint64_t)price->small_ns)
        each = size_min(RISE_MOST * (uint64_t)price->small_ns, UINT32_MAX);
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
    uint64_t each = elapsed / pages, border = (uint64_t)price->small_ns * CHEAP_BELOW / 64;
    bool cheap = each < border;
    if (cheap)
        price->debt_ns -= size_min(price->debt_ns, border - each);
    else
        price->debt_ns = size_min(price->debt_ns + size_min(each - border, DEBT_MOST * border),
                                  DEBT_MOST * border);
    if (cheap && price->debt_ns != 0)
        backoff_again(&price->backoff);
    else
        backoff_note(&price->backoff, cheap);
    return cheap;
}
