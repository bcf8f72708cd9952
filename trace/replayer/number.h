/*
 * number.h - decimal numbers in text, without libc's functions for them: built with a newer glibc's
 * headers they ask for names that an older glibc does not have, and the replayer runs with both.
 */
#ifndef SNUG_REPLAYER_NUMBER_H
#define SNUG_REPLAYER_NUMBER_H

#include <stdint.h>

/* The number that `text` begins with, behind blanks; 0: with none. */
static inline uint64_t number_at(const char *text)
{
    uint64_t number = 0;
    while (*text == ' ' || *text == '\t')
        text++;
    for (; *text >= '0' && *text <= '9'; text++)
        number = 10 * number + (uint64_t)(*text - '0');
    return number;
}

#endif
