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

/* Objects: so far from the one before, an object is still near it. */
enum { NEAR_OBJECTS = 4 };

/* Objects: of so many or a few less it is looked at where the one before lies. They are an odd
 * number apart, so that what is freed in turns is seen. */
enum { ORDER_LOOKS = 32 };

/* One part in: of those that are looked at, so many may be far and back. With a half a compiler had
 * a twentieth more memory at the peak, and was no faster. */
enum { FAR_SHARE = 8 };

bool magazine_is_in_order(struct magazine *magazine, size_t object_bytes)
{
    size_t capacity = magazine_capacity(magazine->log), step = (1 + capacity / ORDER_LOOKS) | 1;
    size_t near = NEAR_OBJECTS * object_bytes, far = 0;
    const uintptr_t *objects = magazine_begin(magazine);
    for (size_t i = 2; i < capacity; i += step) {
        uintptr_t to = objects[i] - objects[i - 1], before = objects[i - 1] - objects[i - 2];
        bool turns = (intptr_t)(to ^ before) < 0; /* one up, one down */
        far += turns && to + near > 2 * near;     /* to either side */
    }
    return far <= capacity / step / FAR_SHARE;
}

void magazine_free(struct magazine *magazine)
{
    meta_free(magazine, META_LEAST << magazine->log);
}
