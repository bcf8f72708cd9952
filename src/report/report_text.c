/*
 * The statistics as text that a person reads at a glance: at most one screen of 80 by 24; with
 * `detail` also every class and every counter.
 */
#include "base/bits.h"
#include "report/formats.h"
#include "report/numbers.h"
#include "report/writer.h"

enum { BAR = 60, ROWS = 7, HEAPS_SHOWN = 3, NAME_SHOWN = 21, ROW_BAR = 24, LABEL = 28 };

/* ---- What is mapped ---- */

enum { IN_USE, WASTE, WAITING, FREE_INSIDE, FREE_PAGES, METADATA, QUARANTINE, HEAPS, PARTS };

/* The mark of each in the bar, and its name. */
static const char part_names[PARTS][26] = {
    "#in use",
    "+waste inside",
    "=waiting for threads",
    "-free in slabs and spans",
    "~free pages, to be purged",
    "mmetadata in use",
    "qin quarantine",
    "hin heaps of its own",
};

/* Heaps of the program's own, as far as they are known. */
static uint64_t heaps_mapped(const struct values *values)
{
    return values->more->heaps_known ? values->heaps_mapped : 0;
}

/* The bytes of each part. */
static void parts_of(const struct values *values, uint64_t parts[PARTS])
{
    parts[IN_USE] = values->live;
    parts[WASTE] = values->waste;
    parts[WAITING] =
        values->cached_small + values->cached_cells + values->depots + values->hardened_cached;
    parts[FREE_INSIDE] = values->free_slabs + values->hardened_free +
                         rest_of(values->free_cells, values->more->cells_gone);
    parts[FREE_PAGES] = values->purge_pending;
    parts[METADATA] = size_min(values->metadata_used, values->metadata);
    parts[QUARANTINE] = values->hardened_waiting;
    parts[HEAPS] = heaps_mapped(values);
}

/* A bar of what occupies memory. Pages that occupy none are left out, since they would be most of
 * it. */
static void add_bar(struct writer *writer, const uint64_t parts[PARTS])
{
    uint64_t whole = 0;
    for (unsigned i = 0; i < PARTS; i++)
        whole += parts[i];
    struct text *text = writer_room(writer);
    text_add(text, "  [");
    uint64_t before = 0;
    for (unsigned i = 0; i < PARTS && whole != 0; i++) {
        size_t from = scale_nearest(BAR, before, whole);
        before += parts[i];
        size_t to = scale_nearest(BAR, before, whole);
        for (; from < to; from++)
            text_add_bytes(text, part_names[i], 1);
    }
    text_add(text, "]\n");
}

static void add_part(struct writer *writer, unsigned part, uint64_t bytes,
                     const struct values *values)
{
    struct text *text = writer_room(writer);
    text_print(text, "  %.*s %s", 1, part_names[part], part_names[part] + 1);
    text_pad(text, LABEL);
    text_add_size(text, bytes);
    if (part == IN_USE)
        text_print(text, "  for about %s that were asked for", size_short(values->requested).text);
    if (part == HEAPS)
        text_print(text, "  in use %s", size_short(values->heaps_live).text);
    text_add(text, "\n");
}

/* What is mapped without memory: by a look at all pages, else as far as it was given back, or is
 * yet to be used for the first time. */
static uint64_t without_memory(const struct values *values, const uint64_t parts[PARTS])
{
    if (values->untouched == UNKNOWN)
        return values->free_clean + values->more->cells_gone + values->hardened_rest +
               values->metadata - parts[METADATA];
    if (values->resident_heaps == UNKNOWN)
        return values->untouched;
    return values->untouched + rest_of(parts[HEAPS], values->resident_heaps);
}

static void add_memory(struct writer *writer, const struct values *values)
{
    uint64_t parts[PARTS];
    parts_of(values, parts);
    struct text *text = writer_room(writer);
    text_add(text, "mapped by snug");
    text_pad(text, LABEL);
    text_add_size(text, values->mapped + parts[HEAPS]);
    text_print(text, "  of it without memory %s\n", size_short(without_memory(values, parts)).text);
    add_bar(writer, parts);
    for (unsigned i = 0; i < PARTS; i++)
        if ((i != HEAPS || values->more->heaps.count != 0) && (i != QUARANTINE || parts[i] != 0))
            add_part(writer, i, parts[i], values);
}

/* ---- The process ---- */

/* A size, or "unknown". */
static struct shown known(uint64_t bytes)
{
    return bytes == UNKNOWN ? (struct shown){"unknown"} : size_short(bytes);
}

static void add_process(struct writer *writer, const struct values *values)
{
    struct text *text = writer_room(writer);
    text_add(text, "resident");
    text_pad(text, LABEL);
    if (values->resident == UNKNOWN)
        text_add(text, "   unknown");
    else
        text_add_size(text, values->resident);
    if (values->more->heaps.count == 0)
        text_print(text, "  snug's %s, other %s\n", known(values->resident_snug).text,
                   known(values->resident_other).text);
    else
        text_print(text, "\n  in malloc's heap %s, in others %s, not snug's %s\n",
                   known(values->resident_snug).text, known(values->resident_heaps).text,
                   known(values->resident_other).text);
    if (values->resident_excess != UNKNOWN && values->resident_excess != 0)
        text_print(text, "  in free pages, by huge pages %s\n",
                   size_short(values->resident_excess).text);
    text_print(writer_room(writer), "peaks: segments %s, pages in use %s, resident %s\n",
               known(values->mapped_peak).text, known(values->used_peak).text,
               known(values->resident_peak).text);
}

static void add_events(struct writer *writer, const struct values *values)
{
    const struct counters *c = &values->counters;
    uint64_t waits = values->waits_arenas + values->waits_depots + values->waits_bins +
                     values->waits_cells + values->waits_spans + values->waits_meta;
    struct text *text = writer_room(writer);
    text_print(text, "system calls: mmap %s (%s), munmap %s (%s),\n",
               count_long(values->mmap_calls).text, size_short(values->mmap_bytes).text,
               count_long(values->munmap_calls).text, size_short(values->munmap_bytes).text);
    text_print(text, "              madvise %s (%s), mremap %s (%s)\n",
               count_long(values->madvise_calls).text, size_short(values->madvise_bytes).text,
               count_long(values->mremap_calls).text, size_short(values->mremap_bytes).text);
    text_print(text, "waits for locks %s", count_long(waits).text);
    if (values->minor_faults != UNKNOWN)
        text_print(text, "; page faults %s",
                   count_long(values->minor_faults + values->major_faults).text);
    text_print(writer_room(writer), "\nhits: magazines at least %s, depots %s, segment cache %s\n",
               share(c->refill_objects - c->refills, c->refill_objects).text,
               share(c->refills_depot, c->refills - c->refills_spare).text,
               share(c->segments_reused, c->segments_reused + c->map_calls).text);
}

/* ---- By size ---- */

struct row {
    const char *name; /* NULL: a small class */
    size_t size;      /* bytes: of the class, or the most that a block has; 0: the name says it */
    uint64_t blocks;
    uint64_t bytes;
    uint64_t blocks_at_peak; /* UNKNOWN of medium blocks if none of them was seen */
    uint64_t bytes_at_peak;
};

/* The bytes by which rows are chosen and ordered: what there is, or was at the peak, whichever is
 * more. */
static uint64_t row_weight(const struct row *row)
{
    return row->bytes_at_peak == UNKNOWN ? row->bytes : size_max(row->bytes, row->bytes_at_peak);
}

static void row_insert(struct row rows[ROWS], unsigned *count, const struct row *row)
{
    if (row_weight(row) == 0)
        return;
    unsigned at = *count;
    while (at > 0 && row_weight(&rows[at - 1]) < row_weight(row))
        at--;
    if (at >= ROWS)
        return;
    for (unsigned i = *count < ROWS ? *count : ROWS - 1; i > at; i--)
        rows[i] = rows[i - 1];
    rows[at] = *row;
    if (*count < ROWS)
        ++*count;
}

static void insert_medium(const struct values *values, struct row rows[ROWS], unsigned *count)
{
    const struct values_more *more = values->more;
    const struct peak *peak = &more->peak;
    bool by_size = peak_has_medium(peak);
    for (size_t i = 0; i < MEDIUM_ROWS && more->medium_known; i++)
        row_insert(rows, count,
                   &(struct row){"to", medium_row_to(i), more->medium[i].blocks,
                                 more->medium[i].bytes, by_size ? peak->rows[i].blocks : UNKNOWN,
                                 by_size ? peak->rows[i].bytes : UNKNOWN});
    /* Medium blocks of which the sizes are not known, now or at the peak, have a row of their
     * own. */
    if (!more->medium_known || (!by_size && peak->medium > values->live_cells))
        row_insert(rows, count,
                   &(struct row){"to 128 KiB", 0, values->blocks_medium, values->live_cells,
                                 peak->blocks_medium, peak->medium});
}

static unsigned largest_rows(const struct values *values, struct row rows[ROWS])
{
    unsigned count = 0;
    const struct values_more *more = values->more;
    const struct peak *peak = &more->peak;
    insert_medium(values, rows, &count);
    for (size_t i = 0; i < LARGE_ROWS; i++) {
        bool last = large_row_to(i) == SIZE_MAX;
        row_insert(rows, &count,
                   &(struct row){last ? "larger" : "to", last ? 0 : large_row_to(i),
                                 more->large.blocks[i], more->large.bytes[i], peak->sizes.blocks[i],
                                 peak->sizes.bytes[i]});
    }
    row_insert(rows, &count,
               &(struct row){"hardened", 0, values->blocks_hardened, values->live_hardened, UNKNOWN,
                             UNKNOWN});
    for (size_t class = 1; class < CLASS_COUNT; class++) {
        size_t live = values->more->classes[class].live, bytes = class_bytes(class);
        row_insert(rows, &count,
                   &(struct row){NULL, bytes, live, live * bytes, peak->classes[class],
                                 peak->classes[class] * bytes});
    }
    return count;
}

/* A number in its unit, in 8 columns. */
static void text_pad_power(struct text *text, size_t size)
{
    size_t from = text->length;
    text_add_power(text, size, " ");
    text_align_right(text, from, 8);
}

/* Ends a row: with what there was at the peak, or if no peak was kept, with a bar. */
static void add_row_end(struct text *text, const struct row *row, uint64_t most, bool peak)
{
    if (!peak) {
        text_add(text, "  ");
        for (uint64_t i = 0; i < (row->bytes * ROW_BAR + most - 1) / most; i++)
            text_add(text, "#");
    } else if (row->bytes_at_peak == UNKNOWN) {
        text_add(text, "                    ?");
    } else {
        text_add_count(text, row->blocks_at_peak, 24);
        text_add(text, " ");
        text_add_size(text, row->bytes_at_peak);
    }
    text_add(text, "\n");
}

static void add_row(struct writer *writer, const struct row *row, uint64_t most, bool peak)
{
    struct text *text = writer_room(writer);
    if (row->name == NULL) {
        text_add_column(text, row->size, 8);
        text_add(text, " B");
    } else {
        text_add(text, row->name);
        if (row->size != 0) {
            text_pad_power(text, row->size);
        }
    }
    text_pad(text, 12);
    text_add_count(text, row->blocks, 14);
    text_add(text, " ");
    text_add_size(text, row->bytes);
    add_row_end(text, row, most, peak);
}

enum { HEAP_LINES = 3 };

/* The lines that heaps take of the screen: one for each row, and three more: their heading, their
 * part of the memory, and that of what is resident. */
static unsigned heap_lines(const struct values_more *more, bool all)
{
    unsigned rows = (unsigned)size_min(more->heaps.count, all ? HEAP_ROWS : HEAPS_SHOWN);
    return rows == 0 ? 0 : rows + HEAP_LINES;
}

static void add_sizes(struct writer *writer, const struct values *values)
{
    struct row rows[ROWS];
    unsigned count = largest_rows(values, rows), heaps = heap_lines(values->more, false);
    bool peak = values->more->peak.sequence != 0;
    unsigned shown = ROWS - peak - (values->more->peak.by_name.count != 0);
    text_add(writer_room(writer), "in use by size        blocks      bytes");
    text_add(writer_room(writer), peak ? "    at the peak: blocks      bytes\n" : "\n");
    for (unsigned i = 0; i < count && i + heaps < shown; i++)
        add_row(writer, &rows[i], row_weight(&rows[0]), peak);
}

/* ---- Heaps of the program's own ---- */

/* Adds a name, cut to `most` characters. */
static void add_name(struct text *text, const char *name, size_t most)
{
    size_t shown = 0;
    for (; *name != 0; name++) {
        shown += (*name & 0xc0) != 0x80; /* each character once */
        if (shown <= most)
            text_add_bytes(text, name, 1);
    }
}

static void add_heap(struct writer *writer, const struct heap_row *row, bool all)
{
    struct text *text = writer_room(writer);
    text_add_count(text, row->heaps, 7);
    text_add_size(text, row->live);
    text_add_size(text, row->mapped);
    text_add_size(text, row->peak);
    if (row->quota == 0)
        text_add(text, "      none");
    else
        text_add_size(text, row->quota);
    text_add(text, "  ");
    size_t line = text->length;
    text_add(text, provider_name(row->provider));
    while (text->length - line < 10)
        text_add(text, " ");
    add_name(text, row->name[0] == 0 ? "(no name)" : row->name, all ? HEAP_NAME_MOST : NAME_SHOWN);
    text_add(text, "\n");
}

/* Adds the heaps, those that have most first. `all`: every row, not only as many as fit a
 * screen. */
static void add_heaps(struct writer *writer, const struct values_more *more, bool all)
{
    bool done[HEAP_ROWS] = {false};
    unsigned lines = heap_lines(more, all);
    if (lines == 0)
        return;
    text_add(writer_room(writer),
             "  heaps    in use    mapped most of 1     quota  memory    name\n");
    for (unsigned line = HEAP_LINES; line < lines; line++) {
        size_t most = HEAP_ROWS;
        for (size_t i = 0; i < more->heaps.count; i++)
            if (!done[i] &&
                (most == HEAP_ROWS || more->heaps.rows[i].mapped > more->heaps.rows[most].mapped))
                most = i;
        done[most] = true;
        add_heap(writer, &more->heaps.rows[most], all);
    }
}

/* ---- Detail ---- */

static void add_detail_row(struct writer *writer, const char *name, uint64_t number)
{
    struct text *text = writer_room(writer);
    text_print(text, "  %s", name);
    text_pad(text, 56);
    if (number == UNKNOWN)
        text_add(text, "           unknown");
    else
        text_add_count(text, number, 18);
    text_add(text, "\n");
}

static void add_class(struct writer *writer, size_t class, const struct class_totals *objects)
{
    if (objects->slabs == 0)
        return;
    struct text *text = writer_room(writer);
    text_add_column(text, class_bytes(class), 7);
    text_add_count(text, objects->live, 13);
    text_add_count(text, objects->cached, 13);
    text_add_count(text, objects->depots, 13);
    text_add_count(text, objects->free, 13);
    text_add_count(text, objects->slabs, 13);
    text_add(text, "\n");
}

static void add_size(struct writer *writer, size_t up_to, uint64_t blocks, uint64_t bytes)
{
    struct text *text = writer_room(writer);
    text_add(text, "  ");
    if (up_to == SIZE_MAX)
        text_add(text, "  more  ");
    else
        text_pad_power(text, up_to);
    text_add_count(text, blocks, 13);
    text_add_count(text, bytes, 16);
    text_add(text, "\n");
}

static void add_detail(struct writer *writer, const struct values *values)
{
    text_add(writer_room(writer), "all numbers\n");
    for (struct number number = {0}; number_next(&number, values);)
        add_detail_row(writer, number.text, number.value);
    text_add(writer_room(writer),
             "small objects by size\n"
             "   size       in use    magazines       depots         free        slabs\n");
    for (size_t class = 1; class < CLASS_COUNT; class++)
        add_class(writer, class, &values->more->classes[class]);
    text_add(writer_room(writer),
             "larger blocks in use by size\n     up to       blocks           bytes\n");
    for (size_t i = 0; i < MEDIUM_ROWS && values->more->medium_known; i++)
        add_size(writer, medium_row_to(i), values->more->medium[i].blocks,
                 values->more->medium[i].bytes);
    for (size_t i = 0; i < LARGE_ROWS; i++)
        if (values->more->large.blocks[i] != 0)
            add_size(writer, large_row_to(i), values->more->large.blocks[i],
                     values->more->large.bytes[i]);
}

static void add_seconds(struct text *text, uint64_t milliseconds)
{
    text_print(text, "%zu.%zu s", milliseconds / 1000, milliseconds / 100 % 10);
}

enum { NAMES_AT_PEAK = 2, NAME_AT_PEAK = 16 };

/* Adds a line with the heaps of the program's own that had most at the peak. */
static void add_heaps_at_peak(struct writer *writer, const struct heap_rows *heaps)
{
    const struct heap_row *last = NULL;
    if (heaps->count == 0)
        return;
    text_add(writer_room(writer), "  its heaps then:");
    for (unsigned shown = 0; shown < size_min(heaps->count, NAMES_AT_PEAK); shown++) {
        const struct heap_row *most = NULL;
        for (size_t i = 0; i < heaps->count; i++)
            if (&heaps->rows[i] != last && (most == NULL || heaps->rows[i].live > most->live))
                most = &heaps->rows[i];
        text_add(writer_room(writer), shown == 0 ? " " : ", ");
        add_name(writer_room(writer), most->name[0] == 0 ? "(no name)" : most->name, NAME_AT_PEAK);
        text_print(writer_room(writer), " %s", known(most->live).text);
        last = most;
    }
    text_add(writer_room(writer), heaps->count > NAMES_AT_PEAK ? ", and others\n" : "\n");
}

/* Adds what was live at the peak; it stands before the present numbers. */
static void add_peak(struct writer *writer, const struct values *values)
{
    const struct peak *peak = &values->more->peak;
    struct text *text = writer_room(writer);
    text_add(text, "at the peak, after ");
    add_seconds(text, peak->milliseconds);
    text_print(text, ": in use %s", size_short(values->peak_live).text);
    if (peak->heaps != 0)
        text_print(text, ", heaps' pages %s", known(peak->heaps).text);
    text_print(text, ", of %s thread%s\n", count_long(peak->threads).text,
               peak->threads == 1 ? "" : "s");
    add_heaps_at_peak(writer, &peak->by_name);
}

void text_report(const struct values *values, bool detail, struct writer *writer)
{
    struct text *text = writer_room(writer);
    text_print(text, "snug: statistics of process %zu after ", (size_t)values->process);
    add_seconds(text, values->milliseconds);
    text_print(text, " (%s)\n", values->reason);
    if (values->more->peak.sequence != 0)
        add_peak(writer, values);
    add_memory(writer, values);
    add_process(writer, values);
    add_events(writer, values);
    add_sizes(writer, values);
    add_heaps(writer, values->more, detail);
    if (detail)
        add_detail(writer, values);
}
