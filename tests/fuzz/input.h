/*
 * The bytes of an input, read one after the other. Behind the end there are zeros, so that every
 * string of bytes is a valid input.
 */
#ifndef SNUG_TESTS_FUZZ_INPUT_H
#define SNUG_TESTS_FUZZ_INPUT_H

#include "base/common.h"

struct input {
    const uint8_t *at;
    const uint8_t *end;
};

static inline bool input_ended(const struct input *input)
{
    return input->at == input->end;
}

static inline uint8_t input_byte(struct input *input)
{
    return input_ended(input) ? 0 : *input->at++;
}

/* Two bytes, the lower one first. */
static inline uint16_t input_pair(struct input *input)
{
    uint16_t low = input_byte(input);
    return (uint16_t)(low | input_byte(input) << 8);
}

/* One of `count` things, of which there is at least one. */
static inline size_t input_index(struct input *input, size_t count)
{
    return (count <= 256 ? input_byte(input) : input_pair(input)) % count;
}

#endif
