/*
 * Where the statistics are written. See report.h.
 */
#include "report/report.h"

#include <string.h>

#include "options/options.h"
#include "platform/output.h"
#include "platform/signal.h"
#include "platform/thread.h"
#include "report/formats.h"

enum { PATH_MOST = 4096 };

/* One print at a time; the numbers are too many for the stack of a signal handler. */
static struct {
    bool busy;
    int opened_by;   /* the process that has written to the file, 0: none */
    int kept_stream; /* a way to stderr or stdout, or -1 */
    struct values values;
    char path[PATH_MOST];
} printer = {.kept_stream = -1};

/* ---- The place ---- */

/* `path` with the process id for each %p. */
static void expand_path(const char *path)
{
    struct text text;
    text_init(&text, printer.path, PATH_MOST - 1);
    for (; *path != 0; path++) {
        if (path[0] == '%' && path[1] == 'p') {
            text_add_decimal(&text, (uint64_t)os_process_id());
            path++;
        } else {
            text_add_bytes(&text, path, 1);
        }
    }
    printer.path[text.length] = 0;
}

/* The descriptor of a standard stream that SNUG_STATS names; -1 if it names none. */
static int standard_stream(const char *path)
{
    if (path == NULL)
        return -1;
    return strcmp(path, "stderr") == 0 ? 2 : strcmp(path, "stdout") == 0 ? 1 : -1;
}

static void report_failure(const char *path)
{
    char buffer[1024];
    struct text text;
    text_init(&text, buffer, sizeof(buffer) - 1);
    text_add(&text, "snug: the statistics could not be written to ");
    text_add_bytes(&text, path, size_min(strlen(path), 900));
    text_add(&text, "\n");
    text_write(&text, 2);
}

static enum format format_in_force(void)
{
    enum format format = (enum format)options.stats_format;
    return format != FORMAT_AUTO ? format : format_of_path(options.stats);
}

/* ---- Printing ---- */

static bool write_values(int descriptor, bool first)
{
    return format_write(format_in_force(), &printer.values, options.stats_detail != 0, first,
                        descriptor);
}

/* The first print of a process begins its file, later ones go on; but for OpenMetrics, where a file
 * is one exposition. A child that was forked goes on in its parent's file, or has one of its own if
 * the path has the process id in it. */
static void print_to_file(void)
{
    expand_path(options.stats);
    int self = os_process_id();
    bool own_file = printer.opened_by == self ||
                    (printer.opened_by != 0 && strstr(options.stats, "%p") == NULL);
    bool append = own_file && format_in_force() != FORMAT_OPENMETRICS;
    int descriptor = os_open_output(printer.path, append);
    if (descriptor >= 0)
        os_lock_output(descriptor);
    if (descriptor < 0 || !write_values(descriptor, !append))
        report_failure(printer.path);
    if (descriptor >= 0)
        os_close(descriptor);
    printer.opened_by = self;
}

static void print_to_stream(int stream)
{
    if (printer.kept_stream >= 0)
        stream = printer.kept_stream;
    bool first = printer.opened_by == 0;
    write_values(stream, first); /* where it cannot be told, it is not */
    printer.opened_by = os_process_id();
}

bool report_print(const char *reason)
{
    if (options.stats == NULL)
        return true;
    /* acquire, and release below: the next one finds all of it at rest */
    if (__atomic_exchange_n(&printer.busy, true, __ATOMIC_ACQUIRE))
        return false;
    enum values_depth depth = format_in_force() == FORMAT_CSV && strcmp(reason, "exit") != 0
                                  ? VALUES_QUICK
                                  : VALUES_WHOLE;
    uint64_t held = os_pipe_signal_hold();
    values_read(&printer.values, NULL, &snug_anchor, 0, depth);
    printer.values.reason = reason;
    int stream = standard_stream(options.stats);
    if (stream >= 0)
        print_to_stream(stream);
    else
        print_to_file();
    os_pipe_signal_release(held);
    __atomic_store_n(&printer.busy, false, __ATOMIC_RELEASE);
    return true;
}

bool report_text(int descriptor)
{
    struct values values;
    values_read(&values, NULL, &snug_anchor, 0, VALUES_WHOLE);
    values.reason = "asked for";
    return format_write(FORMAT_TEXT, &values, options.stats_detail != 0, true, descriptor);
}

/* ---- Start and end ---- */

void report_start(void)
{
    int stream = standard_stream(options.stats);
    if (stream >= 0)
        printer.kept_stream = os_duplicate(stream);
    /* relaxed: nothing else is told by it */
    __atomic_store_n(&events.started, os_clock(), __ATOMIC_RELAXED);
    triggers_start();
}

void report_damage(const char *wrong)
{
    char buffer[256];
    struct text text;
    text_init(&text, buffer, sizeof(buffer));
    text_add(&text, "snug: the heap is damaged: ");
    text_add(&text, wrong);
    text_add(&text, "\n");
    text_write(&text, 2);
}

void report_check(void)
{
    const char *wrong = heap_check();
    if (wrong == NULL)
        return;
    report_damage(wrong);
    if (options.misuse == MISUSE_ABORT)
        os_abort();
}

void report_at_exit(void)
{
    static bool done; /* exit and quick_exit may both come, in two threads */
    if (__atomic_exchange_n(&done, true, __ATOMIC_RELAXED))
        return;
    if (options.check_on & CHECK_ON_EXIT)
        report_check();
    if (options.stats_on & STATS_ON_EXIT)
        report_print("exit");
}
