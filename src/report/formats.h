/*
 * The forms in which statistics are written. None of them allocates, takes a lock or uses stdio.
 * docs/statistics.md describes them; they are made from report/gauges.def and stats/counters.def.
 */
#ifndef SNUG_REPORT_FORMATS_H
#define SNUG_REPORT_FORMATS_H

#include "report/values.h"

/* As in the choices of SNUG_STATS_FORMAT. */
enum format { FORMAT_AUTO, FORMAT_TEXT, FORMAT_JSON, FORMAT_CSV, FORMAT_OPENMETRICS };

/* What FORMAT_AUTO means for a path: its suffix tells; otherwise text. */
enum format format_of_path(const char *path);

/* Writes once. `detail` adds every class to text; `first`: nothing stands before it, so CSV begins
 * with its header. False: it could not be written. */
bool format_write(enum format format, const struct values *values, bool detail, bool first,
                  int descriptor);

/* One for each form. */
bool text_report(const struct values *values, bool detail, int descriptor);
bool json_report(const struct values *values, int descriptor);
bool csv_report(const struct values *values, bool header, int descriptor);
bool metrics_report(const struct values *values, int descriptor);

#endif
