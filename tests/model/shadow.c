/*
 * The shadow of the heap. See shadow.h.
 */
#include "shadow.h"

#include <search.h>
#include <stdlib.h>

#include "base/common.h"
#include "expect.h"
#include "snug/snug.h"

/* One of no bytes has its address for itself. */
static const unsigned char *block_end(const struct block *block)
{
    return block->start + size_max(block->usable, 1);
}

/* Blocks that share a byte are equal. */
static int compare(const void *left, const void *right)
{
    const struct block *a = left;
    const struct block *b = right;
    if (block_end(a) <= b->start)
        return -1;
    return block_end(b) <= a->start ? 1 : 0;
}

static void expect_apart(const struct block *block, const struct block *other)
{
    EXPECT(block == other, "block %p of %zu bytes overlaps block %p of %zu bytes",
           (void *)block->start, block->usable, (void *)other->start, other->usable);
}

static void shadow_insert(struct shadow *shadow, struct block *block)
{
    const struct block *const *found = tsearch(block, &shadow->tree, compare);
    EXPECT(found != NULL, "no memory for the shadow");
    expect_apart(block, *found);
    if (shadow->count == shadow->capacity) {
        shadow->capacity = size_max(1024, shadow->capacity * 2);
        shadow->blocks = reallocarray(shadow->blocks, shadow->capacity, sizeof(struct block *));
        EXPECT(shadow->blocks != NULL, "no memory for the shadow");
    }
    block->index = shadow->count;
    shadow->blocks[shadow->count++] = block;
    shadow->bytes += block->usable;
}

struct block *shadow_add(struct shadow *shadow, void *start, size_t requested, size_t alignment,
                         bool fill_all)
{
    struct block *block = malloc(sizeof(*block));
    EXPECT(block != NULL, "no memory for the shadow");
    EXPECT(start != NULL, "no block of %zu bytes aligned to %zu", requested, alignment);
    EXPECT(((uintptr_t)start & (size_max(alignment, MIN_ALIGN) - 1)) == 0,
           "block %p of %zu bytes is not aligned to %zu", start, requested, alignment);
    *block = (struct block){.start = start,
                            .requested = requested,
                            .usable = 1, /* until the heap is asked */
                            .alignment = alignment,
                            .id = ++shadow->next_id};
    const struct block *const *found = tfind(block, &shadow->tree, compare);
    if (found != NULL)
        expect_apart(block, *found);
    block->usable = snug_malloc_usable_size(start);
    EXPECT(block->usable >= requested && (block->usable > 0 || requested == 0),
           "block %p has %zu usable bytes, asked for were %zu", start, block->usable, requested);
    shadow_insert(shadow, block);
    block->filled = fill_all ? block->usable : requested;
    pattern_fill(start, block->filled, block->id);
    return block;
}

void block_check_bytes(const struct block *block, const void *start, size_t kept)
{
    size_t wrong = pattern_check(start, kept, block->id);
    EXPECT(wrong == kept, "block %p of %zu bytes, filled at %p, has lost its contents at byte %zu",
           start, block->requested, (void *)block->start, wrong);
}

void block_check(const struct block *block)
{
    size_t usable = snug_malloc_usable_size(block->start);
    EXPECT(usable == block->usable, "block %p had %zu usable bytes and has now %zu",
           (void *)block->start, block->usable, usable);
    block_check_bytes(block, block->start, block->filled);
}

void shadow_remove(struct shadow *shadow, struct block *block)
{
    EXPECT(tdelete(block, &shadow->tree, compare) != NULL, "the shadow has lost a block");
    struct block *last = shadow->blocks[--shadow->count];
    shadow->blocks[block->index] = last;
    last->index = block->index;
    shadow->bytes -= block->usable;
    free(block);
}

void shadow_sweep(const struct shadow *shadow)
{
    for (size_t i = 0; i < shadow->count; i++)
        block_check(shadow->blocks[i]);
}

void shadow_end(struct shadow *shadow)
{
    while (shadow->count != 0)
        shadow_remove(shadow, shadow->blocks[shadow->count - 1]);
    free(shadow->blocks);
    *shadow = (struct shadow){.next_id = shadow->next_id};
}
