/*
 * limits.c - trap 9: the system has less to give than the program asks for. It gets NULL and
 * ENOMEM, never an abort, and goes on when it has freed something.
 *
 *   limits address-space   RLIMIT_AS of 512 MiB
 *   limits data            RLIMIT_DATA of 256 MiB, which private memory counts against
 *   limits threads         RLIMIT_AS is reached, and threads start and end
 *   limits pieces          RLIMIT_AS is reached by small blocks, and what is free in pieces between
 *                          them serves larger ones, though the system has no metadata for that
 *   limits mappings        all but a few of the mappings that vm.max_map_count allows are in use
 *   limits affinity        the CPUs that the threads may run on change all the while
 *   limits overcommit      where vm.overcommit_memory is 2 only; skipped elsewhere, since it is a
 *                          setting of the whole machine
 *
 * With "alone" behind it, each size has a process of its own: in a hardened heap the addresses of
 * one class are never those of another, so that what the first size has taken the next cannot have.
 *
 * Fault it finds (planted.c): abort_at_limit.
 */
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "check.h"

#define MIB ((size_t)1024 * 1024)

/* Blocks that are held, each of which says which is next: the limit leaves no room for a list. */
struct held {
    struct held *next;
    unsigned char rest[56];
};

/* ---- Until nothing is left ------------------------------------------------------------------- */

/* Takes blocks of `size` until there are no more, and puts them before `*list`; says how many. */
static size_t take_all(size_t size, struct held **list)
{
    size_t count = 0;
    for (;; count++) {
        errno = 0;
        struct held *block = opaque(malloc(size));
        if (block == NULL)
            break;
        memset(block, 1, sizeof *block);
        block->next = *list;
        *list = block;
        CHECK_MSG(count * size < 4096 * MIB, "size %zu: the limit does not hold", size);
    }
    CHECK_MSG(errno == ENOMEM, "size %zu: errno %d", size, errno);
    return count;
}

/* At the limit every function refuses, and nothing else happens. */
static void refuse_everything(struct held *block)
{
    size_t much = 600 * MIB;
    void *none = NULL;
    errno = 0;
    CHECK(opaque(calloc(much, 1)) == NULL && errno == ENOMEM);
    errno = 0;
    CHECK(opaque(aligned_alloc(MIB, much)) == NULL && errno == ENOMEM);
    CHECK(posix_memalign(&none, 4096, much) == ENOMEM && none == NULL);
    errno = 0;
    CHECK(opaque(realloc(block, much)) == NULL && errno == ENOMEM);
}

static void free_all(struct held **list)
{
    for (struct held *block = *list, *next = NULL; block != NULL; block = next) {
        next = block->next;
        CHECK(block->rest[55] == 1);
        errno = 55;
        free(block);
        CHECK(errno == 55);
    }
    *list = NULL;
}

static bool alone;

/* Calls `act` with a size, in a process of its own if that is asked for. */
static void with_size(void (*act)(size_t size, size_t least), size_t size, size_t least)
{
    if (!alone) {
        act(size, least);
        return;
    }
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        act(size, least);
        _exit(0);
    }
    check_child(child, "with a size of its own");
}

static void exhaust_by(size_t size, size_t least)
{
    struct held *list = NULL;
    size_t first = take_all(size, &list);
    CHECK_MSG(first * size >= least, "only %zu blocks of %zu bytes", first, size);
    refuse_everything(list);
    free_all(&list);
    size_t second = take_all(size, &list);
    free_all(&list);
    CHECK_MSG(second >= first - first / 10, "%zu blocks of %zu bytes, then only %zu", first, size,
              second);
    malloc_trim(0);
}

/* For small, medium, large and own mappings: as much can be had in the second round as in the
 * first, and at least `least` bytes. */
static void exhaust(size_t least)
{
    static const size_t sizes[] = {64, 1000, 5000, 100000, 1000000, 20000000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        with_size(exhaust_by, sizes[i], least);
}

static void set_limit(__rlimit_resource_t resource, size_t bytes)
{
    struct rlimit limit = {bytes, bytes};
    CHECK(setrlimit(resource, &limit) == 0);
}

static void address_space(void)
{
    size_t bytes = (alone ? 128 : 512) * MIB;
    set_limit(RLIMIT_AS, bytes);
    exhaust(bytes / (alone ? 4 : 2));
}

static void data(void)
{
    size_t bytes = (alone ? 128 : 256) * MIB;
    set_limit(RLIMIT_DATA, bytes);
    exhaust(bytes / (alone ? 4 : 2));
}

static void overcommit(void)
{
    char mode = '?';
    FILE *file = fopen("/proc/sys/vm/overcommit_memory", "r");
    if (file == NULL || fread(&mode, 1, 1, file) != 1 || mode != '2')
        test_skip("vm.overcommit_memory is not 2");
    fclose(file);
    set_limit(RLIMIT_AS, 2048 * MIB); /* not all of the machine's memory */
    exhaust(64 * MIB);
}

/* ---- Threads at the limit -------------------------------------------------------------------- */

/* Threads start, allocate and end at the limit: their caches may be refused too. */
static void *allocate_what_there_is(void *argument)
{
    for (size_t size = 16; size < 100000; size = size * 3 / 2) {
        errno = 0;
        void *block = opaque(malloc(size));
        CHECK(block != NULL || errno == ENOMEM);
        if (block != NULL)
            memset(block, 2, size);
        free(block);
    }
    return argument;
}

static void threads_at_the_limit(void)
{
    set_limit(RLIMIT_AS, 512 * MIB);
    struct held *list = NULL, *rest = NULL;
    CHECK(take_all(MIB, &list) > 10);
    take_all(129 * 1024, &rest); /* there is no room for a stack in what is left */
    size_t started = 0, freed = 0;
    pthread_attr_t attributes;
    CHECK(pthread_attr_init(&attributes) == 0);
    CHECK(pthread_attr_setstacksize(&attributes, 192 * 1024) == 0);
    for (size_t i = 0; i < 200; i++) {
        pthread_t thread;
        if (pthread_create(&thread, &attributes, allocate_what_there_is, NULL) == 0) {
            CHECK(pthread_join(thread, NULL) == 0);
            started++;
        } else if (freed < 90) { /* room for a stack comes when the last segment is empty */
            struct held *next = list->next;
            free(list);
            list = next;
            freed++;
        }
    }
    CHECK_MSG(started > 100, "%zu threads could be started, %zu MiB freed", started, freed);
    free_all(&list);
    free_all(&rest);
}

/* ---- Pieces ---------------------------------------------------------------------------------- */

/* Frees a thousand blocks, keeps a thousand, and so on; says how many were freed. */
static size_t free_half(struct held **list)
{
    struct held *kept = NULL;
    size_t freed = 0;
    for (size_t i = 0; *list != NULL; i++) {
        struct held *block = *list;
        *list = block->next;
        if (i / 1000 % 2 != 0) {
            free(block);
            freed++;
        } else {
            block->next = kept;
            kept = block;
        }
    }
    *list = kept;
    return freed;
}

static void pieces(void)
{
    set_limit(RLIMIT_AS, 512 * MIB);
    struct held *small = NULL, *larger = NULL;
    CHECK(take_all(200, &small) > 1000000);
    size_t freed = free_half(&small) * 200, got = take_all(20000, &larger) * 20000;
    CHECK_MSG(got > freed / 4 * 3, "of %zu MiB that were freed %zu could be had", freed / MIB,
              got / MIB);
    free_all(&larger);
    free_all(&small);
}

/* ---- Mappings -------------------------------------------------------------------------------- */

/* Splits one region into as many mappings as there may be, and leaves `spare` of them. */
static void use_up_mappings(size_t spare)
{
    size_t most = 0;
    FILE *file = fopen("/proc/sys/vm/max_map_count", "r");
    CHECK(file != NULL && fscanf(file, "%zu", &most) == 1);
    fclose(file);
    if (most > 200000)
        test_skip("vm.max_map_count is too large to be used up");
    size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    char *region = mmap(NULL, most * page_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(region != MAP_FAILED);
    size_t page = 0;
    while (mprotect(region + page * page_bytes, page_bytes, PROT_READ) == 0)
        page += 2;
    CHECK_MSG(errno == ENOMEM && page > 2 * spare, "errno %d after %zu pages", errno, page);
    CHECK(munmap(region, spare * page_bytes) == 0);
}

/* Puts every other block of `list` on the result, and leaves the rest. */
static struct held *every_other(struct held *list)
{
    struct held *taken = NULL;
    for (; list != NULL && list->next != NULL; list = list->next) {
        struct held *block = list->next;
        list->next = block->next;
        block->next = taken;
        taken = block;
    }
    return taken;
}

static void take_some_back(size_t size, size_t least)
{
    struct held *list = NULL;
    size_t count = take_all(size, &list);
    CHECK_MSG(count * size > least, "only %zu blocks of %zu", count, size);
    struct held *others = every_other(list);
    free_all(&others);
    malloc_trim(0);
    struct held *grown = opaque(realloc(list, size * 3));
    if (grown != NULL)
        list = grown;
    free_all(&list);
    malloc_trim(0);
    check_heap();
}

/* A region may be refused, and a part of one may not even be given back. */
static void mappings(void)
{
    use_up_mappings(20);
    set_limit(RLIMIT_AS, (alone ? 512 : 1024) * MIB);
    static const size_t sizes[] = {64, 5000, 100000, 1000000, 20000000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        with_size(take_some_back, sizes[i], 8 * MIB);
}

/* ---- Processors ------------------------------------------------------------------------------ */

static void *churn(void *argument)
{
    uint64_t random = (uintptr_t)argument + 1;
    void *own[200] = {NULL};
    for (int step = 0; step < 300000; step++) {
        void **block = &own[random_next(&random) % 200];
        free(*block);
        *block = opaque(malloc(1 + random_next(&random) % 1500));
        CHECK(*block != NULL);
    }
    for (size_t i = 0; i < 200; i++)
        free(own[i]);
    return NULL;
}

static void affinity(void)
{
    cpu_set_t allowed;
    CHECK(sched_getaffinity(0, sizeof allowed, &allowed) == 0);
    if (CPU_COUNT(&allowed) < 2)
        test_skip("there is only one processor");
    pthread_t threads[4];
    for (uintptr_t i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, churn, (void *)i) == 0);
    for (int round = 0; round < 200; round++) {
        for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
            if (!CPU_ISSET(cpu, &allowed))
                continue;
            cpu_set_t one;
            CPU_ZERO(&one);
            CPU_SET(cpu, &one);
            for (size_t i = 0; i < 4; i++) /* a thread that has ended is an error we may get */
                (void)pthread_setaffinity_np(threads[i], sizeof one, &one);
            CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
            for (size_t size = 1; size < 3000; size += 17)
                free(opaque(malloc(size)));
        }
    }
    for (size_t i = 0; i < 4; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

/* The program starts on the last processor alone, and is then let out to all of them. */
static void affinity_widens(char *program)
{
    cpu_set_t allowed;
    CHECK(sched_getaffinity(0, sizeof allowed, &allowed) == 0);
    cpu_set_t last;
    CPU_ZERO(&last);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &allowed)) {
            CPU_ZERO(&last);
            CPU_SET(cpu, &last);
        }
    CHECK(sched_setaffinity(0, sizeof last, &last) == 0);
    execl(program, program, "affinity-all", (char *)NULL);
    check_failed(__FILE__, __LINE__, "exec failed");
}

static void affinity_all(void)
{
    cpu_set_t all;
    memset(&all, 0xff, sizeof all);
    CHECK(sched_setaffinity(0, sizeof all, &all) == 0); /* the system takes out what is not there */
    affinity();
}

int main(int argc, char **argv)
{
    test_begin(100);
    CHECK(argc >= 2);
    alone = argc == 3 && strcmp(argv[2], "alone") == 0;
    if (strcmp(argv[1], "address-space") == 0)
        address_space();
    else if (strcmp(argv[1], "threads") == 0)
        threads_at_the_limit();
    else if (strcmp(argv[1], "pieces") == 0)
        pieces();
    else if (strcmp(argv[1], "data") == 0)
        data();
    else if (strcmp(argv[1], "overcommit") == 0)
        overcommit();
    else if (strcmp(argv[1], "mappings") == 0)
        mappings();
    else if (strcmp(argv[1], "affinity") == 0)
        affinity();
    else if (strcmp(argv[1], "affinity-widens") == 0)
        affinity_widens(argv[0]);
    else if (strcmp(argv[1], "affinity-all") == 0)
        affinity_all();
    else
        check_failed(__FILE__, __LINE__, "no such case: %s", argv[1]);
    return test_end();
}
