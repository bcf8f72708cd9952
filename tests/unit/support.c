/*
 * Capturing output and the ends of processes for the unit tests. See support.h.
 */
#include "support.h"

#include <limits.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "options/options.h"

static struct options defaults;
static int real_stderr = -1;
static int captured;

/* The options as they are before anything has read the environment: 101 is the first of priorities,
 * and the library's own constructor comes later. */
__attribute__((constructor(101))) static void options_keep_defaults(void)
{
    defaults = options;
}

int options_reset(void **state)
{
    (void)state;
    options = defaults;
    if (real_stderr >= 0) /* a test failed before it restored it */
        stderr_restore();
    return 0;
}

/* ---- What is written ---- */

int text_file(void)
{
    int file = memfd_create("text", MFD_CLOEXEC);
    assert_true(file >= 0);
    return file;
}

static void read_text(int file, char *text)
{
    size_t length = 0;
    ssize_t got;
    while ((got = pread(file, text + length, TEXT_MOST - 1 - length, (off_t)length)) > 0)
        length += (size_t)got;
    text[length] = 0;
}

const char *text_written(int file)
{
    static char text[TEXT_MOST];
    read_text(file, text);
    return text;
}

void stderr_capture(void)
{
    assert_int_equal(real_stderr, -1);
    fflush(stderr);
    captured = text_file();
    real_stderr = dup(2);
    assert_true(real_stderr >= 0);
    assert_int_equal(dup2(captured, 2), 2);
}

const char *stderr_restore(void)
{
    dup2(real_stderr, 2);
    close(real_stderr);
    real_stderr = -1;
    const char *text = text_written(captured);
    close(captured);
    return text;
}

void assert_contains(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("\"%s\" does not contain \"%s\"", text, part);
}

size_t count_of(const char *text, const char *part)
{
    size_t count = 0;
    for (const char *at = text; (at = strstr(at, part)) != NULL; at += strlen(part))
        count++;
    return count;
}

/* ---- What ends the process ---- */

int child_status(void (*body)(void *argument), void *argument, char *said)
{
    int file = text_file();
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct rlimit no_core = {0, 0};
        setrlimit(RLIMIT_CORE, &no_core);
        dup2(file, 2);
        alarm(60);
        body(argument);
        _exit(0);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    read_text(file, said);
    close(file);
    return status;
}

void assert_aborts(void (*body)(void *argument), void *argument, const char *part)
{
    char said[TEXT_MOST];
    int status = child_status(body, argument, said);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT)
        fail_msg("it should abort, but its status is %#x; it says \"%s\"", (unsigned)status, said);
    assert_contains(said, part);
}

void assert_succeeds(void (*body)(void *argument), void *argument)
{
    char said[TEXT_MOST];
    int status = child_status(body, argument, said);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fail_msg("its status is %#x; it says \"%s\"", (unsigned)status, said);
}

_Noreturn void child_failed(const char *file, int line, const char *condition)
{
    dprintf(2, "%s:%d: %s does not hold\n", file, line, condition);
    _exit(1);
}

/* ---- Planted faults ---- */

void assert_said(const char *found, const char *expected, const char *planted)
{
    if (found == NULL)
        fail_msg("with %s nothing is found", planted);
    if (strstr(found, expected) == NULL)
        fail_msg("with %s it says \"%s\", not \"%s\"", planted, found, expected);
}

void assert_that_failed(const char *file, int line, const char *condition, const char *format, ...)
{
    char detail[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(detail, sizeof(detail), format, arguments);
    va_end(arguments);
    print_error("%s: %s\n", condition, detail);
    _fail(file, line);
}

/* ---- What a test needs of the kernel ---- */

static unsigned needs_missed;

void need_note(const char *reason)
{
    needs_missed++;
    printf("SKIP: %s\n", reason);
}

int needs_end(int failed)
{
    return failed == 0 && needs_missed != 0 ? TEST_SKIPPED : failed;
}

bool kernel_refuses_advice(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *start = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bool refuses = madvise(start, page, INT_MAX) != 0;
    munmap(start, page);
    return refuses;
}

bool kernel_filters_calls(void)
{
    uint32_t action = SECCOMP_RET_ERRNO;
    return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}
