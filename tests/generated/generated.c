/*
 * generated.c - a program that a seed makes: which sizes, calls, writes, lifetimes and threads.
 *
 * usage: generated SEED [plan]
 *
 * Prints one line of figures, or with `plan` what the program would do. Figures are resident KiB
 * without the program's own tables: the peak, the most between phases, and when everything has been
 * free for a while; page faults that needed no reading; milliseconds by the clock and of the
 * processors, both without the pauses. compare.py runs it under two allocators.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "worker.h"

enum { WATCHDOG_SECONDS = 120, MOST_KEPT = 4096 };

static struct plan plan;
static struct worker workers[MOST_THREADS];
static pthread_barrier_t barrier; /* all workers and main, before and after each phase */
static size_t own_bytes;          /* of tables */

struct figures {
    size_t between_kib, end_kib;
    double elapsed_ms, cpu_ms;
};

/* Present already, so that no page fault of ours is left for later. */
static void *own_memory(size_t bytes)
{
    bytes = (bytes + PLAN_PAGE - 1) / PLAN_PAGE * PLAN_PAGE;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    CHECK(memory != MAP_FAILED);
    CHECK(madvise(memory, bytes, MADV_NOHUGEPAGE) == 0 || errno == EINVAL);
    own_bytes += bytes;
    return memory;
}

static double milliseconds(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

static void make_workers(void)
{
    uint32_t most = 0;
    for (unsigned i = 0; i < plan.phase_count; i++)
        if (plan.phases[i].blocks > most)
            most = plan.phases[i].blocks;
    for (unsigned i = 0; i < plan.threads; i++) {
        struct worker *worker = &workers[i];
        worker->index = i;
        worker->threads = plan.threads;
        worker->random = (plan.seed * MOST_THREADS + i + 1) * 0x9e3779b97f4a7c15ULL | 1;
        worker->slots = own_memory(most * sizeof *worker->slots);
        worker->inbox.blocks = own_memory(most * sizeof *worker->inbox.blocks);
        worker->kept = own_memory(MOST_KEPT * sizeof *worker->kept);
        worker->most_kept = MOST_KEPT;
        worker->next = &workers[(i + 1) % plan.threads];
    }
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    for (unsigned i = 0; i < plan.phase_count; i++) {
        pthread_barrier_wait(&barrier);
        worker_run(worker, &plan.phases[i]);
        pthread_barrier_wait(&barrier);
        worker_drain(worker);
        pthread_barrier_wait(&barrier);
    }
    pthread_barrier_wait(&barrier);
    return NULL;
}

static size_t resident_without_tables(void)
{
    return resident_kib() - own_bytes / 1024;
}

static size_t peak_kib(void)
{
    char text[4096];
    FILE *file = fopen("/proc/self/status", "re");
    CHECK(file != NULL);
    setvbuf(file, text, _IOFBF, sizeof text);
    size_t kib = 0;
    for (char line[256]; fgets(line, sizeof line, file) != NULL;)
        if (strncmp(line, "VmHWM:", 6) == 0)
            kib = strtoul(line + 6, NULL, 10);
    fclose(file);
    CHECK(kib > own_bytes / 1024);
    return kib - own_bytes / 1024;
}

static void pause_ms(unsigned ms)
{
    struct timespec time = {ms / 1000, (long)(ms % 1000) * 1000000};
    nanosleep(&time, NULL);
}

/* One phase of all workers, and the pause after it. */
static void run_phase(const struct phase *phase, struct figures *figures)
{
    for (unsigned i = 0; i < plan.threads; i++) {
        workers[i].inbox.capacity = phase->blocks;
        atomic_store(&workers[i].inbox.put, 0);
        atomic_store(&workers[i].inbox.taken, 0);
        atomic_store(&workers[i].produces, true);
    }
    double start = milliseconds(CLOCK_MONOTONIC);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    figures->elapsed_ms += milliseconds(CLOCK_MONOTONIC) - start;
    pause_ms(phase->sleep_ms);
    size_t kib = resident_without_tables();
    if (kib > figures->between_kib)
        figures->between_kib = kib;
}

/* Present if snug is the malloc. The system's knows no time: what it keeps it keeps. */
extern int snug_check(void) __attribute__((weak));

/* Waits until kept memory has had its time (docs/decisions/0004-giving-back.md: 64 MiB may be kept
 * for a second, more for longer, and what was only reserved counts, too) while the program does a
 * little.
 */
static void settle(void)
{
    enum { STEP_MS = 20, MOST_MS = 12000, LITTLE_KIB = 6 << 10, KIB_A_MS = 8, SOME_BYTES = 300000 };
    size_t ms = 100 + resident_without_tables() / KIB_A_MS;
    for (size_t passed = 0; passed < (ms < MOST_MS ? ms : MOST_MS); passed += STEP_MS) {
        if (resident_without_tables() < LITTLE_KIB)
            return;
        pause_ms(STEP_MS);
        free(opaque(malloc(SOME_BYTES)));
    }
}

static void join_all(const pthread_t *threads)
{
    pthread_barrier_wait(&barrier);
    for (unsigned i = 0; i < plan.threads; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

static void run(struct figures *figures)
{
    pthread_t threads[MOST_THREADS];
    CHECK(pthread_barrier_init(&barrier, NULL, plan.threads + 1) == 0);
    for (unsigned i = 0; i < plan.threads; i++)
        CHECK(pthread_create(&threads[i], NULL, work, &workers[i]) == 0);
    for (unsigned i = 0; i < plan.phase_count; i++)
        run_phase(&plan.phases[i], figures);
    double start = milliseconds(CLOCK_MONOTONIC);
    if (!plan.threads_wait)
        join_all(threads);
    for (unsigned i = 0; i < plan.threads; i++)
        worker_end(&workers[i]);
    figures->elapsed_ms += milliseconds(CLOCK_MONOTONIC) - start;
    figures->cpu_ms = milliseconds(CLOCK_PROCESS_CPUTIME_ID);
    if (snug_check != NULL)
        settle();
    figures->end_kib = resident_without_tables();
    if (plan.threads_wait)
        join_all(threads);
}

int main(int argc, char **argv)
{
    char *end = NULL;
    uint64_t seed = argc > 1 ? strtoull(argv[1], &end, 10) : 0;
    bool only_plan = argc == 3 && strcmp(argv[2], "plan") == 0;
    if (argc < 2 || argc > 3 || end == argv[1] || *end != '\0' || (argc == 3 && !only_plan)) {
        fprintf(stderr, "usage: %s SEED [plan]\n", argv[0]);
        return 2;
    }
    test_begin(WATCHDOG_SECONDS);
    plan_make(&plan, seed);
    if (only_plan) {
        plan_print(&plan);
        return 0;
    }
    make_workers();
    struct figures figures = {0, 0, 0, 0};
    run(&figures);
    struct rusage usage;
    CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
    uint64_t takes = 0;
    for (unsigned i = 0; i < plan.threads; i++)
        takes += workers[i].takes;
    printf("seed=%llu takes=%llu peak_kib=%zu between_kib=%zu end_kib=%zu faults=%ld "
           "elapsed_ms=%.1f cpu_ms=%.1f\n",
           (unsigned long long)seed, (unsigned long long)takes, peak_kib(), figures.between_kib,
           figures.end_kib, usage.ru_minflt, figures.elapsed_ms, figures.cpu_ms);
    return test_end();
}
