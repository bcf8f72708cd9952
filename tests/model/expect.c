/*
 * Expectations, the watchdog and the other things that need the system. See expect.h.
 */
#include "expect.h"

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#if defined(__has_feature)
#define HAS_FEATURE(name) __has_feature(name)
#else
#define HAS_FEATURE(name) 0
#endif

#if defined(__SANITIZE_THREAD__) || HAS_FEATURE(thread_sanitizer)
#define SLOWER 16
#define SANITIZED true
#elif defined(__SANITIZE_ADDRESS__) || HAS_FEATURE(address_sanitizer)
#define SLOWER 5
#define SANITIZED true
#elif defined(SNUG_DEBUG)
#define SLOWER 4
#define SANITIZED false
#else
#define SLOWER 1
#define SANITIZED false
#endif

/* How much longer a full run is. */
enum { FULL = 80 };

void (*fail_context)(char *text, size_t capacity);

void fail(const char *file, int line, const char *format, ...)
{
    char what[512];
    char where[256] = "";
    char text[1024];
    const char *name = strrchr(file, '/');
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof(what), format, arguments);
    va_end(arguments);
    if (fail_context != NULL)
        fail_context(where, sizeof(where));
    int length = snprintf(text, sizeof(text), "%s:%d: %s%s\n", name == NULL ? file : name + 1, line,
                          what, where);
    /* One call, so that the lines of several threads do not mix. */
    ssize_t written = write(STDERR_FILENO, text, (size_t)length);
    (void)written;
    _exit(1);
}

static void watchdog_bites(int number)
{
    static const char text[] = "watchdog: the test did not end in time\n";
    ssize_t written = write(STDERR_FILENO, text, sizeof(text) - 1);
    (void)written, (void)number;
    _exit(1);
}

unsigned watchdog_seconds(unsigned seconds)
{
    const char *value = getenv("TEST_WATCHDOG");
    if (value != NULL)
        return (unsigned)strtoul(value, NULL, 10);
    return test_full() ? seconds * FULL : seconds;
}

void watchdog_start(unsigned seconds)
{
    struct sigaction action;
    memset(&action, 0, sizeof(action));
    action.sa_handler = watchdog_bites;
    sigaction(SIGALRM, &action, NULL);
    alarm(watchdog_seconds(seconds));
}

bool test_full(void)
{
    const char *value = getenv("SNUG_TEST_FULL");
    return value != NULL && strcmp(value, "1") == 0;
}

size_t scaled(size_t count)
{
    count = count * (test_full() ? FULL : 1) / SLOWER;
    return count == 0 ? 1 : count;
}

bool sanitized(void)
{
    return SANITIZED;
}

size_t resident_bytes(void)
{
    char text[4096];
    /* The counters of /proc/self/statm lag behind by up to 64 pages for each processor. */
    int file = open("/proc/self/smaps_rollup", O_RDONLY | O_CLOEXEC);
    EXPECT(file >= 0, "/proc/self/smaps_rollup cannot be opened");
    ssize_t length = read(file, text, sizeof(text) - 1);
    close(file);
    EXPECT(length > 0, "/proc/self/smaps_rollup cannot be read");
    text[length] = 0;
    const char *line = strstr(text, "\nRss:");
    EXPECT(line != NULL, "/proc/self/smaps_rollup has no line Rss");
    return strtoul(line + strlen("\nRss:"), NULL, 10) * 1024;
}

double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}
