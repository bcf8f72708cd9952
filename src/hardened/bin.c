/*
 * Free hardened objects. See bin.h.
 */
#include "hardened/bin.h"

#include <string.h>

#include "base/peek.h"
#include "hardened/dice.h"
#include "hardened/hard_pages.h"
#include "meta/misuse.h"
#include "meta/page_map.h"

/* One part in: of the slabs in use, whole slabs stay as they are up to that, for what comes next,
 * if it is more than SNUG_DIRTY says. */
enum { WHOLE_SHARE = 4 };

void hard_bin_init(struct hard_bin *bin, size_t class, uint64_t random)
{
    *bin =
        (struct hard_bin){.class = (uint32_t)class, .zone_bytes = ZONE_FIRST, .random = random | 1};
    lock_init(&bin->lock, RANK_HARD_BIN);
    list_init(&bin->open);
}

static uint64_t *slab_bits(const struct hard_slab *slab)
{
    return slab->zone->bits + (size_t)slab->number * slab->zone->words;
}

static struct hard_slab *slab_of_link(struct list *link)
{
    return CONTAINER_OF(link, struct hard_slab, link);
}

static bool slab_is_whole(const struct hard_slab *slab)
{
    return slab->free == hard_classes[slab->zone->class].per_slab;
}

/* A slab that has objects; NULL: there is no memory. The lock must be held, here and below. */
static struct hard_slab *bin_open_slab(struct hard_bin *bin, struct hard_zones *zones)
{
    if (!list_empty(&bin->open))
        return slab_of_link(bin->open.next);
    struct hard_slab *slab = bin->zones != NULL ? zone_open_slab(zones, bin->zones) : NULL;
    if (slab == NULL) {
        size_t least = 8 * hard_classes[bin->class].bytes;
        struct hard_zone *zone =
            zone_new(zones, bin->class, size_min(size_max(bin->zone_bytes, least), ZONE_MOST));
        if (zone == NULL)
            return NULL;
        zone->next = bin->zones;
        bin->zones = zone;
        bin->zone_bytes = size_min(2 * bin->zone_bytes, ZONE_MOST);
        slab = zone_open_slab(zones, zone);
    }
    list_push(&bin->open, &slab->link);
    GAUGE_ADD(bin->total, slab->free);
    GAUGE_ADD(bin->in_slabs, slab->free);
    return slab;
}

/* Called when a slab that is whole, with all its objects in it, and not purged is about to be taken
 * from, or was purged. */
static void slab_is_no_more_dirty(struct hard_zones *zones, const struct hard_slab *slab)
{
    gauge_change(&zones->whole, -(size_t)slab->zone->row->slab_bytes);
}

static void slab_is_purged(struct hard_zones *zones, struct hard_slab *slab)
{
    slab->purged = true;
    gauge_change(&zones->present, -(size_t)slab->zone->row->slab_bytes);
}

/* Makes pages present that are not, and leaves what they hold: they are about to be read and then
 * written, each of which would be a page fault. */
static NOINLINE void pages_touch(uintptr_t start, uintptr_t end)
{
    size_t page = os_kernel_page_size();
    for (uintptr_t at = start; at < end; at = align_down(at, page) + page) {
        uint64_t zero = 0;
        /* relaxed, both: it is nobody else's; one instruction, which no compiler leaves out */
        __atomic_compare_exchange_n((canary_word *)at, &zero, 0, false, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED);
    }
}

/* Objects of more than a page that are new are not looked at when they are handed out, since that
 * would touch them. If the system has pages of one all the same, it was written to, since the slab
 * was purged or before it was ever opened. So it counts as freed, and is looked at. */
static COLD void slab_find_touched(const struct hard_zones *zones, const struct hard_slab *slab,
                                   uint16_t *states)
{
    const struct hard_class *row = slab->zone->row;
    uint32_t there = pages_there(zones->provider, slab_start(slab), row->slab_bytes);
    for (size_t i = 0; i < row->per_slab; i++)
        if (states[i] == STATE_NEW && pages_have(there, i * row->bytes, row->bytes))
            states[i] = STATE_FREE;
}

/* Takes up to `count` objects of a slab that has some, from a random one on, or from the one that
 * came back last. */
static size_t slab_take(struct hard_bin *bin, struct hard_zones *zones, struct hard_slab *slab,
                        struct hard_entry *entries, size_t count)
{
    const struct hard_class *row = &hard_classes[bin->class];
    size_t words = slab->zone->words, taken = 0;
    size_t number = bin->class < HARD_KEPT ? dice_below(&bin->random, row->per_slab) : slab->last;
    uint16_t *states = &slab->zone->states[(size_t)slab->number * row->per_slab];
    uint64_t *bits = slab_bits(slab);
    uintptr_t start = slab_start(slab);
    if (slab_is_whole(slab) && !slab->purged)
        slab_is_no_more_dirty(zones, slab);
    /* In slabs of many pages only the objects that are taken are touched. Of larger objects only
     * those are looked at that somebody has touched. */
    bool each_is_touched = row->bytes > HARD_FAST_MOST && row->bytes <= PAGE_BYTES;
    if (slab->purged && row->bytes <= HARD_FAST_MOST)
        pages_touch(start, start + row->slab_bytes);
    if (slab->purged && row->bytes > PAGE_BYTES && !has_pages(row->bytes))
        slab_find_touched(zones, slab, states);
    if (slab->purged)
        gauge_change(&zones->present, row->slab_bytes);
    slab->purged = false;
    count = size_min(count, slab->free);
    size_t at = number / 64;
    uint64_t left = bits[at] >> number % 64 << number % 64;
    while (taken < count) {
        for (; left != 0 && taken < count; left &= left - 1) {
            number = at * 64 + bit_lowest(left);
            uintptr_t object = start + number * row->bytes;
            if (each_is_touched && states[number] == STATE_NEW)
                pages_touch(object, object + row->bytes);
            entries[taken++] = hard_entry_of(object, bin->class, &states[number]);
            bits[at] &= ~(left & -left);
        }
        at = at + 1 < words ? at + 1 : 0;
        left = bits[at];
    }
    slab->free = (uint16_t)(slab->free - count);
    if (slab->free == 0)
        list_remove(&slab->link);
    return count;
}

/* Layout: bits of a random number that one draw takes. */
enum { SHUFFLE_BITS = 16 };

static void entries_shuffle(uint64_t *random, struct hard_entry *entries, size_t count)
{
    uint64_t bits = 0;
    for (size_t i = 1; i < count; i++, bits >>= SHUFFLE_BITS) {
        if (bits == 0)
            bits = dice_word(random);
        struct hard_entry *other = &entries[(uint16_t)bits * (i + 1) >> SHUFFLE_BITS];
        struct hard_entry entry = *other;
        *other = entries[i];
        entries[i] = entry;
    }
}

size_t hard_bin_take(struct hard_bin *bin, struct hard_zones *zones, struct hard_entry *entries,
                     size_t count)
{
    size_t taken = 0;
    lock_acquire(&bin->lock);
    do {
        /* A new slab is opened for the first object only. */
        struct hard_slab *slab = bin_open_slab(bin, zones);
        if (slab == NULL)
            break;
        taken += slab_take(bin, zones, slab, &entries[taken], count - taken);
    } while (taken < count && !list_empty(&bin->open));
    GAUGE_ADD(bin->in_slabs, -taken);
    entries_shuffle(&bin->random, entries, taken);
    lock_release(&bin->lock);
    return taken;
}

/* ---- Back ---- */

/* Purges a whole slab. Returns 0, or the address of an object in it that was written to; then it is
 * not purged. */
static uintptr_t slab_purge(struct hard_bin *bin, struct hard_zones *zones, struct hard_slab *slab)
{
    const struct hard_class *row = &hard_classes[bin->class];
    uintptr_t start = slab_start(slab);
    uint16_t *states = &slab->zone->states[(size_t)slab->number * row->per_slab];
    for (uint32_t i = 0; i < row->per_slab; i++) {
        uintptr_t object = start + (size_t)i * row->bytes;
        if (states[i] != STATE_NEW && !object_rests(zones->provider, object, row->bytes))
            return object;
    }
    slab_is_no_more_dirty(zones, slab);
    slab_is_purged(zones, slab);
    /* A slab may be a part of a larger page of the system's: its neighbours would go with it. */
    bool whole = (start | row->slab_bytes) % os_page_size() == 0;
    if (whole && zones->provider->purge(zones->provider, (void *)start, row->slab_bytes))
        memset(states, 0, row->per_slab * sizeof(*states)); /* STATE_NEW */
    return 0;
}

/* Moves a slab to the end of the list, so that those that are partly in use serve first. */
static void slab_put_last(struct hard_bin *bin, struct hard_slab *slab)
{
    list_remove(&slab->link);
    list_push(bin->open.prev, &slab->link);
}

/* Keeps or purges a slab that has become whole. Returns as hard_bin_put. */
static uintptr_t slab_keep(struct hard_bin *bin, struct hard_zones *zones, struct hard_slab *slab)
{
    if (hard_classes[bin->class].per_slab > 1)
        slab_put_last(bin, slab);
    if (has_pages(slab->zone->row->bytes)) { /* its free did that; it is looked at later */
        slab_is_purged(zones, slab);
        return 0;
    }
    gauge_change(&zones->whole, slab->zone->row->slab_bytes);
    /* relaxed, both: what is a little late is purged later */
    size_t whole = __atomic_load_n(&zones->whole, __ATOMIC_RELAXED);
    size_t used = rest_of(__atomic_load_n(&zones->present, __ATOMIC_RELAXED), whole);
    if (whole <= size_max(zones->whole_most, used / WHOLE_SHARE))
        return 0;
    return slab_purge(bin, zones, slab);
}

/* The zone of an object, which may be that of the one before. */
static ALWAYS_INLINE const struct hard_zone *zone_of(const struct hard_zone *last, uintptr_t object)
{
    if (last != NULL && object - (uintptr_t)last->span.start < (size_t)last->span.pages
                                                                   << PAGE_SHIFT)
        return last;
    return (const struct hard_zone *)page_map_entry_fast(object);
}

static uintptr_t object_put(struct hard_bin *bin, struct hard_zones *zones,
                            const struct hard_zone *zone, uintptr_t object)
{
    struct hard_place place = zone_place(zone, object);
    struct hard_slab *slab = &zone->slabs[place.slab];
    bitmap_set(slab_bits(slab), place.number);
    bool first = slab->free++ == 0;
    if (bin->class >= HARD_KEPT) { /* what came back last serves next */
        slab->last = (uint16_t)place.number;
        if (!first)
            list_remove(&slab->link);
        first = true;
    }
    if (first)
        list_push(&bin->open, &slab->link);
    return slab_is_whole(slab) ? slab_keep(bin, zones, slab) : 0;
}

uintptr_t hard_bin_put(struct hard_bin *bin, struct hard_zones *zones,
                       const struct hard_entry *entries, size_t count)
{
    uintptr_t written = 0;
    const struct hard_zone *zone = NULL;
    lock_acquire(&bin->lock);
    for (size_t i = 0; i < count; i++) {
        uintptr_t object = entry_object(&entries[i]);
        zone = zone_of(zone, object);
        uintptr_t found = object_put(bin, zones, zone, object);
        written = found != 0 ? found : written;
    }
    GAUGE_ADD(bin->in_slabs, count);
    lock_release(&bin->lock);
    return written;
}

COLD size_t hard_bin_trim(struct hard_bin *bin, struct hard_zones *zones)
{
    size_t purged = 0;
    lock_acquire(&bin->lock);
    LIST_EACH(node, &bin->open) {
        struct hard_slab *slab = slab_of_link(node);
        if (slab_is_whole(slab) && !slab->purged && slab_purge(bin, zones, slab) == 0)
            purged += hard_classes[bin->class].slab_bytes;
    }
    lock_release(&bin->lock);
    return purged;
}

/* ---- For those who look at objects ---- */

COLD void hard_report_written(uintptr_t address, size_t class)
{
    struct misuse misuse = {
        .kind = MISUSE_WRITTEN, .address = address, .bytes = hard_classes[class].bytes};
    misuse_report("malloc", &misuse);
}

COLD void hard_bin_await(struct hard_bin *bin)
{
    lock_acquire(&bin->lock);
    lock_release(&bin->lock);
}

/* ---- In a child of fork ---- */

COLD void hard_bin_adopt(struct hard_bin *bin, struct hard_zones *zones,
                         const struct hard_entry *entry)
{
    const struct hard_class *row = &hard_classes[bin->class];
    uintptr_t object = entry_object(entry);
    lock_acquire(&bin->lock);
    const struct hard_zone *zone = (struct hard_zone *)page_map_entry(object);
    struct hard_place place = zone_place(zone, object);
    struct hard_slab *slab = &zone->slabs[place.slab];
    bool sound = &zone->states[place.id] == entry->state && *entry->state < STATE_LIVE &&
                 !bitmap_get(slab_bits(slab), place.id % row->per_slab);
    if (sound) {
        memset((void *)object, 0, row->bytes);
        *entry->state = STATE_FREE;
        bitmap_set(slab_bits(slab), place.id % row->per_slab);
        GAUGE_ADD(bin->in_slabs, 1);
        if (slab->free++ == 0)
            list_push(&bin->open, &slab->link);
        if (slab_is_whole(slab))
            gauge_change(&zones->whole, row->slab_bytes);
    }
    lock_release(&bin->lock);
}
