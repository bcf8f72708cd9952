/*
 * forking_threads.c - threads allocate while one of them forks; each child allocates in all sizes,
 * frees what its parent took, and starts a thread of its own.
 *
 * Run in all ways a program can get the allocator; above all fully static, where the allocator
 * cannot lean on the dynamic linker and where fork handlers are reached in another way.
 * Faults it finds (planted.c): fork_lock.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { THREADS = 4, SLOTS = 256 };

static _Atomic(void *) slots[SLOTS];
static atomic_bool stop;

/* A block says how long it is and carries a pattern, so whoever takes it can check it. */
static void *new_block(uint64_t *random)
{
    size_t size = 16 + random_next(random) % (random_next(random) % 64 == 0 ? 300000 : 2000);
    size_t *block = opaque(malloc(size));
    CHECK(block != NULL);
    block[0] = size;
    pattern_fill(block + 1, size - sizeof *block, size);
    return block;
}

static void check_and_free(void *pointer)
{
    if (pointer == NULL)
        return;
    size_t *block = pointer;
    size_t rest = block[0] - sizeof *block;
    CHECK(pattern_holds(block + 1, rest, rest, block[0]));
    free(block);
}

static void *churn(void *argument)
{
    uint64_t random = (uint64_t)(uintptr_t)argument * 7919 + 1;
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        void *block = new_block(&random);
        check_and_free(atomic_exchange(&slots[random_next(&random) % SLOTS], block));
    }
    return NULL;
}

static void *thread_of_the_child(void *argument)
{
    uint64_t random = 99;
    for (int i = 0; i < 100; i++)
        check_and_free(new_block(&random));
    return argument;
}

static void child(void)
{
    alarm(child_seconds(10));
    for (size_t i = 0; i < SLOTS; i++)
        check_and_free(atomic_exchange(&slots[i], NULL));
    uint64_t random = 5;
    for (int i = 0; i < 100; i++)
        check_and_free(new_block(&random));
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, thread_of_the_child, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    check_heap();
    exit(0);
}

int main(void)
{
    test_begin(60);
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, churn, (void *)i) == 0);
    size_t rounds = test_scale(30, 3000);
    for (size_t i = 0; i < rounds; i++) {
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0)
            child();
        check_child(pid, "a forked child");
    }
    atomic_store(&stop, true);
    for (size_t i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    for (size_t i = 0; i < SLOTS; i++)
        check_and_free(slots[i]);
    return test_end();
}
