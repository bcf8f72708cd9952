/*
 * The profile of another process, entry by entry: what the library noted (src/profile/profile.h),
 * as live/profile.rs has it. The tables never move and nothing in them is removed, so a running
 * program is read as well as one that stands still; its numbers are moments apart then.
 */
#include <string.h>

#include "profile/profile.h"
#include "report/anchor.h"

typedef bool (*outside_reader)(void *context, uintptr_t address, void *value, size_t bytes);

struct outside_profile {
    struct profile copy;
    outside_reader read;
    void *context;
};

/* These four as in live/ffi.rs. */
struct outside_site {
    uint64_t stack;
    uint64_t live_samples, samples;
    uint64_t live_bytes, live_count, bytes, count, peak_bytes, peak_count;
    double live_variance, variance;
};

struct outside_frame {
    uint64_t code;
    uint32_t parent, object;
};

struct outside_block {
    uint64_t address, size;
    uint32_t stack; /* of its site, as outside_site has it */
    uint32_t unused;
};

struct outside_totals {
    uint64_t live_bytes, peak_bytes, lost, on;
    double mean;
};

size_t outside_profile_size(void);
bool outside_profile(outside_reader read, void *context, const struct anchor *anchor,
                     struct outside_profile *profile, struct outside_totals *totals);
bool outside_profile_site(const struct outside_profile *profile, uint32_t number,
                          struct outside_site *site);
bool outside_profile_call(const struct outside_profile *profile, uint32_t number,
                          struct outside_frame *call);
bool outside_profile_object(const struct outside_profile *profile, uint32_t number,
                            struct stack_object *object);
bool outside_profile_block(const struct outside_profile *profile, uint32_t number,
                           struct outside_block *block);
uintptr_t outside_profile_request(const struct anchor *anchor);
uintptr_t outside_profile_served(const struct anchor *anchor, unsigned number);
uintptr_t outside_profile_on(const struct anchor *anchor);

size_t outside_profile_size(void)
{
    return sizeof(struct outside_profile);
}

/* What the entries below are read by. `context` must outlive it. */
bool outside_profile(outside_reader read, void *context, const struct anchor *anchor,
                     struct outside_profile *profile, struct outside_totals *totals)
{
    struct profile *copy = &profile->copy;
    profile->read = read;
    profile->context = context;
    if (!read(context, (uintptr_t)anchor->profile, copy, sizeof(*copy)))
        return false;
    *totals = (struct outside_totals){copy->totals.live_bytes, copy->totals.peak_bytes, copy->lost,
                                      copy->on, (double)copy->rate.mean};
    return true;
}

static bool entry_read(const struct outside_profile *profile, const struct table *table,
                       uint32_t number, void *entry, size_t bytes)
{
    uint32_t place;
    if (number == 0 || number >= table->used || number > UINT32_MAX / 2 ||
        table_chunk_of(number, &place) >= TABLE_CHUNKS) /* `used` is whatever the process says */
        return false;
    return profile->read(profile->context, (uintptr_t)table_at(table, number, bytes), entry, bytes);
}

/* False: there is none, here and below. Sites are numbered from 1 on. */
bool outside_profile_site(const struct outside_profile *profile, uint32_t number,
                          struct outside_site *site)
{
    struct site of;
    if (!entry_read(profile, &profile->copy.sites, number, &of, sizeof(of)))
        return false;
    bool live = site_peak_is_live(&of, &profile->copy.totals);
    *site = (struct outside_site){
        .stack = of.stack,
        .live_samples = of.live_samples,
        .samples = of.samples,
        .live_bytes = of.live_bytes,
        .live_count = of.live_count,
        .bytes = of.bytes,
        .count = of.count,
        .peak_bytes = live ? of.live_bytes : of.peak_bytes,
        .peak_count = live ? of.live_count : of.peak_count,
        .live_variance = of.live_variance,
        .variance = of.variance,
    };
    return true;
}

bool outside_profile_call(const struct outside_profile *profile, uint32_t number,
                          struct outside_frame *call)
{
    struct stack_node node;
    const struct table *table = &profile->copy.stacks.nodes.table;
    if (!entry_read(profile, table, number, &node, sizeof(node)))
        return false;
    *call = (struct outside_frame){node.call.key, node.call.salt, node.object};
    return true;
}

bool outside_profile_object(const struct outside_profile *profile, uint32_t number,
                            struct stack_object *object)
{
    if (!entry_read(profile, &profile->copy.stacks.objects, number, object, sizeof(*object)))
        return false;
    object->name[OBJECT_NAME_MOST - 1] = 0;
    return true;
}

/* A block that is live; address 0: the entry is free. */
bool outside_profile_block(const struct outside_profile *profile, uint32_t number,
                           struct outside_block *block)
{
    struct profile_block of;
    struct site site;
    if (!entry_read(profile, &profile->copy.blocks.table, number, &of, sizeof(of)))
        return false;
    *block = (struct outside_block){of.block.key, of.size, 0, 0};
    if (!entry_read(profile, &profile->copy.sites, of.site, &site, sizeof(site)))
        block->address = 0;
    else
        block->stack = site.stack;
    return true;
}

/* Where a byte of enum profile_request is written; then 0 to the bytes of two words, so that the
 * program comes by. */
uintptr_t outside_profile_request(const struct anchor *anchor)
{
    return (uintptr_t)&anchor->events->wanted.profile;
}

uintptr_t outside_profile_served(const struct anchor *anchor, unsigned number)
{
    return (uintptr_t)anchor->served[number];
}

uintptr_t outside_profile_on(const struct anchor *anchor)
{
    return (uintptr_t)&anchor->profile->on;
}
