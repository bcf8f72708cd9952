/*
 * Heaps as a program sees them: configs of other versions, errors, blocks and the functions of
 * malloc, statistics, fork.
 */
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "snug/snug.h"

static snug_heap *make(struct snug_heap_config config)
{
    config.size = sizeof(config);
    return snug_heap_create(&config);
}

static void check_refused(struct snug_heap_config config, size_t size, const char *what)
{
    config.size = size;
    errno = 0;
    CHECK_MSG(snug_heap_create(&config) == NULL && errno == EINVAL, "%s is not refused", what);
}

static void check_configs(void)
{
    static char buffer[100000];
    struct snug_heap_config plain = {0};
    struct {
        struct snug_heap_config known;
        size_t later;
    } later = {.known = {.size = sizeof(later)}};
    snug_heap *heap = snug_heap_create(NULL);
    CHECK_MSG(heap != NULL, "no heap");
    CHECK_MSG(strcmp(snug_heap_name(heap), "") == 0, "a heap without a name has one");
    snug_heap_destroy(heap);
    snug_heap_destroy(NULL);
    /* An older program's config, and a later one's. */
    plain.name = "old";
    plain.size = offsetof(struct snug_heap_config, provider);
    heap = snug_heap_create(&plain);
    CHECK_MSG(heap != NULL && strcmp(snug_heap_name(heap), "old") == 0,
              "an old config is not taken");
    snug_heap_destroy(heap);
    heap = snug_heap_create(&later.known);
    CHECK_MSG(heap != NULL, "a later config that sets nothing new is not taken");
    snug_heap_destroy(heap);
    later.later = 1;
    errno = 0;
    CHECK_MSG(snug_heap_create(&later.known) == NULL && errno == EINVAL,
              "a later config that sets something is taken");
    check_refused((struct snug_heap_config){0}, 0, "a config without a size");
    check_refused((struct snug_heap_config){.flags = 4}, sizeof(plain), "an unknown flag");
    check_refused((struct snug_heap_config){.buffer = buffer, .buffer_bytes = 65535}, sizeof(plain),
                  "a small buffer");
    check_refused((struct snug_heap_config){.buffer_bytes = 65536}, sizeof(plain),
                  "a size without a buffer");
    check_refused(
        (struct snug_heap_config){.buffer = buffer, .buffer_bytes = sizeof(buffer), .quota = 1},
        sizeof(plain), "a quota for a buffer");
    check_refused((struct snug_heap_config){.flags = SNUG_HEAP_OUTSIDE}, sizeof(plain),
                  "the system's memory outside");
}

static void check_providers(void)
{
    struct snug_file_config file = {.size = sizeof(file), .directory = "/no/such/directory"};
    errno = 0;
    CHECK_MSG(snug_provider_file(&file) == NULL && errno == ENOENT, "errno is %d", errno);
    file.grow_factor = 1.001;
    CHECK_MSG(snug_provider_file(&file) == NULL && errno == EINVAL, "errno is %d", errno);
    struct snug_provider_functions none = {.size = sizeof(none)};
    CHECK_MSG(snug_provider_create(&none) == NULL && errno == EINVAL, "errno is %d", errno);
    CHECK_MSG(snug_provider_prealloc(SIZE_MAX / 4, 0) == NULL && errno == ENOMEM, "errno is %d",
              errno);
    snug_provider_destroy(NULL);
    snug_provider *ahead = snug_provider_prealloc(8 << 20, 0);
    snug_heap *heap = make((struct snug_heap_config){.provider = ahead, .name = "ahead"});
    void *blocks[16];
    size_t count = 0;
    errno = 0;
    while (count < 16 && (blocks[count] = snug_heap_malloc(heap, 1 << 20)) != NULL)
        count++;
    CHECK_MSG(count >= 5 && count <= 8 && errno == ENOMEM, "%zu blocks of a MiB in 8", count);
    snug_heap_free(heap, blocks[0]);
    CHECK_MSG(snug_heap_malloc(heap, 1000) != NULL, "no room where a block was freed");
    snug_heap_destroy(heap);
    snug_provider_destroy(ahead);
}

static void check_blocks(void)
{
    snug_heap *heap =
        make((struct snug_heap_config){.name = "a name that is longer than it may be"});
    CHECK_MSG(strcmp(snug_heap_name(heap), "a name that is longer than it m") == 0, "%s",
              snug_heap_name(heap));
    static const size_t sizes[] = {0, 1, 24, 1000, 5000, 200000, 3000000};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        char *block = snug_heap_malloc(heap, sizes[i]);
        CHECK_MSG(block != NULL && snug_heap_of(block) == heap, "size %zu", sizes[i]);
        CHECK_MSG(snug_malloc_usable_size(block) >= sizes[i], "size %zu", sizes[i]);
        memset(block, 7, sizes[i]);
        block = snug_realloc(block, sizes[i] * 2 + 1); /* stays in its heap */
        CHECK_MSG(snug_heap_of(block) == heap && (sizes[i] == 0 || block[sizes[i] - 1] == 7),
                  "size %zu", sizes[i]);
        block = snug_heap_realloc(heap, block, sizes[i] / 2 + 1);
        CHECK_MSG(snug_heap_of(block) == heap, "size %zu", sizes[i]);
        snug_free(block);
        block = snug_heap_calloc(heap, sizes[i], 3);
        for (size_t byte = 0; byte < sizes[i] * 3; byte++)
            CHECK_MSG(block[byte] == 0, "byte %zu of %zu", byte, sizes[i] * 3);
        snug_heap_free(heap, block);
        block = snug_heap_aligned_alloc(heap, 256, sizes[i]);
        CHECK_MSG(((uintptr_t)block & 255) == 0 && snug_heap_of(block) == heap, "size %zu",
                  sizes[i]);
        snug_heap_free(heap, block);
    }
    snug_heap_free(heap, NULL);
    errno = 0;
    CHECK_MSG(snug_heap_malloc(heap, SIZE_MAX / 2) == NULL && errno == ENOMEM, "errno %d", errno);
    errno = 0;
    volatile size_t half = SIZE_MAX / 2;
    CHECK_MSG(snug_heap_calloc(heap, half, 3) == NULL && errno == ENOMEM, "errno %d", errno);
    errno = 0;
    CHECK_MSG(snug_heap_aligned_alloc(heap, 3, 3) == NULL && errno == EINVAL, "errno %d", errno);
    void *block = snug_malloc(10);
    CHECK_MSG(snug_heap_of(block) == NULL && snug_heap_of(&heap) == NULL &&
                  snug_heap_of(NULL) == NULL,
              "a block of no heap is of one");
    snug_free(block);
    block = snug_heap_realloc(heap, NULL, 50);
    CHECK_MSG(snug_heap_of(block) == heap, "realloc of NULL");
    CHECK_MSG(snug_heap_realloc(heap, block, 0) == NULL, "realloc to nothing gives something");
    snug_heap_destroy(heap);
}

static void check_statistics(void)
{
    snug_heap *heap = make((struct snug_heap_config){.quota = 64 << 20});
    struct snug_heap_statistics now = {.size = sizeof(now)};
    CHECK_MSG(snug_heap_get_statistics(heap, &now) == 0 && now.used == 0, "%zu used", now.used);
    void *block = snug_heap_malloc(heap, 10 << 20);
    void *small = snug_heap_malloc(heap, 100);
    CHECK_MSG(snug_heap_get_statistics(heap, &now) == 0, "no statistics");
    CHECK_MSG(now.used >= (10 << 20) + 100 && now.used < (11 << 20) && now.taken >= now.used &&
                  now.taken == now.used + now.free && now.peak >= now.taken &&
                  now.quota == 64 << 20,
              "taken %zu, peak %zu, used %zu, free %zu", now.taken, now.peak, now.used, now.free);
    snug_heap_free(heap, block);
    snug_heap_free(heap, small);
    CHECK_MSG(snug_heap_trim(heap) == 1, "nothing was trimmed");
    CHECK_MSG(snug_heap_get_statistics(heap, &now) == 0 && now.taken < (1 << 20), "taken %zu",
              now.taken);
    size_t size = 1;
    memcpy(&now, &size, sizeof(size));
    CHECK_MSG(snug_heap_get_statistics(heap, &now) == EINVAL, "a size of 1 is taken");
    CHECK_MSG(snug_heap_check(heap) == 0, "the heap is damaged");
    snug_heap_destroy(heap);
}

/* ---- Threads and fork ---- */

static void *use_others(void *argument)
{
    for (int i = 0; i < 20; i++) {
        snug_heap *own = snug_heap_create(NULL);
        char *blocks[200];
        for (int j = 0; j < 200; j++)
            blocks[j] = memset(snug_heap_malloc(own, 50 + (size_t)j), j, 50);
        for (int j = 0; j < 100; j++)
            snug_free(blocks[j]);
        snug_free(snug_heap_malloc(argument, 100));
        snug_heap_destroy(own);
    }
    return NULL;
}

/* Heaps come and go while other threads allocate elsewhere. */
static void check_threads(void)
{
    snug_heap *shared = snug_heap_create(NULL);
    pthread_t threads[6];
    for (int i = 0; i < 6; i++)
        CHECK_MSG(pthread_create(&threads[i], NULL, use_others, shared) == 0, "no thread");
    for (int i = 0; i < 6; i++)
        pthread_join(threads[i], NULL);
    CHECK_MSG(snug_check() == 0, "the heaps are damaged");
    snug_heap_destroy(shared);
}

static void check_fork_of(snug_heap *heap, const char *kind)
{
    char *block = snug_heap_malloc(heap, 3000), *small = snug_heap_malloc(heap, 30);
    strcpy(block, "before");
    pid_t child = fork();
    if (child == 0) {
        int right = strcmp(block, "before") == 0;
        strcpy(block, "child");
        snug_free(small);
        for (size_t i = 0; i < 1000; i++)
            snug_heap_free(heap, memset(snug_heap_malloc(heap, i * 3), 1, i * 3));
        right = right && snug_heap_check(heap) == 0;
        snug_heap_clear(heap);
        snug_heap_destroy(heap);
        _exit(right ? 0 : 1);
    }
    int status = -1;
    CHECK_MSG(waitpid(child, &status, 0) == child && status == 0, "%s: status %d", kind, status);
    CHECK_MSG(strcmp(block, "before") == 0, "%s: the child wrote into the parent's heap", kind);
    memset(small, 2, 30);
    snug_heap_free(heap, small);
    snug_heap_free(heap, block);
    CHECK_MSG(snug_heap_check(heap) == 0, "%s: the heap is damaged", kind);
    snug_heap_destroy(heap);
}

/* A heap in a block that malloc gave: both know their own blocks, and malloc's are as they were
 * when the heap is gone. The first block of the heap may have the very address of malloc's. */
static void check_buffer_in_block(size_t bytes, unsigned flags)
{
    enum { BLOCKS = 200, BESIDE = 3 };
    void *beside[BESIDE], *blocks[BLOCKS];
    for (int i = 0; i < BESIDE; i++)
        beside[i] = malloc(bytes);
    char *buffer = malloc(bytes);
    snug_heap *heap =
        make((struct snug_heap_config){.buffer = buffer, .buffer_bytes = bytes, .flags = flags});
    CHECK_MSG(heap != NULL, "no heap in a block of %zu bytes", bytes);
    for (int i = 0; i < BLOCKS; i++) {
        size_t size = i % 10 == 0 ? 5000 : (size_t)i;
        blocks[i] = snug_heap_malloc(heap, size);
        CHECK_MSG(blocks[i] == NULL || snug_heap_of(blocks[i]) == heap, "of %zu: %p", bytes,
                  blocks[i]);
        if (blocks[i] != NULL)
            memset(blocks[i], i, size);
    }
    CHECK_MSG(blocks[0] != NULL && snug_heap_of(buffer - 1) == NULL, "of %zu", bytes);
    for (int i = 0; i < BLOCKS; i += 2)
        free(blocks[i]);
    check_heap();
    snug_heap_destroy(heap);
    memset(buffer, 1, bytes);
    buffer = realloc(buffer, bytes + 100);
    CHECK_MSG(malloc_usable_size(buffer) >= bytes + 100, "a block of %zu", bytes);
    free(buffer);
    for (int i = 0; i < BESIDE; i++)
        free(beside[i]);
    check_heap();
}

static void check_buffers_in_blocks(void)
{
    static const size_t sizes[] = {66000, 100000, 131000, 140000, 300000, 5000000, 140000000};
    for (unsigned flags = 0; flags <= SNUG_HEAP_OUTSIDE; flags += SNUG_HEAP_OUTSIDE)
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
            for (int round = 0; round < 3; round++)
                check_buffer_in_block(sizes[i], flags);
    /* One in a block of the other. */
    void *outer = malloc(1 << 20);
    snug_heap *heap = make((struct snug_heap_config){.buffer = outer, .buffer_bytes = 1 << 20});
    void *inner = snug_heap_malloc(heap, 200000);
    snug_heap *second = make((struct snug_heap_config){.buffer = inner, .buffer_bytes = 200000});
    void *of_second = snug_heap_malloc(second, 3000), *of_first = snug_heap_malloc(heap, 3000);
    CHECK_MSG(snug_heap_of(of_second) == second && snug_heap_of(of_first) == heap,
              "one in the other");
    check_heap();
    free(of_second);
    snug_heap_destroy(second);
    CHECK_MSG(snug_heap_of(inner) == heap, "the outer one");
    free(inner);
    free(of_first);
    check_heap();
    snug_heap_destroy(heap);
    free(outer);
}

static void *own_take(void *context, size_t bytes, size_t alignment)
{
    (void)context;
    static char memory[32 << 20] __attribute__((aligned(65536)));
    static size_t used;
    used = (used + alignment - 1) & ~(alignment - 1);
    used += bytes;
    return used <= sizeof(memory) ? memory + used - bytes : NULL;
}

static void check_forks(void)
{
    static char buffer[1 << 20];
    struct snug_file_config file = {.size = sizeof(file), .bytes = 8 << 20, .grow_factor = 2};
    struct snug_provider_functions own = {.size = sizeof(own), .take = own_take, .zeroed = 1};
    snug_provider *providers[] = {snug_provider_prealloc(16 << 20, 1), snug_provider_file(&file),
                                  snug_provider_create(&own)};
    static const char *const kinds[] = {"prealloc", "file", "own"};
    check_fork_of(snug_heap_create(NULL), "os");
    check_fork_of(make((struct snug_heap_config){.buffer = buffer, .buffer_bytes = sizeof(buffer)}),
                  "buffer");
    check_fork_of(make((struct snug_heap_config){.buffer = buffer,
                                                 .buffer_bytes = sizeof(buffer),
                                                 .flags = SNUG_HEAP_OUTSIDE}),
                  "outside");
    for (int i = 0; i < 3; i++) {
        CHECK_MSG(providers[i] != NULL, "no provider: %s", kinds[i]);
        check_fork_of(make((struct snug_heap_config){.provider = providers[i]}), kinds[i]);
        snug_provider_destroy(providers[i]);
    }
}

/* What no buffer can have, however much it is, and at whatever alignment, while some of it is free.
 */
static void check_too_much(void)
{
    static char buffer[8 << 20];
    enum { BLOCKS = 20 };
    void *blocks[BLOCKS];
    snug_heap *heap =
        make((struct snug_heap_config){.buffer = buffer, .buffer_bytes = sizeof(buffer)});
    CHECK_MSG(heap != NULL, "no heap in a buffer");
    for (size_t i = 0; i < BLOCKS; i++)
        CHECK_MSG((blocks[i] = snug_heap_malloc(heap, 100000 + i * 20000)) != NULL, "no block");
    for (size_t i = 0; i < BLOCKS; i += 2)
        snug_free(blocks[i]);
    for (int bits = 23; bits < 63; bits++) {
        size_t much = (size_t)1 << bits;
        CHECK_MSG(snug_heap_malloc(heap, much) == NULL, "2^%d bytes in 8 MiB", bits);
        void *aligned = snug_heap_aligned_alloc(heap, much, 100000);
        CHECK_MSG(((uintptr_t)aligned & (much - 1)) == 0, "%p is no multiple of 2^%d", aligned,
                  bits);
        snug_free(aligned);
        CHECK_MSG(snug_realloc(blocks[1], much) == NULL, "2^%d bytes in 8 MiB", bits);
        CHECK_MSG(snug_heap_calloc(heap, 1, much - 1) == NULL, "2^%d bytes in 8 MiB", bits);
    }
    void *block = snug_heap_malloc(heap, 100000);
    CHECK_MSG(block != NULL, "nothing is left of the buffer");
    snug_heap_destroy(heap);
}

/* Where a block that grows by little cannot have more than it needs, it gets that; and one that
 * shrinks stays where nothing else is to be had, without a word. */
static void check_resizing_when_full(void)
{
    static char buffer[1 << 20];
    snug_heap *heap =
        make((struct snug_heap_config){.buffer = buffer, .buffer_bytes = sizeof(buffer)});
    CHECK_MSG(heap != NULL, "no heap in a buffer");
    char *grows = snug_heap_malloc(heap, 40000), *wall = snug_heap_malloc(heap, 4096);
    char *room = snug_heap_malloc(heap, 44000);
    CHECK_MSG(grows != NULL && wall != NULL && room != NULL, "no blocks");
    while (snug_heap_malloc(heap, 4096) != NULL)
        continue;
    snug_heap_free(heap, room);
    errno = 0;
    grows = snug_heap_realloc(heap, grows, 44000);
    CHECK_MSG(grows != NULL && errno == 0, "there is room for 44,000 bytes, errno %d", errno);
    for (size_t bytes = 4096; bytes >= 16; bytes /= 4)
        while (snug_heap_malloc(heap, bytes) != NULL)
            continue;
    errno = 0;
    char *stays = snug_heap_realloc(heap, grows, 600);
    CHECK_MSG(stays == grows && errno == 0, "a block that shrinks: %p, errno %d", (void *)stays,
              errno);
    CHECK_MSG(snug_heap_realloc(heap, wall, 100000) == NULL && errno == ENOMEM, "errno is %d",
              errno);
    snug_heap_destroy(heap);
}

int main(void)
{
    test_begin(120);
    check_configs();
    check_providers();
    check_blocks();
    check_statistics();
    check_threads();
    check_buffers_in_blocks();
    check_too_much();
    check_resizing_when_full();
    check_forks();
    return test_end();
}
