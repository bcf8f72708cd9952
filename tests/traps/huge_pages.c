/*
 * huge_pages.c - huge pages do not make a small program large: a hundred threads, each with a
 * little live memory, need hardly more of it than without huge pages.
 *
 *   huge_pages             runs itself with several amounts of memory for each thread, with the
 *                          options that it was given and with SNUG_HUGE_PAGES=never
 *   huge_pages hold KIB    the threads take so much each; prints the KiB that are resident
 *   huge_pages declined    of a heap that is small no mapping may have huge pages, also where the
 *                          system gives them to all that do not decline
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { THREADS = 100, RUNS = 3, LINE = 512 };

#define STACK_BYTES ((size_t)256 * 1024)

static pthread_barrier_t barrier;
static size_t bytes_each;
static void *example; /* one of the blocks */

static void *hold(void *argument)
{
    uint64_t random = (uintptr_t)argument + 1;
    for (size_t live = 0; live < bytes_each;) {
        size_t size = 16 + random_next(&random) % 497;
        void *block = opaque(malloc(size));
        CHECK(block != NULL);
        memset(block, 1, size);
        __atomic_store_n(&example, block, __ATOMIC_RELAXED);
        live += size;
    }
    pthread_barrier_wait(&barrier); /* all have what they want */
    pthread_barrier_wait(&barrier); /* it was looked at */
    return NULL;
}

static void with_threads(size_t kib, void (*look)(void))
{
    pthread_t threads[THREADS];
    pthread_attr_t attributes;
    bytes_each = kib * 1024;
    pthread_barrier_init(&barrier, NULL, THREADS + 1);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    for (size_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], &attributes, hold, (void *)i) == 0);
    pthread_barrier_wait(&barrier);
    look();
    pthread_barrier_wait(&barrier);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

/* ---- How much is resident -------------------------------------------------------------------- */

static void print_resident(void)
{
    printf("%zu\n", resident_kib());
    fflush(stdout);
}

/* The median of some runs, for what threads touch differs a little from one to the next. */
static size_t held_kib(const char *program, size_t kib, const char *setting)
{
    size_t results[RUNS];
    for (size_t run = 0; run < RUNS; run++) {
        char command[1024];
        snprintf(command, sizeof command, "%s '%s' hold %zu", setting, program, kib);
        FILE *output = popen(command, "re");
        CHECK(output != NULL);
        CHECK(fscanf(output, "%zu", &results[run]) == 1);
        CHECK(pclose(output) == 0);
    }
    size_t low = results[0] < results[1] ? results[0] : results[1];
    size_t high = results[0] < results[1] ? results[1] : results[0];
    return results[2] < low ? low : results[2] > high ? high : results[2];
}

static void compare(const char *program)
{
    static const size_t amounts[] = {16, 100, 160, 300};
    for (size_t i = 0; i < sizeof amounts / sizeof *amounts; i++) {
        size_t without = held_kib(program, amounts[i], "SNUG_HUGE_PAGES=never");
        size_t with = held_kib(program, amounts[i], "");
        if (with * 10 > without * 11)
            check_failed(__FILE__, __LINE__,
                         "%zu KiB each: %zu KiB resident, %zu without huge pages", amounts[i], with,
                         without);
    }
}

/* ---- What the mappings say ------------------------------------------------------------------- */

/* In /proc/self/smaps the flags of a mapping follow its addresses; nh: no huge pages. */
static void see_flags(void)
{
    FILE *file = fopen("/proc/self/smaps", "re");
    CHECK(file != NULL);
    char line[LINE];
    bool here = false, seen = false;
    while (fgets(line, sizeof line, file) != NULL) {
        uintptr_t start, end;
        if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
            here = (uintptr_t)example >= start && (uintptr_t)example < end;
        if (here && strncmp(line, "VmFlags:", 8) == 0) {
            seen = true;
            if (strstr(line, " nh") == NULL)
                check_failed(__FILE__, __LINE__, "a small heap does not decline huge pages: %s",
                             line);
        }
    }
    fclose(file);
    CHECK(seen);
}

int main(int argc, char **argv)
{
    alarm(120);
    if (access("/sys/kernel/mm/transparent_hugepage/enabled", R_OK) != 0) {
        puts("skipped: the kernel has no transparent huge pages");
        return TEST_SKIPPED;
    }
    if (argc == 1)
        compare(argv[0]);
    else if (strcmp(argv[1], "hold") == 0 && argc == 3)
        with_threads(strtoul(argv[2], NULL, 10), print_resident);
    else if (strcmp(argv[1], "declined") == 0)
        with_threads(50, see_flags);
    else
        check_failed(__FILE__, __LINE__, "no such case: %s", argv[1]);
    return 0;
}
