/*
 * Making magazines. See magazine.h.
 */
#include "magazine/magazine.h"

#include <string.h>

#include "meta/meta.h"

struct magazine *magazine_new(unsigned log)
{
    struct magazine *magazine = meta_alloc(META_LEAST << log);
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

struct magazine_part magazine_above(uintptr_t *top)
{
    struct magazine_part part = {NULL, top, 0};
    while (part.count < MAGAZINE_SLOTS_MOST && top[part.count] >= MARK_LIMIT)
        part.count++;
    uintptr_t *end = top + part.count;
    unsigned log = 0;
    while (log < MAGAZINE_LOG_MOST && magazine_capacity(log) < *end)
        log++;
    if (magazine_capacity(log) != *end || part.count > *end)
        return part;
    struct magazine *magazine = magazine_of_end(end);
    /* Where no magazine of that size lies, nothing is looked at. */
    if ((uintptr_t)magazine % (META_LEAST << log) == 0 && magazine->log == log &&
        magazine->slots[0] == *end)
        part.magazine = magazine;
    return part;
}

void magazine_free(struct magazine *magazine)
{
    meta_free(magazine, META_LEAST << magazine->log);
}
