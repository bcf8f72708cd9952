/*
 * What a heap looks like, for people and for programs: where and when the statistics are written.
 * Everything here reads; nothing allocates from the heap that it describes, and nothing takes a
 * lock that a signal handler could meet.
 */
#ifndef SNUG_REPORT_REPORT_H
#define SNUG_REPORT_REPORT_H

#include <stdio.h>

#include "report/values.h"

/* Whether the options ask for statistics or checks at any time. */
bool report_is_wanted(void);

/* Begins reporting, once the options are read: report_keep_stream, and the triggers of later
 * prints. (triggers.c, which stands above report.c) */
void report_start(void);

/* Keeps a descriptor for stderr or stdout if the statistics go there: programs close both before
 * they exit, to see whether all was written. */
void report_keep_stream(void);

/* Prints and checks at the end of the process, as the options say. */
void report_at_exit(void);

/* Writes the statistics where SNUG_STATS says, in its format, if it is set; a failure is one line
 * on stderr, once. Safe in a signal handler. False: another thread is writing at the moment. */
bool report_print(const char *reason);

/* The same for a process that ends: waits for the other thread, but not for ever. */
void report_print_last(const char *reason);

/* Writes what heap_check has found as one line on stderr. False: that was NULL, and nothing is
 * wrong. */
bool report_damage(const char *wrong);

/* Walks the heap, and reports the first thing that is wrong; SNUG_MISUSE says what follows. Takes
 * locks. */
void report_check(void);

/* Writes the statistics as text to a descriptor. False: it could not be written. */
bool report_text(int descriptor);

/* Writes the totals as XML, in the form of glibc's malloc_info. */
void report_xml(FILE *stream);

#endif
