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

struct name {
    int number;
    char name[12];
};

static const struct name names[] = {
    {SIGHUP, "SIGHUP"},   {SIGINT, "SIGINT"},       {SIGQUIT, "SIGQUIT"}, {SIGILL, "SIGILL"},
    {SIGTRAP, "SIGTRAP"}, {SIGABRT, "SIGABRT"},     {SIGBUS, "SIGBUS"},   {SIGFPE, "SIGFPE"},
    {SIGUSR1, "SIGUSR1"}, {SIGSEGV, "SIGSEGV"},     {SIGUSR2, "SIGUSR2"}, {SIGPIPE, "SIGPIPE"},
    {SIGALRM, "SIGALRM"}, {SIGTERM, "SIGTERM"},     {SIGXCPU, "SIGXCPU"}, {SIGXFSZ, "SIGXFSZ"},
    {SIGPROF, "SIGPROF"}, {SIGVTALRM, "SIGVTALRM"}, {SIGPWR, "SIGPWR"},   {SIGIO, "SIGIO"},
    {SIGSYS, "SIGSYS"},   {SIGSTKFLT, "SIGSTKFLT"},
};

static void (*act_fatal)(const char *signal);
static void (*act_request)(void);

static const char *name_of(int number)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (names[i].number == number)
            return names[i].name;
    return "SIGRT"; /* one of the real-time signals */
}

/* Whether a signal that is left at its default ends the process, and may be caught. */
static bool is_fatal(int number)
{
    switch (number) {
    case SIGKILL:
    case SIGSTOP:
    case SIGTSTP:
    case SIGTTIN:
    case SIGTTOU:
    case SIGCHLD:
    case SIGCONT:
    case SIGURG:
    case SIGWINCH:
        return false;
    default:
        return true;
    }
}

void os_signal_default(int number)
{
    struct sigaction standard;
    memset(&standard, 0, sizeof(standard));
    standard.sa_handler = SIG_DFL;
    sigaction(number, &standard, NULL);
}

void os_signal_send(int number)
{
    syscall3(SYS_tgkill, syscall1(SYS_getpid, 0), os_thread_id(), number);
}

static void on_fatal(int number, siginfo_t *info, void *context)
{
    int error = errno;
    (void)context;
    act_fatal(name_of(number));
    os_signal_default(number);
    /* If an instruction caused the signal, it comes again when that instruction is tried again, and
     * a core dump then says all about it. Any other signal is sent again, and waits until this
     * handler returns. */
    bool by_instruction = info->si_code > 0 && info->si_code != SI_KERNEL &&
                          (number == SIGSEGV || number == SIGBUS || number == SIGILL ||
                           number == SIGFPE || number == SIGTRAP);
    if (!by_instruction)
        os_signal_send(number);
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
    /* libc refuses those that it needs itself. */
    for (int number = 1; number <= SIGRTMAX; number++)
        if (is_fatal(number) && (number == SIGINT) == interrupt &&
            sigaction(number, NULL, &theirs) == 0 && !(theirs.sa_flags & SA_SIGINFO) &&
            theirs.sa_handler == SIG_DFL)
            sigaction(number, &ours, NULL);
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
    ours.sa_flags = SA_RESTART | SA_ONSTACK; /* some languages' own stacks are small */
    sigfillset(&ours.sa_mask);
    sigaction(SIGUSR2, &ours, NULL);
}

/* The kernel's set of 64 signals, as a number; libc's type is larger. */
enum { SET_BYTES = 8 };

static const uint64_t all_bits = ~(uint64_t)0;
/* What a write of our own may cause: nobody reads, or the file may not grow. */
#define OF_WRITES ((uint64_t)1 << (SIGPIPE - 1) | (uint64_t)1 << (SIGXFSZ - 1))

void os_signals_block(struct os_signals *signals)
{
    signals->held = signals->pending = 0;
    syscall6(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all_bits, (long)&signals->held, SET_BYTES, 0,
             0);
}

void os_signals_unblock(const struct os_signals *signals)
{
    syscall6(SYS_rt_sigprocmask, SIG_SETMASK, (long)&signals->held, 0, SET_BYTES, 0, 0);
}

void os_signals_hold(struct os_signals *signals)
{
    os_signals_block(signals);
    syscall3(SYS_rt_sigpending, (long)&signals->pending, SET_BYTES, 0);
}

void os_signals_release(const struct os_signals *signals)
{
    const struct timespec none = {0, 0};
    const uint64_t ours = OF_WRITES & ~signals->pending; /* others are the program's */
    while (syscall6(SYS_rt_sigtimedwait, (long)&ours, 0, (long)&none, SET_BYTES, 0, 0) > 0)
        continue;
    os_signals_unblock(signals);
}
