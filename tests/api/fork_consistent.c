/*
 * fork_consistent.c - what a child of a program with threads can rely on: what is guarded by a lock
 * that the forking thread holds (pthread_atfork) is in the child as it was in the parent, however
 * long the fork takes, and whatever other threads do without a lock meanwhile.
 *
 * Threads move amounts between accounts, which are blocks that are replaced at every turn, under
 * one lock; and allocate and free without it. In each child the accounts add up to what there was
 * at first. Run with malloc's heap in files, which a fork copies.
 *
 *   fork_consistent             the handlers take the lock
 *   fork_consistent unlocked    they do not: this has to fail
 */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

enum { THREADS = 3, ACCOUNTS = 400, FIRST = 1000 };

struct account {
    size_t size; /* of the block */
    size_t amount;
    char pattern[];
};

static struct account *accounts[ACCOUNTS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool stop;

static struct account *account_new(size_t size, size_t amount)
{
    struct account *account = opaque(malloc(sizeof(*account) + size));
    CHECK(account != NULL);
    account->size = size;
    account->amount = amount;
    pattern_fill(account->pattern, size, size);
    return account;
}

static void account_check(const struct account *account)
{
    CHECK(pattern_holds(account->pattern, account->size, account->size, account->size));
}

/* The lock must be held. */
static void transfer(uint64_t *random)
{
    size_t from = random_next(random) % ACCOUNTS, to = random_next(random) % ACCOUNTS;
    size_t amount = random_next(random) % (accounts[from]->amount + 1);
    struct account *old = accounts[from];
    account_check(old);
    accounts[from] = account_new(random_next(random) % 20000, old->amount - amount);
    accounts[to]->amount += amount;
    free(old);
}

static void *work(void *argument)
{
    uint64_t random = (uint64_t)(uintptr_t)argument + 1;
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        size_t size = random_next(&random) % 3000;
        char *block = opaque(malloc(size + 1));
        pattern_fill(block, size, size);
        pthread_mutex_lock(&lock);
        transfer(&random);
        pthread_mutex_unlock(&lock);
        CHECK(pattern_holds(block, size, size, size));
        free(block);
    }
    return NULL;
}

static void take_lock(void)
{
    pthread_mutex_lock(&lock);
}

static void release_lock(void)
{
    pthread_mutex_unlock(&lock);
}

static void check_child_memory(void)
{
    size_t sum = 0;
    for (size_t i = 0; i < ACCOUNTS; i++) {
        account_check(accounts[i]);
        sum += accounts[i]->amount;
    }
    CHECK_MSG(sum == (size_t)ACCOUNTS * FIRST, "the sum is %zu", sum);
    uint64_t random = 5;
    for (size_t i = 0; i < 1000; i++)
        transfer(&random);
    for (size_t i = 0; i < ACCOUNTS; i++)
        free(accounts[i]);
    check_heap();
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    size_t forks = test_scale(12, 1000);
    test_begin(120);
    if (argc < 2 || strcmp(argv[1], "unlocked") != 0)
        pthread_atfork(take_lock, release_lock, release_lock);
    else
        forks *= 10;
    for (size_t i = 0; i < ACCOUNTS; i++)
        accounts[i] = account_new(i * 50, FIRST);
    for (size_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)i) == 0);
    for (size_t i = 0; i < forks; i++) {
        pid_t child = fork();
        if (child == 0) {
            check_child_memory();
            _exit(0);
        }
        check_child(child, "a child");
    }
    atomic_store(&stop, true);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return test_end();
}
