/*
 * Realms, zones and their slabs. See zone.h.
 */
#include "hardened/zone.h"

#include "base/peek.h"
#include "hardened/dice.h"
#include "meta/meta.h"
#include "meta/page_map.h"
#include "platform/output.h"
#include "platform/tags.h"

/* Bytes: of the first realm of a heap; later ones have up to half of all before, so that zones have
 * many places to lie at. */
#define REALM_FIRST (4 * MIB)

/* Bytes: of the largest, that the limit of a process is not filled by one. */
#define REALM_MOST (64 * MIB)

/* Bytes: of a unit, at least; no system's page is larger. */
#define UNIT_LEAST (64 * KIB)

/* Slabs: a zone of so many has the first one as a guard in front of the others; in a shorter one
 * that would be too large a part. */
enum { FRONT_GUARD_LEAST = 8 };

/* Bytes: a zone's offsets are divided by one multiplication (hard_divide). */
#define ZONE_LIMIT (8 * MIB)

_Static_assert(REALM_MOST / REALM_UNITS <= ZONE_MOST && ZONE_MOST <= ZONE_LIMIT, "a zone is small");

static COLD void guards_are_refused(void)
{
    static bool said;
    /* relaxed: nothing hangs on it but the line */
    if (__atomic_exchange_n(&said, true, __ATOMIC_RELAXED))
        return;
    static const char line[] = "snug: the system refuses more guard pages (max_map_count? "
                               "seccomp?); going on without\n";
    os_write(2, line, sizeof(line) - 1);
}

bool hard_guard(const struct provider *provider, char *start, size_t bytes)
{
    if (provider->kind != KIND_SYSTEM)
        return false;
    if (os_guard(start, bytes))
        return true;
    guards_are_refused();
    return false;
}

bool hard_give(const struct provider *provider, char *start, size_t bytes)
{
    if (provider->give(provider, start, bytes))
        return true;
    if (provider->kind == KIND_SYSTEM) /* a hole in a mapping is one mapping more */
        guards_are_refused();
    return false;
}

/* ---- Realms ---- */

/* The bits of units that a short realm does not have. */
static uint64_t realm_beyond(const struct hard_realm *realm)
{
    size_t units = realm->bytes / realm->unit;
    return units < REALM_UNITS ? ~(uint64_t)0 << units : 0;
}

/* A realm of so many bytes, or of the half, and so on, down to `least`. The lock must be held, here
 * and below. */
static struct hard_realm *realm_new(struct hard_zones *zones, size_t bytes, size_t least)
{
    struct hard_realm *realm = meta_alloc(sizeof(*realm));
    char *start = NULL;
    if (realm == NULL)
        return NULL;
    for (bytes *= 2; start == NULL && bytes / 2 >= least;) {
        bytes /= 2;
        start = zones->provider->take(zones->provider, bytes, os_page_size());
    }
    if (start != NULL && !page_map_reserve(start, bytes)) {
        zones->provider->give(zones->provider, start, bytes);
        start = NULL;
    }
    if (start == NULL) {
        meta_free(realm, sizeof(*realm));
        return NULL;
    }
    size_t unit = size_max(bytes / REALM_UNITS, UNIT_LEAST);
    *realm =
        (struct hard_realm){.next = zones->realms, .start = start, .bytes = bytes, .unit = unit};
    realm->taken = realm_beyond(realm);
    zones->realms = realm;
    GAUGE_ADD(zones->mapped, bytes);
    return realm;
}

/* `units` units in a row that nobody has, from a random one on; REALM_UNITS: there are none. */
static unsigned realm_find(struct hard_zones *zones, const struct hard_realm *realm, unsigned units)
{
    unsigned from = dice_below(&zones->random, REALM_UNITS);
    uint64_t mask = units == REALM_UNITS ? ~(uint64_t)0 : ((uint64_t)1 << units) - 1;
    for (unsigned i = 0; i < REALM_UNITS; i++) {
        unsigned at = (from + i) % REALM_UNITS;
        if (at + units <= REALM_UNITS && (realm->taken >> at & mask) == 0)
            return at;
    }
    return REALM_UNITS;
}

/* A row of at least `*bytes` bytes in a realm, which become whole units; NULL: it has none. */
static char *realm_cut(struct hard_zones *zones, struct hard_realm *realm, size_t *bytes)
{
    size_t units = (*bytes + realm->unit - 1) / realm->unit;
    if (units > REALM_UNITS)
        return NULL;
    unsigned at = realm_find(zones, realm, (unsigned)units);
    if (at == REALM_UNITS)
        return NULL;
    realm->taken |= (units == REALM_UNITS ? ~(uint64_t)0 : ((uint64_t)1 << units) - 1) << at;
    *bytes = units * realm->unit;
    return realm->start + at * realm->unit;
}

static char *zones_cut(struct hard_zones *zones, size_t *bytes)
{
    for (struct hard_realm *realm = zones->realms; realm != NULL; realm = realm->next) {
        char *start = realm_cut(zones, realm, bytes);
        if (start != NULL)
            return start;
    }
    size_t wish = size_min(size_max(REALM_FIRST, zones->mapped / 2), REALM_MOST);
    wish = (size_t)1 << bit_highest(wish);
    struct hard_realm *realm = realm_new(zones, wish, align_up(*bytes, UNIT_LEAST));
    return realm == NULL ? NULL : realm_cut(zones, realm, bytes);
}

/* ---- Zones ---- */

/* Descriptors that meta_map gave, of zones that are gone: they wait for others of their length, of
 * any heap. Guarded by the lock of metadata. */
static struct hard_zone *spare;

static struct hard_zone *spare_take(size_t bytes)
{
    lock_acquire(&meta_system.lock);
    struct hard_zone **place = &spare;
    while (*place != NULL && (*place)->metas != bytes)
        place = &(*place)->next;
    struct hard_zone *zone = *place;
    if (zone != NULL)
        *place = zone->next;
    lock_release(&meta_system.lock);
    return zone;
}

/* Whether a realm begins at an address. */
static bool realm_begins(const struct hard_zones *zones, const char *start)
{
    const struct hard_realm *realm = zones->realms;
    while (realm != NULL && realm->start != start)
        realm = realm->next;
    return realm != NULL;
}

/* Metadata of so many bytes, all zero. */
static void *meta_of(size_t bytes)
{
    void *meta = bytes <= META_MOST ? meta_alloc(bytes) : spare_take(bytes);
    if (meta != NULL)
        return __builtin_memset(meta, 0, bytes);
    return bytes <= META_MOST ? NULL : meta_map(bytes);
}

/* A zone's descriptor with all that belongs to it, for so many slabs. */
static struct hard_zone *zone_describe(size_t class, size_t slabs)
{
    const struct hard_class *row = &hard_classes[class];
    size_t words = (row->per_slab + 63) / 64;
    size_t head = align_up(sizeof(struct hard_zone), 64),
           of_slabs = slabs * sizeof(struct hard_slab);
    size_t of_bits = slabs * words * sizeof(uint64_t);
    size_t of_states = slabs * row->per_slab * sizeof(uint16_t);
    size_t bytes = head + of_slabs + of_bits + of_states;
    char *at = meta_of(bytes);
    if (at == NULL)
        return NULL;
    struct hard_zone *zone = (struct hard_zone *)at;
    *zone = (struct hard_zone){.row = row,
                               .bytes = row->bytes,
                               .per_slab = row->per_slab,
                               .slab_rest = row->slab_rest,
                               .slab_shift = row->slab_shift,
                               .by_rest = row->by_rest,
                               .class = (uint32_t)class,
                               .slabs_count = (uint32_t)slabs,
                               .metas = (uint32_t)bytes,
                               .words = (uint32_t)words};
    zone->slabs = (struct hard_slab *)(at + head);
    zone->bits = (uint64_t *)(at + head + of_slabs);
    zone->states = (uint16_t *)(at + head + of_slabs + of_bits);
    return zone;
}

/* Makes a guard of a slab's place, if it is still closed. */
static void slab_guard(const struct hard_zones *zones, struct hard_zone *zone, uint32_t number)
{
    struct hard_slab *slab = &zone->slabs[number];
    size_t bytes = hard_classes[zone->class].slab_bytes;
    char *start = zone->span.start + number * bytes;
    if (slab->kind != SLAB_CLOSED || (bytes | (uintptr_t)start) % os_page_size() != 0 ||
        !hard_guard(zones->provider, start, bytes))
        return;
    slab->kind = SLAB_GUARD;
    zone->opened++;
}

struct hard_zone *zone_new(struct hard_zones *zones, size_t class, size_t bytes)
{
    const struct hard_class *row = &hard_classes[class];
    struct hard_zone *zone = NULL;
    char *start = NULL;
    lock_acquire(&zones->lock);
    while (start == NULL && bytes >= row->slab_bytes) {
        size_t cut = bytes;
        start = zones_cut(zones, &cut);
        bytes = start != NULL ? cut : bytes / 2;
    }
    if (start != NULL)
        zone = zone_describe(class, bytes / row->slab_bytes);
    if (zone != NULL && zones->provider->unclean) /* what is free is zero, or was written to */
        __builtin_memset(start, 0, bytes);
    if (zone != NULL) {
        zone->span = (struct span){.start = start,
                                   .owner = zones->owner,
                                   .pages = (uint32_t)(bytes >> PAGE_SHIFT),
                                   .kind = SPAN_HARDENED};
        if (tags_are_on() && row->bytes <= PAGE_BYTES && zones->provider->kind == KIND_SYSTEM)
            zone->tagged = tags_allow(start, bytes);
        zone->follows = !zones->provider->unclean && !realm_begins(zones, start);
        zone->start = (uintptr_t)start;
        zone->owner = zones->owner;
        page_map_fill_entries(start, bytes >> PAGE_SHIFT, (uintptr_t)zone);
        page_map_fill_classes(start, bytes >> PAGE_SHIFT, PAGE_MAP_HARDENED);
        if (zones->guards != 0 && zone->slabs_count >= FRONT_GUARD_LEAST)
            slab_guard(zones, zone, 0);
    }
    lock_release(&zones->lock);
    return zone;
}

struct hard_slab *zone_open_slab(struct hard_zones *zones, struct hard_zone *zone)
{
    const struct hard_class *row = &hard_classes[zone->class];
    if (zone->opened == zone->slabs_count)
        return NULL;
    lock_acquire(&zones->lock); /* the random state is of all bins */
    uint32_t number = dice_below(&zones->random, zone->slabs_count);
    uint32_t last = dice_below(&zones->random, row->per_slab);
    bool guarded = zones->guards != 0 && dice_below(&zones->random, zones->guards) == 0;
    lock_release(&zones->lock);
    while (zone->slabs[number].kind != SLAB_CLOSED)
        number = (number + 1) % zone->slabs_count;
    struct hard_slab *slab = &zone->slabs[number];
    *slab = (struct hard_slab){.zone = zone,
                               .number = (uint16_t)number,
                               .free = (uint16_t)row->per_slab,
                               .last = (uint16_t)last,
                               .kind = SLAB_OPEN,
                               .purged = true};
    uint64_t *bits = zone->bits + number * zone->words;
    for (uint32_t i = 0; i < row->per_slab; i++)
        bitmap_set(bits, i);
    zone->opened++;
    if (guarded && number + 1 < zone->slabs_count)
        slab_guard(zones, zone, number + 1);
    return slab;
}

void zone_forget(struct hard_zone *zone)
{
    page_map_fill_classes(zone->span.start, zone->span.pages, 0);
    page_map_fill_entries(zone->span.start, zone->span.pages, 0);
    if (zone->metas <= META_MOST) {
        meta_free(zone, zone->metas);
        return;
    }
    lock_acquire(&meta_system.lock);
    zone->next = spare;
    spare = zone;
    lock_release(&meta_system.lock);
}

/* Makes a realm that its provider does not take back as good as new. */
static void realm_renew(const struct hard_zones *zones, struct hard_realm *realm)
{
    bool purged = zones->provider->purge(zones->provider, realm->start, realm->bytes);
    for (size_t unit = 0; unit < REALM_UNITS && !purged; unit++)
        if ((realm->taken & ~realm_beyond(realm)) >> unit & 1)
            __builtin_memset(realm->start + unit * realm->unit, 0, realm->unit);
    realm->taken = realm_beyond(realm);
}

void zones_end(struct hard_zones *zones, bool goes_on)
{
    bool guarded = zones->provider->kind == KIND_SYSTEM;
    struct hard_realm *kept = NULL;
    zones->mapped = 0;
    for (struct hard_realm *realm = zones->realms, *next; realm != NULL; realm = next) {
        next = realm->next;
        if (zones->provider->give(zones->provider, realm->start, realm->bytes)) {
            meta_free(realm, sizeof(*realm));
        } else if (goes_on && !guarded) {
            realm_renew(zones, realm);
            realm->next = kept;
            kept = realm;
            zones->mapped += realm->bytes;
        } else { /* what is lost is addresses, not memory */
            zones->provider->purge(zones->provider, realm->start, realm->bytes);
            meta_free(realm, sizeof(*realm));
        }
    }
    zones->realms = kept;
}
