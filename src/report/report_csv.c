/*
 * The statistics as CSV (RFC 4180, lines end in \n): a header, and one row for each print, so that
 * a run can be plotted. What is unknown is empty.
 */
#include "report/formats.h"
#include "report/writer.h"

static void add_name(struct writer *writer, const char *name)
{
    struct text *text = writer_room(writer);
    text_add(text, ",");
    text_add(text, name);
}

static void add_number(struct writer *writer, uint64_t number)
{
    struct text *text = writer_room(writer);
    text_add(text, ",");
    if (number != UNKNOWN)
        text_add_decimal(text, number);
}

static void add_header(struct writer *writer)
{
    text_add(writer_room(writer), "milliseconds,pid,reason");
#define GAUGE(group, name, unit, description) add_name(writer, #name);
#include "report/gauges.def"
#undef GAUGE
#define COUNTER(name, description) add_name(writer, #name);
#include "stats/counters.def"
#undef COUNTER
    text_add(writer_room(writer), "\n");
}

void csv_report(const struct values *values, bool header, struct writer *writer)
{
    if (header)
        add_header(writer);
    text_add_decimal(writer_room(writer), values->milliseconds);
    add_number(writer, (uint64_t)values->process);
    add_name(writer, values->reason);
#define GAUGE(group, name, unit, description) add_number(writer, values->name);
#include "report/gauges.def"
#undef GAUGE
#define COUNTER(name, description) add_number(writer, values->counters.name);
#include "stats/counters.def"
#undef COUNTER
    text_add(writer_room(writer), "\n");
}
