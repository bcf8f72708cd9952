/*
 * The table of all numbers, made from gauges.def and counters.def. Names and texts stand one behind
 * the other in `words`, so the table has no addresses that the loader would have to write. The
 * groups have numbers in it, and their names stand once.
 */
#include "report/numbers.h"

#include <string.h>

/* A group of the tables that is not here does not compile. */
enum group {
    GROUP_memory,
    GROUP_requested,
    GROUP_blocks,
    GROUP_process,
    GROUP_peaks,
    GROUP_other,
    GROUP_system,
    GROUP_locks,
    GROUP_events
};

static const char groups[][12] = {"memory", "requested", "blocks", "process", "peaks",
                                  "other",  "system",    "locks",  "events"};

#define WORDS(name, text) #name "\0" text

static const struct {
#define GAUGE(group, name, unit, source, text) char name[sizeof(WORDS(name, text))];
#include "report/gauges.def"
#undef GAUGE
#define COUNTER(name, text) char name[sizeof(WORDS(name, text))];
#include "stats/counters.def"
#undef COUNTER
} words = {
#define GAUGE(group, name, unit, source, text) WORDS(name, text),
#include "report/gauges.def"
#undef GAUGE
#define COUNTER(name, text) WORDS(name, text),
#include "stats/counters.def"
#undef COUNTER
};

static const struct {
    uint16_t offset; /* in struct values */
    uint8_t unit;
    uint8_t group;
} rows[] = {
#define GAUGE(group, name, unit, source, text) {offsetof(struct values, name), unit, GROUP_##group},
#include "report/gauges.def"
#undef GAUGE
#define COUNTER(name, text) {offsetof(struct values, counters.name), COUNT_EVER, GROUP_events},
#include "stats/counters.def"
#undef COUNTER
};

bool number_next(struct number *number, const struct values *values)
{
    unsigned place = number->place;
    if (place == sizeof(rows) / sizeof(rows[0]))
        return false;
    const char *word = place == 0 ? (const char *)&words : number->text + strlen(number->text) + 1;
    number->group = groups[rows[place].group];
    number->name = word;
    number->text = word + strlen(word) + 1;
    number->value = *(const uint64_t *)((const char *)values + rows[place].offset);
    number->unit = rows[place].unit;
    number->place = place + 1;
    return true;
}
