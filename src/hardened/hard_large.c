/*
 * Large hardened blocks. See hard_large.h.
 */
#include "hardened/hard_large.h"

#include <string.h>

#include "base/peek.h"
#include "hardened/canary.h"
#include "hardened/dice.h"
#include "meta/meta.h"
#include "meta/page_map.h"

void hard_large_init(struct hard_large *large, const struct provider *provider, void *owner,
                     uint64_t random)
{
    *large = (struct hard_large){.provider = provider, .owner = owner, .random = random | 1};
    lock_init(&large->lock, RANK_HARD_ZONE);
    list_init(&large->blocks);
}

static struct hard_block *block_of(struct hard_zone *zone)
{
    return CONTAINER_OF(zone, struct hard_block, zone);
}

static uintptr_t block_end(const struct hard_block *block)
{
    return (uintptr_t)block->zone.span.start + ((size_t)block->zone.span.pages << PAGE_SHIFT);
}

/* ---- Ballast ---- */

/* Pages: x86's kernel has a processor forget up to so many one by one, which takes longer than all
 * at once. */
enum { FORGOTTEN_SINGLY = 33 };

#if defined(__x86_64__)
static const bool are_forgotten_singly = true;
#else
static const bool are_forgotten_singly = false;
#endif

/* The processor forgets all pages from the first to the last that was there. So behind a block of
 * nearly FORGOTTEN_SINGLY pages lies a guard that takes no mapping, and behind that one more page
 * that is there, which is opened and shut with the block. Then the pages are too many to be
 * forgotten one by one: in a virtual machine each pair of calls takes 2 us instead of 4. Returns
 * the bytes of the guard and the page; 0: a block with so much room needs none. */
static size_t ballast_bytes(size_t room)
{
    size_t most = FORGOTTEN_SINGLY * PAGE_BYTES, ballast = 2 * os_page_size();
    return are_forgotten_singly && room <= most && room + ballast > most ? ballast : 0;
}

/* The bytes between the guards, with the ballast if there is one. */
static size_t block_inside(const struct hard_block *block)
{
    return block->room + block->ballast;
}

/* The bytes that are opened and shut of a block, from its start on. What is left over behind it
 * stays shut. */
static size_t block_flips(const struct hard_block *block)
{
    size_t bytes = block_end(block) - (uintptr_t)block->zone.span.start;
    return bytes == block->room ? block_inside(block) : bytes;
}

/* Makes guards of what is before and behind the block in its mapping. */
static void block_guard(const struct provider *provider, struct hard_block *block)
{
    char *first = block->zone.span.start, *last = first + block->room;
    size_t page = os_page_size(), ballast = ballast_bytes(block->room);
    hard_guard(provider, block->start, (size_t)(first - block->start));
    if (ballast != 0 && provider->kind == KIND_SYSTEM && os_mark_guard(last, page))
        block->ballast = ballast;
    last += block->ballast;
    hard_guard(provider, last, (size_t)(block->start + block->bytes - last));
}

/* The lock must be held, here and below. */
/* ---- Taking ---- */

/* `more`: bytes behind it that it may grow into. */
static struct hard_block *block_map(const struct hard_large *large, size_t alignment, size_t bytes,
                                    size_t more)
{
    size_t page = os_page_size(), whole = align_up(bytes + 1, page);
    size_t room = whole + align_up(more, page);
    size_t mapped = room + ballast_bytes(room) + page + size_max(alignment, page);
    if (room >> PAGE_SHIFT > UINT32_MAX) /* as a span counts them */
        return NULL;
    struct hard_block *block = meta_alloc(sizeof(*block));
    if (block == NULL)
        return NULL;
    char *start = large->provider->take(large->provider, mapped, page);
    if (start != NULL && large->provider->unclean)
        __builtin_memset(start, 0, mapped);
    if (start != NULL) {
        char *first = (char *)align_up((uintptr_t)start + page, size_max(alignment, page));
        *block =
            (struct hard_block){.start = start, .bytes = mapped, .room = room, .state = BLOCK_LIVE};
        block->zone.row = &hard_classes[0];
        block->zone.owner = large->owner;
        block->zone.span = (struct span){.start = first,
                                         .owner = large->owner,
                                         .pages = (uint32_t)(whole >> PAGE_SHIFT),
                                         .kind = SPAN_HARDENED};
        if (page_map_reserve(first, PAGE_BYTES))
            return block;
        large->provider->give(large->provider, start, mapped);
    }
    meta_free(block, sizeof(*block));
    return NULL;
}

/* A block at addresses that nobody had, or NULL. */
static struct hard_block *block_new(struct hard_large *large, size_t alignment, size_t bytes,
                                    size_t more)
{
    struct hard_block *block = block_map(large, alignment, bytes, more);
    if (block == NULL)
        return NULL;
    block_guard(large->provider, block);
    if (more != 0) /* as for a guard, it may be a mapping too many */
        os_hide((char *)block_end(block), align_up(more, os_page_size()));
    page_map_set_entry(block->zone.span.start, (uintptr_t)&block->zone);
    page_map_fill_classes(block->zone.span.start, 1, PAGE_MAP_HARDENED);
    GAUGE_ADD(large->mapped, block->bytes);
    return block;
}

/* One part in: of what a request needs, may be left over of the addresses that serve it. */
enum { LEFT_SHARE = 2 };

/* Whether a block that waits may serve a request of `bytes`, whole pages. */
static bool block_serves(const struct hard_large *large, const struct hard_block *block,
                         size_t alignment, size_t bytes)
{
    return bytes <= block->room && block->room - bytes <= bytes / LEFT_SHARE &&
           block->state != BLOCK_GUARD && large->frees - block->freed >= LARGE_WAIT_LEAST &&
           (uintptr_t)block->zone.span.start % alignment == 0;
}

/* A random one of the blocks that have waited for long, or NULL. */
static struct hard_block *block_again(struct hard_large *large, size_t alignment, size_t bytes)
{
    size_t whole = align_up(bytes + 1, os_page_size());
    unsigned from = large->waits != 0 ? dice_below(&large->random, large->waits) : 0;
    for (unsigned i = 0; i < large->waits; i++) {
        struct hard_block **place = &large->waiting[(from + i) % large->waits], *block = *place;
        if (!block_serves(large, block, alignment, whole))
            continue;
        block->zone.span.pages = (uint32_t)(whole >> PAGE_SHIFT);
        if (block->state == BLOCK_SHUT && !os_open(block->zone.span.start, block_flips(block)))
            return NULL; /* there is no memory for it, or it is a mapping too many */
        *place = large->waiting[--large->waits];
        GAUGE_ADD(large->waiting_bytes, -block->bytes);
        block->state = BLOCK_LIVE;
        return block;
    }
    return NULL;
}

/* How much more addresses a request of `bytes` gets: an eighth, if it is for a block that grows, as
 * it may again. */
static size_t room_to_grow(struct hard_large *large, size_t bytes)
{
    bool grows = bytes == large->grows && large->provider->kind == KIND_SYSTEM;
    large->grows = 0;
    return grows ? bytes / SLACK_SHARE : 0;
}

void *hard_large_alloc(struct hard_large *large, size_t alignment, size_t bytes)
{
    if (bytes > MAX_REQUEST || alignment > MAX_REQUEST)
        return NULL;
    lock_acquire(&large->lock);
    size_t more = room_to_grow(large, bytes);
    struct hard_block *block = block_again(large, alignment, bytes);
    if (block == NULL && more != 0)
        block = block_new(large, alignment, bytes, more);
    if (block == NULL)
        block = block_new(large, alignment, bytes, 0);
    large->refused = block == NULL;
    if (block != NULL) {
        uintptr_t first = (uintptr_t)block->zone.span.start;
        block->requested = bytes;
        block->maker = MADE_BY_MALLOC;
        canary_put(first, first + bytes, block_end(block));
        list_push(&large->blocks, &block->link);
        GAUGE_ADD(large->count, 1);
        GAUGE_ADD(large->requested, bytes);
    }
    lock_release(&large->lock);
    return block == NULL ? NULL : block->zone.span.start;
}

/* ---- Freeing ---- */

struct misuse hard_large_damage(const struct hard_block *block)
{
    uintptr_t start = (uintptr_t)block->zone.span.start;
    if (canary_is_sound_beside(start, start + block->requested, block_end(block)))
        return (struct misuse){.kind = MISUSE_NONE};
    return (struct misuse){.kind = MISUSE_OVERFLOW, .address = start, .bytes = block->requested};
}

static struct misuse block_misuse(const struct hard_block *block, uintptr_t address)
{
    uintptr_t start = (uintptr_t)block->zone.span.start;
    if (block->state != BLOCK_LIVE)
        return (struct misuse){
            .kind = MISUSE_DOUBLE_FREE, .address = address, .bytes = block->requested};
    if (address != start)
        return (struct misuse){
            .kind = MISUSE_INSIDE, .address = address, .bytes = block->requested, .start = start};
    return (struct misuse){.kind = MISUSE_NONE};
}

static struct misuse free_misuse(const struct hard_block *block, uintptr_t address,
                                 struct said said)
{
    struct misuse misuse = block_misuse(block, address);
    if (misuse.kind != MISUSE_NONE)
        return misuse;
    if (!hard_maker_fits(block->maker, (enum maker)said.maker))
        return (struct misuse){.kind = MISUSE_MAKER,
                               .address = address,
                               .bytes = block->requested,
                               .maker = block->maker};
    if (said.size != SIZE_UNSAID && said.size != block->requested)
        return (struct misuse){
            .kind = MISUSE_SIZE, .address = address, .bytes = block->requested, .said = said.size};
    return hard_large_damage(block);
}

/* Gives a block back that waited, or is in use when its heap ends. */
static void block_end_it(struct hard_large *large, struct hard_block *block)
{
    page_map_fill_classes(block->zone.span.start, 1, 0);
    page_map_set_entry(block->zone.span.start, 0);
    GAUGE_ADD(large->mapped, -block->bytes);
    large->apart -= block->apart;
    hard_give(large->provider, block->start, block->bytes);
    meta_free(block, sizeof(*block));
}

/* Makes a block zero and unreachable. False: it can still be reached. */
static bool block_hide(const struct provider *provider, const struct hard_block *block)
{
    size_t page = os_page_size(), flips = block_flips(block);
    char *start = block->zone.span.start, *last = (char *)block_end(block) - page;
    memset(start, 0, page);
    memset(last, 0, page);
    if (last > start + page &&
        !provider->purge(provider, start + page, (size_t)(last - start) - page))
        return false;
    if (start + flips > last + page) /* the ballast is there */
        *(volatile char *)(start + flips - page) = 0;
    return os_hide(start, flips);
}

/* Makes a block a mapping of its own from now on, so that hiding and opening it changes no
 * other. */
static void block_set_apart(struct hard_large *large, struct hard_block *block)
{
    if (block->apart || large->apart == LARGE_APART)
        return;
    char *first = block->zone.span.start, *last = first + block_inside(block);
    os_set_apart(block->start, (size_t)(first - block->start));
    os_set_apart(last, (size_t)(block->start + block->bytes - last));
    block->apart = true;
    large->apart++;
}

/* Drops what a block that was freed holds, and makes it unreachable. */
static enum hard_block_state block_shut(struct hard_large *large, struct hard_block *block)
{
    const struct provider *provider = large->provider;
    char *start = block->zone.span.start;
    size_t bytes = block_end(block) - (uintptr_t)start;
    bool of_system = provider->kind == KIND_SYSTEM;
    if (of_system && block_hide(provider, block)) {
        block_set_apart(large, block);
        return BLOCK_SHUT;
    }
    if (of_system && os_shut(start, bytes)) /* locked memory cannot be purged */
        return BLOCK_SHUT;
    if (of_system && hard_guard(provider, start, bytes))
        return BLOCK_GUARD;
    if (!provider->purge(provider, start, block->room))
        __builtin_memset(start, 0, block->room);
    return BLOCK_PURGED;
}

/* Puts a block into the quarantine, at a random place if that is full; what was there goes. */
static void block_wait(struct hard_large *large, struct hard_block *block)
{
    if (large->refused) {
        block_end_it(large, block);
        return;
    }
    block->state = block_shut(large, block);
    block->freed = large->frees++;
    GAUGE_ADD(large->waiting_bytes, block->bytes);
    if (large->waits < LARGE_WAIT) {
        large->waiting[large->waits++] = block;
        return;
    }
    struct hard_block **place = &large->waiting[dice_below(&large->random, LARGE_WAIT)];
    GAUGE_ADD(large->waiting_bytes, -(*place)->bytes);
    block_end_it(large, *place);
    *place = block;
}

struct misuse hard_large_free(struct hard_large *large, struct hard_zone *zone, uintptr_t address,
                              struct said said)
{
    struct hard_block *block = block_of(zone);
    lock_acquire(&large->lock);
    struct misuse misuse = free_misuse(block, address, said);
    if (misuse.kind == MISUSE_NONE) {
        list_remove(&block->link);
        GAUGE_ADD(large->count, -1);
        GAUGE_ADD(large->requested, -block->requested);
        block_wait(large, block);
    }
    lock_release(&large->lock);
    return misuse;
}

void hard_large_drop(struct hard_large *large, bool all)
{
    lock_acquire(&large->lock);
    while (large->waits != 0)
        block_end_it(large, large->waiting[--large->waits]);
    GAUGE_SET(large->waiting_bytes, 0);
    while (all && !list_empty(&large->blocks)) {
        struct hard_block *block = CONTAINER_OF(large->blocks.next, struct hard_block, link);
        list_remove(&block->link);
        block_end_it(large, block);
    }
    lock_release(&large->lock);
}

/* ---- Blocks in use ---- */

struct misuse hard_large_usable(const struct hard_zone *zone, uintptr_t address, size_t *bytes)
{
    const struct hard_block *block = CONTAINER_OF(zone, struct hard_block, zone);
    struct misuse misuse = block_misuse(block, address);
    if (misuse.kind == MISUSE_NONE) {
        *bytes = block->requested;
        misuse.maker = block->maker;
    }
    return misuse;
}

void hard_large_set_maker(struct hard_zone *zone, enum maker maker)
{
    block_of(zone)->maker = maker;
}

/* Opens what a block of so many whole pages has more of its room, which is zero. The last of the
 * room stays where a ballast is behind it, as that is opened and shut with the whole only. False:
 * there is no room, or it is a mapping too many. */
static bool block_grow(struct hard_block *block, size_t whole)
{
    char *start = block->zone.span.start, *end = (char *)block_end(block);
    size_t most = block->room - (block->ballast != 0 ? os_page_size() : 0);
    if (start + whole < end || whole > most)
        return false;
    if (start + whole == end)
        return true;
    if (!os_open(end, (size_t)(start + whole - end)))
        return false;
    block->zone.span.pages = (uint32_t)(whole >> PAGE_SHIFT);
    return true;
}

/* Moves the canary; the lock must be held. */
static bool block_resize(struct hard_large *large, struct hard_block *block, size_t bytes)
{
    uintptr_t start = (uintptr_t)block->zone.span.start, end = block_end(block);
    size_t whole = align_up(bytes + 1, os_page_size());
    if (hard_large_damage(block).kind != MISUSE_NONE)
        return false; /* its free reports that */
    if (whole != end - start && !block_grow(block, whole)) {
        large->grows = bytes > block->requested ? bytes : 0;
        return false;
    }
    uintptr_t old = start + block->requested, new = start + bytes, last = canary_end(old, end);
    uintptr_t from = new < old ? new : old;
    __builtin_memset((void *)from, 0, last - from);
    canary_put_behind(start, new, block_end(block));
    GAUGE_ADD(large->requested, bytes - block->requested);
    block->requested = bytes;
    return true;
}

bool hard_large_resize(struct hard_large *large, struct hard_zone *zone, size_t bytes)
{
    struct hard_block *block = block_of(zone);
    if (bytes < HARD_MOST || bytes > MAX_REQUEST)
        return false;
    lock_acquire(&large->lock); /* a check reads the canaries of all blocks under it */
    bool resized = block_resize(large, block, bytes);
    lock_release(&large->lock);
    return resized;
}
