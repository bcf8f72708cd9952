/*
 * The statistics as CSV (RFC 4180, but lines end in \n): a header, and one row for each print, so
 * that a run can be plotted. A number that is unknown is an empty field.
 */
#include "report/formats.h"
#include "report/numbers.h"
#include "report/writer.h"

static void add_name(struct writer *writer, const char *name)
{
    text_print(writer_room(writer), ",%s", name);
}

static void add_number(struct writer *writer, uint64_t number)
{
    struct text *text = writer_room(writer);
    text_add(text, ",");
    if (number != UNKNOWN)
        text_add_decimal(text, number);
}

/* Two columns for a row by size: medium_1KiB_blocks, medium_1KiB_bytes. */
static void add_size_names(struct writer *writer, const char *kind, size_t up_to)
{
    static const char *const ends[] = {"_blocks", "_bytes"};
    for (unsigned i = 0; i < 2; i++) {
        add_name(writer, kind);
        struct text *text = writer_room(writer);
        if (up_to == SIZE_MAX)
            text_add(text, "more");
        else
            text_add_power(text, up_to, "");
        text_add(text, ends[i]);
    }
}

static void add_sizes(struct writer *writer, const struct values_more *more)
{
    for (size_t i = 0; i < MEDIUM_ROWS; i++) {
        add_number(writer, more->medium_known ? more->medium[i].blocks : UNKNOWN);
        add_number(writer, more->medium_known ? more->medium[i].bytes : UNKNOWN);
    }
    for (size_t i = 0; i < LARGE_ROWS; i++) {
        add_number(writer, more->large.blocks[i]);
        add_number(writer, more->large.bytes[i]);
    }
}

static void add_header(struct writer *writer, const struct values *values)
{
    text_add(writer_room(writer), "milliseconds,pid,reason");
    for (struct number number = {0}; number_next(&number, values);)
        add_name(writer, number.name);
    for (size_t i = 0; i < MEDIUM_ROWS; i++)
        add_size_names(writer, "medium_", medium_row_to(i));
    for (size_t i = 0; i < LARGE_ROWS; i++)
        add_size_names(writer, "large_", large_row_to(i));
    add_name(writer, "heaps_by_name");
    text_add(writer_room(writer), "\n");
}

void csv_report(const struct values *values, bool header, struct writer *writer)
{
    if (header)
        add_header(writer, values);
    text_add_decimal(writer_room(writer), values->milliseconds);
    add_number(writer, (uint64_t)values->process);
    add_name(writer, values->reason);
    for (struct number number = {0}; number_next(&number, values);)
        add_number(writer, number.value);
    add_sizes(writer, values->more);
    text_add(writer_room(writer), ",");
    if (values->more->heaps_known) {
        text_add(writer_room(writer), "\"");
        json_heaps(&values->more->heaps, "\"\"", writer);
        text_add(writer_room(writer), "\"");
    }
    text_add(writer_room(writer), "\n");
}
