/*
 * Writing through a buffer. See writer.h.
 */
#include "report/writer.h"

#include "base/bits.h"

void writer_begin(struct writer *writer, int descriptor, char *buffer, size_t capacity)
{
    writer->descriptor = descriptor;
    writer->failed = false;
    text_init(&writer->text, buffer, capacity);
}

static void writer_flush(struct writer *writer)
{
    if (!writer->failed)
        writer->failed = !text_write(&writer->text, writer->descriptor);
    writer->text.length = 0;
}

struct text *writer_room(struct writer *writer)
{
    if (writer->text.length > writer->text.capacity - WRITER_ROOM)
        writer_flush(writer);
    return &writer->text;
}

bool writer_end(struct writer *writer)
{
    writer_flush(writer);
    return !writer->failed;
}

/* Adds a number and its unit. `tail` follows the unit of one letter, to align it with the
 * others. */
static void add_size(struct text *text, uint64_t bytes, const char *tail)
{
    static const char units[][5] = {" B", " KiB", " MiB", " GiB", " TiB"};
    uint64_t tenths = bytes * 10;
    unsigned unit = 0;
    for (; unit < 4 && tenths >= 10000; unit++)
        tenths = (tenths + 512) / 1024;
    text_add_decimal(text, unit == 0 ? bytes : tenths / 10);
    if (unit != 0) {
        text_add(text, ".");
        text_add_decimal(text, tenths % 10);
    }
    text_add(text, units[unit]);
    text_add(text, unit == 0 ? tail : "");
}

void text_add_size(struct text *text, uint64_t bytes)
{
    size_t from = text->length;
    add_size(text, bytes, "  ");
    text_align_right(text, from, 10);
}

/* An empty text whose buffer is `shown`. */
static struct text shown_text(struct shown *shown)
{
    struct text text;
    *shown = (struct shown){{0}};
    text_init(&text, shown->text, sizeof(shown->text) - 1);
    return text;
}

struct shown size_short(uint64_t bytes)
{
    struct shown shown;
    struct text text = shown_text(&shown);
    add_size(&text, bytes, "");
    return shown;
}

struct shown count_long(uint64_t number)
{
    struct shown shown;
    struct text text = shown_text(&shown);
    text_add_count(&text, number, 0);
    return shown;
}

struct shown share(uint64_t part, uint64_t whole)
{
    struct shown shown;
    struct text text = shown_text(&shown);
    uint64_t tenths = whole == 0 ? 0 : scale_nearest(1000, part, whole);
    if (whole == 0)
        text_add(&text, "-");
    else
        text_print(&text, "%zu.%zu %%", tenths / 10, tenths % 10);
    return shown;
}

void text_add_power(struct text *text, uint64_t bytes, const char *between)
{
    static const char units[][4] = {"B", "KiB", "MiB", "GiB", "TiB"};
    unsigned unit = 0;
    for (; unit < 4 && bytes % 1024 == 0 && bytes != 0; unit++)
        bytes /= 1024;
    text_add_decimal(text, bytes);
    text_add(text, between);
    text_add(text, units[unit]);
}

void text_add_count(struct text *text, uint64_t number, size_t width)
{
    char digits[32];
    struct text plain;
    size_t from = text->length;
    text_init(&plain, digits, sizeof(digits));
    text_add_decimal(&plain, number);
    for (size_t i = 0; i < plain.length; i++) {
        if (i != 0 && (plain.length - i) % 3 == 0)
            text_add(text, ",");
        text_add_bytes(text, &digits[i], 1);
    }
    text_align_right(text, from, width);
}
