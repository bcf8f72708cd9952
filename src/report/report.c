/*
 * Where the statistics are written. See report.h.
 */
#include "report/report.h"

#include <string.h>

#include "meta/misuse.h"
#include "options/options.h"
#include "platform/check.h"
#include "platform/file.h"
#include "platform/output.h"
#include "platform/signal.h"
#include "platform/thread.h"
#include "report/formats.h"

enum { PRINT_MOST = 64 * 1024 };

/* Milliseconds. PATIENCE: so long a print waits for other processes that write to its file.
 * LAST_PATIENCE: so long the last print of a process waits for them, and before that for another
 * thread that prints. The last print is worth some patience; any other is not worth holding the
 * program up. */
enum { PATIENCE = 20, LAST_PATIENCE = 2000 };

/* What one print needs, for one print at a time: too much for the stack of a signal handler. All of
 * it is zero at the start; one field that is not would put the whole, 77 KiB, into the library's
 * file. */
BULKY static struct {
    int printing;  /* id of the process that prints, 0: none */
    bool failed;   /* a print has failed, and that was reported */
    int opened_by; /* id of the process that wrote to the file last, or emptied it, 0: none */
    bool is_open;  /* the stream to print to was open at the start, and led to `stream` */
    int kept;      /* if so, a descriptor for the same file out of the program's way, or < 0 */
    struct os_identity stream;
    struct values values;
    struct values_more more;
    char path[OS_PATH_MOST];
    char buffer[PRINT_MOST]; /* each print is one write, so those of several processes do not mix */
} printer;

/* ---- The place ---- */

/* Writes `path` to printer.path, with the process id in place of each %p. */
static void expand_path(const char *path)
{
    struct text text;
    text_init(&text, printer.path, OS_PATH_MOST - 1);
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

/* Notes which file a stream leads to, and keeps a descriptor for that file. */
static void keep_stream(int stream)
{
    printer.is_open = os_identify(stream, &printer.stream);
    printer.kept = printer.is_open ? os_duplicate(stream) : -1;
}

static bool leads_to_stream(int descriptor)
{
    struct os_identity now;
    return descriptor >= 0 && os_identify(descriptor, &now) &&
           now.device == printer.stream.device && now.file == printer.stream.file;
}

/* A descriptor that still leads where the stream led at the start, or -1. Programs close streams
 * and then get the same numbers for files of their own. */
static int find_stream(int stream)
{
    if (!printer.is_open)
        return -1;
    return leads_to_stream(printer.kept) ? printer.kept : leads_to_stream(stream) ? stream : -1;
}

/* Says once in a process that a place cannot be written, and why, if that is known. */
static void report_failure(const char *path, int error)
{
    if (printer.failed)
        return;
    printer.failed = true;
    os_print(2, "snug: the statistics could not be written to %.*s%s%s\n", 900, path,
             error < 0 ? ": " : "", error < 0 ? os_error_text(-error) : "");
}

static unsigned format_in_force(void)
{
    unsigned format = options.stats_format;
    return format != FORMAT_AUTO ? format : format_of_path(options.stats);
}

/* ---- Printing ---- */

static void read_values(const char *reason, enum values_depth depth)
{
    values_read(&printer.values, &printer.more, NULL, &snug_anchor, 0, depth);
    printer.values.reason = reason;
}

static bool write_values(int descriptor, unsigned format, bool first)
{
    struct writer writer;
    writer_begin(&writer, descriptor, printer.buffer, sizeof(printer.buffer));
    return format_write(format, &printer.values, options.stats_detail != 0, first, &writer);
}

static bool is_for_each_process(void)
{
    return strstr(options.stats, "%p") != NULL;
}

/* The first print of a process empties its file, and later ones append; in OpenMetrics each print
 * empties it, since a file is one exposition. A forked child appends to its parent's file, or has a
 * file of its own if the path has the process id in it. */
static void print_to_file(unsigned patience)
{
    expand_path(options.stats);
    int self = os_process_id();
    bool own_file = printer.opened_by == self || (printer.opened_by != 0 && !is_for_each_process());
    bool append = own_file && format_in_force() != FORMAT_OPENMETRICS;
    int descriptor = os_open_output(printer.path);
    if (descriptor < 0) {
        report_failure(printer.path, descriptor);
        return;
    }
    os_lock_output(descriptor, patience);
    if (!append)
        os_cut_output(descriptor);
    if (!write_values(descriptor, format_in_force(), !append || os_output_is_empty(descriptor)))
        report_failure(printer.path, 0);
    os_close(descriptor);
    printer.opened_by = self;
}

static void print_to_stream(int stream)
{
    int descriptor = find_stream(stream);
    if (descriptor < 0)
        return; /* and there is nowhere to say so */
    bool first = printer.opened_by == 0;
    if (!write_values(descriptor, format_in_force(), first) && stream != 2)
        report_failure(options.stats, 0);
    printer.opened_by = os_process_id();
}

/* Whether this thread may print now, or within `patience` milliseconds. A mark that a parent
 * process left when it forked counts as none: the thread that set it does not exist here. */
static bool take_turn(unsigned patience)
{
    int self = os_process_id();
    for (;;) {
        int other = __atomic_load_n(&printer.printing, __ATOMIC_RELAXED);
        /* acquire, and release in print: the next thread finds `printer` as the last one left it */
        if (other != self && __atomic_compare_exchange_n(&printer.printing, &other, self, false,
                                                         __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return true;
        if (patience-- == 0)
            return false;
        os_rest();
    }
}

/* Takes a turn, with signals held back, so that no handler waits for the thread that it
 * interrupted. */
static bool begin(struct os_signals *signals, unsigned patience)
{
    os_signals_hold(signals);
    if (take_turn(patience))
        return true;
    os_signals_release(signals);
    return false;
}

static void end(const struct os_signals *signals)
{
    __atomic_store_n(&printer.printing, 0, __ATOMIC_RELEASE);
    os_signals_release(signals);
}

static bool print(const char *reason, bool last)
{
    struct os_signals signals;
    if (options.stats == NULL)
        return true;
    if (!begin(&signals, last ? LAST_PATIENCE : 0))
        return false;
    bool quick = format_in_force() == FORMAT_CSV && !last;
    read_values(reason, quick ? VALUES_QUICK : VALUES_WHOLE);
    int stream = standard_stream(options.stats);
    if (stream >= 0)
        print_to_stream(stream);
    else
        print_to_file(last ? LAST_PATIENCE : PATIENCE);
    end(&signals);
    return true;
}

bool report_print(const char *reason)
{
    return print(reason, false);
}

void report_print_last(const char *reason)
{
    print(reason, true);
}

bool report_text(int descriptor)
{
    struct os_signals signals;
    if (!begin(&signals, LAST_PATIENCE))
        return false;
    read_values("asked for", VALUES_WHOLE);
    bool done = write_values(descriptor, FORMAT_TEXT, true);
    end(&signals);
    return done;
}

/* ---- Start and end ---- */

/* Empties the file if no print has, so that neither the parent nor a child does it later, when the
 * other has printed. */
static void before_fork(void)
{
    struct os_signals signals;
    if (!begin(&signals, PATIENCE))
        return;
    expand_path(options.stats);
    if (printer.opened_by == 0 && os_empty_file(printer.path))
        printer.opened_by = os_process_id();
    end(&signals);
}

AT_START void report_keep_place(void)
{
    if (options.stats == NULL)
        return;
    int stream = standard_stream(options.stats);
    if (stream >= 0)
        keep_stream(stream);
    else if (!is_for_each_process())
        os_fork_init(before_fork, NULL, NULL);
}

bool report_damage(const char *wrong)
{
    if (wrong == NULL)
        return false;
    if (check_place() == 0)
        os_print(2, "snug: the heap is damaged: %s\n", wrong);
    else
        os_print(2, "snug: the heap is damaged: %s, at %#zx\n", wrong, check_place());
    return true;
}

void report_check(void)
{
    if (report_damage(heap_check()))
        misuse_follow();
}

AT_START bool report_is_wanted(void)
{
    return options.stats != NULL || options.check_on != 0;
}

AT_START void report_at_exit(void)
{
    static bool done; /* exit and quick_exit may both call this, in two threads */
    if (!report_is_wanted() || __atomic_exchange_n(&done, true, __ATOMIC_RELAXED))
        return;
    if (options.check_on & CHECK_ON_EXIT)
        report_check();
    if (options.stats_on & STATS_ON_EXIT)
        report_print_last("exit");
}
