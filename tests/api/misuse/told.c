/*
 * told.c - the cases of misuse.c in which the program has a handler of its own: what it is told,
 * and that it may allocate, free and jump out, wherever the misuse is found.
 *
 * PLANTED=frees_kept in the environment: a handler frees the blocks that it means to keep.
 */
#include "cases.h"

#include <dlfcn.h>
#include <malloc.h>
#include <setjmp.h>
#include <string.h>
#include <unistd.h>

#include "snug/snug.h"

static jmp_buf way_out;

/* The library is preloaded, or the program runs without it. */
static void find(const char *name, void *function)
{
    void *found = dlsym(RTLD_DEFAULT, name);
    CHECK_MSG(found != NULL, "there is no %s", name);
    memcpy(function, &found, sizeof(found));
}

static void set_handler(snug_misuse_handler handler)
{
    void (*set)(snug_misuse_handler);
    find("snug_set_misuse_handler", &set);
    set(handler);
}

/* ---- Once ---- */

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

/* ---- Blocks that are looked at at the end ---- */

enum { OWN = 0x33, OF_HANDLER = 0x5a, KEPT_MOST = 200000 };

/* What handlers change, and read: malloc is declared to call nothing of this file. */
static volatile size_t told;
static volatile size_t handler_bytes, handler_blocks; /* a call takes so many of so many bytes */
static void *volatile kept[KEPT_MOST];
static volatile size_t kept_count;

static void *filled(size_t bytes, int byte)
{
    void *block = opaque(malloc(bytes));
    CHECK(block != NULL);
    return memset(block, byte, bytes);
}

static void check_filled(void *volatile *filled, size_t count, size_t bytes, int byte)
{
    for (size_t i = 0; i < count; i++) {
        const unsigned char *block = filled[i];
        for (size_t at = 0; at < bytes; at++)
            CHECK_MSG(block[at] == byte, "block %zu was written over", i);
    }
}

static void keep_some(const struct snug_misuse *misuse)
{
    const char *planted = getenv("PLANTED");
    bool frees = planted != NULL && strcmp(planted, "frees_kept") == 0;
    (void)misuse;
    told++;
    for (size_t i = 0; i < handler_blocks; i++) {
        CHECK(kept_count < KEPT_MOST);
        kept[kept_count] = filled(handler_bytes, OF_HANDLER);
        if (frees)
            free(kept[kept_count]);
        kept_count++;
    }
}

/* Brings this thread's cache into use, but not for the size in question. */
static void warm_for_others(void)
{
    for (unsigned i = 0; i < 60; i++) {
        opaque(malloc(3000));
        opaque(malloc(32));
    }
}

/* The second of many new blocks is written to NUMBER bytes behind its end, into memory that was
 * never handed out; the handler takes a block of the same size. */
void told_and_taking(void)
{
    enum { ALL = 4000 };
    handler_bytes = size_argument;
    handler_blocks = 1;
    set_handler(keep_some);
    warm_for_others();
    size_t count = 0;
    while (count < 60 && told == 0) {
        blocks[count] = filled(size_argument, OWN);
        if (count == 1) {
            CHECK(malloc_usable_size(blocks[1]) == size_argument);
            memset(opaque((char *)blocks[1] + size_argument), OWN, number_argument);
        }
        count++;
    }
    CHECK_MSG(told == 1, "told %zu times", told);
    size_t first = count; /* what is behind the second block is not looked at */
    for (; count < ALL; count++)
        blocks[count] = filled(size_argument, OWN);
    check_filled(blocks + first, ALL - first, size_argument, OWN);
    check_filled(kept, kept_count, size_argument, OF_HANDLER);
    for (size_t i = first; i < ALL; i++)
        free(blocks[i]);
    CHECK_MSG(told == 1, "told %zu times", told);
}

/* ---- Many in one go ---- */

enum { GO_MOST = 100000 };

static void *all[GO_MOST];
static void *volatile spare[1000];
static volatile size_t spares;

static void free_one(const struct snug_misuse *misuse)
{
    (void)misuse;
    told++;
    CHECK(spares > 0);
    free(spare[--spares]);
    for (size_t i = 0; i < handler_blocks; i++)
        free(opaque(malloc(size_argument)));
}

/* Most of many blocks are freed, and of each hundred one again, while others are freed that make
 * that known; the handler frees one that is in use, and takes and frees NUMBER. */
void told_and_freeing(void)
{
    enum { STEP = 20, TWICE_EACH = 100, BETWEEN = 20 };
    handler_blocks = number_argument;
    set_handler(free_one);
    for (size_t i = 0; i < GO_MOST; i++)
        all[i] = opaque(malloc(size_argument));
    while (spares < sizeof spare / sizeof *spare)
        spare[spares++] = opaque(malloc(size_argument));
    for (size_t i = 0; i < GO_MOST; i++)
        if (i % STEP != 0 && i % STEP != STEP / 2)
            free(all[i]);
    size_t count = 0;
    for (size_t i = TWICE_EACH + 1; i < GO_MOST / 5; i += TWICE_EACH) {
        free(opaque(all[i]));
        for (size_t between = 0; between < BETWEEN; between++)
            free(all[(count * BETWEEN + between) * STEP + STEP / 2]);
        count++;
    }
    print("twice %zu\ntold %zu\n", count, told);
    check_not_handed_out_twice();
}

/* Blocks are freed twice that lie in the depots by then, where they are found many in one go; the
 * handler takes NUMBER blocks each time, of another size. */
void told_of_many(void)
{
    enum { ROUNDS = 3, BLOCKS = 40000, APART = 600, TWICE = 60, FREED = 4000, NEW = 5000 };
    size_t bytes = size_argument;
    handler_bytes = 400;
    set_handler(keep_some);
    for (size_t round = 0; round < ROUNDS; round++) {
        void *wrong[TWICE];
        for (size_t i = 0; i < BLOCKS; i++)
            all[i] = opaque(malloc(bytes));
        for (size_t i = 0; i < TWICE; i++) {
            void **one = &all[i * APART + APART / 2];
            wrong[i] = *one;
            free(opaque(*one));
            *one = NULL;
        }
        malloc_trim(0);
        handler_blocks = 0;
        for (size_t i = 0; i < FREED; i++) {
            free(all[i]); /* side by side, as what waits in depots does */
            all[i] = NULL;
            if (i % TWICE == 0 && i / TWICE < TWICE)
                free(opaque(wrong[i / TWICE]));
        }
        handler_blocks = number_argument;
        for (size_t i = 0; i < NEW; i++)
            blocks[i] = filled(handler_bytes + round * 16, OWN);
        check_filled(blocks, NEW, handler_bytes, OWN);
        check_filled(kept, kept_count, handler_bytes, OF_HANDLER);
        for (size_t i = 0; i < BLOCKS; i++)
            free(all[i]);
    }
    print("twice %d\ntold %zu\n", ROUNDS * TWICE, told);
}

/* ---- Where one heap's cache makes room for another's ---- */

enum { HEAPS = 65, SOME = 30 }; /* the first and the last have one place in a thread's table */

static snug_heap *heaps[HEAPS];
static snug_heap *(*heap_create)(const struct snug_heap_config *);
static void (*heap_destroy)(snug_heap *);
static void *(*heap_malloc)(snug_heap *, size_t);
static void (*heap_free)(snug_heap *, void *);
static snug_heap *(*heap_of)(const void *);

static void make_heaps(void)
{
    find("snug_heap_create", &heap_create);
    find("snug_heap_destroy", &heap_destroy);
    find("snug_heap_malloc", &heap_malloc);
    find("snug_heap_free", &heap_free);
    find("snug_heap_of", &heap_of);
    for (size_t i = 0; i < HEAPS; i++)
        CHECK((heaps[i] = heap_create(NULL)) != NULL);
}

/* Places of the first heap's where blocks could be, but never were, are freed: from NUMBER blocks
 * behind its last on. That is noticed when its cache is given up for the last heap's. */
static void free_what_never_was(size_t count)
{
    unsigned char *last = NULL;
    for (size_t i = 0; i < 2 * SOME; i++) {
        CHECK((blocks[i] = heap_malloc(heaps[0], size_argument)) != NULL);
        last = last == NULL || (uintptr_t)blocks[i] > (uintptr_t)last ? blocks[i] : last;
    }
    for (size_t i = 0; i < SOME; i++)
        heap_free(heaps[0], blocks[i]);
    unsigned char *bad = last + number_argument * malloc_usable_size(last);
    say("bad", bad);
    for (size_t i = 0; i < count; i++)
        heap_free(heaps[0], opaque(bad + i * malloc_usable_size(last)));
    print("after\n");
    for (size_t i = 0; i < 100; i++) {
        CHECK((blocks[i] = heap_malloc(heaps[HEAPS - 1], size_argument)) != NULL);
        CHECK_MSG(heap_of(blocks[i]) == heaps[HEAPS - 1], "block %zu is of another heap", i);
    }
    for (size_t i = 0; i < 100; i++)
        heap_free(heaps[HEAPS - 1], blocks[i]);
}

/* Some blocks of each heap, so that the thread gets a cache of it, and of a new one. */
static void use_heaps(void)
{
    snug_heap *new = heap_create(NULL);
    CHECK(new != NULL);
    for (size_t i = 0; i <= HEAPS; i++) {
        snug_heap *heap = i < HEAPS ? heaps[i] : new;
        void *some[SOME];
        for (size_t k = 0; k < SOME; k++) {
            some[k] = opaque(heap_malloc(heap, size_argument));
            CHECK(some[k] != NULL);
            memset(some[k], OF_HANDLER, size_argument);
            CHECK_MSG(heap_of(some[k]) == heap, "a block of another heap than number %zu", i);
        }
        check_filled(some, SOME, size_argument, OF_HANDLER);
        for (size_t k = 0; k < SOME; k++)
            heap_free(heap, some[k]);
    }
    heap_destroy(new);
}

static void tell_and_use_heaps(const struct snug_misuse *misuse)
{
    tell(misuse);
    alarm(5); /* for what waits for ever */
    use_heaps();
    print("used\n");
}

void told_and_using_heaps(void)
{
    make_heaps();
    set_handler(tell_and_use_heaps);
    free_what_never_was(1);
    use_heaps();
}

static void leave_a_heap(size_t count)
{
    make_heaps();
    set_handler(tell_and_jump);
    if (setjmp(way_out) == 0) {
        free_what_never_was(count);
        CHECK_MSG(false, "nothing was told");
    }
    print("left\n");
    alarm(5);
    use_heaps();
}

void told_and_left_a_heap(void)
{
    leave_a_heap(1);
}

void told_and_left_a_heap_of_many(void)
{
    leave_a_heap(60);
}
