/*
 * What a program does wrong with its blocks, and what it has to do with SIGSEGV itself. guard.py
 * runs it with SNUG_GUARD=1 and reads what is said.
 *
 *   guard fault KIND [THREADS]   touches a block wrongly until that ends the program, or 10^6 times
 *   guard rate KIND TURNS        the same in a handler's care: prints how many touches were caught
 *   guard handler CASE           the program's own handlers
 *   guard late OTHERS                touches a block after others were taken and freed
 *   guard fork                   a child touches what it freed
 *   guard told KIND              the same as fault, until the program's handler of misuse is told
 */
#include "check.h"

#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "snug/snug.h"

#define ALONE __attribute__((noinline, noclone, aligned(128)))

enum { BYTES = 40, SHORT = 13 };

/* ---- Functions that stacks lead to; each begins at the address that is printed ---- */

static ALONE char *taken_here(size_t bytes)
{
    char *block = malloc(bytes);
    __asm__ volatile("" : "+r"(block));
    return block;
}

static ALONE void freed_here(char *block)
{
    free(block);
    __asm__ volatile("");
}

static ALONE void touched_here(char *at, bool write)
{
    volatile char *byte = at;
    if (write)
        *byte = 1;
    else
        (void)*byte;
    __asm__ volatile("");
}

static long thread_number(void)
{
    return syscall(SYS_gettid);
}

static void say_where(long taken, long freed)
{
    printf("taken %p %ld\nfreed %p %ld\ntouched %p %ld\n", (void *)taken_here, taken,
           (void *)freed_here, freed, (void *)touched_here, thread_number());
    fflush(stdout);
}

/* ---- One wrong touch ---- */

static char *volatile unfreed; /* while it is touched */
static bool only_reads;        /* blocks that are not guarded stay whole */

static void touch(const char *kind, char *(*take)(size_t), void (*give)(char *))
{
    bool is_short = strcmp(kind, "slack") == 0;
    char *block = take(is_short ? SHORT : BYTES);
    unfreed = block;
    if (strcmp(kind, "overflow") == 0)
        touched_here(block + BYTES + 8,
                     !only_reads); /* what is behind the end of a multiple of 16 */
    else if (strcmp(kind, "underflow") == 0)
        touched_here(block - 1, !only_reads);
    else if (is_short)
        touched_here(block + SHORT, true);
    unfreed = NULL;
    give(block);
    if (strcmp(kind, "read") == 0 || strcmp(kind, "write") == 0)
        /* Behind what marks one as free that is not guarded. */
        touched_here(opaque(block + 20), strcmp(kind, "write") == 0);
    else if (strcmp(kind, "twice") == 0)
        give(opaque(block));
    else if (strcmp(kind, "inside") == 0)
        give(opaque(take(BYTES) + 16));
}

/* In threads of their own. */
static char *block_of_thread;
static long taker, freer;

static void *take_thread(void *argument)
{
    (void)argument;
    taker = thread_number();
    block_of_thread = taken_here(BYTES);
    return NULL;
}

static void *free_thread(void *argument)
{
    (void)argument;
    freer = thread_number();
    freed_here(block_of_thread);
    return NULL;
}

static void fault_in_threads(void)
{
    for (unsigned turn = 0; turn < 10000; turn++) {
        pthread_t thread;
        pthread_create(&thread, NULL, take_thread, NULL);
        pthread_join(thread, NULL);
        pthread_create(&thread, NULL, free_thread, NULL);
        pthread_join(thread, NULL);
        say_where(taker, freer);
        touched_here(opaque(block_of_thread), false);
    }
}

static void fault(const char *kind)
{
    say_where(thread_number(), thread_number());
    for (unsigned turn = 0; turn < 1000000; turn++)
        touch(kind, taken_here, freed_here);
}

/* A block that was freed before `others` more were taken and freed. */
static void touch_late(unsigned others)
{
    char *block = taken_here(BYTES);
    say_where(thread_number(), thread_number());
    freed_here(block);
    for (unsigned i = 0; i < others; i++)
        free(opaque(malloc(BYTES)));
    touched_here(opaque(block), false);
}

/* ---- How many are caught ---- */

static sigjmp_buf out;
static volatile unsigned caught;
static char *volatile address; /* of the last; NULL: it was touched twice */

static void on_fault(int number, siginfo_t *info, void *context)
{
    (void)number, (void)context;
    caught += address == NULL;
    address = address == NULL ? info->si_addr : NULL;
    siglongjmp(out, 1);
}

static void handle(void (*handler)(int, siginfo_t *, void *), int flags)
{
    struct sigaction action;
    memset(&action, 0, sizeof(action));
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO | flags;
    sigaddset(&action.sa_mask, SIGUSR1);
    CHECK(sigaction(SIGSEGV, &action, NULL) == 0);
}

static void rate(const char *kind, unsigned turns)
{
    handle(on_fault, 0);
    only_reads = true;
    for (volatile unsigned turn = 0; turn < turns; turn++)
        if (sigsetjmp(out, 1) == 0)
            touch(kind, taken_here, freed_here);
        else if (address != NULL)
            touched_here(address, false); /* once more: that is not reported */
        else
            free(unfreed);
    printf("caught %u\n", caught);
}

/* ---- The program's own handlers ---- */

static char *own_page;
static struct sigaction before_ours;
static stack_t other_stack;
static volatile unsigned handled;

/* Takes blocks until the program's handler has surely been seen. */
static void settle(void)
{
    for (unsigned i = 0; i < 3000; i++)
        free(opaque(malloc(BYTES)));
}

static void on_own(int number, siginfo_t *info, void *context)
{
    sigset_t held;
    char here;
    CHECK(number == SIGSEGV && context != NULL);
    CHECK(&here > (char *)other_stack.ss_sp &&
          &here < (char *)other_stack.ss_sp + other_stack.ss_size);
    sigprocmask(SIG_BLOCK, NULL, &held);
    CHECK(sigismember(&held, SIGUSR1) && sigismember(&held, SIGSEGV) &&
          !sigismember(&held, SIGHUP));
    if ((char *)info->si_addr == own_page) {
        handled++;
        mprotect(own_page, 4096, PROT_READ | PROT_WRITE);
        return;
    }
    printf("handled %p\n", info->si_addr);
    fflush(stdout);
    _exit(7);
}

static void on_chain(int number, siginfo_t *info, void *context)
{
    static unsigned turns;
    CHECK(turns++ == 0);
    printf("handled\n");
    fflush(stdout);
    if (before_ours.sa_flags & SA_SIGINFO)
        before_ours.sa_sigaction(number, info, context);
    else
        sigaction(SIGSEGV, &before_ours, NULL); /* the default: it comes again */
}

static void use_other_stack(void)
{
    other_stack.ss_size = 16384;
    other_stack.ss_sp = malloc(other_stack.ss_size);
    CHECK(sigaltstack(&other_stack, NULL) == 0);
    own_page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void chain(bool put_back)
{
    struct sigaction action;
    memset(&action, 0, sizeof(action));
    action.sa_sigaction = on_chain;
    action.sa_flags = SA_SIGINFO;
    settle(); /* what was there before is ours, by now */
    CHECK(sigaction(SIGSEGV, &action, &before_ours) == 0);
    settle();
    if (put_back)
        CHECK(sigaction(SIGSEGV, &before_ours, NULL) == 0);
    settle();
    fault("read");
}

/* Leaves this byte in the stack below, which libc then takes for parts of a handler's mask. */
static __attribute__((noinline)) void write_stack(int byte)
{
    volatile char room[8192];
    for (size_t i = 0; i < sizeof(room); i++)
        room[i] = (char)byte;
}

/* The same one, more often than there are different ones to be kept. */
static void handle_often(void)
{
    for (int i = 1; i <= 40; i++) {
        handle(on_own, SA_ONSTACK);
        write_stack(i);
        settle();
    }
}

static void handler(const char *name)
{
    use_other_stack();
    if (strcmp(name, "often") == 0)
        handle_often();
    if (strcmp(name, "before") == 0 || strcmp(name, "own") == 0)
        handle(on_own, SA_ONSTACK);
    settle();
    if (strcmp(name, "after") == 0)
        handle(on_own, SA_ONSTACK);
    settle();
    if (strcmp(name, "own") == 0) { /* a fault of the program's own, which it mends */
        touched_here(own_page, true);
        CHECK(handled == 1);
        return;
    }
    if (strcmp(name, "raise") == 0)
        raise(SIGSEGV);
    if (strcmp(name, "null") == 0)
        touched_here(opaque(NULL), true);
    if (strcmp(name, "ignored") == 0) {
        struct sigaction found;
        signal(SIGSEGV, SIG_IGN);
        settle();
        raise(SIGSEGV);
        CHECK(sigaction(SIGSEGV, NULL, &found) == 0 && found.sa_handler == SIG_IGN);
        return;
    }
    if (strcmp(name, "chain") == 0 || strcmp(name, "back") == 0)
        chain(strcmp(name, "back") == 0);
    fault("read");
}

static void fork_and_touch(void)
{
    settle();
    int child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        fault("read");
        _exit(1);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    settle();
}

/* ---- The program's handler of misuse ---- */

static volatile unsigned told; /* malloc is declared to call nothing of this file */

static void tell(const struct snug_misuse *misuse)
{
    told++;
    printf("told %s %s %p %zu\n", misuse->kind, misuse->call, misuse->address, misuse->bytes);
    fflush(stdout);
}

static void until_told(const char *kind)
{
    void (*set)(snug_misuse_handler);
    void *found = dlsym(RTLD_DEFAULT, "snug_set_misuse_handler");
    CHECK(found != NULL);
    memcpy(&set, &found, sizeof(set));
    set(tell);
    say_where(thread_number(), thread_number());
    for (unsigned turn = 0; turn < 50 && told == 0; turn++)
        touch(kind, taken_here, freed_here);
    CHECK_MSG(told == 1, "told %u times", told);
}

int main(int count, char **arguments)
{
    test_begin(60);
    CHECK(count >= 2);
    const char *what = arguments[1], *kind = count > 2 ? arguments[2] : "";
    if (strcmp(what, "fault") == 0)
        count > 3 ? fault_in_threads() : fault(kind);
    else if (strcmp(what, "rate") == 0)
        rate(kind, (unsigned)strtoul(arguments[3], NULL, 10));
    else if (strcmp(what, "late") == 0)
        touch_late((unsigned)strtoul(kind, NULL, 10));
    else if (strcmp(what, "handler") == 0)
        handler(kind);
    else if (strcmp(what, "told") == 0)
        until_told(kind);
    else
        fork_and_touch();
    return test_end();
}
