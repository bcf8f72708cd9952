/*
 * Threads on Linux with POSIX threads. See thread.h.
 */
#include "platform/thread.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/auxv.h>
#include <time.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/siphash.h"
#include "platform/clock.h"
#include "platform/syscall.h"

static pthread_key_t exit_key;
static bool exit_key_made;

long os_thread_id(void)
{
    return syscall1(SYS_gettid, 0);
}

/* glibc's since 2.35: where in each thread the kernel writes on which processor it runs, and how
 * much of that there is; 0: nothing, as where the kernel does not. Nowhere else. */
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned __rseq_size __attribute__((weak));

/* The number that the kernel keeps there; negative: it does not. A call of libc for it was some
 * hundredths of the time of threads that take medium blocks. */
static int cpu_kept(void)
{
#if defined(__has_builtin)
#if __has_builtin(__builtin_thread_pointer)
    if (&__rseq_size != NULL && __rseq_size != 0) {
        const char *kept = (const char *)__builtin_thread_pointer() + __rseq_offset;
        return __atomic_load_n((const int *)(kept + sizeof(int)), __ATOMIC_RELAXED);
    }
#endif
#endif
    return -1;
}

unsigned os_cpu(void)
{
    int cpu = cpu_kept();
    if (UNLIKELY(cpu < 0))
        cpu = sched_getcpu();
    return cpu < 0 ? 0 : (unsigned)cpu;
}

unsigned os_cpu_count(void)
{
    static unsigned cached; /* written with the same value by whoever comes first */
    unsigned count = __atomic_load_n(&cached, __ATOMIC_RELAXED);
    if (count == 0) {
        uint64_t mask[128]; /* 8,192 processors, the most a kernel is built for */
        long bytes = syscall3(SYS_sched_getaffinity, 0, sizeof(mask), (long)mask);
        for (long i = 0; i < bytes / 8; i++)
            count += bit_count(mask[i]);
        if (count == 0)
            count = 1;
        __atomic_store_n(&cached, count, __ATOMIC_RELAXED);
    }
    return count;
}

void os_thread_exit_init(void (*at_exit)(void *argument))
{
    /* release: a thread that sees the mark sees the key */
    if (pthread_key_create(&exit_key, at_exit) == 0)
        __atomic_store_n(&exit_key_made, true, __ATOMIC_RELEASE);
}

bool os_thread_exit_arm(void *argument)
{
    return __atomic_load_n(&exit_key_made, __ATOMIC_ACQUIRE) &&
           pthread_setspecific(exit_key, argument) == 0;
}

/* glibc's loader keeps the address where the kernel put the number of arguments; the arguments and
 * the environment follow it. Other loaders do not. */
extern void *__libc_stack_end __attribute__((weak));

char **os_environment(void)
{
    if (environ != NULL || &__libc_stack_end == NULL)
        return environ;
    const long *arguments = __libc_stack_end;
    return arguments == NULL ? NULL : (char **)(arguments + 1 + *arguments + 1);
}

bool os_is_privileged(void)
{
    return getauxval(AT_SECURE) != 0;
}

void os_environment_remove(char **environment, const char *prefix)
{
    size_t length = strlen(prefix);
    char **kept = environment;
    for (; *environment != NULL; environment++)
        if (strncmp(*environment, prefix, length) != 0)
            *kept++ = *environment;
    /* All of the rest, to the old end: some code looks behind the environment for what the kernel
     * put there. */
    for (; kept != environment; kept++)
        *kept = NULL;
}

/* How many random words were drawn, and what a child of fork has added. */
static uint64_t random_drawn;

uint64_t os_random(void)
{
    const void *bytes = (const void *)getauxval(AT_RANDOM); /* 16 of them, at any address */
    uint64_t secret[2] = {(uintptr_t)&exit_key, 0};
    if (bytes != NULL)
        memcpy(secret, bytes, sizeof(secret));
    /* Libc's own stack and pointer guards come from the same 16 bytes: a hash, so that neither can
     * be told from the other. relaxed: each call only needs a number of its own */
    return siphash(secret, __atomic_fetch_add(&random_drawn, 1, __ATOMIC_RELAXED));
}

void os_random_fork(void)
{
    /* Children of one parent are made at different times. */
    __atomic_fetch_add(&random_drawn, os_clock_exact() << 16, __ATOMIC_RELAXED);
}

/* Enough for what runs in it, and for what libc keeps of each thread besides. */
#define STACK_BYTES (128 * KIB)

bool os_thread_start(void *(*run)(void *argument), void *argument)
{
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all, before;
    if (pthread_attr_init(&attributes) != 0)
        return false;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK_BYTES); /* refused: it has the usual size */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(&thread, &attributes, run, argument) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return started;
}

/* futex sleeps too, and sandboxes allow it, since every lock needs it. */
void os_sleep(uint64_t nanoseconds)
{
    static const uint32_t word = 0; /* no thread ever wakes another by it */
    const struct timespec left = {(time_t)(nanoseconds / 1000000000),
                                  (long)(nanoseconds % 1000000000)};
    syscall6(SYS_futex, (long)&word, FUTEX_WAIT_PRIVATE, 0, (long)&left, 0, 0);
}
