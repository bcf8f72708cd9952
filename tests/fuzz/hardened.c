/*
 * A hardened heap: taking, freeing, resizing in place and purging, with the cache of a thread and
 * without, and forks; and misuse of it, which has to be found, and is undone before anything else.
 *
 * Only inputs with such settings have one (fuzz.c). Its memory is of the same provider as that of
 * all others. Where its blocks lie is up to chance, which is the same in each process here.
 */
#include "hardened/hardened.h"

#include <string.h>

#include "hardened/hard_pages.h"
#include "meta/page_map.h"
#include "world.h"

enum { HARD_COUNT = 200, WAIT_COUNT = 64, SEED = 0x5eed };

/* Bytes: that may wait in all, and that a thread may hold; little, so that much leaves. */
#define WAIT_BYTES (256 * KIB)
#define HELD_MOST (32 * KIB)

static struct hardened hardened;
static struct hard_cache *cache; /* NULL: the thread has none */
static bool ready;

static struct shadow_hard {
    uintptr_t start;
    size_t bytes; /* that were asked for */
    uint32_t id;  /* of the contents; and who made it */
} blocks[HARD_COUNT];
static size_t block_count;

static uintptr_t freed_last; /* of a class, while it is sure to wait; or 0 */

/* Stands for os_random (the linker's --wrap). */
uint64_t __wrap_os_random(void);
uint64_t __wrap_os_random(void)
{
    return SEED;
}

static struct hard_zone *zone_of(uintptr_t start)
{
    return (struct hard_zone *)page_map_entry(start);
}

/* What is a block's alone: there is a byte behind it at least. */
static size_t claimed_bytes(size_t bytes)
{
    return align_up(bytes + 1, MIN_ALIGN);
}

static bool has_class(const struct shadow_hard *block)
{
    return zone_of(block->start)->class != 0;
}

/* Each in turn. */
static enum maker maker_of(const struct shadow_hard *block)
{
    return (enum maker)(block->id % 4);
}

/* ---- Expectations ---- */

static void expect_zero(uintptr_t start, size_t bytes)
{
    const char *at = (const char *)start;
    EXPECT(bytes == 0 || (*at == 0 && memcmp(at, at + 1, bytes - 1) == 0),
           "a hardened block of %zu bytes is not zero", bytes);
}

static void expect_check(enum misuse_kind kind, uintptr_t address)
{
    struct misuse misuse;
    const char *wrong = hard_check(&hardened, &misuse);
    /* With other threads, which libFuzzer has, it leaves out what waits. */
    if (wrong == NULL && !hard_check_waiting(&hardened, cache, &misuse))
        wrong = "what waits was written to";
    if (kind == MISUSE_NONE)
        EXPECT(wrong == NULL, "hard_check: %s", wrong);
    else
        EXPECT(wrong != NULL && misuse.kind == kind && misuse.address == address,
               "hard_check does not see misuse %d of %#zx, but %d of %#zx", (int)kind,
               (size_t)address, (int)misuse.kind, (size_t)misuse.address);
}

/* The byte at an address is another for a moment. */
static void expect_seen(uintptr_t at, enum misuse_kind kind, uintptr_t address)
{
    *(unsigned char *)at ^= 0x40;
    expect_check(kind, address);
    *(unsigned char *)at ^= 0x40;
}

/* What a free says: SIZE_MAX stands for nothing. */
static struct said said_of(size_t size, enum maker maker)
{
    return size == SIZE_MAX ? said_unsized(maker) : said_size(size, maker);
}

static void expect_refused(uintptr_t address, struct said said, enum misuse_kind kind)
{
    struct misuse misuse;
    bool freed = hard_free(&hardened, cache, zone_of(address), address, said, &misuse);
    EXPECT(!freed && misuse.kind == kind, "a free of %#zx should be misuse %d, and is %d",
           (size_t)address, (int)kind, freed ? 0 : (int)misuse.kind);
}

/* ---- Taking and freeing ---- */

/* Mostly small, now and then some pages, and more than a class has. */
static size_t bytes_decode(struct input *input)
{
    uint16_t pair = input_pair(input);
    switch (pair % 8) {
    case 7:
        return HARD_MOST - 4096 + (size_t)(pair / 8) * 4;
    case 6:
        return (size_t)(pair / 8) * 8;
    case 5:
        return pair / 8 % (20 * KIB);
    default:
        return pair / 8 % KIB;
    }
}

static void take(struct input *input)
{
    size_t bytes = bytes_decode(input);
    uint8_t aligned = input_byte(input);
    size_t alignment = aligned % 8 == 0 ? MIN_ALIGN << aligned / 8 % 10 : MIN_ALIGN;
    if (block_count == HARD_COUNT)
        return;
    size_t refused = fuzz_provider.refused;
    uintptr_t start = (uintptr_t)hard_alloc(&hardened, cache, alignment, bytes);
    if (start == 0) {
        EXPECT(fuzz_provider.refused != refused, "no block, but the provider was not asked");
        return;
    }
    EXPECT(start % alignment == 0, "a hardened block is not aligned to %zu", alignment);
    EXPECT(page_map_class(start) == PAGE_MAP_HARDENED, "the page map does not know its class");
    EXPECT(start != freed_last, "%#zx is handed out again at once", (size_t)start);
    struct shadow_hard *block = &blocks[block_count++];
    *block = (struct shadow_hard){start, bytes, pattern_new()};
    hard_set_maker(&hardened, start, maker_of(block));
    claim(start, claimed_bytes(bytes), CLAIM_NONE, CLAIM_BLOCK);
    expect_zero(start, bytes);
    pattern_fill(start, bytes, block->id);
}

static void free_one(size_t index, size_t size)
{
    struct shadow_hard block = blocks[index];
    blocks[index] = blocks[--block_count];
    pattern_expect(block.start, block.bytes, block.bytes, block.id);
    claim(block.start, claimed_bytes(block.bytes), CLAIM_BLOCK, CLAIM_NONE);
    freed_last = has_class(&block) ? block.start : 0;
    struct misuse misuse;
    fuzz_provider.may_lose = true;
    bool freed = hard_free(&hardened, cache, zone_of(block.start), block.start,
                           said_of(size, maker_of(&block)), &misuse);
    fuzz_provider.may_lose = false;
    EXPECT(freed, "a free of %zu bytes at %#zx is refused as misuse %d", block.bytes,
           (size_t)block.start, (int)misuse.kind);
}

static void free_any(struct input *input)
{
    if (block_count == 0)
        return;
    size_t index = input_index(input, block_count);
    free_one(index, input_byte(input) % 2 == 0 ? SIZE_MAX : blocks[index].bytes);
}

static void resize(struct input *input)
{
    size_t bytes = bytes_decode(input);
    if (block_count == 0)
        return;
    struct shadow_hard *block = &blocks[input_index(input, block_count)];
    if (input_byte(input) % 2 == 0) /* nearly as long */
        bytes = block->bytes + bytes % 24;
    claim(block->start, claimed_bytes(block->bytes), CLAIM_BLOCK, CLAIM_NONE);
    if (hard_resize(&hardened, block->start, bytes)) {
        size_t kept = bytes < block->bytes ? bytes : block->bytes;
        pattern_expect(block->start, block->bytes, kept, block->id);
        expect_zero(block->start + kept, bytes - kept);
        block->bytes = bytes;
        pattern_fill(block->start, bytes, block->id);
    }
    claim(block->start, claimed_bytes(block->bytes), CLAIM_NONE, CLAIM_BLOCK);
}

/* ---- Misuse ---- */

static void free_wrongly(struct input *input)
{
    if (block_count == 0)
        return;
    const struct shadow_hard *block = &blocks[input_index(input, block_count)];
    uint8_t how = input_byte(input);
    enum maker maker = maker_of(block);
    if (how % 4 == 2)
        expect_refused(block->start, said_unsized((maker + 1 + how / 4 % 3) % 4), MISUSE_MAKER);
    else if (how % 2 == 0)
        expect_refused(block->start + 8, said_unsized(maker), MISUSE_INSIDE);
    else
        expect_refused(block->start, said_size(block->bytes + how, maker), MISUSE_SIZE);
}

static void free_twice(struct input *input)
{
    if (block_count == 0)
        return;
    size_t index = input_index(input, block_count);
    if (!has_class(&blocks[index]))
        return;
    struct shadow_hard block = blocks[index];
    free_one(index, SIZE_MAX);
    expect_refused(block.start, said_unsized(maker_of(&block)), MISUSE_DOUBLE_FREE);
}

static void write_behind(struct input *input)
{
    if (block_count == 0)
        return;
    const struct shadow_hard *block = &blocks[input_index(input, block_count)];
    size_t room = claimed_bytes(block->bytes) - block->bytes;
    expect_seen(block->start + block->bytes + input_index(input, room), MISUSE_OVERFLOW,
                block->start);
}

/* Whether what is before an object is looked at: it may be a page that nobody has touched, and
 * before the first of a slab there may be nothing. */
static bool is_looked_before(const struct hard_zone *zone, struct hard_place place)
{
    return place.number != 0 &&
           (zone->bytes <= PAGE_BYTES || state_of(&zone->states[place.id - 1]) != STATE_NEW);
}

static void write_before(struct input *input)
{
    if (block_count == 0)
        return;
    const struct shadow_hard *block = &blocks[input_index(input, block_count)];
    size_t bytes = 1 + input_byte(input) % 8;
    if (!has_class(block))
        return;
    const struct hard_zone *zone = zone_of(block->start);
    struct hard_place place = zone_place(zone, block->start);
    if (!is_looked_before(zone, place))
        return;
    EXPECT(hard_front_is_sound(zone, place, block->start), "nothing was written before a block");
    *(unsigned char *)(block->start - bytes) ^= 0x40;
    bool sound = hard_front_is_sound(zone, place, block->start);
    *(unsigned char *)(block->start - bytes) ^= 0x40;
    uint16_t state = state_of(&zone->states[place.id - 1]);
    bool own = state >= STATE_LIVE && bytes > (size_t)(state - STATE_LIVE); /* that block's */
    EXPECT(sound == own, "nobody sees what is written %zu bytes before a block", bytes);
}

static void write_freed(struct input *input)
{
    if (block_count == 0)
        return;
    size_t index = input_index(input, block_count);
    struct shadow_hard block = blocks[index];
    size_t at = input_pair(input) % claimed_bytes(block.bytes);
    if (!has_class(&block))
        return;
    free_one(index, SIZE_MAX);
    expect_seen(block.start + at, MISUSE_WRITTEN, block.start);
}

/* ---- The thread, and the whole ---- */

static void change_cache(struct input *input)
{
    (void)input;
    if (cache != NULL)
        hard_cache_free(cache);
    cache = cache == NULL ? hard_cache_new(&hardened) : NULL;
    freed_last = 0;
}

/* The child has another thread: what the cache had is taken back when a block is taken. */
static void fork_it(struct input *input)
{
    hard_forked(&hardened, input_byte(input) % 2 == 0 ? cache : NULL);
    if (hardened.threads == 0)
        cache = NULL;
    freed_last = 0;
    void *block = hard_alloc(&hardened, NULL, MIN_ALIGN, 1);
    struct misuse misuse;
    if (block != NULL)
        EXPECT(hard_free(&hardened, NULL, zone_of((uintptr_t)block), (uintptr_t)block,
                         said_size(1, MADE_BY_MALLOC), &misuse),
               "a child cannot free");
}

static void trim_all(void)
{
    fuzz_provider.may_lose = true;
    if (cache != NULL)
        hard_cache_flush(cache);
    hard_trim(&hardened);
    fuzz_provider.may_lose = false;
    freed_last = 0;
}

static void trim(struct input *input)
{
    (void)input;
    trim_all();
}

const struct operation hardened_operations[] = {
    {"hard_alloc", take, 12},
    {"hard_free", free_any, 9},
    {"hard_resize", resize, 3},
    {"hard_free, wrong", free_wrongly, 1},
    {"hard_free, twice", free_twice, 1},
    {"write behind", write_behind, 1},
    {"write before", write_before, 1},
    {"write to freed", write_freed, 1},
    {"hard_cache_new", change_cache, 1},
    {"hard_forked", fork_it, 1},
    {"hard_trim", trim, 1},
    {NULL, NULL, 0},
};

/* ---- Beginning and end ---- */

void hardened_expect_sound(void)
{
    if (!ready)
        return;
    expect_check(MISUSE_NONE, 0);
    for (size_t i = 0; i < block_count; i++) {
        size_t bytes = 0;
        struct misuse misuse = hard_usable(blocks[i].start, &bytes);
        EXPECT(misuse.maker == maker_of(&blocks[i]), "a block has another maker");
        EXPECT(misuse.kind == MISUSE_NONE && bytes == blocks[i].bytes,
               "a hardened block has %zu bytes, not %zu", bytes, blocks[i].bytes);
    }
    struct hard_totals totals = hard_totals_of(NULL, &hardened);
    EXPECT(totals.live_count == block_count, "%zu hardened blocks are in use, not %zu",
           totals.live_count, block_count);
    EXPECT(totals.mapped ==
               totals.live + totals.waiting + totals.cached + totals.free + totals.rest,
           "the parts of a hardened heap are not the whole");
}

void hardened_begin(bool hard)
{
    struct hard_settings settings = {.provider = &fuzz_provider.provider,
                                     .owner = &page_heap,
                                     .wait_bytes = WAIT_BYTES,
                                     .wait_count = WAIT_COUNT,
                                     .dirty = 64 * KIB,
                                     .held_most = HELD_MOST,
                                     .guards = 8};
    ready = hard;
    if (!ready)
        return;
    block_count = 0;
    freed_last = 0;
    EXPECT(hardened_init(&hardened, &settings), "there is no hardened heap");
    hardened.wait.random = SEED | 1;
    hard_makers_all = true;
    cache = hard_cache_new(&hardened);
    EXPECT(cache != NULL, "there is no cache");
    cache->wait.random = SEED | 1;
}

void hardened_end_all(void)
{
    if (!ready)
        return;
    while (block_count != 0)
        free_one(block_count - 1, SIZE_MAX);
    hardened_expect_sound();
    trim_all();
    struct hard_totals totals = hard_totals_of(NULL, &hardened);
    EXPECT(totals.waiting == 0 && totals.cached == 0, "%zu bytes wait after all was given back",
           totals.waiting + totals.cached);
    hardened_end(&hardened, false);
    hard_caches_clear(&hardened, true);
}

/* What stays, so that no input has metadata more afterwards: two caches, as after a fork. */
void hardened_warm(void)
{
    hardened_begin(true);
    struct hard_cache *other = hard_cache_new(&hardened);
    EXPECT(other != NULL, "there is no second cache");
    hard_cache_free(other);
    hardened_end_all();
}
