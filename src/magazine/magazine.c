/*
 * Making magazines. See magazine.h.
 */
#include "magazine/magazine.h"

#include <string.h>

#include "meta/meta.h"

/* The mark for the size whose header is so many words in front of it. */
#define END_MARK(words) {0, (words) * sizeof(uintptr_t)}
#define END_MARK_OF(log) END_MARK((META_LEAST << (log)) / sizeof(uintptr_t) - 1)
_Static_assert(MAGAZINE_LOG_MOST == 4, "the row below has a mark for each size, and for none");
READ_BY_ALL const struct end_mark end_marks[END_MARKS] = {
    END_MARK_OF(0), END_MARK_OF(1), END_MARK_OF(2), END_MARK_OF(3), END_MARK_OF(4), END_MARK(3),
};

struct magazine *magazine_new(unsigned log)
{
    struct magazine *magazine = meta_alloc_optional(META_LEAST << log);
    if (magazine == NULL)
        return NULL;
    size_t capacity = magazine_capacity(log);
    magazine->link = NULL;
    magazine->count = 0;
    magazine->log = log;
    magazine->slots[0] = capacity;
    /* No slot may look like a mark. */
    memset(&magazine->slots[1], 0xff, capacity * sizeof(uintptr_t));
    magazine->slots[capacity + 1] = end_mark_of(log);
    return magazine;
}

struct magazine_part magazine_above(uintptr_t *top)
{
    struct magazine_part part = {NULL, top, 0};
    while (part.count < MAGAZINE_SLOTS_MOST && !is_end_mark(top[part.count]))
        part.count++;
    uintptr_t *end = top + part.count;
    if (!is_end_mark(*end))
        return part;
    unsigned log = (unsigned)((*end - (uintptr_t)end_marks) / sizeof(struct end_mark));
    if (log > MAGAZINE_LOG_MOST || part.count > magazine_capacity(log))
        return part;
    struct magazine *magazine = magazine_of_end(end);
    /* Where no magazine of that size lies, nothing is looked at. */
    if ((uintptr_t)magazine % (META_LEAST << log) == 0 && magazine->log == log &&
        magazine->slots[0] == magazine_capacity(log))
        part.magazine = magazine;
    return part;
}

void magazine_free(struct magazine *magazine)
{
    meta_free(magazine, META_LEAST << magazine->log);
}
