/*
 * What waits in the magazines of threads, as any thread, a signal handler or another process can
 * see it.
 *
 * The idea: a magazine of 64 << log bytes lies at a multiple of that, and its end mark is its last
 * word. So where a top stands and how large its magazine is tell how many objects are above it, and
 * nothing that belongs to the thread is looked at. Both words are the thread's own; between its two
 * stores they may not fit each other, then the number is off by a magazine at most. The newest
 * object is one more of its class.
 */
#include "magazine/cache.h"

static size_t shape_capacity(unsigned log_plus_1)
{
    return log_plus_1 == 0 || log_plus_1 > MAGAZINE_LOG_MOST + 1
               ? 0
               : magazine_capacity(log_plus_1 - 1);
}

size_t cache_count(struct peek *peek, const struct cache *cache, size_t class)
{
    size_t newest = class != 0 && PEEK(peek, cache->newest_class) == class;
    unsigned shape = PEEK(peek, cache->shape[class]);
    size_t capacity = shape_capacity(shape & 15);
    if (capacity == 0)
        return newest;
    uintptr_t top = (uintptr_t)PEEK(peek, cache->top[class]);
    size_t bytes = META_LEAST << ((shape & 15) - 1);
    size_t loaded = (bytes - (top & (bytes - 1))) / sizeof(uintptr_t) - 1;
    return newest + size_min(loaded, capacity) + shape_capacity(shape >> 4);
}

_Static_assert(sizeof(((struct quick *)0)->waits) % sizeof(uint64_t) == 0, "counted by words");

/* The bytes of a word, added up. */
static size_t bytes_sum(uint64_t word)
{
    size_t sum = 0;
    for (; word != 0; word >>= 8)
        sum += word & UINT8_MAX;
    return sum;
}

struct cached_cells cache_cells(struct peek *peek, const struct cache *cache)
{
    const struct quick *quick = PEEK(peek, cache->quick);
    if (quick == NULL)
        return (struct cached_cells){0, 0}; /* it could not be read */
    size_t count = PEEK(peek, quick->rounds) * (size_t)(UINT8_MAX + 1);
    for (size_t list = 0; list < sizeof(quick->waits); list += sizeof(uint64_t))
        count += bytes_sum(peek_word(peek, &quick->waits[list], sizeof(uint64_t)));
    int32_t room = PEEK(peek, quick->room);
    size_t bytes = quick_used(room, PEEK(peek, quick->limit));
    /* Read apart, they may be of two moments, and the room of the first more than the limit. */
    return (struct cached_cells){count, bytes <= PTRDIFF_MAX ? bytes : 0};
}
