/*
 * The table of all numbers, made from gauges.def and counters.def. Names and texts stand one behind
 * the other in `words`, so the table has no addresses that the loader would have to write.
 */
#include "report/numbers.h"

#include <string.h>

#define WORDS(group, name, text) group "\0" #name "\0" text

static const struct {
#define GAUGE(group, name, unit, source, text) char name[sizeof(WORDS(#group, name, text))];
#include "report/gauges.def"
#undef GAUGE
#define COUNTER(name, text) char name[sizeof(WORDS("events", name, text))];
#include "stats/counters.def"
#undef COUNTER
} words = {
#define GAUGE(group, name, unit, source, text) WORDS(#group, name, text),
#include "report/gauges.def"
#undef GAUGE
#define COUNTER(name, text) WORDS("events", name, text),
#include "stats/counters.def"
#undef COUNTER
};

static const struct {
    uint16_t offset; /* in struct values */
    uint8_t unit;
} rows[] = {
#define GAUGE(group, name, unit, source, text) {offsetof(struct values, name), unit},
#include "report/gauges.def"
#undef GAUGE
#define COUNTER(name, text) {offsetof(struct values, counters.name), COUNT_EVER},
#include "stats/counters.def"
#undef COUNTER
};

bool number_next(struct number *number, const struct values *values)
{
    unsigned place = number->place;
    if (place == sizeof(rows) / sizeof(rows[0]))
        return false;
    const char *word = place == 0 ? (const char *)&words : number->text + strlen(number->text) + 1;
    number->group = word;
    number->name = word += strlen(word) + 1;
    number->text = word + strlen(word) + 1;
    number->value = *(const uint64_t *)((const char *)values + rows[place].offset);
    number->unit = rows[place].unit;
    number->place = place + 1;
    return true;
}
