/*
 * written.c - the cases of misuse.c in which memory is written to that is free, or never was a
 * block's; and what the program's own handler is told.
 */
#include "cases.h"

#include <dlfcn.h>
#include <malloc.h>
#include <setjmp.h>
#include <string.h>
#include <unistd.h>

#include "snug/snug.h"

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

/* ---- The program's own handler ---- */

static jmp_buf way_out;

static void tell(const struct snug_misuse *misuse)
{
    void *one = opaque(malloc(100)); /* which a handler may */
    print("told %s %s %p %zu\n%s\n", misuse->kind, misuse->call, misuse->address, misuse->bytes,
          misuse->line);
    free(one);
}

static void tell_and_jump(const struct snug_misuse *misuse)
{
    tell(misuse);
    longjmp(way_out, 1);
}

/* The library is preloaded, or the program runs without it. */
static void set_handler(snug_misuse_handler handler)
{
    void (*set)(snug_misuse_handler);
    void *found = dlsym(RTLD_DEFAULT, "snug_set_misuse_handler");
    CHECK(found != NULL);
    memcpy(&set, &found, sizeof(set));
    set(handler);
}

/* A free block, freed again. */
static void free_again(void)
{
    unsigned char *block = new_block();
    free(opaque(block));
    free_badly(block);
}

void told_and_returned(void)
{
    set_handler(tell);
    free_again();
}

void told_and_left(void)
{
    set_handler(tell_and_jump);
    if (setjmp(way_out) == 0)
        free_again();
    print("left\n");
}
