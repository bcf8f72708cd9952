/*
 * check.c - the functions of check.h. Nothing here allocates, so it can be used in the middle of
 * whatever an allocator is being put through.
 */
#include "check.h"

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Present if snug is linked or preloaded, NULL otherwise. */
extern int snug_check(void) __attribute__((weak));
extern const char *snug_version(void) __attribute__((weak));
extern void snug_free(void *block) __attribute__((weak));

static void print_line(const char *file, int line, const char *format, va_list arguments)
{
    char text[512];
    int used = snprintf(text, sizeof text, "%s:%d: ", file, line);
    if (used < 0)
        used = 0;
    int more = vsnprintf(text + used, sizeof text - (size_t)used - 1, format, arguments);
    if (more > 0)
        used += more;
    if (used > (int)sizeof text - 2)
        used = (int)sizeof text - 2;
    text[used++] = '\n';
    ssize_t ignored = write(STDERR_FILENO, text, (size_t)used);
    (void)ignored;
}

void check_failed(const char *file, int line, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_line(file, line, format, arguments);
    va_end(arguments);
    _exit(1);
}

static void watchdog(int signal_number)
{
    (void)signal_number;
    static const char text[] = "watchdog: the test did not end in time\n";
    ssize_t ignored = write(STDERR_FILENO, text, sizeof text - 1);
    (void)ignored;
    _exit(1);
}

void test_begin(unsigned seconds)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = watchdog;
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    /* A processor that is played is so many times slower. */
    const char *slower = getenv("SNUG_TEST_SLOWER");
    if (slower != NULL)
        seconds *= (unsigned)atoi(slower);
    alarm(test_full() ? seconds * 10 : seconds);
    if (getenv("SNUG_TEST_EXPECT") == NULL)
        return;
    CHECK(snug_version != NULL && snug_free != NULL && snug_check != NULL);
    snug_free(opaque(malloc(opaque_size(100)))); /* aborts unless malloc is snug's too */
}

unsigned child_seconds(unsigned seconds)
{
    const char *value = getenv("TEST_WATCHDOG");
    return value == NULL ? seconds : (unsigned)strtoul(value, NULL, 10);
}

int test_end(void)
{
    check_heap();
    return 0;
}

void test_skip(const char *reason)
{
    dprintf(STDOUT_FILENO, "skipped: %s\n", reason);
    _exit(TEST_SKIPPED);
}

bool test_full(void)
{
    const char *value = getenv("SNUG_TEST_FULL");
    return value != NULL && strcmp(value, "1") == 0;
}

size_t test_scale(size_t small, size_t full)
{
    return test_full() ? full : small;
}

void check_heap(void)
{
    if (snug_check != NULL)
        CHECK(snug_check() == 0);
}

size_t resident_kib(void)
{
    char text[8192];
    /* smaps_rollup walks the page tables; the counters in status may lag by some 64 pages a CPU. */
    int file = open("/proc/self/smaps_rollup", O_RDONLY | O_CLOEXEC);
    CHECK(file >= 0);
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    CHECK(length > 0);
    text[length] = '\0';
    const char *line = strstr(text, "\nRss:");
    CHECK(line != NULL);
    return strtoul(line + strlen("\nRss:"), NULL, 10);
}

void check_child(int pid, const char *what)
{
    int status = 0;
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK_MSG(!WIFSIGNALED(status), "%s: killed by signal %d", what, WTERMSIG(status));
    CHECK_MSG(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s: exit status %d", what,
              WEXITSTATUS(status));
}

/* ---- Patterns -------------------------------------------------------------------------------- */

enum { WHOLE = 8 * 1024, STRIDE = 512 };

static uint64_t pattern_word(size_t offset, uint64_t seed)
{
    uint64_t x = (offset + 1) * 0x9e3779b97f4a7c15ULL ^ seed * 0xd1b54a32d192ed03ULL;
    return x ^ (x >> 29);
}

/* The offset of the next word that carries the pattern. */
static size_t pattern_step(size_t offset, size_t size)
{
    bool at_an_end = offset < WHOLE / 2 || size - offset <= WHOLE / 2;
    return offset + (size <= WHOLE || at_an_end ? sizeof(uint64_t) : STRIDE);
}

void pattern_fill(void *block, size_t size, uint64_t seed)
{
    unsigned char *bytes = block;
    size_t offset = 0;
    while (offset + sizeof(uint64_t) <= size) {
        uint64_t word = pattern_word(offset, seed);
        memcpy(bytes + offset, &word, sizeof word);
        offset = pattern_step(offset, size);
    }
    for (; offset < size; offset++)
        bytes[offset] = (unsigned char)pattern_word(offset, seed);
}

bool pattern_holds(const void *block, size_t size, size_t kept, uint64_t seed)
{
    const unsigned char *bytes = block;
    if (kept > size)
        kept = size;
    size_t offset = 0;
    while (offset + sizeof(uint64_t) <= size && offset < kept) {
        uint64_t word = pattern_word(offset, seed);
        size_t length = kept - offset < sizeof word ? kept - offset : sizeof word;
        if (memcmp(bytes + offset, &word, length) != 0)
            return false;
        offset = pattern_step(offset, size);
    }
    for (; offset < kept; offset++)
        if (bytes[offset] != (unsigned char)pattern_word(offset, seed))
            return false;
    return true;
}

bool all_zero(const void *block, size_t size)
{
    const unsigned char *bytes = block;
    return size == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0);
}
