/*
 * fragmented.c - threads that fill memory on a machine whose free memory is in pieces.
 *
 * usage: fragmented PERCENT THREADS MIB LARGEST [ROUNDS]
 *
 * It imitates a server that is started on a machine that has run for some hours. A helper process
 * fills PERCENT % of the free memory with small pages, gives every other 64 KiB of it back, and
 * stays until the program ends: so the kernel has to move pages about for each huge one. Then each
 * of THREADS fills MIB MiB with blocks of 1 to LARGEST bytes, written in full, and frees them in
 * order; ROUNDS times, 1 unless given. With 0 % there is no helper. What is free in one piece and
 * not in the PERCENT is what huge pages are cheap in; it should be less than the threads take.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>

#include "workload.h"

enum { MOST_THREADS = 64, PIECE = 64 << 10, KEEP_KIB = 512 << 10, KIB = 1024 };

static size_t bytes_each;
static uint32_t largest;
static long rounds = 1;

/* ---- The helper ------------------------------------------------------------------------------ */

/* Takes the memory and gives half of it back. The kernel may be asked for all that is free, but
 * half a gigabyte: others live here, too. */
static void fill_machine(long percent)
{
    long free_kib = kib_from_proc("/proc/meminfo", "MemFree:");
    long kib = free_kib / 100 * percent;
    if (kib > free_kib - KEEP_KIB)
        kib = free_kib - KEEP_KIB;
    if (kib <= 0)
        return;
    size_t bytes = (size_t)kib * KIB / PIECE * PIECE;
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        die("mmap");
    madvise(memory, bytes,
            MADV_NOHUGEPAGE); /* a kernel without huge pages refuses, and needs not */
    for (size_t at = 0; at < bytes; at += 4096)
        memory[at] = 1;
    for (size_t at = 0; at < bytes; at += 2 * (size_t)PIECE)
        if (madvise(memory + at, PIECE, MADV_DONTNEED) != 0)
            die("madvise");
}

/* Returns when the machine is as it should be. The helper ends with this process. */
static pid_t start_helper(long percent)
{
    int ready[2];
    char byte = 0;
    if (pipe(ready) != 0)
        die("pipe");
    pid_t parent = getpid(), helper = fork();
    if (helper < 0)
        die("fork");
    if (helper == 0) {
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
            _exit(1);
        fill_machine(percent);
        if (write(ready[1], &byte, 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    close(ready[1]);
    if (read(ready[0], &byte, 1) != 1) {
        fprintf(stderr, "the helper ended\n");
        exit(1);
    }
    close(ready[0]);
    return helper;
}

/* ---- The threads ----------------------------------------------------------------------------- */

/* Blocks of a thread are in a list, through their first words. */
struct link {
    struct link *next;
};

static uint64_t fill_once(unsigned slot, uint64_t *state)
{
    struct link *first = NULL, **last = &first;
    uint64_t blocks = 0;
    size_t filled = 0;
    while (filled < bytes_each) {
        size_t size = random_between(state, 1, largest);
        if (size < sizeof(struct link))
            size = sizeof(struct link);
        struct link *block = malloc(size);
        if (block == NULL)
            die("malloc");
        memset(block, 1, size);
        *last = block;
        last = &block->next;
        filled += size;
        blocks++;
    }
    *last = NULL;
    meter_set(slot, (int64_t)filled);
    while (first != NULL) {
        struct link *next = first->next;
        free(first);
        first = next;
    }
    meter_set(slot, 0);
    return blocks;
}

static void *work(void *argument)
{
    unsigned slot = (unsigned)(uintptr_t)argument;
    uint64_t state = 0x9e3779b97f4a7c15u + slot, blocks = 0;
    for (long i = 0; i < rounds; i++)
        blocks += fill_once(slot, &state);
    return (void *)(uintptr_t)blocks;
}

int main(int argc, char **argv)
{
    if (argc < 5 || argc > 6) {
        fprintf(stderr, "usage: %s PERCENT THREADS MIB LARGEST [ROUNDS]\n", argv[0]);
        return 2;
    }
    long percent = number_argument(argv[1], 0, 100);
    long threads = number_argument(argv[2], 1, MOST_THREADS);
    bytes_each = (size_t)number_argument(argv[3], 1, 1 << 20) << 20;
    largest = (uint32_t)number_argument(argv[4], 8, 1 << 20);
    rounds = argc == 6 ? number_argument(argv[5], 1, 1000) : 1;
    pid_t helper = percent > 0 ? start_helper(percent) : 0;

    pthread_t ids[MOST_THREADS];
    uint64_t blocks = 0, start = now_ns();
    for (long i = 0; i < threads; i++)
        if (pthread_create(&ids[i], NULL, work, (void *)(uintptr_t)i) != 0)
            die("pthread_create");
    for (long i = 0; i < threads; i++) {
        void *result;
        pthread_join(ids[i], &result);
        blocks += (uintptr_t)result;
    }
    uint64_t end = now_ns();
    if (helper > 0)
        kill(helper, SIGKILL);
    print_figures(blocks, (double)(end - start) / (double)blocks);
    return 0;
}
