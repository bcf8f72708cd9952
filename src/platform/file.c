/*
 * Files on Linux. See file.h.
 */
#include "platform/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "platform/memory.h"
#include "platform/output.h"
#include "platform/signal.h"
#include "platform/syscall.h"

/* How many names are tried before a directory is given up. */
enum { NAMES_MOST = 1000 };

static long file_open(const char *path, int flags)
{
    return os_behind_streams(
        (int)syscall6(SYS_openat, AT_FDCWD, (long)path, flags | O_CLOEXEC, 0600, 0, 0));
}

/* ---- New files ---- */

/* Makes a file, and removes its name: only the descriptor leads to it then. O_EXCL refuses a name
 * that is taken, be it by a link that leads nowhere, and leaves what is there alone. */
static long file_open_new(const char *path)
{
    struct os_signals signals;
    os_signals_block(&signals); /* a signal that kills would leave the name */
    long result = file_open(path, O_RDWR | O_CREAT | O_EXCL);
    if (result >= 0)
        syscall3(SYS_unlinkat, AT_FDCWD, (long)path, 0);
    os_signals_unblock(&signals);
    return result;
}

/* The same by a name that is not taken: `stem`, the separator, the process id and a number. If the
 * separator is empty, `stem` alone is tried first. */
static long file_open_numbered(const char *stem, const char *separator)
{
    char buffer[OS_PATH_MOST];
    long result = -ENAMETOOLONG;
    for (unsigned number = 0; number < NAMES_MOST; number++) {
        struct text name;
        text_init(&name, buffer, sizeof(buffer) - 1);
        text_add(&name, stem);
        if (*separator != 0 || number != 0)
            text_print(&name, "%s%zu.%zu", *separator != 0 ? separator : ".",
                       (size_t)os_process_id(), (size_t)number);
        if (name.length + 1 >= name.capacity)
            return -ENAMETOOLONG;
        buffer[name.length] = 0;
        result = file_open_new(buffer);
        if (result != -EEXIST)
            return result;
    }
    return result;
}

/* Reserves blocks where there is no fallocate, by writing zeros. */
static long file_fill(int descriptor, size_t bytes)
{
    BULKY static char zeros[4 * 1024]; /* not const: those would be in the library's file */
    for (size_t place = 0; place < bytes; place += sizeof(zeros))
        if (!os_file_write(descriptor, zeros, size_min(sizeof(zeros), bytes - place), place))
            return -ENOSPC;
    return 0;
}

/* Whether RLIMIT_FSIZE allows a file of that size. It is asked first, since going over it raises a
 * signal. */
static bool file_size_allowed(size_t bytes)
{
    struct rlimit limit = {0};
    return syscall6(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, (long)&limit, 0, 0) < 0 ||
           limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur;
}

int os_file_new(const char *directory, const char *path, size_t bytes)
{
    long file;
    if (!file_size_allowed(bytes))
        return -EFBIG;
    if (path != NULL) {
        file = file_open_numbered(path, "");
    } else {
        file = file_open(directory, O_RDWR | O_TMPFILE);
        /* What filesystems and kernels answer that do not know files without a name. */
        if (file == -EOPNOTSUPP || file == -EISDIR || file == -EINVAL)
            file = file_open_numbered(directory, "/snug.");
    }
    if (file < 0)
        return (int)file;
    long error;
    do
        error = syscall6(SYS_fallocate, file, 0, 0, (long)bytes, 0, 0);
    while (error == -EINTR); /* as it is for any signal, on some file systems */
    if (error == -EOPNOTSUPP || error == -ENOSYS)
        error = file_fill((int)file, bytes);
    if (error < 0) {
        os_close((int)file);
        return (int)error;
    }
    return (int)file;
}

void *os_file_map(int descriptor, void *at, size_t bytes)
{
    OS_COUNT(mmap, bytes);
    long result = syscall6(SYS_mmap, (long)at, (long)bytes, PROT_READ | PROT_WRITE,
                           MAP_SHARED | (at != NULL ? MAP_FIXED : 0), descriptor, 0);
    return is_error(result) ? NULL : (void *)result;
}

bool os_file_write(int descriptor, const char *bytes, size_t count, size_t place)
{
    while (count != 0) {
        long written =
            syscall6(SYS_pwrite64, descriptor, (long)bytes, (long)count, (long)place, 0, 0);
        if (written == -EINTR)
            continue;
        if (written <= 0)
            return false;
        bytes += written;
        place += (size_t)written;
        count -= (size_t)written;
    }
    return true;
}

long os_file_read(const char *path, char *buffer, size_t capacity)
{
    long file = file_open(path, O_RDONLY);
    if (file < 0)
        return file;
    size_t length = 0;
    while (length + 1 < capacity) {
        long got = syscall3(SYS_read, file, (long)(buffer + length), (long)(capacity - 1 - length));
        if (got == -EINTR)
            continue;
        if (got <= 0)
            break;
        length += (size_t)got;
    }
    buffer[length] = 0;
    os_close((int)file);
    return (long)length;
}

/* Source: pagemap, in the kernel's documentation: a word for each page. */
bool os_is_shared(uintptr_t address)
{
    enum { FILE_OR_SHARED = 61 };
    uint64_t word = 0;
    long place = (long)(address / os_page_size() * sizeof(word));
    long file = file_open("/proc/self/pagemap", O_RDONLY);
    if (file < 0)
        return false;
    long got = syscall6(SYS_pread64, file, (long)&word, sizeof(word), place, 0, 0);
    os_close((int)file);
    return got == sizeof(word) && (word >> FILE_OR_SHARED & 1) != 0;
}

const int os_error_memory = ENOMEM;

const char *os_error_text(int error)
{
    switch (error) {
    case ENOENT:
        return "there is no such directory";
    case EISDIR:
        return "that is a directory";
    case ENXIO:
        return "nobody reads from it";
    case ENOTDIR:
        return "that is no directory";
    case EACCES:
    case EPERM:
        return "permission denied";
    case EROFS:
        return "the file system is read-only";
    case ENOSPC:
        return "the disk is full";
    case EDQUOT:
        return "the disk quota is used up";
    case EFBIG:
        return "the file would be too large";
    case EMFILE:
    case ENFILE:
        return "too many open files";
    case ENAMETOOLONG:
        return "the name is too long";
    case ENOMEM:
        return "it cannot be mapped";
    default:
        return "the system refuses";
    }
}
