/*
 * The counters themselves. See stats.h.
 */
#include "stats/stats.h"

struct counters counters;
