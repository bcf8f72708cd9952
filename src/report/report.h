/*
 * What a heap looks like, for people and for programs: where and when the statistics are written.
 * Everything here reads; nothing allocates from the heap that it describes, and nothing takes a
 * lock that a signal handler could meet.
 */
#ifndef SNUG_REPORT_REPORT_H
#define SNUG_REPORT_REPORT_H

#include <stdio.h>

#include "report/values.h"

/* Call at the start, once the options are read: report_keep_stream, and sets what makes the
 * statistics be written later. It is in triggers.c, which stands above report.c. */
void report_start(void);

/* If the statistics go to stderr or stdout, keeps a way there: programs close both before they exit
 * to see whether all was written. */
void report_keep_stream(void);

/* What the options want when the process ends. */
void report_at_exit(void);

/* Writes the statistics where SNUG_STATS says, in its format, if it says anything; one line on
 * stderr, once, if that cannot be. Safe in a signal handler. False: another thread is writing at
 * the moment. */
bool report_print(const char *reason);

/* The same for a process that ends: waits for the other thread, if not for ever. */
void report_print_last(const char *reason);

/* One line on standard error: what heap_check has found. */
void report_damage(const char *wrong);

/* Walks the heap; what is wrong is reported, and SNUG_MISUSE says what follows. Takes locks. */
void report_check(void);

/* Writes the statistics as text to a descriptor. False: it could not be written. */
bool report_text(int descriptor);

/* Writes the totals as XML, in the form of glibc's malloc_info. */
void report_xml(FILE *stream);

/* For the child of a fork, in which no other thread prints. */
void report_fork_in_child(void);

#endif
