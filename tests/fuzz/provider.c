/*
 * A provider over a static buffer. It hands out ranges of it, first fit, keeps account of them, and
 * fails when the input says so, when the range is larger than the input allows, or when there is no
 * room.
 */
#include <string.h>

#include "platform/memory.h"
#include "world.h"

#define MEMORY_BYTES (16 * MIB)
#define GRAIN (64 * KIB)

enum { GRAINS = (int)(MEMORY_BYTES / GRAIN), UNITS = (int)(MEMORY_BYTES / MIN_ALIGN) };

static char memory[MEMORY_BYTES] __attribute__((aligned(GRAIN)));
static uint8_t claims[UNITS]; /* enum claim */

/* The length of the range that begins at each grain, in grains; 0 where none does. */
static unsigned taken[GRAINS];
static bool lost[GRAINS]; /* nobody gives it back */

static bool fails(unsigned *times)
{
    if (*times == 0)
        return false;
    --*times;
    return true;
}

/* The first of `count` free grains at a multiple of `alignment`, or GRAINS. */
static size_t room_find(size_t count, size_t alignment)
{
    size_t at = 0;
    while (at + count <= GRAINS) {
        size_t end = at;
        while (end < at + count && taken[end] == 0)
            end++;
        if (end == at + count)
            return at;
        at = end + taken[end];
        at = (size_t)((char *)align_up((uintptr_t)memory + at * GRAIN, alignment) - memory) / GRAIN;
    }
    return GRAINS;
}

static void *take(const struct provider *provider, size_t bytes, size_t alignment)
{
    (void)provider;
    EXPECT(bytes != 0 && bytes % os_page_size() == 0, "the provider is asked for %zu bytes", bytes);
    size_t count = (bytes + GRAIN - 1) / GRAIN;
    bool fail = fails(&fuzz_provider.fail_takes) || bytes > fuzz_provider.most;
    size_t at = fail ? GRAINS : room_find(count, alignment);
    if (at == GRAINS) {
        fuzz_provider.refused++;
        return NULL;
    }
    taken[at] = (unsigned)count;
    return memory + at * GRAIN;
}

static bool give(const struct provider *provider, void *start, size_t bytes)
{
    (void)provider;
    size_t at = (size_t)((char *)start - memory) / GRAIN;
    EXPECT(at < GRAINS && taken[at] == (bytes + GRAIN - 1) / GRAIN,
           "the provider is given %zu bytes at %p, which it did not hand out", bytes, start);
    EXPECT(claimed_as((uintptr_t)start, bytes, CLAIM_NONE),
           "the provider is given memory that is in use");
    if (fails(&fuzz_provider.fail_gives)) {
        lost[at] = fuzz_provider.may_lose;
        return false;
    }
    taken[at] = 0;
    return os_purge(start, bytes);
}

static bool purge(const struct provider *provider, void *start, size_t bytes)
{
    (void)provider;
    EXPECT(claimed_by_no_block((uintptr_t)start, bytes), "%zu bytes at %p are purged, but in use",
           bytes, start);
    return !fails(&fuzz_provider.fail_purges) && os_purge(start, bytes);
}

static void *resize(const struct provider *provider, void *start, size_t old_bytes,
                    size_t new_bytes, bool may_move)
{
    (void)provider;
    (void)may_move;
    fuzz_fail("the provider is to resize %p from %zu to %zu bytes", start, old_bytes, new_bytes);
}

struct fuzz_provider fuzz_provider = {
    .provider = {.take = take, .give = give, .purge = purge, .resize = resize}};

void provider_begin(size_t most)
{
    fuzz_provider.most = most;
    fuzz_provider.fail_takes = fuzz_provider.fail_gives = fuzz_provider.fail_purges = 0;
    fuzz_provider.may_lose = false;
}

void provider_end(void)
{
    for (size_t at = 0; at < GRAINS; at++) {
        EXPECT(taken[at] == 0 || lost[at], "a segment of %zu bytes was not given back",
               taken[at] * GRAIN);
        if (lost[at])
            os_purge(memory + at * GRAIN, taken[at] * GRAIN);
        taken[at] = 0;
        lost[at] = false;
    }
}

/* ---- Whose memory is whose ---- */

/* The claims of a range, or NULL if it is not in the memory. */
static uint8_t *claims_of(uintptr_t start, size_t bytes)
{
    uintptr_t offset = start - (uintptr_t)memory;
    if (offset >= MEMORY_BYTES || bytes > MEMORY_BYTES - offset)
        return NULL;
    return claims + offset / MIN_ALIGN;
}

static bool all_are(const uint8_t *bytes, size_t count, uint8_t value)
{
    return count == 0 || (bytes[0] == value && memcmp(bytes, bytes + 1, count - 1) == 0);
}

bool claimed_as(uintptr_t start, size_t bytes, enum claim what)
{
    const uint8_t *range = claims_of(start, bytes);
    return range != NULL && all_are(range, bytes / MIN_ALIGN, (uint8_t)what);
}

bool claimed_by_no_block(uintptr_t start, size_t bytes)
{
    const uint8_t *range = claims_of(start, bytes);
    return range != NULL && memchr(range, CLAIM_BLOCK, bytes / MIN_ALIGN) == NULL;
}

void claim(uintptr_t start, size_t bytes, enum claim from, enum claim to)
{
    EXPECT(claimed_as(start, bytes, from),
           "%zu bytes at %#zx overlap with others, or are not in "
           "the provider's memory",
           bytes, (size_t)start);
    claim_anew(start, bytes, to);
}

void claim_anew(uintptr_t start, size_t bytes, enum claim to)
{
    memset(claims_of(start, bytes), to, bytes / MIN_ALIGN);
}
