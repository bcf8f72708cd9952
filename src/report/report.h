/*
 * What a heap looks like, for people and for programs. Everything here reads; nothing allocates
 * from the heap that it describes.
 */
#ifndef SNUG_REPORT_REPORT_H
#define SNUG_REPORT_REPORT_H

#include <stdio.h>

#include "heap/heap.h"

/* Writes the statistics as text to a descriptor. False: it could not be written. */
bool report_text(int descriptor);

/* Call at the start: if the statistics go to stderr or stdout, keeps a way there, since programs
 * close both before they exit to see whether all was written. */
void report_start(void);

/* Writes the statistics where SNUG_STATS says, if it says anything; one line on stderr if that
 * cannot be. */
void report_at_exit(void);

/* Writes the totals as XML, in the form of glibc's malloc_info. */
void report_xml(FILE *stream);

#endif
