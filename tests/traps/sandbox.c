/*
 * sandbox.c - trap 8: once the program has started, a seccomp filter leaves it only mmap, munmap,
 * brk, futex, read, write and exit.
 *
 *   sandbox errno     any other system call fails with EPERM: the heap grows, shrinks, is trimmed
 *                     and grows again, and errno is kept by free
 *   sandbox kill      any other system call kills: the heap grows, in threads as well, and blocks
 *                     are freed and used again. To be run with SNUG_DIRTY so large that no pages
 *                     are given back but by munmap.
 *
 *   sandbox helper    with SNUG_PURGE_THREAD=1: what docs/options.md says that thread takes is
 *                     allowed as well, and all else kills: it gives pages back, ends, and another
 *                     one is started
 *
 * The threads are started before the filter, since starting one takes other calls.
 * Faults it finds: run on glibc's malloc, "kill" dies, since its arenas use mprotect; so does
 * "helper" if that thread has statistics to write.
 */
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "filter.h"
#include "load.h"

enum { THREADS = 3, BLOCKS = 20000 };

static const int for_malloc[] = {SYS_mmap,  SYS_munmap, SYS_brk,        SYS_futex, SYS_read,
                                 SYS_write, SYS_exit,   SYS_exit_group, CALLS_END};

/* What SNUG_PURGE_THREAD=1 needs besides: giving pages back, and what libc does when a thread ends;
 * and what it does when one starts. Its first thread also has a signal's handler set. mincore is
 * for the large blocks that the program frees. */
static const int for_helper[] = {SYS_madvise, SYS_mincore, SYS_rt_sigprocmask,
#if defined(SYS_process_madvise)
                                 SYS_process_madvise,
#endif
                                 CALLS_END};
static const int for_its_start[] = {SYS_mprotect, SYS_clone, SYS_set_robust_list,
#if defined(SYS_clone3)
                                    SYS_clone3,
#endif
#if defined(SYS_rseq)
                                    SYS_rseq,
#endif
                                    CALLS_END};
static const int for_nothing[] = {CALLS_END};

static void install_filter(unsigned otherwise, const int *also, const int *and_also)
{
    struct filter filter = {.length = 0};
    filter_calls(&filter, for_malloc, SECCOMP_RET_ALLOW);
    filter_calls(&filter, also, SECCOMP_RET_ALLOW);
    filter_calls(&filter, and_also, SECCOMP_RET_ALLOW);
    filter_answer(&filter, otherwise);
    filter_install(&filter, SECCOMP_FILTER_FLAG_TSYNC);
}

static pthread_barrier_t filtered;
static struct block all_blocks[THREADS + 1][BLOCKS];

static void *thread_main(void *argument)
{
    pthread_barrier_wait(&filtered); /* the thread is there */
    pthread_barrier_wait(&filtered); /* the filter is there */
    size_t i = (uintptr_t)argument;
    for (int round = 0; round < 2; round++)
        load_by_malloc(all_blocks[i], BLOCKS, i + 100);
    pthread_barrier_wait(&filtered); /* all are done */
    pthread_barrier_wait(&filtered); /* never: a thread's end would take other calls */
    return NULL;
}

static void grow_in_sandbox(bool kill)
{
    pthread_t threads[THREADS];
    CHECK(pthread_barrier_init(&filtered, NULL, THREADS + 1) == 0);
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, thread_main, (void *)i) == 0);
    pthread_barrier_wait(&filtered);
    install_filter(kill ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ERRNO | EPERM, for_nothing,
                   for_nothing);
    pthread_barrier_wait(&filtered);
    load_by_malloc(all_blocks[THREADS], BLOCKS, 7);
    if (!kill) {
        load_by_realloc();
        (void)malloc_trim(0);
    }
    load_by_malloc(all_blocks[THREADS], BLOCKS, 8);
    pthread_barrier_wait(&filtered);
}

/* ---- The thread of SNUG_PURGE_THREAD=1 ------------------------------------------------------- */

enum { LOOKS = 1000, CHUNKS = 24, CHUNK = 2 << 20 };

/* /proc/self/status, opened ahead; each says what is so when it is read first. */
static int looks[LOOKS];
static size_t next_look;

static void prepare_to_look(void)
{
    for (size_t i = 0; i < LOOKS; i++)
        CHECK((looks[i] = open("/proc/self/status", O_RDONLY)) >= 0);
}

struct state {
    size_t threads, resident_kib;
};

static struct state look(void)
{
    static char text[8192];
    CHECK(next_look < LOOKS);
    ssize_t length = read(looks[next_look++], text, sizeof text - 1);
    CHECK(length > 0);
    text[length] = 0;
    const char *threads = strstr(text, "Threads:"), *resident = strstr(text, "VmRSS:");
    CHECK(threads != NULL && resident != NULL);
    return (struct state){strtoul(threads + 8, NULL, 10), strtoul(resident + 6, NULL, 10)};
}

static void sleep_ms(long ms)
{
    static int never;
    const struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    syscall(SYS_futex, &never, 0 /* FUTEX_WAIT */, 0, &time, NULL, 0);
}

/* What goes back is missed at once, and kept from then on. */
static void make_it_keep(void)
{
    void *chunks[CHUNKS];
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < CHUNKS; i++) {
            CHECK((chunks[i] = opaque(malloc(CHUNK))) != NULL);
            memset(chunks[i], 1, CHUNK);
        }
        for (size_t i = 0; i < CHUNKS; i++)
            free(chunks[i]);
    }
    for (size_t i = 0; i < 2000; i++) /* slow paths, in which the thread is started */
        free(opaque(malloc(1 + i)));
}

/* Until what was kept has gone, and the thread with it. */
static void wait_until_gone(void)
{
    struct state state = look(), before = state;
    CHECK_MSG(before.resident_kib > 30 * 1024, "nothing was kept: %zu KiB", before.resident_kib);
    for (int tries = 0; (state.resident_kib > 20 * 1024 || state.threads != 1) && tries < 400;
         tries++) {
        sleep_ms(50);
        state = look();
    }
    CHECK_MSG(state.resident_kib <= 20 * 1024, "%zu KiB stay, of %zu", state.resident_kib,
              before.resident_kib);
    CHECK_MSG(state.threads == 1, "the thread stays");
}

static void helper_in_sandbox(void)
{
    prepare_to_look();
    make_it_keep();
    CHECK_MSG(look().threads == 2, "no thread was started");
    install_filter(SECCOMP_RET_KILL_PROCESS, for_helper, for_its_start);
    wait_until_gone();
    make_it_keep();
    CHECK_MSG(look().threads == 2, "no other thread was started");
    wait_until_gone();
}

int main(int argc, char **argv)
{
    test_begin(60);
    CHECK(argc == 2);
    free(opaque(malloc(100)));
    if (strcmp(argv[1], "helper") == 0)
        helper_in_sandbox();
    else if (strcmp(argv[1], "kill") == 0 || strcmp(argv[1], "errno") == 0)
        grow_in_sandbox(strcmp(argv[1], "kill") == 0);
    else
        CHECK_MSG(false, "%s", argv[1]);
    check_heap();
    _exit(0);
}
