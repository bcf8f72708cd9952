/*
 * fork_under_load.c - trap 5: sixteen threads allocate, four more fork all the while. Each child
 * allocates, frees the blocks that its parent's threads had put aside, starts a thread, and ends.
 *
 * Blocks carry their size and a pattern; parent and children check it. 120 rounds, 10,000 in a full
 * run; a watchdog in every process, since the usual fault is a lock that was held during the fork.
 * Fault it finds (planted.c): fork_lock.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

enum { ALLOCATING = 16, FORKING = 4, SLOTS = 512, CHILD_SECONDS = 10 };

struct block {
    size_t size;
    unsigned char bytes[];
};

static _Atomic(struct block *) slots[SLOTS];
static atomic_bool stop;
static atomic_size_t rounds_left;

static struct block *new_block(uint64_t *random)
{
    static const size_t limits[] = {64, 64, 64, 256, 256, 1024, 1024, 8192};
    size_t limit = limits[random_next(random) % 8];
    if (random_next(random) % 64 == 0)
        limit = 60000;
    if (random_next(random) % 256 == 0)
        limit = 600000;
    size_t size = 1 + random_next(random) % limit;
    struct block *block = opaque(malloc(sizeof *block + size));
    CHECK(block != NULL);
    block->size = size;
    pattern_fill(block->bytes, size, size);
    return block;
}

static void check_and_free(struct block *block)
{
    if (block == NULL)
        return;
    CHECK(pattern_holds(block->bytes, block->size, block->size, block->size));
    free(block);
}

/* Sixteen threads that never paused would leave the children of two processors hardly any time. */
static void pause_briefly(void)
{
    const struct timespec millisecond = {0, 1000000};
    nanosleep(&millisecond, NULL);
}

static void *allocate_all_the_while(void *argument)
{
    uint64_t random = (uintptr_t)argument * 104729 + 1;
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        struct block *block = new_block(&random);
        check_and_free(atomic_exchange(&slots[random_next(&random) % SLOTS], block));
        struct block *brief = new_block(&random);
        brief = opaque(realloc(brief, sizeof *brief + brief->size));
        check_and_free(brief);
        if (random_next(&random) % 16 == 0)
            pause_briefly();
    }
    return NULL;
}

static void *thread_of_the_child(void *argument)
{
    uint64_t random = 3;
    struct block *blocks[50];
    for (size_t i = 0; i < 50; i++)
        blocks[i] = new_block(&random);
    check_and_free(argument); /* another thread's block, from before the fork */
    for (size_t i = 0; i < 50; i++)
        check_and_free(blocks[i]);
    return NULL;
}

__attribute__((noreturn)) static void child(uint64_t seed)
{
    alarm(child_seconds(CHILD_SECONDS));
    uint64_t random = seed | 1;
    struct block *own[50];
    for (size_t i = 0; i < 50; i++)
        own[i] = new_block(&random);
    struct block *last = atomic_exchange(&slots[0], NULL);
    for (size_t i = 0; i < SLOTS; i++)
        check_and_free(atomic_exchange(&slots[i], NULL));
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, thread_of_the_child, last) == 0);
    for (size_t i = 0; i < 50; i++)
        check_and_free(own[i]);
    CHECK(pthread_join(thread, NULL) == 0);
    check_heap();
    exit(0);
}

static void *fork_all_the_while(void *argument)
{
    for (;;) {
        size_t left = atomic_load(&rounds_left);
        do {
            if (left == 0)
                return argument;
        } while (!atomic_compare_exchange_weak(&rounds_left, &left, left - 1));
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0)
            child(left);
        check_child(pid, "a child forked under load");
    }
}

int main(void)
{
    test_begin(150);
    atomic_store(&rounds_left, test_scale(120, 10000));
    pthread_t allocating[ALLOCATING];
    pthread_t forking[FORKING];
    for (uintptr_t i = 0; i < ALLOCATING; i++)
        CHECK(pthread_create(&allocating[i], NULL, allocate_all_the_while, (void *)i) == 0);
    for (uintptr_t i = 0; i < FORKING; i++)
        CHECK(pthread_create(&forking[i], NULL, fork_all_the_while, NULL) == 0);
    for (size_t i = 0; i < FORKING; i++)
        CHECK(pthread_join(forking[i], NULL) == 0);
    atomic_store(&stop, true);
    for (size_t i = 0; i < ALLOCATING; i++)
        CHECK(pthread_join(allocating[i], NULL) == 0);
    for (size_t i = 0; i < SLOTS; i++)
        check_and_free(slots[i]);
    return test_end();
}
