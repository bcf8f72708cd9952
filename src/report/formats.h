/*
 * The formats of the statistics: text, JSON, CSV and OpenMetrics. docs/statistics.md describes
 * them. The numbers in all of them come from report/gauges.def and stats/counters.def.
 *
 * No format allocates, takes a lock or uses stdio.
 */
#ifndef SNUG_REPORT_FORMATS_H
#define SNUG_REPORT_FORMATS_H

#include "options/options.h"
#include "report/values.h"
#include "report/writer.h"

/* A format is one of the choices of SNUG_STATS_FORMAT: FORMAT_JSON, ... (options.h). */

/* The format that FORMAT_AUTO stands for: the one that the suffix of `path` names, otherwise
 * text. */
unsigned format_of_path(const char *path);

/* Writes one report, and ends the writer. `detail`: text has every number and every size. `first`:
 * nothing stands before the report, so CSV begins with its header. False: it could not be
 * written. */
bool format_write(unsigned format, const struct values *values, bool detail, bool first,
                  struct writer *writer);

/* Writes the heaps of the program's own as a JSON array. `quote` is written for each quotation
 * mark: CSV has the same array as a field, in which they are doubled. */
void json_heaps(const struct heap_rows *heaps, const char *quote, struct writer *writer);

/* One function for each format. */
void text_report(const struct values *values, bool detail, struct writer *writer);
void json_report(const struct values *values, struct writer *writer);
void csv_report(const struct values *values, bool header, struct writer *writer);
void metrics_report(const struct values *values, struct writer *writer);

#endif
