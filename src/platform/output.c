/*
 * Text to a file descriptor. See output.h.
 */
#include "platform/output.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include "platform/syscall.h"

/* Bytes: of a line that os_print writes; callers cut what may be longer, so that its end stays. */
enum { LINE_MOST = 1024 };

void text_init(struct text *text, char *buffer, size_t capacity)
{
    text->buffer = buffer;
    text->capacity = capacity;
    text->length = 0;
}

void text_add_bytes(struct text *text, const char *bytes, size_t count)
{
    count = size_min(count, text->capacity - text->length);
    memcpy(text->buffer + text->length, bytes, count);
    text->length += count;
}

void text_add(struct text *text, const char *string)
{
    text_add_bytes(text, string, strlen(string));
}

static size_t format_number(char digits[20], uint64_t number, unsigned base)
{
    char *end = digits + 20;
    char *at = end;
    do {
        *--at = "0123456789abcdef"[number % base];
        number /= base;
    } while (number != 0);
    size_t count = (size_t)(end - at);
    memmove(digits, at, count);
    return count;
}

void text_add_decimal(struct text *text, uint64_t number)
{
    text_add_column(text, number, 0);
}

void text_add_column(struct text *text, uint64_t number, unsigned width)
{
    char digits[20];
    size_t count = format_number(digits, number, 10);
    while (width > count) {
        text_add_bytes(text, " ", 1);
        width--;
    }
    text_add_bytes(text, digits, count);
}

void text_add_hex(struct text *text, uintptr_t number)
{
    char digits[20];
    size_t count = format_number(digits, number, 16);
    text_add_bytes(text, "0x", 2);
    text_add_bytes(text, digits, count);
}

void text_pad(struct text *text, size_t column)
{
    size_t line = text->length;
    while (line > 0 && text->buffer[line - 1] != '\n')
        line--;
    while (text->length - line < column && text->length < text->capacity)
        text_add_bytes(text, " ", 1);
}

void text_align_right(struct text *text, size_t from, size_t width)
{
    size_t count = text->length - from;
    size_t blanks = size_min(width - size_min(width, count), text->capacity - text->length);
    memmove(text->buffer + from + blanks, text->buffer + from, count);
    memset(text->buffer + from, ' ', blanks);
    text->length += blanks;
}

static void print(struct text *text, const char *format, va_list arguments)
{
    for (;;) {
        size_t plain = strcspn(format, "%"), width = 0, most = SIZE_MAX;
        text_add_bytes(text, format, plain);
        format += plain;
        if (*format++ == 0)
            return;
        size_t from = text->length;
        for (; *format >= '0' && *format <= '9'; format++)
            width = 10 * width + (size_t)(*format - '0');
        if (*format == '.') {
            most = (size_t)va_arg(arguments, int);
            format += 2;
        }
        if (*format == 's') {
            const char *string = va_arg(arguments, const char *);
            text_add_bytes(text, string, strnlen(string, most));
        } else if (*format == 'z') {
            text_add_decimal(text, va_arg(arguments, size_t));
            format++;
        } else if (*format == '#') {
            text_add_hex(text, va_arg(arguments, size_t));
            format += 2;
        } else {
            text_add_bytes(text, "%", 1);
        }
        format++;
        text_align_right(text, from, width);
    }
}

void text_print(struct text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print(text, format, arguments);
    va_end(arguments);
}

void os_print(int descriptor, const char *format, ...)
{
    char buffer[LINE_MOST];
    struct text text;
    va_list arguments;
    text_init(&text, buffer, sizeof(buffer));
    va_start(arguments, format);
    print(&text, format, arguments);
    va_end(arguments);
    text_write(&text, descriptor);
}

/* ---- Whose descriptor 2 is ---- */

enum {
    ERRORS_UNKNOWN, /* not noted yet: the program had no time to change it */
    ERRORS_USUAL,
    ERRORS_CLOSED,
    ERRORS_IN_DATA, /* a file of data, as whoever started the process wanted it */
};

/* relaxed, everywhere: it is written once, mostly before the program's own code runs. A thread that
 * sees it late writes as if nothing had been noted. */
static uint8_t errors;

/* Whether a descriptor leads to a file of data: one with a name that is open for reading and
 * writing, and not for appending. No log looks like that, and a file that catches a program's
 * output has mostly no name. Whether the file can be mapped for writing says most of this, by calls
 * that every sandbox leaves to malloc. */
static bool leads_to_data(int descriptor)
{
    enum { LEAST = 1 }; /* a byte stands for a page */
    struct stat status;
    long start = syscall6(SYS_mmap, 0, LEAST, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (is_error(start))
        return false;
    syscall3(SYS_munmap, start, LEAST, 0);
    return (syscall3(SYS_fcntl, descriptor, F_GETFL, 0) & O_APPEND) == 0 &&
           fstat(descriptor, &status) == 0 && status.st_nlink != 0;
}

AT_START void os_errors_note(void)
{
    long flags = syscall3(SYS_fcntl, 2, F_GETFL, 0);
    uint8_t found = ERRORS_USUAL;
    if (flags == -EBADF)
        found = ERRORS_CLOSED;
    else if (flags >= 0 && (flags & O_ACCMODE) == O_RDWR && leads_to_data(2))
        found = ERRORS_IN_DATA;
    __atomic_store_n(&errors, found, __ATOMIC_RELAXED);
}

/* Programs close the standard streams, and get the same numbers for files of their own. */
static bool is_theirs(int descriptor)
{
    uint8_t found = __atomic_load_n(&errors, __ATOMIC_RELAXED);
    return descriptor == 2 &&
           (found == ERRORS_CLOSED || (found == ERRORS_USUAL && leads_to_data(descriptor)));
}

bool os_write(int descriptor, const char *bytes, size_t count)
{
    if (is_theirs(descriptor))
        return false;
    while (count != 0) {
        long written = syscall3(SYS_write, descriptor, (long)bytes, (long)count);
        if (written == -EINTR)
            continue;
        if (written <= 0)
            return false;
        bytes += written;
        count -= (size_t)written;
    }
    return true;
}

bool text_write(const struct text *text, int descriptor)
{
    return os_write(descriptor, text->buffer, text->length);
}

int os_behind_streams(int file)
{
    enum { STREAMS = 3 };
    if (file < 0 || file >= STREAMS)
        return file;
    long other = syscall3(SYS_fcntl, file, F_DUPFD_CLOEXEC, STREAMS);
    os_close(file);
    return (int)other;
}

int os_open_output(const char *path)
{
    int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_APPEND | O_NONBLOCK | O_NOCTTY;
    int file =
        os_behind_streams((int)syscall6(SYS_openat, AT_FDCWD, (long)path, flags, 0666, 0, 0));
    if (file >= 0)
        syscall3(SYS_fcntl, file, F_SETFL, O_APPEND); /* from here on, waiting is right */
    return file;
}

void os_lock_output(int descriptor, unsigned milliseconds)
{
    enum { EXCLUSIVE_NOW = 2 | 4 }; /* flock(2): LOCK_EX | LOCK_NB */
    for (; syscall3(SYS_flock, descriptor, EXCLUSIVE_NOW, 0) == -EAGAIN && milliseconds != 0;
         milliseconds--)
        os_rest();
}

void os_cut_output(int descriptor)
{
    syscall3(SYS_ftruncate, descriptor, 0, 0);
}

bool os_output_is_empty(int descriptor)
{
    struct stat status;
    return fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) && status.st_size == 0;
}

bool os_empty_file(const char *path)
{
    long result = syscall3(SYS_truncate, (long)path, 0, 0);
    return result == 0 || result == -ENOENT;
}

void os_rest(void)
{
    const struct timespec millisecond = {.tv_nsec = 1000000};
    syscall3(SYS_nanosleep, (long)&millisecond, 0, 0);
}

bool os_identify(int descriptor, struct os_identity *identity)
{
    struct stat status;
    if (fstat(descriptor, &status) != 0)
        return false;
    identity->device = status.st_dev;
    identity->file = status.st_ino;
    return true;
}

void os_close(int descriptor)
{
    syscall1(SYS_close, descriptor);
}

int os_duplicate(int descriptor)
{
    /* From 700 up: below the usual limit of 1,024, above what programs take for themselves. */
    long copy = syscall3(SYS_fcntl, descriptor, F_DUPFD_CLOEXEC, 700);
    if (copy == -EINVAL) /* the limit is lower */
        copy = syscall3(SYS_fcntl, descriptor, F_DUPFD_CLOEXEC, 3);
    return (int)copy;
}

_Noreturn void os_abort(void)
{
    abort();
}

void os_trap(void)
{
    syscall3(SYS_tgkill, syscall1(SYS_getpid, 0), syscall1(SYS_gettid, 0), SIGTRAP);
}

int os_process_id(void)
{
    return (int)syscall1(SYS_getpid, 0);
}
