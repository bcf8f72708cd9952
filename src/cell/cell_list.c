/*
 * What is looked at of the links of free cells. See cell_list.h.
 */
#include "cell/cell_list.h"

bool cell_links_there(const struct free_links *links)
{
    uintptr_t address = (uintptr_t)links;
    return address % CELL_UNIT == 0 && page_map_is_cell(address);
}
