/*
 * sized.c - the cases of misuse.c in which a program states the size of what it frees: the right
 * one, which is never reported, and wrong ones.
 */
#define _POSIX_C_SOURCE 200809L
#include "cases.h"

#include <dlfcn.h>
#include <string.h>

typedef void *take(size_t size);
typedef void *take_aligned(size_t size, size_t alignment);
typedef void give(void *block, size_t size);
typedef void give_aligned(void *block, size_t size, size_t alignment);

/* Sets a pointer to a function of the preloaded library. */
static void find(void *function, const char *name)
{
    void *found = dlsym(NULL, name);
    CHECK_MSG(found != NULL, "there is no %s", name);
    memcpy(function, &found, sizeof(found));
}

/* By operator new and delete, of every size, some of them waiting meanwhile. */
void sizes_stated_right(void)
{
    take *new_block_of;
    take_aligned *new_aligned;
    give *delete_block, *free_in_c;
    give_aligned *delete_aligned;
    find(&new_block_of, "_Znwm");
    find(&new_aligned, "_ZnwmSt11align_val_t");
    find(&delete_block, "_ZdlPvm");
    find(&delete_aligned, "_ZdlPvmSt11align_val_t");
    find(&free_in_c, "free_sized");
    void *held[64] = {NULL};
    size_t sizes[64], turn = 0;
    for (size_t size = 0; size < 300000; size += 1 + size / 50, turn = (turn + 1) % 64) {
        if (held[turn] != NULL)
            delete_block(held[turn], sizes[turn]);
        held[turn] = new_block_of(size);
        sizes[turn] = size;
        for (size_t alignment = 16; alignment <= 8192; alignment *= 2)
            delete_aligned(new_aligned(size, alignment), size, alignment);
        free_in_c(malloc(size), size);
        free_in_c(realloc(malloc(2 * size), size + 1), size + 1);
    }
    for (size_t i = 0; i < 64; i++)
        delete_block(held[i], sizes[i]);
    delete_block(NULL, 5);
}

/* NUMBER is what is stated, by operator delete. */
void size_stated_wrong(void)
{
    take *new_block_of;
    give *delete_block;
    find(&new_block_of, "_Znwm");
    find(&delete_block, "_ZdlPvm");
    unsigned char *block = note_block(new_block_of(size_argument));
    say("bad", block);
    delete_block(opaque(block), number_argument);
    print("after\n");
}
