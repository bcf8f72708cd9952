/*
 * A lock of eight bytes that sleeps in the kernel when it has to wait.
 *
 * The idea: taking a free lock is one compare-and-swap. Releasing it is a plain store, as a locked
 * instruction waits until all that was written under the lock has reached the cache. A thread that
 * finds the lock held spins for some microseconds, since no lock here is held for longer than a few
 * hundred instructions, but for a rare system call. It looks at the lock after a pause, and then
 * after pauses that double, so that the holder may have it several times in between: what the lock
 * guards then goes from one processor's cache to the other's once for all of them. Then it
 * announces that it will sleep: it adds one to `asleep`. The thread that releases the lock looks at
 * `asleep`; if somebody is announced, it takes one off, moves `wakes` on, and wakes one thread. A
 * sleeper waits for `wakes` to move from where it stood before the announcement. So however these
 * steps mix, each sleeper is announced or being woken, and a wake-up that comes too early is a
 * sleep that does not begin. A thread that gets the lock without being woken leaves its
 * announcement behind, and one that finds that others were woken announces itself once more. Then a
 * release calls the kernel in vain, and that is all.
 *
 * One order is left that this does not decide: the store that releases may reach the cache after
 * the load of `asleep`, and miss an announcement. So a thread that has announced itself looks at
 * the lock for a few microseconds more, which is longer than a store takes, and then sleeps for a
 * millisecond at most, or for one for each sleeper. Should a store ever take longer, that is what
 * it costs. (A barrier in all threads by membarrier(2) would decide it; but it interrupts all
 * processors, and sandboxes may kill for it.)
 *
 * Source: the announcement is an event count (D. Reed and R. Kanodia, 1979); U. Drepper, "Futexes
 * Are Tricky" (2011), for the kernel's part.
 *
 * Ranks: a thread that holds a lock takes only locks of a higher rank, so no circle of waiters can
 * arise. The debug build checks it at every lock. Before all of them stand libc's own locks, since
 * libc allocates while it holds them, and nothing here calls into libc while it holds one of ours;
 * fork, where libc does it the other way round, is set right in fork.c.
 *
 * Fork: the forking thread takes every lock before and releases them after, so that the child finds
 * no lock held by a thread that it does not have. Meanwhile, handlers of other libraries may
 * allocate in the forking thread: for this thread, and only for it, taking and releasing are then
 * without effect (lock_fork_begin).
 */
#ifndef SNUG_PLATFORM_LOCK_H
#define SNUG_PLATFORM_LOCK_H

#include "base/common.h"

enum lock_rank {
    RANK_INIT,      /* first use */
    RANK_HEAPS,     /* which heaps there are, and the threads' caches of them */
    RANK_ARENAS,    /* which classes are in use in which arena */
    RANK_DEPOT,     /* one class's full magazines in one arena */
    RANK_BIN,       /* one class's slabs in one arena */
    RANK_CELLS,     /* one arena's cells */
    RANK_HARD_WAIT, /* hardened blocks that were freed and wait, those of all threads */
    RANK_HARD_BIN,  /* one class's hardened objects */
    RANK_HARD_ZONE, /* address space for hardened objects, and large hardened blocks */
    RANK_PURGE,     /* pages that one thread gives back, apart from the page heap */
    RANK_PAGE_HEAP, /* page runs and segments of a heap */
    RANK_PROVIDERS, /* which providers there are that have a lock */
    RANK_NEARBY,   /* large blocks that stay near a processor, whose locks the page heap's guards */
    RANK_PROVIDER, /* what a provider has handed out */
    RANK_PROFILE,  /* samples, and the stacks they were taken on */
    RANK_META,     /* snug's own structures, and growing the page map */
    RANK_COUNT
};

struct lock {
    uint8_t held;    /* 1 or 0 */
    uint8_t rank;    /* enum lock_rank */
    uint16_t asleep; /* announced and not woken yet; >= sleepers that nobody is waking */
    uint32_t wakes;  /* grows with each wake-up; the word that the kernel looks at */
};

#define LOCK_INIT(rank_) {0, (rank_), 0, 0}

/* How many times a lock of each rank had to be waited for, in this process. */
extern INTERNAL uint64_t lock_waits[RANK_COUNT];

/* Nonzero while the process forks; see lock_fork_begin. */
extern INTERNAL uint32_t lock_forking;

void lock_wait(struct lock *lock);
void lock_wake(struct lock *lock);
bool lock_is_forker(void);

#if defined(SNUG_DEBUG)
void lock_rank_enter(const struct lock *lock);
void lock_rank_note(const struct lock *lock); /* without checking: nobody waits for what is tried */
void lock_rank_leave(const struct lock *lock);
/* Lets the calling thread hold several locks of one rank, or ends that; for fork only. */
void lock_rank_allow_many(bool allowed);
/* In a child of fork that has released all locks but those of heaps that it does not have. */
void lock_rank_forget(void);
#else
static inline void lock_rank_forget(void) {}
static inline void lock_rank_allow_many(bool allowed)
{
    (void)allowed;
}
static inline void lock_rank_enter(const struct lock *lock)
{
    (void)lock;
}
static inline void lock_rank_note(const struct lock *lock)
{
    (void)lock;
}
static inline void lock_rank_leave(const struct lock *lock)
{
    (void)lock;
}
#endif

/* Whether the calling thread is forking, and so holds every lock. */
static inline bool lock_all_held(void)
{
    /* relaxed: only the forking thread itself has to see its own mark */
    return UNLIKELY(__atomic_load_n(&lock_forking, __ATOMIC_RELAXED) != 0) && lock_is_forker();
}

static inline void lock_init(struct lock *lock, enum lock_rank rank)
{
    /* One that is made while this thread forks is held by it, as all others are. */
    *lock = (struct lock){.held = lock_all_held() ? 1 : 0, .rank = (uint8_t)rank};
    if (UNLIKELY(lock->held != 0))
        lock_rank_enter(lock);
}

/* glibc's since 2.32: not 0 if the process has one thread, as far as libc knows. Nowhere else. */
extern char __libc_single_threaded __attribute__((weak));

/* Whether the calling thread is the only one. It stays so while it holds a lock, as nothing here
 * starts a thread. Then a lock is a plain word: the two atomic operations were half of the time
 * that taking and freeing a cell took. */
static inline bool lock_is_alone(void)
{
    return &__libc_single_threaded != NULL && __libc_single_threaded;
}

static inline bool lock_swap(struct lock *lock)
{
    uint8_t expected = 0;
    /* acquire: what the last holder wrote is seen */
    return __atomic_compare_exchange_n(&lock->held, &expected, 1, false, __ATOMIC_ACQUIRE,
                                       __ATOMIC_RELAXED);
}

static inline bool lock_acquire_free(struct lock *lock)
{
    if (lock_is_alone()) {
        /* relaxed: nobody else looks, but signal handlers, which leave it as they find it */
        if (__atomic_load_n(&lock->held, __ATOMIC_RELAXED) != 0)
            return false;
        __atomic_store_n(&lock->held, 1, __ATOMIC_RELAXED);
        __atomic_signal_fence(__ATOMIC_ACQUIRE);
        return true;
    }
    return lock_swap(lock);
}

/* Takes the lock if that needs no waiting. Ranks do not matter, as nobody waits, so a signal
 * handler may call this. */
bool lock_try(struct lock *lock);

static ALWAYS_INLINE void lock_acquire_inline(struct lock *lock)
{
    if (lock_all_held())
        return;
    if (UNLIKELY(!lock_acquire_free(lock)))
        lock_wait(lock);
    else
        lock_rank_enter(lock);
}

static ALWAYS_INLINE void lock_release_inline(struct lock *lock)
{
    if (lock_all_held())
        return;
    lock_rank_leave(lock);
    /* release: the next holder sees what was written under the lock */
    __atomic_store_n(&lock->held, 0, __ATOMIC_RELEASE);
    /* The compiler leaves the two in this order; the processor need not. */
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (UNLIKELY(__atomic_load_n(&lock->asleep, __ATOMIC_RELAXED) != 0))
        lock_wake(lock);
}

/* For short ways, in two steps. The first takes the lock in a process of one thread; where it does
 * not, the second takes it. */
static ALWAYS_INLINE bool lock_acquire_alone(struct lock *lock)
{
    /* relaxed: nobody else looks, but signal handlers, which leave it as they find it */
    if (UNLIKELY(!lock_is_alone()) || UNLIKELY(__atomic_load_n(&lock_forking, __ATOMIC_RELAXED)) ||
        UNLIKELY(__atomic_load_n(&lock->held, __ATOMIC_RELAXED)))
        return false;
    lock_rank_enter(lock);
    __atomic_store_n(&lock->held, 1, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_ACQUIRE);
    return true;
}

static ALWAYS_INLINE void lock_acquire_shared(struct lock *lock)
{
    if (lock_all_held())
        return;
    if (UNLIKELY(!lock_swap(lock)))
        lock_wait(lock);
    else
        lock_rank_enter(lock);
}

/* The same as functions, for files that are compiled for size. Otherwise the compiler would put one
 * of each into every file, with a row of the tables for unwinding. */
void lock_acquire_call(struct lock *lock);
void lock_release_call(struct lock *lock);

static inline void lock_acquire(struct lock *lock)
{
#ifdef __OPTIMIZE_SIZE__
    lock_acquire_call(lock);
#else
    lock_acquire_inline(lock);
#endif
}

static inline void lock_release(struct lock *lock)
{
#ifdef __OPTIMIZE_SIZE__
    lock_release_call(lock);
#else
    lock_release_inline(lock);
#endif
}

/* lock_fork_begin is called when the thread has taken all locks, lock_fork_end before it releases
 * them. In between, every lock counts as held by this thread. */
void lock_fork_begin(void);
void lock_fork_end(void);

/* In the child of a fork, instead of lock_release: nobody waits there. */
static inline void lock_reset(struct lock *lock)
{
    lock_rank_leave(lock);
    __atomic_store_n(&lock->asleep, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&lock->held, 0, __ATOMIC_RELEASE);
}

#endif
