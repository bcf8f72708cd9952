/*
 * Guarded blocks where nothing is wrong: every call gives what it promises, in all threads, with
 * signals and forks in between, and nothing is reported. With an argument it does something wrong
 * once, at the end: then it must not pass.
 *
 * Run with SNUG_GUARD=1; by SNUG_GUARD_EVERY=1 every block that fits is a guarded one.
 */
#include "check.h"

#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 4, KEPT = 40 };

static size_t turns;

struct kept {
    char *block;
    size_t bytes;
};

static size_t random_size(uint64_t *state)
{
    uint64_t bits = random_next(state);
    return (bits >> 8) % ((size_t)1 << (4 + bits % 12)); /* up to 32 KiB, mostly short */
}

static void take(struct kept *kept, uint64_t *state)
{
    size_t bytes = random_size(state), alignment = (size_t)16 << random_next(state) % 9;
    switch (random_next(state) % 4) {
    case 0:
        kept->block = calloc(1, bytes);
        CHECK(all_zero(kept->block, bytes));
        break;
    case 1:
        kept->block = aligned_alloc(alignment, bytes);
        CHECK(is_aligned(kept->block, alignment));
        break;
    default:
        kept->block = malloc(bytes);
        break;
    }
    CHECK(kept->block != NULL && is_aligned(kept->block, 16));
    CHECK(malloc_usable_size(kept->block) >= bytes);
    kept->bytes = bytes;
    pattern_fill(kept->block, bytes, bytes);
}

static void resize(struct kept *kept, uint64_t *state)
{
    size_t bytes = random_size(state) + 1;
    char *moved = realloc(kept->block, bytes);
    size_t both = bytes < kept->bytes ? bytes : kept->bytes;
    CHECK(moved != NULL && pattern_holds(moved, kept->bytes, both, kept->bytes));
    *kept = (struct kept){moved, bytes};
    pattern_fill(moved, bytes, bytes);
}

static void *run(void *argument)
{
    struct kept kept[KEPT] = {{NULL, 0}};
    uint64_t state = (uintptr_t)argument;
    for (size_t turn = 0; turn < turns; turn++) {
        if (turn % 1024 == 0)
            raise(SIGUSR1);
        struct kept *one = &kept[random_next(&state) % KEPT];
        if (one->block != NULL && random_next(&state) % 3 == 0) {
            resize(one, &state);
            continue;
        }
        CHECK(one->block == NULL || pattern_holds(one->block, one->bytes, one->bytes, one->bytes));
        free(one->block);
        take(one, &state);
    }
    for (unsigned i = 0; i < KEPT; i++)
        free(kept[i].block);
    return NULL;
}

/* A handler that allocates; it comes between two calls, as malloc may not be interrupted by one. */
static void on_signal(int number)
{
    static __thread char *last;
    char *block = malloc(24);
    (void)number;
    memset(block, 1, 24);
    free(last);
    last = block;
}

static void fork_once(void)
{
    int child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        size_t before = turns;
        turns = before < 2000 ? before : 2000;
        run((void *)9);
        check_heap();
        _exit(0);
    }
    check_child(child, "the child");
}

int main(int count, char **arguments)
{
    pthread_t threads[THREADS];
    test_begin(100);
    turns = test_scale(100000, 25000000);
    if (getenv("GUARD_TURNS") != NULL)
        turns = strtoul(getenv("GUARD_TURNS"), NULL, 10);
    signal(SIGUSR1, on_signal);
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, run, (void *)(i + 1));
    for (unsigned i = 0; i < 5; i++)
        fork_once();
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    malloc_trim(0);
    check_heap();
    if (count > 1) { /* the mistake: what snug_check() finds, and what free does */
        char *block = opaque(malloc(13));
        block[13] = 1;
        if (strcmp(arguments[1], "check") == 0)
            check_heap();
        free(opaque(block));
    }
    return test_end();
}
