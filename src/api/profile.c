/*
 * Profiles, from inside the program.
 */
#include <errno.h>

#include "heap/sampled.h"
#include "snug/snug.h"

int snug_profile_begin(void)
{
    return sampled_begin() ? 0 : ENOMEM;
}

void snug_profile_end(void)
{
    sampled_end();
}
