/*
 * twice.c - the cases of misuse.c in which a block is freed twice.
 */
#include "cases.h"

#include <malloc.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

void nothing_wrong(void)
{
    free(new_block());
}

void twice(void)
{
    unsigned char *block = new_block();
    free(opaque(block));
    free_badly(block);
}

/* NUMBER other blocks are freed in between, so the first waits in a magazine, the depot, a slab. */
void twice_with_others_between(void)
{
    CHECK(number_argument <= MOST);
    for (size_t i = 0; i < number_argument; i++)
        blocks[i] = opaque(malloc(size_argument));
    unsigned char *block = new_block();
    free(opaque(block));
    for (size_t i = 0; i < number_argument; i++)
        free(blocks[i]);
    free_badly(block);
}

/* ... half of the others before it, so that a whole slab or magazine goes with it. */
void twice_amid_others(void)
{
    CHECK(number_argument <= MOST);
    unsigned char *block = NULL;
    for (size_t i = 0; i < number_argument; i++) {
        if (i == number_argument / 2)
            block = new_block();
        blocks[i] = opaque(malloc(size_argument));
    }
    for (size_t i = 0; i < number_argument / 2; i++)
        free(blocks[i]);
    free(opaque(block));
    for (size_t i = number_argument / 2; i < number_argument; i++)
        free(blocks[i]);
    free_badly(block);
}

void twice_with_other_sizes_between(void)
{
    unsigned char *block = new_block();
    free(opaque(block));
    for (size_t size = 1; size < 40000; size += 61)
        free(opaque(malloc(size + size_argument)));
    free_badly(block);
}

/* The second of the two frees is the last that the program does; then it takes NUMBER blocks, one
 * of which may be where the first was, and returns. */
void twice_at_the_very_end(void)
{
    returns_at_once = true;
    twice_with_others_between();
    for (size_t i = 0; i < number_argument; i++)
        blocks[i] = opaque(malloc(size_argument));
}

/* All blocks of the size are freed and their memory given back before the second free. */
void twice_after_trimming(void)
{
    for (size_t i = 0; i < 2000; i++)
        blocks[i] = opaque(malloc(size_argument));
    unsigned char *block = new_block();
    for (size_t i = 0; i < 2000; i++)
        free(blocks[i]);
    free(opaque(block));
    malloc_trim(0);
    free_badly(block);
}

/* A stray write into the freed block destroys whatever the allocator may have put there. */
void twice_with_a_write_between(void)
{
    unsigned char *block = new_block();
    size_t usable = malloc_usable_size(block);
    free(opaque(block));
    memset(opaque(block), 0x55, usable);
    heap_is_damaged = true;
    free_badly(block);
}

/* The first of the two frees is realloc's own, of the place it moved the block from. */
void twice_by_realloc(void)
{
    unsigned char *block = new_block();
    free(opaque(realloc(opaque(block), size_argument * 3 + 100)));
    free_badly(block);
}

static void *free_it(void *block)
{
    warm_up();
    free(block);
    return NULL;
}

/* NUMBER other blocks are in use all the time: an allocator may take another way when many are. */
static void hold_others(void)
{
    CHECK(number_argument <= MOST);
    for (size_t i = 0; i < number_argument; i++)
        blocks[i] = opaque(malloc(size_argument));
    if (number_argument > 0)
        warm_up();
}

void *free_it_badly(void *block)
{
    warm_up();
    free_badly(block);
    return NULL;
}

void first_in_a_thread_that_is_gone(void)
{
    unsigned char *block = new_block();
    in_a_thread(free_it, block);
    free_badly(block);
}

static pthread_barrier_t barrier;

static void *free_it_and_stay(void *block)
{
    warm_up();
    free(block);
    pthread_barrier_wait(&barrier); /* freed */
    pthread_barrier_wait(&barrier); /* freed again by the other */
    return NULL;
}

static void *free_it_badly_when_told(void *block)
{
    warm_up();
    pthread_barrier_wait(&barrier); /* started: that takes memory, and could take the block's */
    pthread_barrier_wait(&barrier); /* freed by the other */
    free_badly(block);
    return NULL;
}

void second_in_a_thread(void)
{
    hold_others();
    unsigned char *block = new_block();
    pthread_t thread;
    CHECK(pthread_barrier_init(&barrier, NULL, 2) == 0);
    CHECK(pthread_create(&thread, NULL, free_it_badly_when_told, block) == 0);
    pthread_barrier_wait(&barrier);
    free(opaque(block));
    pthread_barrier_wait(&barrier);
    CHECK(pthread_join(thread, NULL) == 0);
}

void first_in_a_thread_that_stays(void)
{
    hold_others();
    unsigned char *block = new_block();
    pthread_t thread;
    CHECK(pthread_barrier_init(&barrier, NULL, 2) == 0);
    CHECK(pthread_create(&thread, NULL, free_it_and_stay, block) == 0);
    pthread_barrier_wait(&barrier);
    free_badly(block);
    pthread_barrier_wait(&barrier);
    CHECK(pthread_join(thread, NULL) == 0);
}

static int by_address(const void *a, const void *b)
{
    uintptr_t x = *(const uintptr_t *)a, y = *(const uintptr_t *)b;
    return x < y ? -1 : x > y;
}

/* After the double free the size is asked for 10,000 times: no two blocks may be the same. */
void check_not_handed_out_twice(void)
{
    size_t count = size_argument <= 20000 ? MOST : 20;
    for (size_t i = 0; i < count; i++)
        blocks[i] = opaque(malloc(size_argument));
    qsort(blocks, count, sizeof *blocks, by_address);
    for (size_t i = 1; i < count; i++)
        if (blocks[i] == blocks[i - 1]) {
            say("handed out twice:", blocks[i]);
            _exit(HANDED_OUT_TWICE);
        }
    for (size_t i = 0; i < count; i++)
        free(blocks[i]);
}

void twice_then_asked_for(void)
{
    if (number_argument > 0)
        twice_with_others_between();
    else
        twice();
    check_not_handed_out_twice();
}

void twice_by_threads_then_asked_for(void)
{
    first_in_a_thread_that_stays();
    check_not_handed_out_twice();
}
