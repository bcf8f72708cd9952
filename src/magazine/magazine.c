/*
 * Making magazines. See magazine.h.
 */
#include "magazine/magazine.h"

#include <string.h>

#include "meta/meta.h"

struct magazine *magazine_new(unsigned log)
{
    struct magazine *magazine = meta_take(META_LEAST << log);
    if (magazine == NULL)
        return NULL;
    size_t capacity = magazine_capacity(log);
    magazine->link = NULL;
    magazine->count = 0;
    magazine->log = log;
    magazine->slots[0] = capacity;
    /* No slot may look like a mark. */
    memset(&magazine->slots[1], 0xff, capacity * sizeof(uintptr_t));
    magazine->slots[capacity + 1] = capacity;
    return magazine;
}

void magazine_free(struct magazine *magazine)
{
    meta_give(magazine, META_LEAST << magazine->log);
}
