/*
 * Reading /proc. See process.h.
 */
#include "platform/process.h"

#include <fcntl.h>
#include <string.h>

#include "platform/memory.h"
#include "platform/output.h"
#include "platform/syscall.h"

/* Bytes and entries that are read at a time: small enough for a signal handler's own stack, which
 * may have 8 KiB in all. LINE_MOST: no line that is looked for is longer. */
enum { PIECE = 512, ENTRIES = 128, LINE_MOST = 64 };

static int proc_open(int process, const char *name)
{
    char path[64];
    struct text text;
    text_init(&text, path, sizeof(path) - 1);
    if (process == 0)
        text_print(&text, "/proc/self/%s", name);
    else
        text_print(&text, "/proc/%zu/%s", (size_t)process, name);
    path[text.length] = 0;
    return (int)syscall6(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
}

/* The beginning of a file, with a 0 behind it. */
static bool proc_read(int process, const char *name, char text[PIECE])
{
    int descriptor = proc_open(process, name);
    if (descriptor < 0)
        return false;
    long bytes = syscall3(SYS_read, descriptor, (long)text, PIECE - 1);
    os_close(descriptor);
    text[bytes < 0 ? 0 : bytes] = 0;
    return bytes > 0;
}

static const char *skip_to_digit(const char *at)
{
    while (*at != 0 && (*at < '0' || *at > '9'))
        at++;
    return at;
}

static uint64_t number_at(const char *at)
{
    uint64_t number = 0;
    for (at = skip_to_digit(at); *at >= '0' && *at <= '9'; at++)
        number = number * 10 + (uint64_t)(*at - '0');
    return number;
}

/* The end of a text that may be the beginning of a line that is looked for. */
static const char *last_line(const char *text, size_t length)
{
    const char *line = strrchr(text, '\n');
    return line == NULL || text + length - line > LINE_MOST ? text + length : line;
}

/* The bytes in a line "\nName:   123 kB" of a file, however long other lines are (that of a user's
 * groups). False: there is none. */
static bool proc_line(int process, const char *file, const char *name, uint64_t *bytes)
{
    char text[PIECE];
    size_t length = 0;
    long got;
    const char *line = NULL;
    int descriptor = proc_open(process, file);
    if (descriptor < 0)
        return false;
    while (line == NULL && (got = syscall3(SYS_read, descriptor, (long)(text + length),
                                           (long)(PIECE - 1 - length))) > 0) {
        length += (size_t)got;
        text[length] = 0;
        line = strstr(text, name);
        if (line != NULL && strchr(line + 1, '\n') != NULL)
            break;
        line = NULL;
        const char *rest = last_line(text, length);
        length -= (size_t)(rest - text);
        memmove(text, rest, length);
    }
    os_close(descriptor);
    if (line != NULL)
        *bytes = number_at(line + strlen(name)) * KIB;
    return line != NULL;
}

/* The field of /proc/PID/stat with this number, counted as in proc(5), from the third on. The
 * second, the name, may contain anything, so counting begins behind its last parenthesis. */
static uint64_t stat_field(const char *text, unsigned field)
{
    const char *at = strrchr(text, ')');
    for (unsigned i = 2; at != NULL && i < field; i++)
        at = strchr(at + 1, ' ');
    return at == NULL ? 0 : number_at(at);
}

bool os_process_usage(int process, bool exact, struct os_usage *usage)
{
    char text[PIECE];
    if (!proc_read(process, "stat", text))
        return false;
    usage->minor_faults = stat_field(text, 10);
    usage->major_faults = stat_field(text, 12);
    usage->resident = stat_field(text, 24) * os_kernel_page_size();
    usage->resident_peak = usage->resident;
    proc_line(process, "status", "\nVmHWM:", &usage->resident_peak);
    if (exact)
        proc_line(process, "smaps_rollup", "\nRss:", &usage->resident);
    return true;
}

int os_pagemap_open(int process)
{
    return proc_open(process, "pagemap");
}

bool os_pagemap_resident(int pagemap, uintptr_t start, size_t bytes, uint64_t *resident)
{
    uint64_t entries[ENTRIES]; /* one for each page; the highest bit says whether it is there */
    size_t page = os_kernel_page_size();
    size_t pages = bytes / page;
    long offset = (long)(start / page * sizeof(uint64_t));
    *resident = 0;
    while (pages != 0) {
        size_t wanted = size_min(pages, ENTRIES);
        long got = syscall6(SYS_pread64, pagemap, (long)entries, (long)(wanted * sizeof(uint64_t)),
                            offset, 0, 0);
        if (got != (long)(wanted * sizeof(uint64_t)))
            return false;
        for (size_t i = 0; i < wanted; i++)
            *resident += (entries[i] >> 63) * page;
        pages -= wanted;
        offset += got;
    }
    return true;
}
