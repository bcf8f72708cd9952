/*
 * When the statistics are written, and the heap is checked.
 *
 * Intervals and bytes are looked at on slow paths: in every call that neither a magazine nor a
 * quick list serves (heap/tick.h). That needs no thread, no timer and no signal, and a program that
 * asks for none of it does not even look at a clock. A program that does nothing, or lives from its
 * magazines and quick lists, prints nothing; its numbers do not change either.
 *
 * The handler of SIGUSR2 prints by itself: reading the numbers waits for no lock and allocates
 * nothing. If another print is under way, the next slow path prints. Checks take locks, so the next
 * slow path always does them. A fatal signal that the program does not handle prints before it ends
 * the process.
 */
#include "options/options.h"
#include "platform/clock.h"
#include "platform/signal.h"
#include "report/peak.h"
#include "report/report.h"

/* By then a program has said what it wants to do about SIGINT. */
#define SETTLED_NANOSECONDS ((uint64_t)500000000)

static struct {
    uint64_t next_interval; /* nanoseconds of os_clock(); UINT64_MAX: never */
    uint64_t next_bytes;    /* of values.taken_bytes; UINT64_MAX: never */
    uint64_t settled;       /* when SIGINT may be caught; UINT64_MAX: it is, or must not be */
} due = {UINT64_MAX, UINT64_MAX, UINT64_MAX};

static void on_fatal(const char *signal)
{
    report_print_last(signal);
}

static void on_request(void)
{
    if ((options.stats_on & STATS_ON_SIGNAL) && !report_print("signal"))
        __atomic_store_n(&events.wanted.print, 1, __ATOMIC_RELAXED);
    if (options.check_on & CHECK_ON_SIGNAL)
        __atomic_store_n(&events.wanted.check, 1, __ATOMIC_RELAXED);
}

/* Takes a request: true if it was made, and it is gone then. */
static bool take_request(uint8_t *request)
{
    return __atomic_load_n(request, __ATOMIC_RELAXED) != 0 &&
           __atomic_exchange_n(request, 0, __ATOMIC_RELAXED) != 0;
}

/* ---- What is due ---- */

/* Moves `*next` past `now`, by whole steps. */
static void advance(uint64_t *next, uint64_t now, uint64_t step)
{
    *next += (now - *next) / step * step + step;
}

static uint64_t taken_bytes(void)
{
    struct cell_totals cells = arenas_cell_totals(NULL, &heap_default.arenas);
    return COUNTED(refill_bytes) + COUNTED(large_taken_bytes) + cells.taken_bytes;
}

static void run_interval(uint64_t now)
{
    if (now < due.next_interval)
        return;
    advance(&due.next_interval, now, options_nanoseconds(options.stats_every));
    if (options.check_on & CHECK_ON_INTERVAL)
        report_check();
    if (options.stats_on & STATS_ON_INTERVAL)
        report_print("interval");
}

static void run_bytes(void)
{
    if (due.next_bytes == UINT64_MAX)
        return;
    uint64_t taken = taken_bytes();
    if (taken < due.next_bytes)
        return;
    advance(&due.next_bytes, taken, options.stats_bytes);
    report_print("bytes");
}

static void watch_unless_done(void)
{
    bool watch = due.next_interval != UINT64_MAX || due.next_bytes != UINT64_MAX ||
                 due.settled != UINT64_MAX;
    __atomic_store_n(&events.wanted.watch, watch ? 1 : 0, __ATOMIC_RELAXED);
}

static void run_watch(void)
{
    uint64_t now = os_clock();
    run_interval(now);
    run_bytes();
    if (now >= due.settled) {
        due.settled = UINT64_MAX;
        os_catch_fatal(on_fatal, true);
        watch_unless_done();
    }
}

/* Does what is wanted. Called on a slow path with no lock held, by one thread at a time. */
static void run(void)
{
    if (take_request(&events.wanted.trim)) {
        heap_trim(0);
        __atomic_fetch_add(&events.trims, 1, __ATOMIC_RELEASE);
    }
    if (take_request(&events.wanted.peak))
        peak_keep();
    if (take_request(&events.wanted.check))
        report_check();
    if (take_request(&events.wanted.print))
        report_print("signal");
    if (__atomic_load_n(&events.wanted.watch, __ATOMIC_RELAXED) != 0)
        run_watch();
}

/* ---- Start ---- */

/* Sets up the triggers that the options ask for. */
static void triggers_start(uint64_t now)
{
    unsigned on = options.stats == NULL ? 0 : options.stats_on;
    if (on != 0)
        peak_want(); /* who asks for statistics asks for those of small programs, too */
    bool interval = (on & STATS_ON_INTERVAL) || (options.check_on & CHECK_ON_INTERVAL);
    if (interval && options.stats_every != DELAY_NEVER && options.stats_every != 0)
        due.next_interval = now + options_nanoseconds(options.stats_every);
    if (on & STATS_ON_BYTES)
        due.next_bytes = options.stats_bytes;
    if ((on & STATS_ON_SIGNAL) || (options.check_on & CHECK_ON_SIGNAL))
        os_catch_request(on_request);
    if (on & STATS_ON_EXIT) {
        os_catch_fatal(on_fatal, false);
        due.settled = now + SETTLED_NANOSECONDS;
    }
    watch_unless_done();
}

AT_START void report_start(void)
{
    if (report_is_wanted()) {
        report_keep_place();
        triggers_start(os_clock());
    }
    /* release: a thread that calls it finds `due` filled in */
    __atomic_store_n(&events_handler, run, __ATOMIC_RELEASE);
}
