/*
 * Waiting for a lock, ranks, and locks across fork. See lock.h.
 */
#include "platform/lock.h"

#include <pthread.h>
#include <time.h>

#include "platform/check.h"
#include "platform/syscall.h"
#include "platform/thread.h"

/* Pauses (machine), of 10 to 45 ns by the processor: so many before a waiting thread looks at the
 * lock, then twice as many each time. Each look takes the lock's line from the holder, and a thread
 * that is at once there takes over all that the lock guards, line by line, for one turn. With a
 * look at each pause two threads with large blocks of any length took 2.5 times as long. */
enum { FIRST_SPINS = 32 };

/* Pauses (machine): three looks, and then it sleeps; on one processor spinning is pure loss, so
 * there it is 0. Fewer made two threads that share a depot sleep for what takes 100 ns. As many
 * pass between the announcement and the sleep: in some microseconds the stores of a holder that has
 * just released have long reached the cache. */
enum { SPINS = 7 * FIRST_SPINS };

/* Nanoseconds: the first sleeper looks again after so long; hardly ever is a lock held until then.
 * The n-th looks after n times as long, so that about one looks in that time, however many there
 * are. When thousands looked each millisecond nobody else came to run, not even the holder. */
enum { SLEEP_MOST = 1000000 };

/* Sleepers: behind so many all look after the same time, a second. */
enum { QUEUE_MOST = 1000 };

uint64_t lock_waits[RANK_COUNT];
uint32_t lock_forking;
/* The thread that forks, by its pthread_self(), which is the same in the child; its id is not. */
static uintptr_t lock_forker;

static uintptr_t this_thread(void)
{
    return (uintptr_t)pthread_self();
}

static inline void pause_briefly(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#elif defined(__riscv)
    __asm__ volatile(".4byte 0x0100000f"); /* pause; without it, a fence of nothing */
#endif
}

bool lock_is_forker(void)
{
    return __atomic_load_n(&lock_forker, __ATOMIC_RELAXED) == this_thread();
}

static void pause_for(unsigned spins)
{
    while (spins-- != 0)
        pause_briefly();
}

/* Takes the lock if it is free at a look within so many pauses. */
static bool lock_spin(struct lock *lock, unsigned spins)
{
    for (unsigned next = FIRST_SPINS; next <= spins; spins -= next, next *= 2) {
        pause_for(next);
        if (__atomic_load_n(&lock->held, __ATOMIC_RELAXED) == 0 && lock_acquire_free(lock))
            return true;
    }
    return false;
}

/* Announces the calling thread. Returns how many are announced then. */
static uint16_t lock_announce(struct lock *lock)
{
    uint16_t asleep = __atomic_load_n(&lock->asleep, __ATOMIC_RELAXED);
    /* Threads that the word cannot count any more sleep until they look by themselves. seq_cst:
     * `wakes` is read before this, and the lock is looked at after it. */
    while (asleep != UINT16_MAX &&
           !__atomic_compare_exchange_n(&lock->asleep, &asleep, (uint16_t)(asleep + 1), false,
                                        __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
        continue;
    return asleep == UINT16_MAX ? asleep : (uint16_t)(asleep + 1);
}

/* For how long the last of so many sleepers sleeps. */
static struct timespec sleep_most(uint16_t asleep)
{
    uint64_t most = SLEEP_MOST * (uint64_t)(asleep < QUEUE_MOST ? asleep : QUEUE_MOST);
    return (struct timespec){(time_t)(most / 1000000000), (long)(most % 1000000000)};
}

/* Announces itself and sleeps until it is woken, again and again, until it has the lock. */
static void lock_sleep(struct lock *lock, unsigned spins)
{
    for (;;) {
        /* acquire: read before the announcement */
        uint32_t seen = __atomic_load_n(&lock->wakes, __ATOMIC_ACQUIRE);
        struct timespec most = sleep_most(lock_announce(lock));
        do {
            if (lock_acquire_free(lock) || lock_spin(lock, spins))
                return;
            syscall6(SYS_futex, (long)&lock->wakes, FUTEX_WAIT_PRIVATE, seen, (long)&most, 0, 0);
        } while (__atomic_load_n(&lock->wakes, __ATOMIC_ACQUIRE) == seen);
    }
}

COLD void lock_wait(struct lock *lock)
{
    __atomic_fetch_add(&lock_waits[lock->rank], 1, __ATOMIC_RELAXED);
    unsigned spins = os_cpu_count() > 1 ? SPINS : 0;
    if (!lock_spin(lock, spins))
        lock_sleep(lock, spins);
    lock_rank_enter(lock);
}

bool lock_try(struct lock *lock)
{
    if (lock_all_held())
        return true;
    bool taken = lock_acquire_free(lock);
    if (taken)
        lock_rank_note(lock);
    return taken;
}

void lock_acquire_call(struct lock *lock)
{
    lock_acquire_inline(lock);
}

void lock_release_call(struct lock *lock)
{
    lock_release_inline(lock);
}

COLD void lock_wake(struct lock *lock)
{
    uint16_t asleep = __atomic_load_n(&lock->asleep, __ATOMIC_RELAXED);
    do {
        if (asleep == 0)
            return; /* somebody else wakes */
    } while (!__atomic_compare_exchange_n(&lock->asleep, &asleep, (uint16_t)(asleep - 1), false,
                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    /* release: whoever sees it grown sees `asleep` without this one */
    __atomic_fetch_add(&lock->wakes, 1, __ATOMIC_RELEASE);
    syscall6(SYS_futex, (long)&lock->wakes, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
}

void lock_fork_begin(void)
{
    __atomic_store_n(&lock_forker, this_thread(), __ATOMIC_RELAXED);
    /* release: lock_forker is written when the mark is seen */
    __atomic_store_n(&lock_forking, 1, __ATOMIC_RELEASE);
}

void lock_fork_end(void)
{
    __atomic_store_n(&lock_forking, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&lock_forker, 0, __ATOMIC_RELAXED);
}

#if defined(SNUG_DEBUG)

/* How many locks of each rank the thread holds. */
static __thread uint16_t held[RANK_COUNT] __attribute__((tls_model("initial-exec")));
/* The forking thread holds all locks of a rank at once, taken in the order of their addresses. */
static __thread bool many_allowed __attribute__((tls_model("initial-exec")));

void lock_rank_enter(const struct lock *lock)
{
    if (!many_allowed)
        for (unsigned rank = lock->rank; rank < RANK_COUNT; rank++)
            CHECK(held[rank] == 0);
    held[lock->rank]++;
}

void lock_rank_note(const struct lock *lock)
{
    held[lock->rank]++;
}

void lock_rank_leave(const struct lock *lock)
{
    CHECK(held[lock->rank] > 0);
    held[lock->rank]--;
}

void lock_rank_allow_many(bool allowed)
{
    many_allowed = allowed;
}

void lock_rank_forget(void)
{
    for (unsigned rank = 0; rank < RANK_COUNT; rank++)
        held[rank] = 0;
}

#endif
