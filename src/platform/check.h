/*
 * Invariants that are checked while the program runs, in the debug build (SNUG_DEBUG) only. In
 * release the condition is not evaluated; what must hold in any build is tested by snug_check().
 */
#ifndef SNUG_PLATFORM_CHECK_H
#define SNUG_PLATFORM_CHECK_H

#include "base/common.h"

/* Prints the line and aborts. */
_Noreturn COLD void check_failed(const char *condition, const char *file, int line);

/* What a *_check function says: `wrong`, and that it is at `place`, which is kept for who reports
 * it. check_place is 0 if the last finding since check_begin had none. Of threads that check at the
 * same time one may report the other's place. */
void check_begin(void);
const char *check_found(const void *place, const char *wrong);
uintptr_t check_place(void);

#if defined(SNUG_DEBUG)
#define CHECK(condition) ((condition) ? (void)0 : check_failed(#condition, __FILE__, __LINE__))
#else
#define CHECK(condition) ((void)sizeof((condition) ? 1 : 0))
#endif

#endif
