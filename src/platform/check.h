/*
 * Invariants that are checked while the program runs, in the debug build (SNUG_DEBUG) only. In
 * release the condition is not evaluated; what must hold in any build is tested by snug_check().
 */
#ifndef SNUG_PLATFORM_CHECK_H
#define SNUG_PLATFORM_CHECK_H

#include "base/common.h"

/* Prints the line and aborts. */
_Noreturn COLD void check_failed(const char *condition, const char *file, int line);

/* For *_check functions. check_found returns `wrong`, and keeps `place`, where it was found, for
 * the report. check_place returns the place that was kept last since check_begin; 0: there was
 * none. If two threads check at the same time, one may report the other's place. */
void check_begin(void);
const char *check_found(const void *place, const char *wrong);
uintptr_t check_place(void);

#if defined(SNUG_DEBUG)
#define CHECK(condition) ((condition) ? (void)0 : check_failed(#condition, __FILE__, __LINE__))
#else
#define CHECK(condition) ((void)sizeof((condition) ? 1 : 0))
#endif

#endif
