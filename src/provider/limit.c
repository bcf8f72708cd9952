/*
 * The limit of the process. See limit.h.
 *
 * A control group's limit is read again every second at most, when memory is taken: a container's
 * limit may be changed while it runs.
 */
#include "provider/limit.h"

#include <string.h>

#include "base/backoff.h"
#include "base/peek.h"
#include "options/options.h"
#include "platform/clock.h"
#include "platform/file.h"
#include "platform/memory.h"
#include "platform/output.h"

static size_t used;
static size_t address_limit = SIZE_MAX;
static size_t group_limit = SIZE_MAX;
static uint64_t group_read; /* when, by os_clock; 0: never */

/* ---- Control groups ---- */

static size_t parse_limit(const char *text)
{
    size_t number = 0;
    if (*text < '0' || *text > '9')
        return SIZE_MAX; /* "max" */
    for (; *text >= '0' && *text <= '9'; text++)
        if (__builtin_mul_overflow(number, (size_t)10, &number) ||
            __builtin_add_overflow(number, (size_t)(*text - '0'), &number))
            return SIZE_MAX;
    return number;
}

static size_t read_limit(const char *root, const char *middle, const char *path, size_t length,
                         const char *file)
{
    char name[OS_PATH_MOST], content[32];
    struct text text;
    text_init(&text, name, sizeof(name) - 1);
    text_print(&text, "%s%s%.*s%s", root, middle, (int)length, path, file);
    name[text.length] = 0;
    return os_file_read(name, content, sizeof(content)) < 0 ? SIZE_MAX : parse_limit(content);
}

/* The least limit of a group and of all around it. */
static size_t least_limit(const char *root, const char *middle, const char *path, const char *file)
{
    size_t least = SIZE_MAX;
    for (size_t length = strcspn(path, "\n");;) {
        least = size_min(least, read_limit(root, middle, path, length, file));
        if (length == 0)
            return least;
        do
            length--;
        while (length != 0 && path[length] != '/');
    }
}

size_t limit_of_cgroup(const char *membership, const char *root)
{
    char groups[OS_PATH_MOST];
    size_t least = SIZE_MAX;
    if (os_file_read(membership, groups, sizeof(groups)) < 0)
        return 0;
    for (const char *line = groups; *line != 0;) {
        const char *controllers = strchr(line, ':');
        const char *path = controllers == NULL ? NULL : strchr(controllers + 1, ':');
        if (path == NULL)
            break;
        if (path == controllers + 1)
            least = size_min(least, least_limit(root, "", path + 1, "/memory.max"));
        else if (strncmp(controllers, ":memory:", 8) == 0)
            least =
                size_min(least, least_limit(root, "/memory", path + 1, "/memory.limit_in_bytes"));
        line = path + strcspn(path, "\n");
        line += *line == '\n';
    }
    return least;
}

/* The limit of the control group. relaxed, here and below: two threads that read the files at once
 * read the same. */
static size_t group_limit_now(void)
{
    uint64_t now = os_clock() | 1;
    uint64_t read = __atomic_load_n(&group_read, __ATOMIC_RELAXED);
    if (read == 0 || now - read > ASK_AGAIN) {
        size_t limit = limit_of_cgroup("/proc/self/cgroup", "/sys/fs/cgroup");
        if (limit != SIZE_MAX)
            limit -= limit / ONE_OF_MANY; /* for stacks, code and the kernel's own memory */
        if (limit != 0) /* in a sandbox without open, what was known before it holds */
            __atomic_store_n(&group_limit, limit, __ATOMIC_RELAXED);
        __atomic_store_n(&group_read, now, __ATOMIC_RELAXED);
    }
    return __atomic_load_n(&group_limit, __ATOMIC_RELAXED);
}

/* ---- Counting ---- */

size_t limit_bytes(void)
{
    if (options.limit == LIMIT_NONE)
        return SIZE_MAX;
    return options.limit == LIMIT_CGROUP ? group_limit_now() : options.limit;
}

AT_START void limit_begin(void)
{
    address_limit = os_address_limit();
}

bool limit_is_known(void)
{
    return size_min(limit_bytes(), address_limit) != SIZE_MAX;
}

size_t limit_used(void)
{
    return __atomic_load_n(&used, __ATOMIC_RELAXED);
}

bool limit_take(size_t bytes)
{
    size_t sum;
    return gauge_change_within(&used, bytes, limit_bytes(), &sum);
}

void limit_give(size_t bytes)
{
    __atomic_sub_fetch(&used, bytes, __ATOMIC_RELAXED);
}
