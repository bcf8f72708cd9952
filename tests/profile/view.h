/*
 * What the preloaded library's profile holds, looked at from the program itself: by the note that
 * leads the tool there (src/report/anchor.h), and the library's own headers.
 */
#ifndef SNUG_TESTS_PROFILE_VIEW_H
#define SNUG_TESTS_PROFILE_VIEW_H

#include "profile/profile.h"

/* Ends the program if there is no library of this very source. */
struct profile *view_profile(void);

/* What a site has, and the number of the call that is innermost of its stack. */
const struct site *view_site(const struct profile *profile, uint32_t number);

/* Whether the site's stack goes through code of `bytes` from `function` on. */
bool view_goes_through(const struct profile *profile, const struct site *site, const void *function,
                       size_t bytes);

/* The sum of all sites whose stack does. */
struct site view_sum(const struct profile *profile, const void *function, size_t bytes);

#endif
