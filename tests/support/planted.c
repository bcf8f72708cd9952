/*
 * planted.c - a preloadable malloc with one planted fault, to show that the tests can fail.
 *
 * It passes everything on to glibc's malloc, and does one thing wrong: the one that PLANTED names.
 * Without PLANTED it is a faithful malloc. Each checker of the black-box tests is run over it with
 * the fault it exists for, and the run must fail with that checker's message (must_fail.sh). It
 * also has a thread-local variable of the dynamic model and exports its name, and so is the planted
 * fault of the export check as well.
 */
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *block, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);
extern void __libc_free(void *block);

#define EXPORT __attribute__((visibility("default")))

enum fault {
    NOT_KNOWN_YET,
    NONE,
    MISALIGNED,     /* every block is 8 bytes off a multiple of 16 */
    OVERLAPPING,    /* blocks of 100 bytes and more begin in the last 16 of the one before */
    DIRTY_CALLOC,   /* calloc does not clear */
    SHORT_REALLOC,  /* realloc keeps half of the contents */
    FREE_ERRNO,     /* free changes errno */
    FREE_MARKS,     /* free computes what is not exact */
    QUIET_FAILURE,  /* a failure does not set errno */
    ABORT_AT_LIMIT, /* a failure aborts */
    SHARED_ZERO,    /* malloc(0) always gives the same pointer */
    FORK_LOCK,      /* a lock that fork does not handle */
    THREAD_LEAK,    /* what a thread frees that is not the first is lost */
    INIT_LOCK,      /* a lock is held while the first call maps memory */
    SILENT_FREE,    /* free takes any pointer and does nothing */
    TWICE,          /* what was freed twice is handed out twice */
    LATE_FREE,      /* a second free is only noticed in the call after it */
    SLOW            /* each malloc counts to 5,000 first */
};

static const char *const fault_names[] = {
    "",
    "none",
    "misaligned",
    "overlapping",
    "dirty_calloc",
    "short_realloc",
    "free_errno",
    "free_marks",
    "quiet_failure",
    "abort_at_limit",
    "shared_zero",
    "fork_lock",
    "thread_leak",
    "init_lock",
    "silent_free",
    "twice",
    "late_free",
    "slow",
};

static enum fault planted;
/* For the export check only: each access goes through __tls_get_addr. */
EXPORT __thread int planted_thread_local;

static enum fault fault(void)
{
    if (planted != NOT_KNOWN_YET)
        return planted;
    enum fault found = NONE;
    const char *name = getenv("PLANTED");
    for (size_t i = NONE; name != NULL && i < sizeof fault_names / sizeof *fault_names; i++)
        if (strcmp(name, fault_names[i]) == 0)
            found = (enum fault)i;
    planted = found;
    return found;
}

/* ---- Locks ----------------------------------------------------------------------------------- */

static int lock_word;

static void lock(void)
{
    while (__atomic_exchange_n(&lock_word, 1, __ATOMIC_ACQUIRE) != 0)
        sched_yield();
}

static void unlock(void)
{
    __atomic_store_n(&lock_word, 0, __ATOMIC_RELEASE);
}

/* The first call maps a page through the interposable mmap, with the lock held. */
static void initialise(void)
{
    static int done;
    lock();
    if (!done) {
        void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (page != MAP_FAILED)
            munmap(page, 4096);
        done = 1;
    }
    unlock();
}

/* ---- The faults of allocation ---------------------------------------------------------------- */

static void *failed(void)
{
    if (fault() == ABORT_AT_LIMIT)
        abort();
    if (fault() == QUIET_FAILURE)
        errno = 0;
    return NULL;
}

static char shared_zero[16] __attribute__((aligned(16)));

static char region[1 << 20] __attribute__((aligned(16)));
static unsigned short region_sizes[sizeof region / 16];
static size_t region_used;

static bool in_region(const void *block)
{
    return (uintptr_t)block - (uintptr_t)region < sizeof region;
}

static void *overlapping(size_t size)
{
    if (region_used + size > sizeof region)
        region_used = 0;
    void *block = region + region_used;
    region_sizes[region_used / 16] = (unsigned short)size;
    region_used += ((size + 15) & ~(size_t)15) - 16;
    return block;
}

/* Blocks of at most this size wait in one list after free, however often they were freed. */
enum { TWICE_MAX = 64 };
static void *twice_list[1024];
static size_t twice_used;

/* Blocks that were freed; their memory is never used again, so that a second free is one for sure.
 */
static void *freed[1 << 16];
static void *freed_twice;

static void late_look(void)
{
    if (freed_twice == NULL)
        return;
    char text[100];
    int length = snprintf(text, sizeof text, "snug: double free: %p, a %zu-byte object\n",
                          freed_twice, malloc_usable_size(freed_twice));
    freed_twice = NULL;
    if (write(STDERR_FILENO, text, (size_t)length) == length && getenv("SNUG_MISUSE") == NULL)
        abort();
}

static void late_free(void *block)
{
    enum { SLOTS = sizeof freed / sizeof *freed };
    late_look();
    size_t slot = ((uintptr_t)block >> 4) * 0x9e3779b9u % SLOTS;
    while (freed[slot] != NULL && freed[slot] != block)
        slot = (slot + 1) % SLOTS;
    if (freed[slot] == block)
        freed_twice = block;
    freed[slot] = block;
}

static void waste_time(void)
{
    for (int i = 0; i < 5000; i++)
        __asm__ volatile(""); /* or the loop would go */
}

static void *allocate(size_t size)
{
    void *block = NULL;
    switch (fault()) {
    case MISALIGNED:
        if (size > PTRDIFF_MAX - 64)
            return failed();
        block = __libc_malloc(size + 16);
        return block == NULL ? failed() : (char *)block + 8;
    case OVERLAPPING:
        block = size < 100 || size > 1000 ? __libc_malloc(size) : overlapping(size);
        break;
    case SHARED_ZERO:
        block = size == 0 ? shared_zero : __libc_malloc(size);
        break;
    case FORK_LOCK:
        lock();
        block = __libc_malloc(size);
        unlock();
        break;
    case INIT_LOCK:
        initialise();
        block = __libc_malloc(size);
        break;
    case TWICE:
        if (size <= TWICE_MAX && twice_used > 0)
            return twice_list[--twice_used];
        block = __libc_malloc(size < TWICE_MAX ? TWICE_MAX : size);
        break;
    case LATE_FREE:
        lock();
        late_look();
        unlock();
        block = __libc_malloc(size);
        break;
    case SLOW:
        waste_time();
        block = __libc_malloc(size);
        break;
    default:
        block = __libc_malloc(size);
    }
    return block == NULL ? failed() : block;
}

EXPORT void *malloc(size_t size)
{
    planted_thread_local++;
    return allocate(size);
}

EXPORT void free(void *block)
{
    int before = errno;
    switch (fault()) {
    case MISALIGNED:
        __libc_free(block == NULL ? NULL : (char *)block - 8);
        break;
    case SHARED_ZERO:
        if (block != shared_zero)
            __libc_free(block);
        break;
    case OVERLAPPING:
        if (!in_region(block))
            __libc_free(block);
        break;
    case FREE_ERRNO:
        __libc_free(block);
        before = EAGAIN;
        break;
    case FREE_MARKS: {
        volatile double third = 3;
        third = 1 / third;
        __libc_free(block);
        break;
    }
    case FORK_LOCK:
        lock();
        __libc_free(block);
        unlock();
        break;
    case THREAD_LEAK:
        if (gettid() == getpid())
            __libc_free(block);
        break;
    case SILENT_FREE:
        break;
    case LATE_FREE:
        lock();
        late_free(block);
        unlock();
        break;
    case TWICE:
        if (block != NULL && twice_used < sizeof twice_list / sizeof *twice_list)
            twice_list[twice_used++] = block;
        break;
    default:
        __libc_free(block);
    }
    errno = before;
}

EXPORT size_t malloc_usable_size(void *block)
{
    static size_t (*next)(void *);
    if (next == NULL)
        next = (size_t (*)(void *))dlsym(RTLD_NEXT, "malloc_usable_size");
    if (block == NULL)
        return 0;
    if (fault() == MISALIGNED)
        return next((char *)block - 8) - 8;
    if (fault() == OVERLAPPING && in_region(block))
        return region_sizes[((char *)block - region) / 16];
    return next(block);
}

EXPORT void *calloc(size_t count, size_t size)
{
    size_t total = 0;
    if (__builtin_mul_overflow(count, size, &total)) {
        errno = ENOMEM;
        return failed();
    }
    void *block = allocate(total);
    if (block != NULL && fault() != DIRTY_CALLOC)
        memset(block, 0, total);
    return block;
}

EXPORT void *realloc(void *block, size_t size)
{
    if (block == NULL)
        return allocate(size);
    if (size == 0) {
        free(block);
        return NULL;
    }
    if (fault() != MISALIGNED && fault() != SHORT_REALLOC && fault() != TWICE &&
        fault() != OVERLAPPING) {
        void *moved = __libc_realloc(block, size);
        return moved == NULL ? failed() : moved;
    }
    size_t kept = malloc_usable_size(block);
    if (kept > size)
        kept = size;
    if (fault() == SHORT_REALLOC)
        kept /= 2;
    void *moved = allocate(size);
    if (moved == NULL)
        return NULL;
    memcpy(moved, block, kept);
    free(block);
    return moved;
}

EXPORT void *memalign(size_t alignment, size_t size)
{
    if (fault() == MISALIGNED)
        return allocate(size);
    void *block = __libc_memalign(alignment, size);
    return block == NULL ? failed() : block;
}

EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
    return memalign(alignment, size);
}

EXPORT int posix_memalign(void **result, size_t alignment, size_t size)
{
    if (alignment == 0 || alignment % sizeof(void *) != 0 || (alignment & (alignment - 1)) != 0)
        return EINVAL;
    int before = errno;
    void *block = memalign(alignment, size);
    if (block == NULL)
        return errno = ENOMEM;
    errno = before;
    *result = block;
    return 0;
}
