/*
 * free.c - blocks that are freed twice.
 */
#include "kinds.h"

#include <malloc.h>
#include <string.h>

static bool at_once(size_t size)
{
    void *block = secret_block(size);
    free(block);
    free(opaque(block));
    return handed_out_twice(size, NULL);
}

static bool after_another(size_t size)
{
    void *block = secret_block(size), *other = secret_block(size);
    free(block);
    free(other);
    free(opaque(block));
    return handed_out_twice(size, NULL);
}

static bool after_many(size_t size)
{
    enum { MANY = 150 };
    static void *others[MANY];
    void *block = secret_block(size);
    for (size_t i = 0; i < MANY; i++)
        others[i] = opaque(malloc(size));
    free(block);
    for (size_t i = 0; i < MANY; i++)
        free(others[i]);
    free(opaque(block));
    return handed_out_twice(size, NULL);
}

static bool amid_allocations(size_t size)
{
    void *block = secret_block(size), *others[10];
    free(block);
    for (size_t i = 0; i < 10; i++)
        others[i] = opaque(malloc(2 * size + 16));
    for (size_t i = 0; i < 10; i++)
        free(others[i]);
    free(opaque(block));
    return handed_out_twice(size, NULL);
}

/* The first free is right, the second is of what somebody else has by now. */
static bool of_what_is_reused(size_t size)
{
    void *block = secret_block(size);
    free(block);
    void *mine = secret_block(size);
    free(opaque(block));
    return handed_out_twice(size, mine);
}

static bool in_another_thread(size_t size)
{
    void *block = secret_block(size);
    free(block);
    in_thread(free_in_thread, block);
    return handed_out_twice(size, NULL);
}

static bool after_a_thread(size_t size)
{
    void *block = secret_block(size);
    in_thread(free_in_thread, block);
    free(opaque(block));
    return handed_out_twice(size, NULL);
}

static bool after_a_write(size_t size)
{
    unsigned char *block = secret_block(size);
    free(block);
    memset(opaque(block), 0x41, 32);
    free(opaque(block));
    return handed_out_twice(size, NULL);
}

static bool after_a_trim(size_t size)
{
    void *block = secret_block(size);
    free(block);
    malloc_trim(0);
    free(opaque(block));
    return handed_out_twice(size, NULL);
}

static bool of_an_aligned_one(size_t size)
{
    void *block = opaque(memalign(64, size));
    CHECK(block != NULL);
    free(block);
    free(opaque(block));
    return handed_out_twice(size, NULL);
}

static bool of_what_realloc_moved(size_t size)
{
    void *block = secret_block(size), *other = secret_block(size);
    void *moved = opaque(realloc(block, 3 * size));
    free(other);
    if (moved == block) { /* it did not move: what is freed twice is the block itself */
        free(moved);
        free(opaque(block));
    } else {
        free(opaque(block));
    }
    return handed_out_twice(size, NULL);
}

static void *of_exit;

static void free_at_exit(void)
{
    free(opaque(of_exit));
}

static bool at_exit(size_t size)
{
    of_exit = secret_block(size);
    CHECK(atexit(free_at_exit) == 0);
    free(of_exit);
    return true; /* nobody can see what comes of it */
}

static const struct kind table[] = {
    {"twice-at-once", "a block is freed twice, at once", at_once},
    {"twice-after-another", "... with another free between", after_another},
    {"twice-after-many", "... with 150 other frees between", after_many},
    {"twice-amid-allocations", "... with blocks of another size between", amid_allocations},
    {"twice-reused", "... when it is somebody else's again", of_what_is_reused},
    {"twice-in-another-thread", "... the second time by another thread", in_another_thread},
    {"twice-after-a-thread", "... the first time by a thread that is gone", after_a_thread},
    {"twice-after-a-write", "... and written to between", after_a_write},
    {"twice-after-a-trim", "... with `malloc_trim` between", after_a_trim},
    {"twice-aligned", "... a block of `memalign`", of_an_aligned_one},
    {"twice-after-realloc", "a block is freed that `realloc` has moved", of_what_realloc_moved},
    {"twice-at-exit", "a block is freed a second time as the program ends", at_exit},
};

const struct kinds kinds_free = KINDS("Freed twice", table);
