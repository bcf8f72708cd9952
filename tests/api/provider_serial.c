/*
 * Functions of a program's own provider are called by one thread at a time, whatever the threads
 * and heaps do: they take, free, clear large blocks, and give back what lies in large free cells.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <time.h>

#include "check.h"
#include "snug/snug.h"

enum { THREADS = 6, ROUNDS = 60, BLOCKS = 24, HEAPS = 2 };

static atomic_int inside, together;
static atomic_ulong takes, gives, purges;
static snug_heap *heaps[HEAPS];

/* Each call takes long enough for another to come. */
static void enter(atomic_ulong *count)
{
    static const struct timespec wait = {.tv_nsec = 20000};
    atomic_fetch_add(count, 1);
    if (atomic_fetch_add(&inside, 1) != 0)
        atomic_fetch_add(&together, 1);
    nanosleep(&wait, NULL);
}

static void leave(void)
{
    atomic_fetch_sub(&inside, 1);
}

static void *take(void *context, size_t bytes, size_t alignment)
{
    (void)context;
    enter(&takes);
    size_t all = bytes + alignment;
    char *start = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    leave();
    if (start == MAP_FAILED)
        return NULL;
    return (void *)(((uintptr_t)start + alignment - 1) & ~(uintptr_t)(alignment - 1));
}

static int give(void *context, void *start, size_t bytes)
{
    (void)context;
    enter(&gives);
    int done = munmap(start, bytes) == 0;
    leave();
    return done;
}

static int purge(void *context, void *start, size_t bytes)
{
    (void)context;
    enter(&purges);
    int done = madvise(start, bytes, MADV_DONTNEED) == 0;
    leave();
    return done;
}

static void *work(void *argument)
{
    snug_heap *heap = heaps[(size_t)argument % HEAPS];
    char *blocks[BLOCKS];
    for (int round = 0; round < ROUNDS; round++) {
        size_t bytes = round % 3 == 0 ? 100000 : round % 3 == 1 ? 1 << 20 : 6 << 20;
        for (int i = 0; i < BLOCKS; i++) {
            blocks[i] = snug_heap_calloc(heap, 1, bytes);
            CHECK_MSG(blocks[i] != NULL && blocks[i][bytes / 2] == 0, "round %d", round);
            blocks[i][bytes / 2] = 1;
        }
        for (int i = 0; i < BLOCKS; i++)
            snug_heap_free(heap, blocks[i]);
        if (round % 8 == 7)
            snug_heap_trim(heap);
    }
    return NULL;
}

int main(void)
{
    test_begin(120);
    struct snug_provider_functions functions = {
        .size = sizeof(functions), .take = take, .give = give, .purge = purge, .zeroed = 1};
    snug_provider *provider = snug_provider_create(&functions);
    for (int i = 0; i < HEAPS; i++) {
        struct snug_heap_config config = {.size = sizeof(config), .provider = provider};
        heaps[i] = snug_heap_create(&config);
        CHECK_MSG(heaps[i] != NULL, "no heap");
    }
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        CHECK_MSG(pthread_create(&threads[i], NULL, work, (void *)i) == 0, "no thread");
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    CHECK_MSG(atomic_load(&takes) > 1 && atomic_load(&purges) > 100 && atomic_load(&gives) != 0,
              "%lu takes, %lu purges, %lu gives", takes, purges, gives);
    CHECK_MSG(atomic_load(&together) == 0, "%d calls came during another", together);
    for (int i = 0; i < HEAPS; i++) {
        CHECK_MSG(snug_heap_check(heaps[i]) == 0, "heap %d is damaged", i);
        snug_heap_destroy(heaps[i]);
    }
    snug_provider_destroy(provider);
    return 0;
}
