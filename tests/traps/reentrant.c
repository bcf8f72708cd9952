/*
 * reentrant.c - trap 3: a preloadable library, as profilers and sandboxes are, that wraps the
 * system functions a malloc may use. Its wrappers look up the real function with dlsym and
 * allocate with calloc, from inside of whatever called them: perhaps from inside of the very first
 * malloc of the process.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static int calls;

EXPORT int reentrant_calls(void)
{
    return __atomic_load_n(&calls, __ATOMIC_RELAXED);
}

/* Allocates, writes and frees; but not from inside of itself, which no allocator could end. */
static void allocate_something(void)
{
    static __thread int depth __attribute__((tls_model("initial-exec")));
    if (depth > 0)
        return;
    depth++;
    __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
    char *record = calloc(1, 200);
    if (record == NULL || record[0] != 0 || record[199] != 0)
        abort();
    memset(record, 0x77, 200);
    free(record);
    depth--;
}

/* The next definition of a name. A name that is missing makes dlsym allocate its message. */
static void *next(const char *name)
{
    (void)dlsym(RTLD_NEXT, "a name that nobody defines");
    void *found = dlsym(RTLD_NEXT, name);
    if (found == NULL)
        abort();
    allocate_something();
    return found;
}

#define NEXT(name) ((__typeof__(&(name)))(cached != NULL ? cached : (cached = next(#name))))

EXPORT void *mmap(void *start, size_t length, int protection, int flags, int file, off_t offset)
{
    static void *cached;
    void *(*real)(void *, size_t, int, int, int, off_t) = NEXT(mmap);
    allocate_something();
    return real(start, length, protection, flags, file, offset);
}

EXPORT void *mmap64(void *start, size_t length, int protection, int flags, int file, off64_t offset)
{
    static void *cached;
    void *(*real)(void *, size_t, int, int, int, off64_t) = NEXT(mmap64);
    allocate_something();
    return real(start, length, protection, flags, file, offset);
}

EXPORT int munmap(void *start, size_t length)
{
    static void *cached;
    int (*real)(void *, size_t) = NEXT(munmap);
    allocate_something();
    return real(start, length);
}

EXPORT int madvise(void *start, size_t length, int advice)
{
    static void *cached;
    int (*real)(void *, size_t, int) = NEXT(madvise);
    allocate_something();
    return real(start, length, advice);
}

EXPORT int mprotect(void *start, size_t length, int protection)
{
    static void *cached;
    int (*real)(void *, size_t, int) = NEXT(mprotect);
    allocate_something();
    return real(start, length, protection);
}

static unsigned int creation_mode(int flags, va_list arguments)
{
    return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, unsigned int) : 0;
}

#define DEFINE_OPEN(name) \
    EXPORT int name(const char *path, int flags, ...) \
    { \
        static void *cached; \
        int (*real)(const char *, int, ...) = NEXT(name); \
        va_list arguments; \
        va_start(arguments, flags); \
        unsigned int mode = creation_mode(flags, arguments); \
        va_end(arguments); \
        allocate_something(); \
        return real(path, flags, mode); \
    }
DEFINE_OPEN(open)
DEFINE_OPEN(open64)

#define DEFINE_OPENAT(name) \
    EXPORT int name(int directory, const char *path, int flags, ...) \
    { \
        static void *cached; \
        int (*real)(int, const char *, int, ...) = NEXT(name); \
        va_list arguments; \
        va_start(arguments, flags); \
        unsigned int mode = creation_mode(flags, arguments); \
        va_end(arguments); \
        allocate_something(); \
        return real(directory, path, flags, mode); \
    }
DEFINE_OPENAT(openat)
DEFINE_OPENAT(openat64)

EXPORT ssize_t read(int file, void *buffer, size_t length)
{
    static void *cached;
    ssize_t (*real)(int, void *, size_t) = NEXT(read);
    allocate_something();
    return real(file, buffer, length);
}

EXPORT ssize_t write(int file, const void *buffer, size_t length)
{
    static void *cached;
    ssize_t (*real)(int, const void *, size_t) = NEXT(write);
    allocate_something();
    return real(file, buffer, length);
}

EXPORT long sysconf(int name)
{
    static void *cached;
    long (*real)(int) = NEXT(sysconf);
    allocate_something();
    return real(name);
}

EXPORT int dl_iterate_phdr(int (*callback)(struct dl_phdr_info *, size_t, void *), void *data)
{
    static void *cached;
    int (*real)(int (*)(struct dl_phdr_info *, size_t, void *), void *) = NEXT(dl_iterate_phdr);
    allocate_something();
    return real(callback, data);
}

EXPORT int clock_gettime(clockid_t clock, struct timespec *now)
{
    static void *cached;
    int (*real)(clockid_t, struct timespec *) = NEXT(clock_gettime);
    allocate_something();
    return real(clock, now);
}

EXPORT int fstat(int file, struct stat *status)
{
    static void *cached;
    int (*real)(int, struct stat *) = NEXT(fstat);
    allocate_something();
    return real(file, status);
}

EXPORT int sigaction(int number, const struct sigaction *action, struct sigaction *before)
{
    static void *cached;
    int (*real)(int, const struct sigaction *, struct sigaction *) = NEXT(sigaction);
    allocate_something();
    return real(number, action, before);
}

EXPORT int pthread_sigmask(int how, const sigset_t *mask, sigset_t *before)
{
    static void *cached;
    int (*real)(int, const sigset_t *, sigset_t *) = NEXT(pthread_sigmask);
    allocate_something();
    return real(how, mask, before);
}

EXPORT int pthread_setspecific(pthread_key_t key, const void *value)
{
    static void *cached;
    int (*real)(pthread_key_t, const void *) = NEXT(pthread_setspecific);
    allocate_something();
    return real(key, value);
}

EXPORT int dladdr(const void *address, Dl_info *info)
{
    static void *cached;
    int (*real)(const void *, Dl_info *) = NEXT(dladdr);
    allocate_something();
    return real(address, info);
}
