/*
 * Tags of hardened objects, where memory can have them (platform/tags.h).
 *
 * The idea: free memory has tag 0, as fresh and purged memory has, and so has all of an object
 * behind the 16 bytes that its block ends in. A block in use has a random tag, other than its
 * neighbours' of the same slab, and the pointer to it that the program gets has the same tag. So an
 * access faults at once if it goes from one block into another, or behind the last 16 bytes of a
 * block, or to a block that was freed. If another block lies there by now, it faults in all but one
 * of 13 cases or so.
 *
 * All other code for hardened objects uses addresses without a tag, which are right for free
 * objects. Code that looks at blocks in use has the processor not look meanwhile (tags_ignore).
 *
 * Only objects of up to a page have tags: to tag larger ones would touch what the program does not.
 */
#ifndef SNUG_HARDENED_HARD_TAGS_H
#define SNUG_HARDENED_HARD_TAGS_H

#include "hardened/zone.h"
#include "meta/misuse.h"
#include "platform/tags.h"

/* The pointer that a program gets to a block of so many bytes that was just taken at an address. */
uintptr_t hard_tag(const struct hard_zone *zone, uintptr_t address, size_t bytes);

/* A block has so many bytes now: gives them the tag of the pointer to it, and the rest none. */
void hard_tag_again(const struct hard_zone *zone, uintptr_t pointer, size_t bytes);

/* Whether a pointer into a zone has the tag that the memory has there; otherwise `*misuse` says
 * what is wrong. True also if there is no block in use, whatever the tags: the caller finds that
 * out. */
bool hard_tag_fits(const struct hard_zone *zone, uintptr_t pointer, struct misuse *misuse);

/* Takes the tag away from an object that is freed. */
static ALWAYS_INLINE void hard_untag(const struct hard_zone *zone, uintptr_t address)
{
    (void)zone;
    (void)address;
    if (tags_are_on() && zone->tagged)
        tags_set(address, zone->bytes);
}

#endif
