/*
 * The statistics as OpenMetrics 1.0, as Prometheus and its like read them. Every print is a whole
 * exposition, which ends in "# EOF"; a file holds the last one.
 */
#include <string.h>

#include "report/formats.h"
#include "report/numbers.h"
#include "report/writer.h"

/* Describes a family. OpenMetrics wants the name to end in the unit, and after that the samples of
 * a counter in _total. */
static void add_family(struct writer *writer, const char *name, enum number_unit unit,
                       const char *type, const char *help)
{
    static const char starts[][8] = {"# TYPE ", "# UNIT ", "# HELP "};
    for (unsigned i = 0; i < 3; i++) {
        if (i == 1 && unit != BYTES)
            continue;
        text_print(writer_room(writer), "%ssnug_%s%s%s\n", starts[i], name,
                   unit == BYTES ? "_bytes " : " ",
                   i == 0   ? type
                   : i == 1 ? "bytes"
                            : help);
    }
}

/* `name` of a counter of bytes ends in _bytes already. */
static void add_counter(struct writer *writer, const char *name, const char *help, uint64_t number)
{
    size_t length = strlen(name);
    bool bytes = length > 6 && strcmp(name + length - 6, "_bytes") == 0;
    char family[64];
    struct text text;
    text_init(&text, family, sizeof(family) - 1);
    text_add_bytes(&text, name, bytes ? length - 6 : length);
    family[text.length] = 0;
    add_family(writer, family, bytes ? BYTES : COUNT, "counter", help);
    text_print(writer_room(writer), "snug_%s_total %zu\n", name, number);
}

static void add_number(struct writer *writer, const struct number *number)
{
    if (number->value == UNKNOWN)
        return;
    if (number->unit == BYTES_EVER || number->unit == COUNT_EVER) {
        add_counter(writer, number->name, number->text, number->value);
        return;
    }
    add_family(writer, number->name, number->unit, "gauge", number->text);
    text_print(writer_room(writer), "snug_%s%s%zu\n", number->name,
               number->unit == BYTES ? "_bytes " : " ", number->value);
}

/* NAME{LABEL="VALUE"} NUMBER; UNKNOWN as the value stands for no bound. */
static void add_labelled(struct writer *writer, const char *name, const char *label, uint64_t value,
                         uint64_t number)
{
    struct text *text = writer_room(writer);
    if (value == UNKNOWN)
        text_print(text, "snug_%s{%s=\"+Inf\"} %zu\n", name, label, number);
    else
        text_print(text, "snug_%s{%s=\"%zu\"} %zu\n", name, label, value, number);
}

static void add_class(struct writer *writer, size_t class, const char *state, size_t objects)
{
    text_print(writer_room(writer), "snug_class_objects{size=\"%zu\",state=\"%s\"} %zu\n",
               class_bytes(class), state, objects);
}

static void add_classes(struct writer *writer, const struct values *values)
{
    add_family(writer, "class_objects", COUNT, "gauge",
               "small objects by size and by where they are");
    for (size_t class = 1; class < CLASS_COUNT; class++) {
        const struct class_totals *of = &values->more->classes[class];
        if (of->slabs == 0)
            continue;
        add_class(writer, class, "live", of->live);
        add_class(writer, class, "magazines", of->cached);
        add_class(writer, class, "depots", of->depots);
        add_class(writer, class, "free", of->free);
    }
}

static void add_sparse(struct writer *writer, const struct values *values)
{
    add_family(writer, "class_sparse", BYTES, "gauge",
               "free in slabs of which at most a quarter is in use, by size");
    for (size_t class = 1; class < CLASS_COUNT; class++)
        if (values->more->classes[class].slabs != 0)
            add_labelled(writer, "class_sparse_bytes", "size", class_bytes(class),
                         values->more->sparse[class].bytes);
}

static void add_peak(struct writer *writer, const struct peak *peak)
{
    add_family(writer, "class_peak_objects", COUNT, "gauge", "small objects at the highest point");
    for (size_t class = 1; class < CLASS_COUNT; class++)
        if (peak->classes[class] != 0)
            add_labelled(writer, "class_peak_objects", "size", class_bytes(class),
                         peak->classes[class]);
    add_family(writer, "large_peak", BYTES, "gauge", "in large blocks at the highest point");
    for (size_t i = 0; i < LARGE_ROWS; i++)
        if (peak->sizes.blocks[i] != 0)
            add_labelled(writer, "large_peak_bytes", "up_to", large_row_to(i),
                         peak->sizes.bytes[i]);
    if (!peak_has_medium(peak))
        return;
    add_family(writer, "medium_peak", BYTES, "gauge", "in medium blocks at the highest point");
    for (size_t i = 0; i < MEDIUM_ROWS; i++)
        add_labelled(writer, "medium_peak_bytes", "up_to", medium_row_to(i), peak->rows[i].bytes);
}

static void add_medium(struct writer *writer, const struct values_more *more)
{
    add_family(writer, "medium_objects", COUNT, "gauge", "medium blocks in use by size");
    for (size_t i = 0; i < MEDIUM_ROWS; i++)
        add_labelled(writer, "medium_objects", "up_to", medium_row_to(i), more->medium[i].blocks);
    add_family(writer, "medium", BYTES, "gauge", "in medium blocks in use by size");
    for (size_t i = 0; i < MEDIUM_ROWS; i++)
        add_labelled(writer, "medium_bytes", "up_to", medium_row_to(i), more->medium[i].bytes);
}

static void add_large(struct writer *writer, const struct large_sizes *large)
{
    add_family(writer, "large_objects", COUNT, "gauge", "large and huge blocks in use by size");
    for (size_t i = 0; i < LARGE_ROWS; i++)
        if (large->blocks[i] != 0)
            add_labelled(writer, "large_objects", "up_to", large_row_to(i), large->blocks[i]);
    add_family(writer, "large", BYTES, "gauge", "asked for in large and huge blocks, by size");
    for (size_t i = 0; i < LARGE_ROWS; i++)
        if (large->blocks[i] != 0)
            add_labelled(writer, "large_bytes", "up_to", large_row_to(i), large->bytes[i]);
}

/* A sample of a family about heaps. The quota is a label, too, since rows may differ in nothing
 * else. */
static void add_heap(struct writer *writer, const char *name, const struct heap_row *row,
                     uint64_t number)
{
    struct text *text = writer_room(writer);
    text_print(text, "snug_%s{heap=\"", name);
    for (const char *at = row->name; *at != 0; at++) {
        text_add(text, *at == '"' || *at == '\\' ? "\\" : "");
        text_add_bytes(text, at, 1);
    }
    text_print(text, "\",provider=\"%s\",quota=\"", provider_name(row->provider));
    if (row->quota != 0)
        text_add_decimal(text, row->quota);
    text_print(text, "\"} %zu\n", number);
}

static void add_heaps_at_peak(struct writer *writer, const struct heap_rows *heaps)
{
    add_family(writer, "heap_at_peak", BYTES, "gauge",
               "in use in heaps of that name at the highest point of all");
    for (size_t i = 0; i < heaps->count; i++)
        add_heap(writer, "heap_at_peak_bytes", &heaps->rows[i], heaps->rows[i].live);
}

static void add_heaps(struct writer *writer, const struct values_more *more)
{
    static const struct {
        const char *family, *sample, *help;
        enum number_unit unit;
        size_t offset;
    } families[] = {
        {"heap_heaps", "heap_heaps", "heaps of the program's own by name", COUNT,
         offsetof(struct heap_row, heaps)},
        {"heap_blocks", "heap_blocks", "blocks in use in them", COUNT,
         offsetof(struct heap_row, blocks)},
        {"heap_live", "heap_live_bytes", "in use in them, as granted", BYTES,
         offsetof(struct heap_row, live)},
        {"heap_mapped", "heap_mapped_bytes", "taken for them and not given back", BYTES,
         offsetof(struct heap_row, mapped)},
        {"heap_peak", "heap_peak_bytes", "the most that one of them had", BYTES,
         offsetof(struct heap_row, peak)},
        {"heap_quota", "heap_quota_bytes", "what each may have", BYTES,
         offsetof(struct heap_row, quota)},
    };
    for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
        bool described = false;
        for (size_t j = 0; j < more->heaps.count; j++) {
            const struct heap_row *row = &more->heaps.rows[j];
            uint64_t number = *(const uint64_t *)((const char *)row + families[i].offset);
            if (families[i].offset == offsetof(struct heap_row, quota) && row->quota == 0)
                continue;
            if (!described)
                add_family(writer, families[i].family, families[i].unit, "gauge", families[i].help);
            described = true;
            add_heap(writer, families[i].sample, row, number);
        }
    }
}

void metrics_report(const struct values *values, struct writer *writer)
{
    for (struct number number = {0}; number_next(&number, values);)
        add_number(writer, &number);
    add_classes(writer, values);
    if (values->more->sparse_known)
        add_sparse(writer, values);
    if (values->more->medium_known)
        add_medium(writer, values->more);
    add_large(writer, &values->more->large);
    if (values->more->peak.sequence != 0)
        add_peak(writer, &values->more->peak);
    if (values->more->heaps_known)
        add_heaps(writer, values->more);
    if (values->more->peak.by_name.count != 0)
        add_heaps_at_peak(writer, &values->more->peak.by_name);
    text_add(writer_room(writer), "# EOF\n");
}
