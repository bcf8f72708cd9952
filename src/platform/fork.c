/*
 * Fork on Linux, and libc's own lock that stands before all of ours. See thread.h.
 *
 * glibc's fork() first calls the handlers, then takes the lock of its list of streams, and then
 * copies. But libc also allocates below that lock: fflush(NULL) holds the list and waits for a
 * stream, whose holder may be in getline and wait for memory. A handler that returned with the
 * heap's locks and without the list would close the ring (glibc's bug 19431, which it mended for
 * its own malloc by taking that last). So the list is taken before any lock of the heap. It is a
 * recursive lock, and fork() takes it once more.
 *
 * musl keeps its list to itself: see docs/limitations.md.
 */
#include <pthread.h>

#include "platform/lock.h"
#include "platform/thread.h"

/* glibc exports these, from 2.2.5 on. Nobody else does. */
extern void _IO_list_lock(void) __attribute__((weak));
extern void _IO_list_unlock(void) __attribute__((weak));
extern void _IO_list_resetlock(void) __attribute__((weak));

/* Whether the forking thread has taken the list's lock, which guards this word as well. Atomic, as
 * a sanitizer knows nothing of a lock of libc's. */
static bool list_taken;

static void list_set_taken(bool taken)
{
    __atomic_store_n(&list_taken, taken, __ATOMIC_RELAXED);
}

static bool list_is_taken(void)
{
    return __atomic_load_n(&list_taken, __ATOMIC_RELAXED);
}

/* A process with one thread is left as it is, as glibc leaves it: nobody else can hold the list,
 * and a signal handler that forks in the middle of fflush must find it in the child as it was. */
static void list_before_fork(void)
{
    if (lock_is_alone())
        return;
    _IO_list_lock();
    list_set_taken(true);
}

static void list_in_parent(void)
{
    if (!list_is_taken())
        return;
    list_set_taken(false);
    _IO_list_unlock();
}

/* glibc has reset the lock before it calls this, unless it took the process for one of a single
 * thread. */
static void list_in_child(void)
{
    if (!list_is_taken())
        return;
    list_set_taken(false);
    _IO_list_resetlock();
}

AT_START void os_fork_init(void (*before)(void), void (*in_parent)(void), void (*in_child)(void))
{
    pthread_atfork(before, in_parent, in_child);
}

AT_START void os_fork_libc_first(void)
{
    if (&_IO_list_lock != NULL && &_IO_list_unlock != NULL && &_IO_list_resetlock != NULL)
        pthread_atfork(list_before_fork, list_in_parent, list_in_child);
}
