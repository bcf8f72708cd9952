/*
 * Slabs and bins. See slab.h.
 *
 *   bin_alloc -> slab_alloc -> (slab_new -> span_alloc)
 *   slabs_free -> slab_free -> (slab_release -> span_free)
 */
#include "slab/slab.h"

#include <string.h>

#include "base/backoff.h"
#include "base/bits.h"
#include "meta/meta.h"
#include "platform/check.h"
#include "stats/stats.h"

/* 128 bytes, but of the smallest class, which has more objects than bits fit in. */
static size_t descriptor_bytes(size_t objects)
{
    return sizeof(struct slab) + (objects + 63) / 64 * sizeof(uint64_t);
}

void bin_clear(struct bin *bin)
{
    bin->slab_count = 0;
    bin->current = NULL;
    bin->free_objects = 0;
    bin->total_objects = 0;
    for (unsigned i = 0; i < BIN_LEVELS; i++)
        list_init(&bin->level[i]);
}

COLD void bin_init(struct bin *bin, struct page_heap *page_heap, size_t class)
{
    lock_init(&bin->lock, RANK_BIN);
    bin->class = (uint32_t)class;
    bin_clear(bin);
    /* release: who sees the bin in use sees it whole */
    __atomic_store_n(&bin->page_heap, page_heap, __ATOMIC_RELEASE);
}

/* The lock must be held. Atomic because bin_free_objects reads without it; relaxed, since what it
 * reads is only a hint. */
static void bin_count_free(struct bin *bin, size_t more, size_t fewer)
{
    __atomic_store_n(&bin->free_objects, bin->free_objects + more - fewer, __ATOMIC_RELAXED);
}

/* The slab that an object lies in, or NULL. For a wild pointer it is a guess: it may be released at
 * any moment. */
static inline struct slab *slab_guess(uintptr_t address)
{
    uintptr_t entry = page_map_entry_fast(address);
    return entry_is_span(entry) ? (struct slab *)entry : NULL;
}

/* The bin of what should be a slab; NULL if it is none. */
static inline struct bin *bin_of(const struct slab *slab)
{
    if (UNLIKELY(slab == NULL || slab->span.kind != SPAN_SLAB))
        return NULL;
    return (struct bin *)__atomic_load_n(&slab->span.owner, __ATOMIC_ACQUIRE);
}

/* Of the slab that is taken from: it belongs where it is. */
enum { SETTLE_NEVER = UINT16_MAX };

/* Objects (table): a slab that has none free is in no list; the first puts it into one. */
enum { SETTLE_FIRST = 1 };

static void slab_list(struct bin *bin, struct slab *slab)
{
    slab->settle_at = (uint16_t)slab_settle_at(slab);
    list_push(&bin->level[slab_level(slab)], &slab->span.link);
}

/* ---- Making and releasing ---- */

static NOINLINE struct slab *slab_new(struct bin *bin)
{
    const struct size_class *class = &size_classes[bin->class];
    size_t pages = class_slab_pages(bin->page_heap->compact, bin->class);
    size_t bytes = pages << PAGE_SHIFT, described = descriptor_bytes(bytes / class->bytes);
    struct slab *slab = meta_alloc_from(bin->page_heap->meta, described);
    if (slab == NULL)
        return NULL;
    slab->span.units = (uint8_t)((described + META_LEAST - 1) / META_LEAST);
    if (!span_alloc_packed(bin->page_heap, &slab->span, SPAN_SLAB, pages, bytes)) {
        meta_free_to(bin->page_heap->meta, slab, described);
        return NULL;
    }
    size_t offset = (uintptr_t)slab->span.start & (GRID_BYTES - 1);
    slab->span.class = (uint8_t)bin->class;
    slab->first = (uint16_t)((offset + class->bytes - 1) / class->bytes);
    slab->capacity = (uint16_t)((offset + bytes) / class->bytes - slab->first);
    slab->free_count = slab->capacity;
    slab->fresh = 0;
    memset(slab->free_bits, 0, slab_words(slab) * sizeof(slab->free_bits[0]));
    CHECK(slab->capacity <= SLAB_OBJECTS_MOST);
    /* release: a thread that finds the slab by the page map finds its bin */
    __atomic_store_n(&slab->span.owner, bin, __ATOMIC_RELEASE);
    if (bin->page_heap->other)
        page_map_fill_entries(slab->span.start, pages, entry_tagged(&slab->span, bin->class));
    page_map_fill_classes(slab->span.start, pages, class_byte(bin->page_heap, bin->class));
    GAUGE_ADD(bin->slab_count, 1);
    bin_count_free(bin, slab->capacity, 0);
    GAUGE_ADD(bin->total_objects, slab->capacity);
    COUNT(slabs_made, 1);
    return slab;
}

/* Releases an empty slab that is in no list. */
static void slab_release(struct bin *bin, struct slab *slab)
{
    CHECK(slab->free_count == slab->capacity);
    GAUGE_ADD(bin->slab_count, (uint32_t)-1);
    bin_count_free(bin, 0, slab->capacity);
    GAUGE_ADD(bin->total_objects, -(size_t)slab->capacity);
    page_map_fill_classes(slab->span.start, slab->span.pages, 0);
    span_free(bin->page_heap, &slab->span, class_bytes(bin->class));
    COUNT(slabs_released, 1);
}

/* ---- Taking objects ---- */

/* Takes objects that were handed out before: those whose bits are set, lowest first. */
static NOINLINE size_t slab_alloc_used(struct slab *slab, uintptr_t *objects, size_t count)
{
    size_t taken = 0;
    unsigned bytes = (unsigned)class_bytes(slab->span.class);
    uintptr_t first = slab_object(slab, 0); /* of the word */
    size_t words = (slab->fresh + 63u) / 64;
    for (size_t word = 0; word < words && taken < count; word++, first += (size_t)64 * bytes) {
        uint64_t bits = slab->free_bits[word];
        for (; bits != 0 && taken < count; bits &= bits - 1)
            objects[taken++] = first + bit_lowest(bits) * bytes;
        slab->free_bits[word] = bits;
    }
    slab->free_count -= (uint16_t)taken;
    return taken;
}

/* Takes objects from behind the border, but not more than begin in the first one's page: their
 * keys will be written, and pages that nobody asked for should not be touched. */
static size_t slab_alloc_fresh(struct slab *slab, uintptr_t *objects, size_t count)
{
    size_t bytes = class_bytes(slab->span.class);
    uintptr_t object = slab_object(slab, slab->fresh);
    uintptr_t page_end = align_down(object, PAGE_BYTES) + PAGE_BYTES;
    count = size_min(count, (size_t)(slab->capacity - slab->fresh));
    count = size_min(count, (page_end - object + bytes - 1) / bytes);
    for (uintptr_t *end = objects + count; objects < end; object += bytes)
        *objects++ = object;
    slab->fresh += (uint16_t)count;
    slab->free_count -= (uint16_t)count;
    return count;
}

/* Whether the next object of a slab is one that was never handed out. */
static bool slab_is_fresh(const struct slab *slab)
{
    return slab->free_count + slab->fresh == slab->capacity;
}

/* The objects that a bin hands out at a time: used before; never used; never used, in a slab that
 * was all zero. */
enum taken_as { TAKEN_USED, TAKEN_FRESH, TAKEN_ZERO };

/* Reports those whose first word is not zero although nobody was ever given them: the program wrote
 * over the end of the object before. */
static COLD void objects_report_written(const uintptr_t *objects, size_t count, size_t bytes)
{
    for (size_t i = 0; i < count; i++)
        if (*object_key_word(objects[i]) != 0) {
            struct misuse misuse = misuse_of_object(MISUSE_BEYOND, objects[i], bytes);
            misuse_report("malloc", &misuse);
        }
}

/* Writes the keys of objects that were never handed out, and so lie side by side. No lock is held:
 * its release would wait until the memory, which may be far from the processor, has come. The words
 * that stand there are looked at first, all at once. The page, in which all of them begin, is
 * written to before that: a page that is read first is faulted in twice. */
static void objects_set_keys(const uintptr_t *objects, size_t count, bool zero, size_t bytes)
{
    uint64_t key = page_map.key, found = 0;
    uintptr_t end = objects[0] + count * bytes;
    if (zero) {
        object_key_word(objects[0])[1] = 0;
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        for (uintptr_t object = objects[0]; object < end; object += bytes)
            found |= *object_key_word(object);
        if (UNLIKELY(found != 0))
            objects_report_written(objects, count, bytes);
    }
    for (uintptr_t object = objects[0]; object < end; object += bytes)
        *object_key_word(object) = key + object; /* object_key(), loaded once */
}

/* The slab to take from next: the fullest that has free objects, or a new one. */
static struct slab *bin_next_slab(struct bin *bin, bool may_grow)
{
    for (unsigned i = 0; i < BIN_LEVELS; i++)
        if (!list_empty(&bin->level[i])) {
            struct list *node = bin->level[i].next;
            list_remove(node);
            return CONTAINER_OF(node, struct slab, span.link);
        }
    /* At its limit a heap may have pages for a slab, and metadata, or not: after a refusal the next
     * requests do not look. */
    static struct backoff refusals;
    bool dry = page_heap_is_dry(bin->page_heap);
    if (!may_grow || (dry && !backoff_try(&refusals)))
        return NULL;
    struct slab *slab = slab_new(bin);
    if (dry)
        backoff_note(&refusals, slab != NULL);
    return slab;
}

/* Takes objects that are all fresh, or all were handed out before. The lock must be held. */
static size_t alloc_locked(struct bin *bin, uintptr_t *objects, size_t count, bool may_grow,
                           enum taken_as *as)
{
    size_t taken = 0;
    while (taken < count) {
        if (bin->current == NULL || bin->current->free_count == 0) {
            struct slab *next = bin_next_slab(bin, may_grow && taken == 0);
            if (next == NULL)
                break;
            if (bin->current != NULL)
                bin->current->settle_at = SETTLE_FIRST;
            bin->current = next;
            next->settle_at = SETTLE_NEVER;
        }
        bool fresh = slab_is_fresh(bin->current);
        if (fresh && taken != 0)
            break; /* enough was found without touching new memory */
        size_t got = fresh ? slab_alloc_fresh(bin->current, objects, count)
                           : slab_alloc_used(bin->current, objects + taken, count - taken);
        taken += got;
        bin_count_free(bin, 0, got);
        if (fresh) {
            *as = bin->current->span.zero ? TAKEN_ZERO : TAKEN_FRESH;
            break;
        }
    }
    return taken;
}

size_t bin_alloc(struct bin *bin, uintptr_t *objects, size_t count, bool may_grow)
{
    enum taken_as as = TAKEN_USED;
    lock_acquire(&bin->lock);
    size_t taken = alloc_locked(bin, objects, count, may_grow, &as);
    lock_release(&bin->lock);
    if (as != TAKEN_USED && !bin->page_heap->untouched)
        objects_set_keys(objects, taken, as == TAKEN_ZERO, class_bytes(bin->class));
    return taken;
}

/* ---- Giving objects back ---- */

static struct misuse misuse_in_slab(const struct slab *slab, uintptr_t address)
{
    size_t class = slab->span.class;
    struct misuse misuse = {.address = address, .bytes = class_bytes(class)};
    unsigned index = grid_index(address, class) - slab->first; /* wraps below the first */
    if (index >= slab->fresh) {
        misuse.kind = MISUSE_UNKNOWN;
    } else if (bitmap_get(slab->free_bits, index)) {
        misuse.kind = MISUSE_DOUBLE_FREE;
    } else if (!on_grid(address, class)) {
        misuse.kind = MISUSE_INSIDE;
        misuse.start = slab_object(slab, index);
    }
    return misuse;
}

COLD struct misuse slab_misuse(uintptr_t address)
{
    struct slab *slab = slab_guess(address);
    struct bin *bin = bin_of(slab);
    if (bin == NULL)
        return (struct misuse){.kind = MISUSE_UNKNOWN, .address = address};
    lock_acquire(&bin->lock);
    struct misuse misuse = misuse_in_slab(slab, address);
    lock_release(&bin->lock);
    return misuse;
}

/* Whether an empty slab should go: not the current one, and not if the bin would be left with less
 * than one slab's worth, or a program that goes up and down by one object makes and releases it at
 * every turn. */
static bool slab_is_surplus(const struct bin *bin, const struct slab *slab)
{
    return slab != bin->current && bin->free_objects >= 2u * slab->capacity;
}

/* Puts a slab, of which `given` objects were given back, where it belongs now. The lock of its bin
 * must be held. */
static NOINLINE void slab_settle(struct bin *bin, struct slab *slab, size_t given)
{
    if (slab->free_count != given)
        list_remove(&slab->span.link);
    if (slab->free_count == slab->capacity && slab_is_surplus(bin, slab))
        slab_release(bin, slab);
    else
        slab_list(bin, slab);
}

/* Takes back as many of the first objects as lie in one slab, up to one that is wrong; returns how
 * many. misuse_in_slab says what is wrong with that: a structure for each answer took half of the
 * time of all this. The lock of its bin must be held. */
static ALWAYS_INLINE size_t slab_free(struct bin *bin, struct slab *slab, const uintptr_t *objects,
                                      size_t count)
{
    uintptr_t start = (uintptr_t)slab->span.start;
    size_t bytes = (size_t)slab->span.pages << PAGE_SHIFT, given = 0;
    uint64_t reciprocal = page_map.reciprocal[slab->span.class];
    do {
        /* One multiplication serves for on_grid and grid_index. */
        uint64_t product = (uint16_t)objects[given] * reciprocal;
        unsigned index = (unsigned)(product >> 32) - slab->first; /* wraps below the first */
        if (UNLIKELY(index >= slab->fresh || (uint32_t)product >= GRID_BYTES))
            break;
        uint64_t bit = (uint64_t)1 << (index % 64);
        if (UNLIKELY((slab->free_bits[index / 64] & bit) != 0))
            break;
        slab->free_bits[index / 64] |= bit;
        given++;
    } while (given < count && objects[given] - start < bytes);
    slab->free_count += (uint16_t)given;
    bin_count_free(bin, given, 0);
    if (given != 0 && slab->free_count >= slab->settle_at)
        slab_settle(bin, slab, given);
    return given;
}

/* Objects (machine): so far ahead a slab's descriptor is prefetched, since objects that are freed
 * in no order lie in a slab each. */
enum { FREE_AHEAD = 16 };

static inline void slab_prefetch(uintptr_t address)
{
    const struct slab *slab = slab_guess(address);
    if (UNLIKELY(slab == NULL))
        return;
    __builtin_prefetch(slab, 1);
    __builtin_prefetch(slab->free_bits, 1);
}

/* Lets go of the lock that is held, if any. */
static inline void bin_unlock(struct bin **locked)
{
    if (*locked != NULL)
        lock_release(&(*locked)->lock);
    *locked = NULL;
}

static inline void bin_lock(struct bin **locked, struct bin *bin)
{
    if (bin != NULL)
        lock_acquire(&bin->lock);
    *locked = bin;
}

/* Reports an object that slab_free did not take, and lets go of the lock for that. */
static COLD void slabs_report(struct bin **locked, uintptr_t object, const char *call)
{
    struct misuse misuse = {.kind = MISUSE_UNKNOWN, .address = object};
    struct slab *slab = slab_guess(object);
    if (*locked != NULL && bin_of(slab) == *locked) {
        misuse = misuse_in_slab(slab, object);
        /* What nobody was ever given is zero, but for the key that this free has written. */
        if (misuse.kind == MISUSE_UNKNOWN && *object_key_word(object) == object_key(object))
            *object_key_word(object) = 0;
    }
    bin_unlock(locked);
    if (call != NULL)
        misuse_report(call, &misuse); /* which returns if it only warns */
}

/* Gives back the objects of one bin, that of the first. Those of others come to the front; returns
 * how many these are. */
static ALWAYS_INLINE size_t free_of_one_bin(uintptr_t *objects, size_t count, const char *call)
{
    struct bin *locked = NULL;
    size_t others = 0;
    for (size_t i = 0; i < count;) {
        if (i + FREE_AHEAD < count)
            slab_prefetch(objects[i + FREE_AHEAD]);
        struct slab *slab = slab_guess(objects[i]);
        struct bin *bin = bin_of(slab);
        if (UNLIKELY(bin != locked)) {
            if (locked != NULL) {
                objects[others++] = objects[i++];
                continue;
            }
            bin_lock(&locked, bin);
            slab = slab_guess(objects[i]); /* under the lock it is asked for again */
            bin = bin_of(slab);
        }
        size_t given = 0;
        if (LIKELY(bin != NULL && bin == locked))
            given = slab_free(bin, slab, objects + i, count - i);
        if (UNLIKELY(given == 0)) {
            slabs_report(&locked, objects[i], call);
            given = 1;
        }
        i += given;
    }
    bin_unlock(&locked);
    return others;
}

void slabs_free(uintptr_t *objects, size_t count, const char *call)
{
    for (size_t i = 0; i < size_min(count, FREE_AHEAD); i++)
        if (i == 0 || (objects[i] ^ objects[i - 1]) >= PAGE_BYTES)
            slab_prefetch(objects[i]);
    while (count != 0)
        count = free_of_one_bin(objects, count, call);
}

/* Gives back an object that is no slab's, or says why not: by its key it may wait in a magazine, of
 * which the bitmap does not know. The lock must be held. */
static COLD struct misuse free_one_locked(struct bin *bin, struct slab *slab, uintptr_t address)
{
    struct misuse misuse = misuse_in_slab(slab, address);
    if (UNLIKELY(misuse.kind != MISUSE_NONE))
        return misuse;
    if (!bin->page_heap->untouched) {
        if (UNLIKELY(*object_key_word(address) == object_key(address))) {
            misuse.kind = MISUSE_DOUBLE_FREE;
            return misuse;
        }
        *object_key_word(address) = object_key(address);
    }
    slab_free(bin, slab, &address, 1);
    return misuse;
}

COLD struct misuse slab_free_one(uintptr_t address)
{
    struct misuse misuse = {.kind = MISUSE_UNKNOWN, .address = address};
    struct slab *slab = slab_guess(address);
    struct bin *bin = bin_of(slab);
    if (bin == NULL)
        return misuse;
    lock_acquire(&bin->lock);
    if (LIKELY(slab_guess(address) == slab && bin_of(slab) == bin))
        misuse = free_one_locked(bin, slab, address);
    lock_release(&bin->lock);
    return misuse;
}

COLD void bin_trim(struct bin *bin)
{
    lock_acquire(&bin->lock);
    struct slab *current = bin->current;
    if (current != NULL && current->free_count == current->capacity) {
        bin->current = NULL;
        slab_release(bin, current);
    }
    struct list *last = &bin->level[BIN_LEVELS - 1];
    for (struct list *node = last->next; node != last;) {
        struct slab *slab = CONTAINER_OF(node, struct slab, span.link);
        node = node->next;
        if (slab->free_count == slab->capacity) {
            list_remove(&slab->span.link);
            slab_release(bin, slab);
        }
    }
    lock_release(&bin->lock);
}
