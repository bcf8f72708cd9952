/*
 * The statistics as one JSON object in one line, so that a file of several prints is JSON Lines.
 * docs/statistics.schema.json describes it.
 */
#include <string.h>

#include "report/formats.h"
#include "report/numbers.h"
#include "report/writer.h"

static void add_number(struct text *text, uint64_t number)
{
    if (number == UNKNOWN)
        text_add(text, "null");
    else
        text_add_decimal(text, number);
}

static void add_member(struct writer *writer, const char *before, const char *name, uint64_t number)
{
    struct text *text = writer_room(writer);
    text_print(text, "%s\"%s\":", before, name);
    add_number(text, number);
}

/* Opens the group of a number, unless the last number was of the same group. */
static bool open_group(struct writer *writer, const char **last, const char *group)
{
    if (strcmp(*last, group) == 0)
        return false;
    text_print(writer_room(writer), "%s\"%s\":{", **last == 0 ? "," : "},", group);
    *last = group;
    return true;
}

static bool has_peak(const struct values *values)
{
    return values->more->peak.sequence != 0;
}

static void add_class(struct writer *writer, const struct values *values, size_t class, bool first)
{
    const struct class_totals *of = &values->more->classes[class];
    add_member(writer, first ? "{" : ",{", "size", class_bytes(class));
    add_member(writer, ",", "live", of->live);
    add_member(writer, ",", "magazines", of->cached);
    add_member(writer, ",", "depots", of->depots);
    add_member(writer, ",", "free", of->free);
    add_member(writer, ",", "slabs", of->slabs);
    add_member(writer, ",", "peak", has_peak(values) ? values->more->peak.classes[class] : UNKNOWN);
    const struct values_more *more = values->more;
    add_member(writer, ",", "sparse_slabs",
               more->sparse_known ? more->sparse[class].slabs : UNKNOWN);
    add_member(writer, ",", "sparse_bytes",
               more->sparse_known ? more->sparse[class].bytes : UNKNOWN);
    text_add(writer_room(writer), "}");
}

static void add_classes(struct writer *writer, const struct values *values)
{
    bool first = true;
    text_add(writer_room(writer), ",\"classes\":[");
    for (size_t class = 1; class < CLASS_COUNT; class++)
        if (values->more->classes[class].slabs != 0 || values->more->peak.classes[class] != 0) {
            add_class(writer, values, class, first);
            first = false;
        }
    text_add(writer_room(writer), "]");
}

static void add_row(struct writer *writer, const char *before, uint64_t up_to, uint64_t blocks,
                    uint64_t bytes)
{
    add_member(writer, before, "up_to", up_to);
    add_member(writer, ",", "blocks", blocks);
    add_member(writer, ",", "bytes", bytes);
    text_add(writer_room(writer), "}");
}

static void add_medium(struct writer *writer, const char *name, const struct medium_row *rows,
                       bool known)
{
    text_add(writer_room(writer), name);
    text_add(writer_room(writer), known ? "[" : "null");
    for (size_t i = 0; i < MEDIUM_ROWS && known; i++)
        add_row(writer, i == 0 ? "{" : ",{", medium_row_to(i), rows[i].blocks, rows[i].bytes);
    text_add(writer_room(writer), known ? "]" : "");
}

/* Adds the rows that have blocks. The last row has no bound: its up_to is null. */
static void add_large(struct writer *writer, const char *name, const struct large_sizes *large)
{
    const char *before = "{";
    text_add(writer_room(writer), name);
    for (size_t i = 0; i < LARGE_ROWS; i++) {
        if (large->blocks[i] == 0)
            continue;
        add_row(writer, before, large_row_to(i), large->blocks[i], large->bytes[i]);
        before = ",{";
    }
    text_add(writer_room(writer), "]");
}

/* Names have no control characters (heaps.c). Characters that mean something to JSON or CSV are
 * written as numbers. */
static void add_name(struct text *text, const char *name)
{
    for (const char *at = name; *at != 0; at++)
        if (*at == '"' || *at == '\\')
            text_add(text, *at == '"' ? "\\u0022" : "\\u005c");
        else
            text_add_bytes(text, at, 1);
}

static void add_heap(struct writer *writer, const struct heap_row *row, const char *quote)
{
    const struct {
        const char *name;
        uint64_t number;
    } members[] = {{"heaps", row->heaps}, {"blocks", row->blocks},
                   {"live", row->live},   {"mapped", row->mapped},
                   {"peak", row->peak},   {"quota", row->quota == 0 ? UNKNOWN : row->quota}};
    struct text *text = writer_room(writer);
    text_print(text, "{%sname%s:%s", quote, quote, quote);
    add_name(text, row->name);
    text_print(text, "%s,%sprovider%s:%s%s%s", quote, quote, quote, quote,
               provider_name(row->provider), quote);
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        text = writer_room(writer);
        text_print(text, ",%s%s%s:", quote, members[i].name, quote);
        add_number(text, members[i].number);
    }
    text_add(text, "}");
}

void json_heaps(const struct heap_rows *heaps, const char *quote, struct writer *writer)
{
    text_add(writer_room(writer), "[");
    for (size_t i = 0; i < heaps->count; i++) {
        text_add(writer_room(writer), i == 0 ? "" : ",");
        add_heap(writer, &heaps->rows[i], quote);
    }
    text_add(writer_room(writer), "]");
}

static void add_heaps(struct writer *writer, const char *name, const struct heap_rows *heaps,
                      bool known)
{
    text_add(writer_room(writer), name);
    if (known)
        json_heaps(heaps, "\"", writer);
    else
        text_add(writer_room(writer), "null");
}

void json_report(const struct values *values, struct writer *writer)
{
    text_print(
        writer_room(writer),
        "{\"schema\":\"snug-statistics-1\",\"pid\":%zu,\"milliseconds\":%zu,\"reason\":\"%s\"",
        (size_t)values->process, values->milliseconds, values->reason);
    const char *last = "";
    for (struct number number = {0}; number_next(&number, values);) {
        bool begins = open_group(writer, &last, number.group);
        add_member(writer, begins ? "" : ",", number.name, number.value);
    }
    text_add(writer_room(writer), "}");
    add_classes(writer, values);
    const struct values_more *more = values->more;
    const struct peak *peak = &more->peak;
    add_medium(writer, ",\"medium\":", more->medium, more->medium_known);
    add_medium(writer, ",\"medium_at_peak\":", peak->rows, peak_has_medium(peak));
    add_large(writer, ",\"large\":[", &more->large);
    if (has_peak(values))
        add_large(writer, ",\"large_at_peak\":[", &peak->sizes);
    else
        text_add(writer_room(writer), ",\"large_at_peak\":null");
    add_heaps(writer, ",\"heaps\":", &more->heaps, more->heaps_known);
    add_heaps(writer, ",\"heaps_at_peak\":", &peak->by_name, peak->heaps_known != 0);
    text_add(writer_room(writer), "}\n");
}
