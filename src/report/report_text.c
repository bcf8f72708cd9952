/*
 * The statistics as text. It is put together in pieces that fit a buffer on the stack, since the
 * heap must stay as it is while it is described.
 */
#include <string.h>

#include "heap/totals.h"
#include "options/options.h"
#include "platform/lock.h"
#include "platform/output.h"
#include "report/report.h"
#include "stats/stats.h"

enum { PIECE = 4096, COLUMN = 34, WIDTH = 12 };

static void add_row(struct text *text, const char *name, uint64_t number, const char *unit)
{
    text_add(text, "  ");
    text_add(text, name);
    text_pad(text, COLUMN);
    text_add_column(text, number, WIDTH);
    text_add(text, unit);
    text_add(text, "\n");
}

static void add_kib(struct text *text, const char *name, size_t bytes)
{
    add_row(text, name, (bytes + KIB / 2) / KIB, " KiB");
}

static bool write_totals(int descriptor)
{
    char buffer[PIECE];
    struct text text;
    struct heap_totals totals = heap_totals();
    text_init(&text, buffer, sizeof(buffer));
    text_add(&text, "snug: statistics of process ");
    text_add_decimal(&text, (uint64_t)os_process_id());
    text_add(&text, "\nmemory\n");
    add_kib(&text, "small objects in use", totals.small_live);
    add_kib(&text, "medium cells in use", totals.cells_live);
    add_kib(&text, "large blocks in use", totals.large);
    add_kib(&text, "huge blocks in use", totals.huge);
    add_kib(&text, "waiting in magazines", totals.small_cached + totals.cells_cached);
    add_kib(&text, "waiting in depots", totals.small_waiting);
    add_kib(&text, "free in slabs", totals.small_free);
    add_kib(&text, "free in cell spans", totals.cells_free);
    add_kib(&text, "free pages, dirty", totals.dirty);
    add_kib(&text, "free pages, clean", totals.clean);
    add_kib(&text, "metadata", totals.meta_used);
    add_kib(&text, "segments mapped", totals.segments);
    text_add(&text, "events\n");
#define COUNTER(name, description) add_row(&text, description, COUNTED(name), "");
#include "stats/counters.def"
#undef COUNTER
    uint64_t waits = 0;
    for (unsigned rank = 0; rank < RANK_COUNT; rank++)
        waits += __atomic_load_n(&lock_waits[rank], __ATOMIC_RELAXED);
    add_row(&text, "waits for a lock", waits, "");
    return text_write(&text, descriptor);
}

static bool write_class(int descriptor, size_t class)
{
    struct class_totals objects = heap_class_totals(class);
    if (objects.slabs == 0)
        return true;
    char buffer[PIECE];
    struct text text;
    text_init(&text, buffer, sizeof(buffer));
    text_add_column(&text, class_bytes(class), 7);
    text_add_column(&text, objects.live, WIDTH);
    text_add_column(&text, objects.cached, WIDTH);
    text_add_column(&text, objects.waiting, WIDTH);
    text_add_column(&text, objects.free, WIDTH);
    text_add_column(&text, objects.slabs, WIDTH);
    text_add(&text, "\n");
    return text_write(&text, descriptor);
}

bool report_text(int descriptor)
{
    static const char head[] =
        "small objects by size\n"
        "   size      in use    magazine       depot        free       slabs\n";
    bool done = write_totals(descriptor) && os_write(descriptor, head, sizeof(head) - 1);
    for (size_t class = 1; done && class < CLASS_COUNT; class++)
        done = write_class(descriptor, class);
    return done;
}

static void report_failure(const char *path)
{
    char buffer[PIECE + 128];
    struct text text;
    text_init(&text, buffer, sizeof(buffer));
    text_add(&text, "snug: the statistics could not be written to ");
    text_add_bytes(&text, path, size_min(strlen(path), PIECE));
    text_add(&text, "\n");
    text_write(&text, 2);
}

/* `path` with the process id for each %p. */
static void expand_path(struct text *text, const char *path)
{
    for (; *path != 0; path++) {
        if (path[0] == '%' && path[1] == 'p') {
            text_add_decimal(text, (uint64_t)os_process_id());
            path++;
        } else {
            text_add_bytes(text, path, 1);
        }
    }
    text->buffer[text->length] = 0;
}

/* The descriptor of a standard stream that SNUG_STATS names; -1 if it names none. */
static int standard_stream(const char *path)
{
    if (path == NULL)
        return -1;
    return strcmp(path, "stderr") == 0 ? 2 : strcmp(path, "stdout") == 0 ? 1 : -1;
}

static int kept_stream = -1;

void report_start(void)
{
    int stream = standard_stream(options.stats);
    if (stream >= 0)
        kept_stream = os_duplicate(stream);
}

void report_at_exit(void)
{
    const char *path = options.stats;
    if (path == NULL)
        return;
    if (standard_stream(path) >= 0) {
        report_text(kept_stream >= 0 ? kept_stream : standard_stream(path));
        return;
    }
    char buffer[PIECE];
    struct text name;
    text_init(&name, buffer, sizeof(buffer) - 1);
    expand_path(&name, path);
    int descriptor = os_open_output(buffer);
    if (descriptor < 0) {
        report_failure(buffer);
        return;
    }
    if (!report_text(descriptor))
        report_failure(buffer);
    os_close(descriptor);
}
