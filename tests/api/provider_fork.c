/*
 * A fork while other threads make and end providers of every kind, and heaps on them: the child, in
 * which nobody uses those, lives and can allocate.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "snug/snug.h"

enum { THREADS = 2, FORKS = 400 };

static atomic_bool ends;
static atomic_ulong made;

static void *take(void *context, size_t bytes, size_t alignment)
{
    (void)context;
    (void)alignment;
    void *start = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return start == MAP_FAILED ? NULL : start;
}

static snug_provider *provider_of(unsigned kind)
{
    struct snug_file_config file = {.size = sizeof(file), .bytes = 1 << 20};
    struct snug_provider_functions own = {.size = sizeof(own), .take = take, .zeroed = 1};
    return kind == 0   ? snug_provider_file(&file)
           : kind == 1 ? snug_provider_prealloc(1 << 20, 1)
                       : snug_provider_create(&own);
}

static void *make_and_end(void *argument)
{
    for (unsigned round = (unsigned)(size_t)argument; !atomic_load(&ends); round++) {
        snug_provider *provider = provider_of(round % 4 == 3 ? 0 : round % 4);
        CHECK_MSG(provider != NULL, "no provider of kind %u", round % 4);
        struct snug_heap_config config = {.size = sizeof(config), .provider = provider};
        snug_heap *heap = round % 8 < 4 ? snug_heap_create(&config) : NULL;
        snug_heap_free(heap, heap == NULL ? NULL : snug_heap_calloc(heap, 1, 200000));
        snug_heap_destroy(heap);
        snug_provider_destroy(provider);
        atomic_fetch_add(&made, 1);
    }
    return NULL;
}

int main(void)
{
    test_begin(120);
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        CHECK_MSG(pthread_create(&threads[i], NULL, make_and_end, (void *)i) == 0, "no thread");
    for (int i = 0; i < FORKS; i++) {
        pid_t child = fork();
        CHECK_MSG(child >= 0, "no child");
        if (child == 0) {
            alarm(20);
            free(malloc(100000));
            snug_provider *provider = provider_of((unsigned)i % 3);
            _exit(provider != NULL && snug_check() == 0 ? 0 : 1);
        }
        int status = -1;
        CHECK_MSG(waitpid(child, &status, 0) == child && status == 0, "fork %d: status %x", i,
                  (unsigned)status);
    }
    atomic_store(&ends, true);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    CHECK_MSG(atomic_load(&made) > FORKS / 4, "%lu providers were made", atomic_load(&made));
    return 0;
}
