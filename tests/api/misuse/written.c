/*
 * written.c - the cases of misuse.c in which memory is written to that is free, or never was a
 * block's.
 */
#include "cases.h"

#include <malloc.h>

/* Whatever stands there, it is something else afterwards. */
static void change(unsigned char *bytes, size_t count)
{
    bytes = opaque(bytes);
    for (size_t i = 0; i < count; i++)
        bytes[i] ^= 0x41;
}

/* NUMBER bytes of a free block; nothing is asked for any more. */
void written_when_free(void)
{
    unsigned char *block = new_block();
    heap_is_damaged = true;
    free(opaque(block));
    change(block, number_argument);
}

void written_when_free_then_asked_for(void)
{
    written_when_free();
    for (int i = 0; i < 100; i++)
        blocks[i] = opaque(malloc(size_argument));
}

/* NUMBER bytes behind the last block that there is. */
void written_past_the_end(void)
{
    unsigned char *block = new_block();
    heap_is_damaged = true;
    change(block + malloc_usable_size(block), number_argument);
}

/* The lowest bit of the word before the block, which is free: of its header, where it has one. */
void written_before_when_free(void)
{
    unsigned char *block = new_block();
    heap_is_damaged = true;
    free(opaque(block));
    unsigned char *header = opaque(block - 8);
    *header ^= 1;
    for (int i = 0; i < 100; i++)
        blocks[i] = opaque(malloc(size_argument));
}
