/*
 * process.c - attaches a process to the recording, and says which one it is.
 *
 * The first slot of a process is of kind SLOT_START and holds
 *     u32 pid   u32 number of the process that forked it, or 0
 * and then, each ended by a NUL, the path of the program and its arguments, cut if they are long.
 */
#include "process.h"

#include "slots.h"
#include "stream.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

enum { NAME_LIMIT = 4096 };

static _Atomic uint32_t word_before_start = UINT32_MAX; /* PROCESS_OFF */
_Atomic uint32_t *process_word = &word_before_start;

static uint32_t parent; /* the number of this process; in a child, still that of its parent */

static void set_number(uint32_t number)
{
    atomic_store_explicit(process_word, number, memory_order_relaxed);
}

void process_stop(void)
{
    set_number(PROCESS_OFF);
}

/* Appends what /proc/self has, and a NUL. Returns where to go on. */
static uint8_t *write_name(uint8_t *at)
{
    ssize_t length = readlink("/proc/self/exe", (char *)at, NAME_LIMIT);
    at += length > 0 ? length : 0;
    *at++ = '\0';
    int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return at;
    length = read(file, at, NAME_LIMIT);
    close(file);
    return at + (length > 0 ? length : 0);
}

/* Whether this process is to be recorded: all are, or the first, also after it called exec. */
static bool is_wanted(void)
{
    if (slots_region->children != 0)
        return true;
    uint32_t nobody = 0, own = (uint32_t)getpid();
    return atomic_compare_exchange_strong(&slots_region->first_pid, &nobody, own) || nobody == own;
}

/* Gives the process a number and sends its first slot. */
static uint32_t introduce(uint32_t forked_from)
{
    struct region_slot *slot;
    if (!is_wanted() || slots_take(&slot) != SLOTS_TAKEN)
        return PROCESS_OFF;
    uint32_t number =
        atomic_fetch_add_explicit(&slots_region->processes, 1, memory_order_relaxed) + 1;
    slot->process = number;
    slot->thread = 0;
    slot->kind = SLOT_START;
    slot->ticket = 0;
    slot->time = stream_time();
    uint32_t pid = (uint32_t)getpid();
    memcpy(slot->data, &pid, sizeof pid);
    memcpy(slot->data + sizeof pid, &forked_from, sizeof forked_from);
    uint8_t *end = write_name(slot->data + sizeof pid + sizeof forked_from);
    atomic_store_explicit(&slot->used, (uint32_t)(end - slot->data), memory_order_release);
    slots_submit(slot);
    return number;
}

uint32_t process_after_fork(void)
{
    stream_forget_threads();
    parent = introduce(parent);
    set_number(parent);
    return parent;
}

static void forget_number(void)
{
    set_number(PROCESS_UNKNOWN);
}

static const char *find_variable(char **environment, const char *name)
{
    size_t length = strlen(name);
    for (; environment != NULL && *environment != NULL; environment++)
        if (strncmp(*environment, name, length) == 0 && (*environment)[length] == '=')
            return *environment + length + 1;
    return NULL;
}

static bool is_own_namespace(const char *name)
{
    char own[64];
    ssize_t length = readlink("/proc/self/ns/pid", own, sizeof own);
    return length > 0 && strlen(name) == (size_t)length && memcmp(own, name, (size_t)length) == 0;
}

/* Says that this process is not recorded though it should be. Nothing is said of one that outlives
 * the recording. By hand, as stdio may allocate. */
static void say_unrecorded(const char *namespace, int error)
{
    if (error == ENOENT && is_own_namespace(namespace))
        return;
    char digits[16], *first = digits + sizeof digits;
    for (unsigned pid = (unsigned)getpid(); first == digits + sizeof digits || pid > 0; pid /= 10)
        *--first = (char)('0' + pid % 10);
    static const char begin[] = "snug record: process ";
    static const char end[] =
        " is not recorded: it cannot open the memory that it would share with snug\n";
    char line[sizeof begin + sizeof digits + sizeof end], *at = line;
    at = mempcpy(at, begin, sizeof begin - 1);
    at = mempcpy(at, first, (size_t)(digits + sizeof digits - first));
    at = mempcpy(at, end, sizeof end - 1);
    if (write(STDERR_FILENO, line, (size_t)(at - line)) < 0)
        return; /* it has no stderr */
}

/* glibc hands every constructor the program's arguments and environment, and calls this one, which
 * asks to be first, before it sets environ itself. Others pass nothing. */
__attribute__((constructor)) static void process_start(int count, char **arguments,
                                                       char **environment)
{
    (void)count, (void)arguments;
#ifndef __GLIBC__
    environment = environ;
#endif
    /* Nobody may have a process with more rights than his own open a file. */
    const char *path =
        getauxval(AT_SECURE) != 0 ? NULL : find_variable(environment, REGION_VARIABLE);
    if (path == NULL)
        return;
    if (!slots_attach(path)) {
        int error = errno;
        const char *namespace = find_variable(environment, REGION_NAMESPACE_VARIABLE);
        if (namespace != NULL)
            say_unrecorded(namespace, error);
        return;
    }
    if (!stream_start())
        return;
    void *page = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return;
    /* Both: the kernel does it for every kind of fork, but qemu-user, for one, only says so. */
    bool wiped = madvise(page, (size_t)sysconf(_SC_PAGESIZE), MADV_WIPEONFORK) == 0;
    bool called = pthread_atfork(NULL, NULL, forget_number) == 0;
    if (!wiped && !called)
        return;
    parent = introduce(0);
    process_word = page;
    set_number(parent);
}
