/*
 * Signals on Linux. See signal.h.
 */
#include "platform/signal.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "platform/syscall.h"
#include "platform/thread.h"

struct fatal {
    int number;
    const char *name;
};

static const struct fatal fatal[] = {
    {SIGHUP, "SIGHUP"},   {SIGINT, "SIGINT"},   {SIGQUIT, "SIGQUIT"}, {SIGILL, "SIGILL"},
    {SIGABRT, "SIGABRT"}, {SIGBUS, "SIGBUS"},   {SIGFPE, "SIGFPE"},   {SIGSEGV, "SIGSEGV"},
    {SIGPIPE, "SIGPIPE"}, {SIGALRM, "SIGALRM"}, {SIGTERM, "SIGTERM"}, {SIGXCPU, "SIGXCPU"},
    {SIGSYS, "SIGSYS"},   {SIGTRAP, "SIGTRAP"},
};

enum { FATAL = sizeof(fatal) / sizeof(fatal[0]) };

static void (*act_fatal)(const char *signal);
static void (*act_request)(void);

static const char *name_of(int number)
{
    for (unsigned i = 0; i < FATAL; i++)
        if (fatal[i].number == number)
            return fatal[i].name;
    return "signal";
}

static void on_fatal(int number, siginfo_t *info, void *context)
{
    int error = errno;
    (void)context;
    struct sigaction standard;
    memset(&standard, 0, sizeof(standard));
    standard.sa_handler = SIG_DFL;
    act_fatal(name_of(number));
    sigaction(number, &standard, NULL);
    /* One that an instruction caused comes again when that is tried again, with all that a core
     * dump says about it. Any other is sent again; it waits until this handler returns. */
    bool by_instruction = info->si_code > 0 && info->si_code != SI_KERNEL &&
                          (number == SIGSEGV || number == SIGBUS || number == SIGILL ||
                           number == SIGFPE || number == SIGTRAP);
    if (!by_instruction)
        syscall3(SYS_tgkill, syscall1(SYS_getpid, 0), os_thread_id(), number);
    errno = error;
}

void os_catch_fatal(void (*act)(const char *signal), bool interrupt)
{
    act_fatal = act;
    struct sigaction ours, theirs;
    memset(&ours, 0, sizeof(ours));
    ours.sa_sigaction = on_fatal;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK; /* a stack may be what is exhausted */
    sigfillset(&ours.sa_mask);
    for (unsigned i = 0; i < FATAL; i++) {
        if ((fatal[i].number == SIGINT) != interrupt)
            continue;
        if (sigaction(fatal[i].number, NULL, &theirs) == 0 && !(theirs.sa_flags & SA_SIGINFO) &&
            theirs.sa_handler == SIG_DFL)
            sigaction(fatal[i].number, &ours, NULL);
    }
}

static void on_request(int number)
{
    int error = errno;
    (void)number;
    act_request();
    errno = error;
}

void os_catch_request(void (*act)(void))
{
    act_request = act;
    struct sigaction ours;
    memset(&ours, 0, sizeof(ours));
    ours.sa_handler = on_request;
    ours.sa_flags = SA_RESTART;
    sigfillset(&ours.sa_mask);
    sigaction(SIGUSR2, &ours, NULL);
}

/* The kernel's set of 64 signals, as a number; libc's type is larger. */
enum { SET_BYTES = 8 };

static const uint64_t pipe_bit = (uint64_t)1 << (SIGPIPE - 1);

uint64_t os_pipe_signal_hold(void)
{
    uint64_t before = 0, pending = 0;
    syscall6(SYS_rt_sigprocmask, SIG_BLOCK, (long)&pipe_bit, (long)&before, SET_BYTES, 0, 0);
    syscall3(SYS_rt_sigpending, (long)&pending, SET_BYTES, 0);
    /* Who had it blocked or waiting keeps what comes. */
    return (before | pending) & pipe_bit;
}

void os_pipe_signal_release(uint64_t held)
{
    if (held != 0)
        return;
    const struct timespec none = {0, 0};
    syscall6(SYS_rt_sigtimedwait, (long)&pipe_bit, 0, (long)&none, SET_BYTES, 0, 0);
    syscall6(SYS_rt_sigprocmask, SIG_UNBLOCK, (long)&pipe_bit, 0, SET_BYTES, 0, 0);
}
