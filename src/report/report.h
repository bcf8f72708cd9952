/*
 * Where and when the statistics are written, and the heap is checked.
 *
 * Reading and writing the statistics allocates nothing from the heap that they describe, and waits
 * for no lock of it. The exceptions are report_check, which takes locks, and report_xml, which uses
 * stdio.
 */
#ifndef SNUG_REPORT_REPORT_H
#define SNUG_REPORT_REPORT_H

#include <stdio.h>

#include "report/values.h"

/* Whether the options ask for statistics or checks at any time. */
bool report_is_wanted(void);

/* Begins reporting, once the options are read: calls report_keep_place, and sets the triggers of
 * later prints. (triggers.c, which stands above report.c) */
void report_start(void);

/* Looks after the place that the statistics go to. A descriptor for stderr or stdout is kept:
 * programs close both before they exit, to see whether all was written. A file that children of
 * fork write to as well is emptied before the first fork. */
void report_keep_place(void);

/* Prints and checks at the end of the process, as the options say. */
void report_at_exit(void);

/* Writes the statistics to the place that SNUG_STATS names, in its format; does nothing if there is
 * none. The first failure of a process is one line on stderr. Safe in a signal handler. False:
 * another thread is writing at the moment. */
bool report_print(const char *reason);

/* The same for a process that ends: waits up to two seconds for a thread that is writing. */
void report_print_last(const char *reason);

/* Writes `wrong`, which heap_check has returned, as one line on stderr. False: it is NULL, as
 * nothing is wrong. */
bool report_damage(const char *wrong);

/* Walks the heap, and reports the first thing that is wrong; SNUG_MISUSE says what follows. Takes
 * locks. */
void report_check(void);

/* Writes the statistics as text to a descriptor. False: it could not be written, or another thread
 * prints and does not end. */
bool report_text(int descriptor);

/* Writes the totals as XML, in the form of glibc's malloc_info. */
void report_xml(FILE *stream);

#endif
