/*
 * The forms in which statistics are written. None of them allocates, takes a lock or uses stdio.
 * docs/statistics.md describes them; they are made from report/gauges.def and stats/counters.def.
 */
#ifndef SNUG_REPORT_FORMATS_H
#define SNUG_REPORT_FORMATS_H

#include "options/options.h"
#include "report/values.h"
#include "report/writer.h"

/* A format is one of the choices of SNUG_STATS_FORMAT: FORMAT_JSON, ... (options.h). */

/* What FORMAT_AUTO means for a path: its suffix tells; otherwise text. */
unsigned format_of_path(const char *path);

/* Writes once, and ends the writer. `detail` adds every class to text; `first`: nothing stands
 * before it, so CSV begins with its header. False: it could not be written. */
bool format_write(unsigned format, const struct values *values, bool detail, bool first,
                  struct writer *writer);

/* The heaps of the program's own as a JSON array; a quotation mark in it is `quote`, since CSV has
 * the same array as a field. */
void json_heaps(const struct heap_rows *heaps, const char *quote, struct writer *writer);

/* One for each form. */
void text_report(const struct values *values, bool detail, struct writer *writer);
void json_report(const struct values *values, struct writer *writer);
void csv_report(const struct values *values, bool header, struct writer *writer);
void metrics_report(const struct values *values, struct writer *writer);

#endif
