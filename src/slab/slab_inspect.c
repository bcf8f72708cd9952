/*
 * Whether a bin's free objects were written to, for the last look of a process; see
 * magazine/inspect.c.
 */
#include "base/bits.h"
#include "slab/slab.h"

/* What is wrong with a free object of a slab, if its first word is not what it should be. */
static bool object_is_written(const struct slab *slab, unsigned index, uint64_t word,
                              enum misuse_kind kind, struct misuse *misuse)
{
    uintptr_t object = slab_object(slab, index);
    if (*object_key_word(object) == word)
        return false;
    *misuse = misuse_of_object(kind, object, class_bytes(slab->span.class));
    return true;
}

/* Looks at up to `most` free objects, and at the first that was never handed out if its page was
 * touched. Returns how many. */
static size_t slab_inspect(const struct slab *slab, size_t most, struct misuse *misuse)
{
    size_t seen = 0, bits = slab_words(slab) * 64;
    for (size_t i = bitmap_next(slab->free_bits, slab_words(slab), 0); i < bits && seen < most;
         i = bitmap_next(slab->free_bits, slab_words(slab), i + 1), seen++)
        if (object_is_written(slab, (unsigned)i, object_key(slab_object(slab, (unsigned)i)),
                              MISUSE_WRITTEN, misuse))
            return seen;
    bool touched =
        slab->fresh != 0 && slab->fresh < slab->capacity &&
        (slab_object(slab, slab->fresh) ^ (slab_object(slab, slab->fresh) - 1)) < PAGE_BYTES;
    if (touched && slab->span.zero)
        object_is_written(slab, slab->fresh, 0, MISUSE_BEYOND, misuse);
    return seen + 1;
}

size_t bin_inspect(struct bin *bin, size_t most, struct misuse *misuse)
{
    size_t seen = 0;
    misuse->kind = MISUSE_NONE;
    if (bin->page_heap->untouched)
        return 0;
    lock_acquire(&bin->lock);
    if (bin->current != NULL)
        seen = slab_inspect(bin->current, most, misuse);
    for (unsigned i = 0; i < BIN_LEVELS; i++)
        LIST_EACH(node, &bin->level[i]) {
            if (seen >= most || misuse->kind != MISUSE_NONE)
                break;
            const struct slab *slab = CONTAINER_OF(node, struct slab, span.link);
            seen += slab_inspect(slab, most - seen, misuse);
        }
    lock_release(&bin->lock);
    return seen;
}
