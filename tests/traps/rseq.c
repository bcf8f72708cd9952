/*
 * rseq.c - trap 10: the area for restartable sequences belongs to glibc, which registers it for
 * every thread. An allocator that registers its own first takes it from the whole process.
 *
 * In the main thread and in new ones, glibc's registration stands and the kernel keeps the number
 * of the processor in it up to date. The rest of trap 10 is in tests/api: errno_kept.c (free keeps
 * errno), refusals.c (ENOMEM), resize.c (malloc_usable_size and realloc) and forking_threads.c
 * (fully static programs that fork).
 */
#include <features.h>
#include <pthread.h>
#include <sched.h>

#include "check.h"

#if __GLIBC_PREREQ(2, 35)
#include <sys/rseq.h>

static void check_registration(void)
{
    if (__rseq_size == 0)
        test_skip("glibc has registered no area on this kernel");
    const volatile struct rseq *area =
        (const volatile struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        if (sched_setaffinity(0, sizeof one, &one) != 0)
            continue;
        for (size_t size = 1; size < 70000; size += size / 4 + 1)
            free(opaque(malloc(size)));
        CHECK_MSG(area->cpu_id == (unsigned)cpu, "the area says %u on processor %d", area->cpu_id,
                  cpu);
    }
}

static void *in_a_thread(void *argument)
{
    free(opaque(malloc(100)));
    check_registration();
    return argument;
}

int main(void)
{
    test_begin(20);
    check_registration();
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, in_a_thread, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    return test_end();
}
#else
int main(void)
{
    test_skip("this glibc does not register an area");
}
#endif
