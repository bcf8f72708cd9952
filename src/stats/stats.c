/*
 * The counters, samples and events themselves. See stats.h and event.h.
 */
#include "stats/stats.h"

#include "stats/event.h"

struct counters counters;
struct samples samples;
struct events events;
void (*events_handler)(void);
void (*events_purge_handler)(void);

void events_run(void)
{
    if (events.wanted.purge != 0 && events_purge_handler != NULL) {
        __atomic_store_n(&events.wanted.purge, 0, __ATOMIC_RELAXED);
        events_purge_handler();
    }
    void (*handler)(void) = __atomic_load_n(&events_handler, __ATOMIC_ACQUIRE);
    if (handler != NULL)
        handler();
}
