/*
 * Handlers before the program's. See fault.h.
 */
#include "platform/fault.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "platform/signal.h"

static void (*act_fault)(uintptr_t address, const void *context);

/* Handlers that the program had installed. The first `known_count` are filled in, and never
 * change. */
BULKY static struct sigaction known[FAULT_HANDLERS];
static unsigned known_count;

/* Lets the signal end the process. If an instruction caused it, it comes again when that
 * instruction is tried again, and a core dump then says all about it. Any other is sent again, and
 * comes when this handler returns. */
static void die_by(int number, const siginfo_t *info)
{
    os_signal_default(number);
    if (info->si_code <= 0)
        os_signal_send(number);
}

static void pass_on(const struct sigaction *theirs, int number, siginfo_t *info, void *context)
{
    if ((theirs->sa_flags & SA_SIGINFO) == 0 && theirs->sa_handler == SIG_DFL) {
        die_by(number, info);
        return;
    }
    if (theirs->sa_flags & (int)SA_RESETHAND)
        os_signal_default(number);
    if (theirs->sa_flags & SA_SIGINFO)
        theirs->sa_sigaction(number, info, context);
    else
        theirs->sa_handler(number);
}

static void on_fault(unsigned which, int number, siginfo_t *info, void *context)
{
    int error = errno;
    if (info->si_code > 0) /* from the kernel, not from kill() */
        act_fault((uintptr_t)info->si_addr, context);
    errno = error;
    pass_on(&known[which], number, info, context);
}

/* ---- An entry for each ---- */

#define ENTRY(which) \
    static void entry_##which(int number, siginfo_t *info, void *context) \
    { \
        on_fault(which, number, info, context); \
    }
ENTRY(0)
ENTRY(1)
ENTRY(2)
ENTRY(3)
ENTRY(4)
ENTRY(5)
ENTRY(6)
ENTRY(7)
ENTRY(8)
ENTRY(9)
ENTRY(10)
ENTRY(11)
ENTRY(12)
ENTRY(13)
ENTRY(14)
ENTRY(15)

static void (*const entries[FAULT_HANDLERS])(int, siginfo_t *, void *) = {
    entry_0, entry_1, entry_2,  entry_3,  entry_4,  entry_5,  entry_6,  entry_7,
    entry_8, entry_9, entry_10, entry_11, entry_12, entry_13, entry_14, entry_15,
};

static bool is_entry(const struct sigaction *action)
{
    for (unsigned i = 0; i < FAULT_HANDLERS; i++)
        if ((action->sa_flags & SA_SIGINFO) && action->sa_sigaction == entries[i])
            return true;
    return false;
}

/* Bytes: so much of a mask is the kernel's; what libc has behind that is whatever was on a stack.
 */
enum { MASK_BYTES = 8 };

static bool is_same(const struct sigaction *a, const struct sigaction *b)
{
    return a->sa_flags == b->sa_flags && a->sa_sigaction == b->sa_sigaction &&
           memcmp(&a->sa_mask, &b->sa_mask, MASK_BYTES) == 0;
}

/* The number of the entry for what the program has in place; FAULT_HANDLERS: there are no more. */
static unsigned entry_for(const struct sigaction *theirs)
{
    unsigned number = 0;
    while (number < known_count && !is_same(&known[number], theirs))
        number++;
    if (number == known_count && number < FAULT_HANDLERS)
        known[known_count++] = *theirs;
    return number;
}

/* Installs the entry for what is in place, and tries again if somebody has changed that
 * meanwhile. */
static void put_before(struct sigaction theirs)
{
    for (;;) {
        bool standard = (theirs.sa_flags & SA_SIGINFO) == 0 && theirs.sa_handler == SIG_DFL;
        bool ignored = (theirs.sa_flags & SA_SIGINFO) == 0 && theirs.sa_handler == SIG_IGN;
        unsigned number = is_entry(&theirs) || ignored ? FAULT_HANDLERS : entry_for(&theirs);
        if (number == FAULT_HANDLERS)
            return;
        struct sigaction ours = theirs, found;
        ours.sa_sigaction = entries[number];
        ours.sa_flags = (theirs.sa_flags | SA_SIGINFO) & ~(int)SA_RESETHAND;
        if (standard)
            ours.sa_flags |= SA_ONSTACK; /* a stack may be what is exhausted */
        if (sigaction(SIGSEGV, &ours, &found) != 0 || is_same(&found, &theirs))
            return;
        theirs = found;
        if (is_entry(&found)) /* the program has put one of our entries back: it stays */
            sigaction(SIGSEGV, &found, &theirs);
    }
}

static bool busy; /* acquire and release: one thread at a time changes the above */

void os_fault_fork_in_child(void)
{
    __atomic_store_n(&busy, false, __ATOMIC_RELAXED);
}

void os_fault_watch(void (*act)(uintptr_t address, const void *context))
{
    struct sigaction theirs;
    struct os_signals signals;
    os_signals_block(&signals); /* a handler of the program's may jump out of here */
    if (!__atomic_exchange_n(&busy, true, __ATOMIC_ACQUIRE)) {
        if (known_count == 0)
            act_fault = act;
        if (sigaction(SIGSEGV, NULL, &theirs) == 0 && !is_entry(&theirs))
            put_before(theirs);
        __atomic_store_n(&busy, false, __ATOMIC_RELEASE);
    }
    os_signals_unblock(&signals);
}
