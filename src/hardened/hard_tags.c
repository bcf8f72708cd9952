/*
 * Tags of hardened objects. See hard_tags.h.
 */
#include "hardened/hard_tags.h"

/* A bit for each tag that a neighbour in the same slab has. If a neighbour gets another tag
 * meanwhile, that one is not left out. */
static unsigned tags_beside(const struct hard_zone *zone, uintptr_t address)
{
    struct hard_place place = zone_place(zone, address);
    unsigned tags = 0;
    /* The first 16 bytes of a block have its tag. */
    if (place.number != 0)
        tags |= 1u << tags_number(tags_of_memory(address - zone->bytes));
    if (place.number + 1 < zone->per_slab)
        tags |= 1u << tags_number(tags_of_memory(address + zone->bytes));
    return tags;
}

uintptr_t hard_tag(const struct hard_zone *zone, uintptr_t address, size_t bytes)
{
    if (!zone->tagged)
        return address;
    uintptr_t pointer = tags_draw(address, tags_beside(zone, address));
    tags_set(pointer, size_max(bytes, 1));
    return pointer;
}

void hard_tag_again(const struct hard_zone *zone, uintptr_t pointer, size_t bytes)
{
    if (!zone->tagged)
        return;
    size_t tagged = align_up(size_max(bytes, 1), TAG_BYTES);
    tags_set(pointer, tagged);
    if (tagged < zone->bytes)
        tags_set(tags_strip(pointer) + tagged, zone->bytes - tagged);
}

/* A pointer whose tag does not fit was one to the block that was there before. A pointer without a
 * tag was made by a program that left the tag out. */
static COLD struct misuse unfit(const struct hard_zone *zone, uintptr_t pointer)
{
    uintptr_t address = tags_strip(pointer);
    if (!zone->tagged || pointer == address)
        return (struct misuse){.kind = MISUSE_UNKNOWN, .address = address};
    return (struct misuse){.kind = MISUSE_DOUBLE_FREE, .address = address, .bytes = zone->bytes};
}

bool hard_tag_fits(const struct hard_zone *zone, uintptr_t pointer, struct misuse *misuse)
{
    uintptr_t address = tags_strip(pointer), memory = address;
    if (zone->tagged) {
        struct hard_place place = zone_place(zone, address);
        if (!place_is_object(zone, place) || state_of(&zone->states[place.id]) < STATE_LIVE)
            return true;
        memory = tags_of_memory(address);
    }
    if (LIKELY(memory == pointer))
        return true;
    *misuse = unfit(zone, pointer);
    return false;
}
