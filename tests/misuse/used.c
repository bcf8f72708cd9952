/*
 * used.c - using what was freed, and reading what nobody wrote.
 */
#include "kinds.h"

#include <malloc.h>
#include <string.h>

static void write_to(void *block, size_t offset, size_t count)
{
    volatile unsigned char *to = opaque((unsigned char *)block + offset);
    for (size_t i = 0; i < count; i++)
        to[i] = 0x41;
}

/* Whether what was there before can be read. */
static bool has_secret(const void *block, size_t from, size_t to)
{
    return secret_is_seen(opaque((const unsigned char *)block + from), to - from);
}

static bool is_written_to(size_t size, size_t offset, size_t count)
{
    void *block = secret_block(size);
    free(block);
    write_to(block, offset, count);
    (void)handed_out_twice(size, NULL);
    return true; /* whoever got it has the wrong bytes in it */
}

static bool write_first_word(size_t size)
{
    return is_written_to(size, 0, 8);
}

static bool write_second_word(size_t size)
{
    return is_written_to(size, 8, 8);
}

static bool write_third_word(size_t size)
{
    return is_written_to(size, 16, 8);
}

static bool write_last_byte(size_t size)
{
    return is_written_to(size, size - 1, 1);
}

static bool write_all_of_it(size_t size)
{
    return is_written_to(size, 0, size);
}

/* Nobody asks for such a block again. */
static bool write_and_end(size_t size)
{
    void *block = secret_block(size);
    free(block);
    write_to(block, 16, 8);
    return true;
}

static bool write_after_reuse(size_t size)
{
    void *block = secret_block(size);
    free(block);
    unsigned char *mine = secret_block(size);
    write_to(block, 0, 8);
    bool damaged = false;
    for (size_t i = 0; i < size; i++)
        damaged |= mine[i] != SECRET;
    free(mine);
    return damaged;
}

/* The thread that wrote had nothing to do with the free. */
static void *write_in_thread(void *block)
{
    write_to(block, 16, 8);
    return NULL;
}

static bool write_by_a_thread(size_t size)
{
    void *block = secret_block(size);
    free(block);
    in_thread(write_in_thread, block);
    (void)handed_out_twice(size, NULL);
    return true;
}

static bool write_much_later(size_t size)
{
    void *block = secret_block(size);
    free(block);
    for (size_t i = 0; i < 20; i++)
        traffic(size);
    write_to(block, 16, 8);
    (void)handed_out_twice(size, NULL);
    return true;
}

static bool write_after_realloc(size_t size)
{
    void *block = secret_block(size), *other = secret_block(size);
    void *moved = opaque(realloc(block, 3 * size));
    free(other);
    if (moved == block)
        return false; /* it has not moved: it is still ours */
    write_to(block, 16, 8);
    (void)handed_out_twice(size, NULL);
    return true;
}

static bool read_at_once(size_t size)
{
    void *block = secret_block(size);
    free(block);
    return has_secret(block, 0, 16);
}

static bool read_the_rest(size_t size)
{
    void *block = secret_block(size);
    free(block);
    return has_secret(block, 16, size);
}

static bool read_after_reuse(size_t size)
{
    void *block = opaque(malloc(size));
    free(block);
    unsigned char *mine = secret_block(size);
    bool secret = has_secret(block, 0, size);
    free(mine);
    return secret;
}

static bool read_by_a_thread_after(size_t size)
{
    void *block = secret_block(size);
    in_thread(free_in_thread, block);
    return has_secret(block, 16, size);
}

static bool read_moved(size_t size)
{
    void *block = secret_block(size), *other = secret_block(size);
    void *moved = opaque(realloc(block, 3 * size));
    free(other);
    return moved != block && has_secret(block, 16, size);
}

static bool read_uninitialised(size_t size)
{
    free(secret_block(size));
    return has_secret(opaque(malloc(size)), 0, size);
}

static bool read_uninitialised_grown(size_t size)
{
    for (size_t i = 0; i < AROUND; i++)
        free(secret_block(size));
    unsigned char *block = opaque(realloc(calloc(1, size / 4), size));
    return has_secret(block, size / 4, size);
}

static bool read_uninitialised_aligned(size_t size)
{
    void *block = opaque(memalign(64, size));
    memset(block, SECRET, size);
    free(block);
    return has_secret(opaque(memalign(64, size)), 0, size);
}

static const struct kind table[] = {
    {"write-freed-0", "the first word of a freed block is written", write_first_word},
    {"write-freed-8", "... its second word", write_second_word},
    {"write-freed-16", "... its third word", write_third_word},
    {"write-freed-last", "... its last byte", write_last_byte},
    {"write-freed-all", "... all of it", write_all_of_it},
    {"write-freed-end", "... its third word, and nobody asks for such a block again",
     write_and_end},
    {"write-freed-reused", "... its first word, when it is somebody else's", write_after_reuse},
    {"write-freed-thread", "... its third word, by another thread", write_by_a_thread},
    {"write-freed-later", "... its third word, much later", write_much_later},
    {"write-freed-moved", "a block is written to that `realloc` has moved", write_after_realloc},
    {"read-freed", "the first words of a freed block are read", read_at_once},
    {"read-freed-rest", "... all behind them", read_the_rest},
    {"read-freed-reused", "... all, when it is somebody else's", read_after_reuse},
    {"read-freed-thread", "... all behind them, freed by a thread that is gone",
     read_by_a_thread_after},
    {"read-freed-moved", "a block is read that `realloc` has moved", read_moved},
    {"uninitialised", "what a block held before is read in the next", read_uninitialised},
    {"uninitialised-grown", "... in what `realloc` added", read_uninitialised_grown},
    {"uninitialised-aligned", "... in a block of `memalign`", read_uninitialised_aligned},
};

const struct kinds kinds_used = KINDS("Used after it was freed, or before it was written", table);
