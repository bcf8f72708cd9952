/*
 * system_calls.c - the system calls after the start are those of docs/system-calls.md, and no
 * others.
 *
 *   system_calls DOCUMENT COLUMN... [without CALL]
 *
 * The program reads the document's table, makes the heap, and installs a seccomp filter that kills
 * for any call that is in none of the columns. Those of the column "threads, fork" are libc's: the
 * filter looks where a call comes from, and the library's own code may not make them. Then it runs
 * blocks of all sizes, in threads and in a child of fork if that column is given, and trims.
 *
 * The filter is told by instruction pointer, as plain BPF; a call that is not allowed raises
 * SIGSYS, whose handler names it and ends the process, and if that is blocked the kernel does.
 *
 * Fault it finds: `without munmap`, a document with one call too few.
 */
#include <dlfcn.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "filter.h"
#include "load.h"

/* ---- The document ---------------------------------------------------------------------------- */

struct call {
    const char *name;
    int number;
};

#define CALL(name) {#name, SYS_##name}
static const struct call known[] = {
    CALL(mincore),
    CALL(mmap),
    CALL(munmap),
    CALL(madvise),
    CALL(mremap),
    CALL(futex),
    CALL(mprotect),
    CALL(clock_gettime),
    CALL(getcpu),
    CALL(gettid),
    CALL(rt_sigprocmask),
    CALL(rt_sigaction),
    CALL(clone),
    CALL(exit),
    CALL(openat),
    CALL(set_robust_list),
    CALL(unlinkat),
    CALL(fallocate),
    CALL(pwrite64),
    CALL(prlimit64),
    CALL(fcntl),
    CALL(close),
    CALL(getpid),
#if defined(SYS_process_madvise)
    CALL(process_madvise),
#endif
#if defined(SYS_clone3)
    CALL(clone3),
#endif
#if defined(SYS_rseq)
    CALL(rseq),
#endif
};
enum { KNOWN = sizeof known / sizeof *known, CELLS = 16, CELL = 600 };

/* Which of `known` the library makes, and libc for the program. */
static bool by_library[KNOWN], by_libc[KNOWN];

static const char libc_column[] = "threads, fork";

/* The cells of a line `| a | b |`, without the blanks around them. */
static size_t split(const char *line, char cells[CELLS][CELL])
{
    size_t count = 0;
    while (count < CELLS && line[0] == '|' && strchr(line + 1, '|') != NULL) {
        const char *end = strchr(++line, '|'), *last = end;
        while (*line == ' ' && line < last)
            line++;
        while (last > line && last[-1] == ' ')
            last--;
        CHECK(last - line < CELL);
        snprintf(cells[count++], CELL, "%.*s", (int)(last - line), line);
        line = end;
    }
    return count;
}

static void list_names(bool *list, const char *names, const char *without)
{
    char text[CELL];
    snprintf(text, sizeof text, "%s", names);
    for (char *rest = text, *name; (name = strtok_r(rest, "`, ", &rest)) != NULL;) {
        for (size_t i = 0; i < KNOWN; i++)
            if (strcmp(name, known[i].name) == 0 && strcmp(name, without) != 0)
                list[i] = true;
    }
}

/* Adds a column of the document to a list. */
static void read_column(const char *path, const char *column, bool *list, const char *without)
{
    static char line[4096], cells[CELLS][CELL];
    size_t at = 0, rows = 0;
    FILE *file = fopen(path, "r");
    CHECK_MSG(file != NULL, "%s", path);
    while (fgets(line, sizeof line, file) != NULL) {
        size_t count = split(line, cells);
        if (count > 0 && strcmp(cells[0], "Call") == 0)
            for (size_t i = 0; i < count; i++)
                at = strcmp(cells[i], column) == 0 ? i : at;
        if (at == 0 || count <= at || strcmp(cells[at], "yes") != 0)
            continue;
        list_names(list, cells[0], without);
        rows++;
    }
    fclose(file);
    CHECK_MSG(rows > 0, "%s has no column %s", path, column);
}

/* ---- The filter ------------------------------------------------------------------------------ */

static uintptr_t text_start, text_end;

static int find_text(struct dl_phdr_info *info, size_t size, void *argument)
{
    uintptr_t code = (uintptr_t)argument;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_LOAD && code >= start && code - start < part->p_memsz) {
            text_start = start;
            text_end = start + part->p_memsz;
            return 1;
        }
    }
    return 0;
}

static struct filter filter;

static void add_jump(unsigned short how, uintptr_t with, unsigned char yes, unsigned char no)
{
    filter_add(&filter,
               (struct sock_filter)BPF_JUMP(BPF_JMP | how | BPF_K, (unsigned)with, yes, no));
}

/* Lets what is in a list of the document pass. */
static void allow_known(const bool *list)
{
    for (size_t i = 0; i < KNOWN; i++)
        if (list[i])
            filter_calls(&filter, (const int[]){known[i].number, CALLS_END}, SECCOMP_RET_ALLOW);
}

static void write_filter(void)
{
    static const int of_program[] = {SYS_write, SYS_exit_group, SYS_wait4, CALLS_END};
    size_t where = offsetof(struct seccomp_data, instruction_pointer), high = 4;
    allow_known(by_library);
    filter_load(&filter, where + high); /* the library's own code goes no further */
    add_jump(BPF_JEQ, text_start >> 32, 0, 4);
    filter_load(&filter, where);
    add_jump(BPF_JGE, text_start & UINT32_MAX, 0, 2);
    add_jump(BPF_JGE, text_end & UINT32_MAX, 1, 0);
    filter_answer(&filter, SECCOMP_RET_TRAP);
    filter_load(&filter, offsetof(struct seccomp_data, nr));
    allow_known(by_libc);
    filter_calls(&filter, of_program, SECCOMP_RET_ALLOW);
    filter_answer(&filter, SECCOMP_RET_TRAP);
}

static void say_call(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)context;
    uintptr_t from = (uintptr_t)info->si_call_addr;
    const char *name = "another one";
    for (size_t i = 0; i < KNOWN; i++)
        if (known[i].number == info->si_syscall)
            name = known[i].name;
    check_failed(__FILE__, __LINE__, "system call %d (%s) %s is not in the list", info->si_syscall,
                 name, from >= text_start && from < text_end ? "of the library" : "of others");
}

static void install_filter(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = say_call;
    action.sa_flags = SA_SIGINFO;
    CHECK(sigaction(SIGSYS, &action, NULL) == 0);
    CHECK(dl_iterate_phdr(find_text, dlsym(RTLD_DEFAULT, "malloc")) == 1);
    if (text_start >> 32 != text_end >> 32)
        test_skip("the library's code lies across a border of 4 GiB");
    write_filter();
    filter_install(&filter, 0);
}

static void work_in_child(void)
{
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        load_mixed(NULL);
        _exit(0);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK_MSG(status == 0, "the child ended with %#x", (unsigned)status);
}

int main(int argc, char **argv)
{
    test_begin(60);
    const char *without = "";
    bool libc_too = false;
    if (argc > 3 && strcmp(argv[argc - 2], "without") == 0) {
        without = argv[argc - 1];
        argc -= 2;
    }
    for (int i = 2; i < argc; i++) {
        bool of_libc = strcmp(argv[i], libc_column) == 0;
        read_column(argv[1], argv[i], of_libc ? by_libc : by_library, of_libc ? "" : without);
        libc_too |= of_libc;
    }
    free(opaque(malloc(100)));
    install_filter();
    if (libc_too) {
        load_in_threads();
        work_in_child();
    } else {
        load_mixed(NULL);
    }
    check_heap();
    _exit(0);
}
