/*
 * Stacks in programs that the static library is linked into: each begins in the function that asked
 * for the block, not in the library, and leads to the one that called that.
 */
#include "view.h"

#include "check.h"

#include <stdlib.h>

/* Functions that are called, and begin 512 bytes apart. */
#define APART __attribute__((noinline, aligned(512), section("apart")))
#define BYTES ((size_t)512)
#define STAY(block) __asm__ volatile("" : "+r"(block) : : "memory")

static void *kept[8];

static APART void *by_malloc(void)
{
    void *block = malloc(5000);
    STAY(block);
    return block;
}

static APART void *by_calloc(void)
{
    void *block = calloc(3, 40);
    STAY(block);
    return block;
}

static APART void *by_realloc(void)
{
    void *block = realloc(NULL, 200000);
    STAY(block);
    return block;
}

static APART void *by_alignment(void)
{
    void *block = aligned_alloc(256, 512);
    STAY(block);
    return block;
}

static APART void *by_growth(void)
{
    void *block = realloc(kept[0], 20000);
    STAY(block);
    kept[0] = NULL;
    return block;
}

#if defined(WITH_NEW)
void *_Znwm(size_t bytes); /* operator new */

static APART void *by_new(void)
{
    void *block = _Znwm(300);
    STAY(block);
    return block;
}
#endif

static APART void *call(void *(*by)(void))
{
    void *block = by();
    STAY(block);
    return block;
}

static void check_site(const struct profile *profile, void *(*by)(void))
{
    unsigned found = 0;
    for (uint32_t number = 1; number < profile->sites.used; number++) {
        const struct site *site = view_site(profile, number);
        if (!view_goes_through(profile, site, (const void *)(uintptr_t)by, BYTES))
            continue;
        uint64_t code = stacks_node(&profile->stacks, site->stack)->call.key;
        CHECK(code - (uintptr_t)by < BYTES); /* it begins there */
        CHECK(view_goes_through(profile, site, (const void *)(uintptr_t)call, BYTES));
        found++;
    }
    CHECK(found != 0);
}

int main(void)
{
    static void *(*const all[])(void) = {by_malloc, by_calloc, by_realloc, by_alignment, by_growth,
#if defined(WITH_NEW)
                                         by_new
#endif
    };
    const size_t count = sizeof(all) / sizeof(*all);
    for (size_t i = 0; i < count; i++)
        kept[i] = call(all[i]);
    const struct profile *profile = view_profile();
    for (size_t i = 0; i < count; i++)
        check_site(profile, all[i]);
    return 0;
}
