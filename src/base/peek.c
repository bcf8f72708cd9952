/*
 * Reading words that other threads write meanwhile. See peek.h.
 */
#include "base/peek.h"

static inline uint64_t peek_here(const void *address, size_t bytes)
{
    /* acquire: pointers are followed; what they lead to was written before them */
    switch (bytes) {
    case 1:
        return __atomic_load_n((const uint8_t *)address, __ATOMIC_ACQUIRE);
    case 4:
        return __atomic_load_n((const uint32_t *)address, __ATOMIC_ACQUIRE);
    default:
        return __atomic_load_n((const uint64_t *)address, __ATOMIC_ACQUIRE);
    }
}

uint64_t peek_word(struct peek *peek, const void *address, size_t bytes)
{
    if (peek == NULL)
        return peek_here(address, bytes);
    uint64_t value = 0; /* both machines are little-endian: its first bytes are the low ones */
    if (!peek->failed && !peek->read(peek->context, (uintptr_t)address, &value, bytes)) {
        peek->failed = true;
        value = 0;
    }
    return value;
}

uint64_t peek_long(struct peek *peek, const void *address)
{
    return peek_word(peek, address, 8);
}
