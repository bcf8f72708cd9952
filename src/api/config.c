/*
 * Reading configs. See config.h.
 */
#include "api/config.h"

#include <string.h>

bool config_read(void *known, size_t known_size, const void *given, size_t given_size)
{
    const char *bytes = given;
    if (given_size < sizeof(size_t))
        return false;
    memset(known, 0, known_size);
    memcpy(known, given, size_min(known_size, given_size));
    for (size_t i = known_size; i < given_size; i++)
        if (bytes[i] != 0)
            return false;
    return true;
}
