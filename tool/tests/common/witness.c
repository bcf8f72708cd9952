/*
 * A program that would notice if anything were different: threads that wait in every way, with and
 * without a time, and look at what comes back; threads that allocate and look at what is in their
 * blocks; signals, all of which must arrive; registers of all kinds across a system call.
 *
 * With an argument, calls that a stop of the whole process would interrupt may be interrupted. It
 * works until its standard input ends, then says how often each did its work. The first thing that
 * is not as it should be ends it with one line and status 1.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static volatile int ends;
static pthread_t rests;
static int may_interrupt; /* what a stop interrupts (signal(7)), as a SIGSTOP would */

#define EXPECT(condition) \
    do { \
        if (!(condition)) { \
            int error_ = errno; \
            printf("line %d: %s is not so; errno is %d\n", __LINE__, #condition, error_); \
            fflush(stdout); \
            _exit(1); \
        } \
    } while (0)

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

enum { SENTINEL = 4711 }; /* no errno */

/* Each thread's work, once, and how often it was done. */
struct work {
    const char *name;
    void (*once)(void);
    int rests; /* after it, so that all the others have their turn */
    unsigned long count;
};

/* ---- Waiting ---- */

static void sleeps(void)
{
    struct timespec t = {0, 5000000};
    double begun = now();
    errno = SENTINEL;
    EXPECT(nanosleep(&t, NULL) == 0 && errno == SENTINEL);
    EXPECT(now() - begun >= 0.005);
}

static void polls(void)
{
    static int pipes[2];
    if (pipes[1] == 0)
        EXPECT(pipe(pipes) == 0);
    struct pollfd fd = {pipes[0], POLLIN, 0};
    double begun = now();
    errno = SENTINEL;
    EXPECT(poll(&fd, 1, 7) == 0 && errno == SENTINEL);
    EXPECT(now() - begun >= 0.0069);
}

static void polls_by_epoll(void)
{
    static int set;
    if (set == 0)
        set = epoll_create1(0);
    struct epoll_event event;
    double begun = now();
    errno = SENTINEL;
    int result = epoll_wait(set, &event, 1, 3);
    if (result == -1 && errno == EINTR && may_interrupt)
        return;
    EXPECT(result == 0 && errno == SENTINEL);
    EXPECT(now() - begun >= 0.0029);
}

static void selects_with_a_mask(void)
{
    struct timespec t = {0, 4000000};
    sigset_t mask;
    sigfillset(&mask);
    errno = SENTINEL;
    EXPECT(pselect(0, NULL, NULL, NULL, &t, &mask) == 0 && errno == SENTINEL);
    pthread_sigmask(0, NULL, &mask);
    EXPECT(sigismember(&mask, SIGUSR1));
    EXPECT(!sigismember(&mask, SIGTERM));
}

static void waits_for_a_condition(void)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_nsec += 3000000;
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    pthread_mutex_lock(&mutex);
    int result;
    while ((result = pthread_cond_timedwait(&condition, &mutex, &t)) == 0)
        ;
    EXPECT(result == ETIMEDOUT);
    pthread_mutex_unlock(&mutex);
}

/* Bytes go around in a circle of two pipes; none is lost, none comes twice. */
static int to[2], from[2];

static void echoes(void)
{
    unsigned char byte;
    errno = SENTINEL;
    EXPECT(read(to[0], &byte, 1) == 1 && errno == SENTINEL);
    EXPECT(write(from[1], &byte, 1) == 1 && errno == SENTINEL);
}

static void asks(void)
{
    static unsigned char sent;
    unsigned char byte;
    sent++;
    EXPECT(write(to[1], &sent, 1) == 1);
    EXPECT(read(from[0], &byte, 1) == 1 && byte == sent);
}

/* ---- Signals: as many arrive as are sent, and a call that a handler interrupts says so ---- */

static volatile sig_atomic_t got;

static void on_signal(int signal)
{
    (void)signal;
    got++;
}

static sem_t may_signal;

static void is_signalled(void)
{
    sigset_t usual, open;
    struct timespec t = {100, 0};
    pthread_sigmask(0, NULL, &usual);
    open = usual;
    sigdelset(&open, SIGUSR1);
    sig_atomic_t before = got;
    rests = pthread_self();
    sem_post(&may_signal);
    /* One of the three: by a mask of its own, without one, and without any time. */
    switch (before % 3) {
    case 0:
        EXPECT(sigsuspend(&open) == -1 && errno == EINTR);
        break;
    case 1:
        EXPECT(ppoll(NULL, 0, &t, &open) == -1 && errno == EINTR);
        break;
    default: {
        siginfo_t info;
        sigset_t wanted;
        sigemptyset(&wanted);
        sigaddset(&wanted, SIGUSR1);
        int result;
        while ((result = sigtimedwait(&wanted, &info, &t)) == -1 && errno == EINTR && may_interrupt)
            ;
        EXPECT(result == SIGUSR1 && info.si_pid == getpid());
        got++;
    }
    }
    EXPECT(got == before + 1);
}

static void signals(void)
{
    while (sem_wait(&may_signal) != 0)
        ;
    if (!ends || rests != 0)
        pthread_kill(rests, SIGUSR1);
}

/* ---- Registers, flags and the red zone across a call that sleeps ---- */

static void keeps_registers(void)
{
    struct timespec t = {0, 2000000};
    double before[8], after[8];
    uint64_t zone = 0, result;
    for (int i = 0; i < 8; i++)
        before[i] = 1.5 * i + now();
    __asm__ volatile("movupd (%[b]), %%xmm0\n movupd 16(%[b]), %%xmm5\n"
                     "movupd 32(%[b]), %%xmm9\n movupd 48(%[b]), %%xmm15\n"
                     "movabs $0x1122334455667788, %%r14\n movq %%r14, -120(%%rsp)\n"
                     "movq %%r14, %%r12\n movq %%r14, %%rbx\n std\n"
                     "syscall\n"
                     "pushfq\n cld\n popq %%r8\n"
                     "movq -120(%%rsp), %[z]\n"
                     "xorq %%r14, %%r12\n xorq %%r14, %%rbx\n orq %%rbx, %%r12\n"
                     "shrq $10, %%r8\n andq $1, %%r8\n xorq $1, %%r8\n orq %%r8, %%r12\n"
                     "orq %%r12, %%rax\n"
                     "movupd %%xmm0, (%[a])\n movupd %%xmm5, 16(%[a])\n"
                     "movupd %%xmm9, 32(%[a])\n movupd %%xmm15, 48(%[a])\n"
                     : "=a"(result), [z] "=&r"(zone)
                     : "a"((long)SYS_nanosleep), "D"(&t), "S"(NULL), [b] "r"(before), [a] "r"(after)
                     : "rcx", "r11", "r8", "r12", "r14", "rbx", "xmm0", "xmm5", "xmm9", "xmm15",
                       "memory", "cc");
    EXPECT(result == 0 && zone == 0x1122334455667788);
    EXPECT(memcmp(before, after, sizeof(before)) == 0);
}

/* ---- Memory ---- */

enum { BLOCKS = 400 };

static void allocates(void)
{
    static __thread unsigned char *blocks[BLOCKS];
    static __thread size_t sizes[BLOCKS];
    static __thread unsigned seed;
    if (seed == 0)
        seed = (unsigned)(uintptr_t)&seed | 1;
    for (int i = 0; i < 500; i++) {
        seed = seed * 1664525 + 1013904223;
        unsigned at = (seed >> 8) % BLOCKS;
        if (blocks[at] != NULL) {
            unsigned char mark = (unsigned char)(at ^ sizes[at]);
            EXPECT(blocks[at][0] == mark && blocks[at][sizes[at] - 1] == mark);
            free(blocks[at]);
        }
        unsigned kind = (seed >> 20) % 64;
        sizes[at] = 1 + (seed >> 4) % (kind == 0 ? 600000 : kind < 8 ? 20000 : 800);
        blocks[at] = malloc(sizes[at]);
        EXPECT(blocks[at] != NULL);
        blocks[at][0] = blocks[at][sizes[at] - 1] = (unsigned char)(at ^ sizes[at]);
    }
}

/* The same, by a thread that rests between: so it is one whose magazines are emptied. */
static void allocates_and_rests(void)
{
    struct timespec t = {0, 1000000};
    allocates();
    EXPECT(nanosleep(&t, NULL) == 0);
}

/* A handler that rests, perhaps in the middle of a malloc. */
static void on_alarm(int signal)
{
    struct timespec t = {0, 1000000};
    int error = errno;
    (void)signal;
    nanosleep(&t, NULL);
    errno = error;
}

static void allocates_and_is_interrupted(void)
{
    static __thread timer_t timer;
    static __thread int begun;
    if (!begun) {
        struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGALRM};
        event._sigev_un._tid = (int)syscall(SYS_gettid);
        struct itimerspec every = {{0, 2000000}, {0, 2000000}};
        EXPECT(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
        EXPECT(timer_settime(timer, 0, &every, NULL) == 0);
        begun = 1;
    }
    allocates();
}

static struct work works[] = {
    {"sleeps", sleeps, 0, 0},
    {"polls", polls, 0, 0},
    {"polls by epoll", polls_by_epoll, 0, 0},
    {"selects", selects_with_a_mask, 0, 0},
    {"waits for a condition", waits_for_a_condition, 0, 0},
    {"echoes", echoes, 0, 0},
    {"asks", asks, 1, 0},
    {"is signalled", is_signalled, 1, 0},
    {"signals", signals, 0, 0},
    {"keeps registers", keeps_registers, 1, 0},
    {"allocates", allocates, 1, 0},
    {"allocates and rests", allocates_and_rests, 0, 0},
    {"allocates and rests", allocates_and_rests, 0, 0},
    {"is interrupted", allocates_and_is_interrupted, 0, 0},
};

enum { WORKS = sizeof(works) / sizeof(works[0]) };

static void *run(void *argument)
{
    struct work *work = argument;
    while (!ends) {
        work->once();
        if (work->rests)
            usleep(500);
        __atomic_fetch_add(&work->count, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

int main(int count, char **words)
{
    (void)words;
    may_interrupt = count > 1;
    sigset_t mask;
    char byte;
    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &mask, NULL);
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGUSR1, &action, NULL);
    action.sa_handler = on_alarm;
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, NULL);
    EXPECT(pipe(to) == 0 && pipe(from) == 0);
    sem_init(&may_signal, 0, 0);
    for (int i = 0; i < WORKS; i++) {
        pthread_t thread;
        EXPECT(pthread_create(&thread, NULL, run, &works[i]) == 0);
        pthread_detach(thread);
    }
    puts("ready");
    fflush(stdout);
    errno = SENTINEL;
    EXPECT(read(0, &byte, 1) == 0 && errno == SENTINEL);
    for (int i = 0; i < WORKS; i++)
        printf("%s: %lu\n", works[i].name, __atomic_load_n(&works[i].count, __ATOMIC_RELAXED));
    fflush(stdout);
    _exit(0);
}
