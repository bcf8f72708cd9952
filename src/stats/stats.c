/*
 * The counters, samples and events themselves. See stats.h and event.h.
 */
#include "stats/stats.h"

#include "stats/event.h"

struct counters counters;
struct samples samples;
struct events events;
void (*events_handler)(void);

void events_run(void)
{
    void (*handler)(void) = __atomic_load_n(&events_handler, __ATOMIC_ACQUIRE);
    if (handler != NULL)
        handler();
}
