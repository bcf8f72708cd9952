/*
 * Who made a hardened block. See hard_maker.h.
 */
#include "hardened/hardened.h"
#include "meta/page_map.h"

bool hard_makers_all, hard_arrays_alike;

void hard_set_maker(struct hardened *hardened, uintptr_t address, enum maker maker)
{
    struct hard_zone *zone = (struct hard_zone *)page_map_entry(address);
    if (zone->class == 0) {
        hard_large_set_maker(zone, maker);
        return;
    }
    uint16_t *state = &zone->states[zone_place(zone, address).id], made = state_made(state);
    state_change(&hardened->bins[zone->class], state, made,
                 (uint16_t)((made & STATE_SIZE) | maker << STATE_MAKER_SHIFT));
}
