/*
 * strange.c - what people write who try out an allocator, or who get a list, a length or a child
 * wrong: of each the part that no other file has.
 */
#include "kinds.h"

#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void write_bytes(unsigned char *at, size_t count)
{
    volatile unsigned char *to = opaque(at);
    for (size_t i = 0; i < count; i++)
        to[i] = 0x41;
}

/* ---- Freed twice ---- */

static bool after_realloc_to_nothing(size_t size)
{
    void *block = secret_block(size);
    void *empty = opaque(realloc(opaque(block), 0));
    free(opaque(block));
    return handed_out_twice(size, empty);
}

static bool stale_realloc(size_t size)
{
    void *block = secret_block(size), *wall = secret_block(size);
    void *moved = opaque(realloc(block, 3 * size));
    if (moved == block)
        return false; /* the second is right then */
    void *again = opaque(realloc(opaque(block), 2 * size));
    free(wall);
    return again != NULL;
}

static bool after_thousands(size_t size)
{
    enum { OPERATIONS = 10000, LIVE = 100 };
    static void *others[LIVE];
    void *block = secret_block(size);
    free(block);
    for (size_t i = 0; i < OPERATIONS; i++) {
        size_t other = 16 + i * 37 % 3000;
        free(others[i % LIVE]);
        others[i % LIVE] = opaque(malloc(other > size / 2 && other < 2 * size ? 8 : other));
    }
    free(opaque(block));
    return handed_out_twice(size, NULL);
}

static pthread_barrier_t together;

static void *free_together(void *block)
{
    pthread_barrier_wait(&together);
    free(opaque(block));
    return NULL;
}

static bool at_the_same_time(size_t size)
{
    void *block = secret_block(size);
    pthread_t threads[2];
    CHECK(pthread_barrier_init(&together, NULL, 2) == 0);
    for (size_t i = 0; i < 2; i++)
        CHECK(pthread_create(&threads[i], NULL, free_together, block) == 0);
    for (size_t i = 0; i < 2; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    return handed_out_twice(size, NULL);
}

static bool in_a_child(size_t size)
{
    void *block = secret_block(size);
    free(block);
    pid_t child = fork();
    CHECK(child >= 0);
    int status;
    if (child == 0) {
        free(opaque(block));
        _exit(handed_out_twice(size, NULL));
    }
    CHECK(waitpid(child, &status, 0) == child);
    if (WIFSIGNALED(status))
        raise(WTERMSIG(status)); /* as who looks after a child would say it */
    return WEXITSTATUS(status) != 0;
}

struct node {
    struct node *next;
};

/* The whole list twice, its links read from what was freed. */
static bool list_twice(size_t size)
{
    struct node *first = NULL;
    for (size_t i = 0; i < AROUND; i++) {
        struct node *node = (struct node *)(void *)secret_block(size);
        node->next = first;
        first = node;
    }
    static struct node *nodes[AROUND];
    size_t count = 0;
    for (struct node *node = first; node != NULL; node = node->next)
        nodes[count++] = node;
    for (size_t i = 0; i < 2 * count; i++)
        free(opaque(nodes[i % count]));
    return handed_out_twice(size, NULL);
}

/* ---- Pointers that are no block ---- */

static bool before_it(size_t size)
{
    struct around around;
    around_make(&around, size);
    free(opaque(around_victim(&around) - 16));
    return handed_out_twice(size, NULL) || around_is_damaged(&around);
}

static bool number_one(size_t size)
{
    free(opaque((const void *)(uintptr_t)1));
    return handed_out_twice(size, NULL);
}

static bool inside_aligned(size_t size)
{
    unsigned char *block = opaque(memalign(4096, size + 64));
    CHECK(block != NULL);
    free(opaque(block + 32));
    return handed_out_twice(size, block + 32);
}

/* ---- Lengths ---- */

/* All that malloc_usable_size says is the program's; one byte more is not. */
static bool behind_usable(size_t size)
{
    struct around around;
    around_make(&around, size);
    unsigned char *victim = around_victim(&around);
    write_bytes(victim, malloc_usable_size(victim) + 1);
    bool damaged = around_is_damaged(&around);
    around_free(&around);
    return damaged;
}

/* The next block is resized, or freed, and this one never. */
static bool behind_and_next_is_resized(size_t size)
{
    struct around around;
    around_make(&around, size);
    write_bytes(around_victim(&around) + size, 16);
    bool damaged = around_is_damaged(&around);
    return opaque(realloc(around.blocks[AROUND / 2 + 1], 2 * size)) != NULL && damaged;
}

static bool behind_and_next_is_freed(size_t size)
{
    struct around around;
    around_make(&around, size);
    write_bytes(around_victim(&around) + size, 16);
    bool damaged = around_is_damaged(&around);
    free(around.blocks[AROUND / 2 + 1]);
    return damaged;
}

/* Who shrank it did not tell who writes its old last bytes. */
static bool old_end_of_shrunk(size_t size)
{
    unsigned char *wall = secret_block(size), *block = secret_block(size);
    unsigned char *shrunk = opaque(realloc(block, size / 4));
    unsigned char *other = secret_block(size / 4);
    write_bytes(block + size - 8, 8);
    free(shrunk);
    bool damaged = false;
    for (size_t i = 0; i < size / 4; i++)
        damaged |= other[i] != SECRET;
    free(other);
    free(wall);
    return damaged || handed_out_twice(size, NULL);
}

/* ---- After a free ---- */

static bool middle_of_freed(size_t size)
{
    unsigned char *block = secret_block(size);
    free(block);
    write_bytes(block + (size / 2 & ~(size_t)7), 8);
    (void)handed_out_twice(size, NULL);
    return true;
}

static bool before_freed(size_t size)
{
    struct around around;
    around_make(&around, size);
    free(around_victim(&around));
    write_bytes(around_victim(&around) - 8, 8);
    bool damaged = around_is_damaged(&around);
    (void)handed_out_twice(size, NULL);
    return damaged;
}

/* Its pages are the system's again. */
static bool middle_of_trimmed(size_t size)
{
    unsigned char *block = secret_block(size);
    free(block);
    malloc_trim(0);
    write_bytes(block + (size / 2 & ~(size_t)7), 8);
    (void)handed_out_twice(size, NULL);
    return true;
}

/* What stands between the index and the block is left alone. */
static bool by_a_negative_index(size_t size)
{
    struct around around;
    around_make(&around, size);
    write_bytes(around_victim(&around) - 16, 4);
    bool damaged = around_is_damaged(&around);
    around_free(&around);
    return damaged;
}

static bool before_a_page(size_t size)
{
    unsigned char *block = opaque(memalign(4096, size));
    CHECK(block != NULL);
    write_bytes(block - 8, 8);
    free(block);
    (void)handed_out_twice(size, NULL);
    return false;
}

static const struct kind table[] = {
    {"twice-after-realloc-0", "a block is freed that `realloc(p, 0)` has freed",
     after_realloc_to_nothing},
    {"realloc-stale", "`realloc` of a block that `realloc` has moved", stale_realloc},
    {"twice-after-thousands", "a block is freed twice, with 10,000 other calls between",
     after_thousands},
    {"twice-together", "... by two threads at the same time", at_the_same_time},
    {"twice-in-child", "... the second time by a child of `fork`", in_a_child},
    {"list-twice", "each block of a list is freed twice", list_twice},
    {"before-it", "a pointer 16 bytes before a block is freed", before_it},
    {"number-one", "the pointer 1 is freed", number_one},
    {"inside-aligned", "a pointer 32 bytes into a block of `memalign` is freed", inside_aligned},
    {"write-behind-usable", "a byte is written behind what `malloc_usable_size` says",
     behind_usable},
    {"write-behind-resized", "16 bytes behind a block are written, and the next is resized",
     behind_and_next_is_resized},
    {"write-behind-freed", "... and the next is freed", behind_and_next_is_freed},
    {"write-shrunk-end", "what was the end of a block that has shrunk is written",
     old_end_of_shrunk},
    {"write-freed-middle", "the middle of a freed block is written", middle_of_freed},
    {"write-before-freed", "8 bytes before a freed block are written", before_freed},
    {"write-freed-trimmed", "the middle of a freed block is written after `malloc_trim`",
     middle_of_trimmed},
    {"write-index-negative", "4 bytes are written, 16 bytes before a block", by_a_negative_index},
    {"write-before-page", "8 bytes before a block of `memalign(4096, n)` are written",
     before_a_page},
};

const struct kinds kinds_strange = KINDS("As strangers try it out", table);
