/*
 * Copies that are looked at before they are made: SNUG_CHECK_COPIES=1.
 *
 * The idea: of a heap's block it is known where it ends, from any address in it (heap/extent.c). So
 * memcpy, strcpy and the like are asked whether what they are about to write, and to read, is
 * within one block, and not a free one. What is no heap's is not looked at.
 *
 * Cost: nothing where it is off, for then no call comes here (platform/imports.h); docs/decisions/
 * 0014-copies.md has the counts where it is on.
 */
#ifndef SNUG_API_COPIES_H
#define SNUG_API_COPIES_H

/* Stands in for libc's functions in all objects that are loaded, if the option says so. */
void copies_begin(void);

#endif
