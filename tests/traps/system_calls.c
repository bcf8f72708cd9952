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
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

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

enum { FILTER_MOST = 160 };
static struct sock_filter program[FILTER_MOST];
static unsigned short program_length;

static void add(struct sock_filter statement)
{
    CHECK(program_length < FILTER_MOST);
    program[program_length++] = statement;
}

static void add_load(size_t offset)
{
    add((struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)offset));
}

static void add_jump(unsigned short how, uintptr_t with, unsigned char yes, unsigned char no)
{
    add((struct sock_filter)BPF_JUMP(BPF_JMP | how | BPF_K, (unsigned)with, yes, no));
}

static void add_answer(unsigned answer)
{
    add((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, answer));
}

static void allow(int number)
{
    add_jump(BPF_JEQ, (uintptr_t)number, 0, 1);
    add_answer(SECCOMP_RET_ALLOW);
}

static void write_filter(void)
{
    size_t where = offsetof(struct seccomp_data, instruction_pointer), high = 4;
    add_load(offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < KNOWN; i++)
        if (by_library[i])
            allow(known[i].number);
    add_load(where + high); /* the library's own code goes no further */
    add_jump(BPF_JEQ, text_start >> 32, 0, 4);
    add_load(where);
    add_jump(BPF_JGE, text_start & UINT32_MAX, 0, 2);
    add_jump(BPF_JGE, text_end & UINT32_MAX, 1, 0);
    add_answer(SECCOMP_RET_TRAP);
    add_load(offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < KNOWN; i++)
        if (by_libc[i])
            allow(known[i].number);
    static const int of_program[] = {SYS_write, SYS_exit_group, SYS_wait4};
    for (size_t i = 0; i < sizeof of_program / sizeof *of_program; i++)
        allow(of_program[i]);
    add_answer(SECCOMP_RET_TRAP);
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
    struct sock_fprog filter = {program_length, program};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        test_skip("no_new_privs is not to be had");
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) != 0)
        test_skip("seccomp filters are not to be had");
}

/* ---- The load -------------------------------------------------------------------------------- */

enum { BLOCKS = 1500, ROUNDS = 2, THREADS = 2 };

static size_t size_of(size_t i, uint64_t *random)
{
    if (i % 500 == 0)
        return 1000000 + random_next(random) % 8000000;
    if (i % 20 == 0)
        return 10000 + random_next(random) % 200000;
    return 1 + random_next(random) % 2000;
}

static void *take(size_t i, size_t size)
{
    if (i % 3 == 0)
        return opaque(aligned_alloc(64, (size + 63) / 64 * 64));
    return i % 4 == 0 ? opaque(calloc(size, 1)) : opaque(malloc(size));
}

static void resize_large_block(void)
{
    size_t size = 1 << 20;
    char *block = opaque(malloc(size));
    for (size_t next = 2 * size; next < (size_t)16 << 20; next *= 2) {
        CHECK((block = opaque(realloc(block, next))) != NULL);
        block[next - 1] = 1;
    }
    CHECK((block = opaque(realloc(block, size))) != NULL);
    free(block);
}

static void *work(void *argument)
{
    uint64_t random = (uintptr_t)argument + 1;
    struct block {
        unsigned char *start;
        size_t size;
    } *blocks = opaque(calloc(BLOCKS, sizeof *blocks));
    CHECK(blocks != NULL);
    for (size_t round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < BLOCKS; i++) {
            struct block *block = &blocks[(i * 7919 + round) % BLOCKS];
            CHECK(block->start == NULL || block->start[block->size - 1] == 7);
            free(block->start);
            block->size = size_of(i, &random);
            block->start = take(i, block->size);
            CHECK(block->start != NULL);
            memset(block->start, 7, block->size);
        }
        resize_large_block();
        (void)malloc_trim(0);
    }
    for (size_t i = 0; i < BLOCKS; i++)
        free(blocks[i].start);
    free(blocks);
    return NULL;
}

static void work_in_threads(void)
{
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, work, (void *)(i + 1)) == 0);
    work(NULL);
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

static void work_in_child(void)
{
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        work(NULL);
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
        work_in_threads();
        work_in_child();
    } else {
        work(NULL);
    }
    check_heap();
    _exit(0);
}
