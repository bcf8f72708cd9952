/*
 * A program for a small machine: its heap is a static buffer of 1 MiB, and 4 MiB are all that it
 * may have resident, code included. It uses all of the library, malloc's own heap and a second
 * thread too, and looks at what the kernel says it took in the end.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "snug/snug.h"

#define KIB ((size_t)1024)

/* What docs/heaps.md promises. */
#define FIXED_MOST (72 * KIB)
#define RESIDENT_MOST (4096 * KIB)
#define PRIVATE_MOST \
    ((1024 + 320) * KIB) /* the buffer, and all that snug and libc add, in pages of 4 KiB */
/* Where pages are larger, so many places that are touched take a larger one. */
#define PLACES 8

/* At a page: what is left of whole pages at both ends depends on where a linker puts it. */
static _Alignas(4096) char buffer[1 << 20];
static snug_heap *heap;

static size_t fill(void)
{
    size_t bytes = 0;
    for (size_t i = 0;; i++) {
        size_t size = 20 + i * 37 % 400;
        char *block = snug_heap_malloc(heap, size);
        if (block == NULL)
            return bytes;
        memset(block, (int)i, size);
        bytes += size;
    }
}

static void *use_in_thread(void *argument)
{
    (void)argument;
    for (size_t i = 0; i < 1000; i++) {
        char *block = snug_heap_calloc(heap, 1, 300), *own = malloc(100);
        block = snug_realloc(block, 3000);
        CHECK(block != NULL && own != NULL && block[299] == 0);
        snug_free(block);
        free(own);
    }
    return NULL;
}

static int count_blocks(void *context, void *block, size_t bytes)
{
    (void)block;
    (void)bytes;
    ++*(size_t *)context;
    return 1;
}

static void use(void)
{
    size_t blocks = 0;
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 64 * KIB);
    CHECK(pthread_create(&thread, &attributes, use_in_thread, NULL) == 0);
    pthread_join(thread, NULL);
    size_t bytes = fill();
    CHECK_MSG(bytes > sizeof(buffer) * 7 / 10, "only %zu bytes in a MiB", bytes);
    CHECK(snug_heap_visit(heap, count_blocks, &blocks) == 1 && blocks > 3000);
    CHECK(snug_heap_check(heap) == 0 && snug_check() == 0);
    snug_heap_clear(heap);
    void *half = snug_heap_aligned_alloc(heap, 4096, sizeof(buffer) / 2);
    CHECK(half != NULL && snug_heap_of(half) == heap);
    snug_heap_free(heap, half);
}

/* A figure of /proc/self/status in bytes. */
static size_t kernel_says(const char *name)
{
    char line[256];
    size_t kib = 0;
    FILE *file = fopen("/proc/self/status", "r");
    CHECK(file != NULL);
    while (fgets(line, sizeof(line), file) != NULL)
        if (strncmp(line, name, strlen(name)) == 0)
            kib = strtoul(line + strlen(name), NULL, 10);
    fclose(file);
    CHECK_MSG(kib != 0, "no %s", name);
    return kib * KIB;
}

int main(void)
{
    struct snug_heap_config config = {
        .size = sizeof(config), .buffer = buffer, .buffer_bytes = sizeof(buffer)};
    struct snug_heap_statistics statistics = {.size = sizeof(statistics)};
    test_begin(60);
    heap = snug_heap_create(&config);
    CHECK(heap != NULL);
    use();
    CHECK(snug_heap_get_statistics(heap, &statistics) == 0);
    snug_heap_destroy(heap);
    size_t resident = kernel_says("VmHWM:") + kernel_says("VmPTE:");
    size_t private = kernel_says("RssAnon:");
    printf("%zu KiB resident, page tables included, %zu KiB private; %zu KiB of the buffer are "
           "not for blocks\n",
           resident / KIB, private / KIB, statistics.fixed / KIB);
    fflush(stdout);
    CHECK_MSG(statistics.fixed <= FIXED_MOST, "%zu KiB are fixed", statistics.fixed / KIB);
    CHECK_MSG(resident <= RESIDENT_MOST, "%zu KiB are resident", resident / KIB);
    size_t larger = (size_t)sysconf(_SC_PAGESIZE) - 4 * KIB;
    CHECK_MSG(private <= PRIVATE_MOST + PLACES * larger, "%zu KiB are private", private / KIB);
    return test_end();
}
