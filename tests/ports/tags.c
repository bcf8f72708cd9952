/*
 * Tags of memory in the hardened preset: which accesses fault at once, which frees are refused, and
 * that nothing else is. `tags on` or `tags off`: whether the machine has them.
 * Prints "ok" and exits 0, or says what failed.
 */
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "snug/snug.h"

enum { BLOCKS = 48, FAULT_OF_TAG = 9, LARGEST_WITH_TAG = 4000 };

static const size_t sizes[] = {1, 16, 40, 64, 500, 1000, 1500, LARGEST_WITH_TAG};

static sigjmp_buf back;
static const char *reported;

#define EXPECT(condition) \
    do { \
        if (!(condition)) { \
            printf("FAILED, line %d: %s\n", __LINE__, #condition); \
            fflush(stdout); \
            _exit(1); \
        } \
    } while (0)

static void on_fault(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    (void)context;
    if (info->si_code != FAULT_OF_TAG && info->si_code != SEGV_ACCERR) { /* a guard is behind it */
        printf("FAILED: a fault at %p that is no tag's, %d\n", info->si_addr, info->si_code);
        fflush(stdout);
        _exit(2);
    }
    siglongjmp(back, 1);
}

static void on_misuse(const struct snug_misuse *misuse)
{
    reported = misuse->kind;
    siglongjmp(back, 1);
}

static bool has_tag(const void *pointer)
{
    return (uintptr_t)pointer >> 56 != 0;
}

static char *without_tag(const void *pointer)
{
    return (char *)((uintptr_t)pointer << 8 >> 8);
}

static bool reading_faults(const volatile char *at)
{
    if (sigsetjmp(back, 1) != 0)
        return true;
    (void)*at;
    return false;
}

static bool writing_faults(volatile char *at)
{
    if (sigsetjmp(back, 1) != 0)
        return true;
    *at = 1;
    return false;
}

static bool free_is_refused(void *block)
{
    reported = NULL;
    if (sigsetjmp(back, 1) == 0)
        free(block);
    return reported != NULL;
}

static bool realloc_is_refused(void *block)
{
    reported = NULL;
    if (sigsetjmp(back, 1) == 0)
        EXPECT(realloc(block, 700) == NULL);
    return reported != NULL;
}

static char *end_of(char *block, size_t size)
{
    return block + (size + 15) / 16 * 16;
}

/* What is beside the last or the first object of a slab may have the same tag by chance. */
static void check_bounds(size_t size)
{
    char *blocks[BLOCKS];
    int behind = 0, before = 0;
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(size);
        EXPECT(has_tag(blocks[i]) && malloc_usable_size(blocks[i]) == size);
        memset(blocks[i], i + 1, size);
    }
    for (int i = 0; i < BLOCKS; i++) {
        EXPECT(blocks[i][0] == i + 1 && blocks[i][size - 1] == i + 1);
        behind += reading_faults(end_of(blocks[i], size));
        before += reading_faults(blocks[i] - 1);
    }
    EXPECT(behind > BLOCKS * 3 / 4 && before > BLOCKS * 3 / 4);
    for (int i = 0; i < BLOCKS; i++) {
        EXPECT(free_is_refused(without_tag(blocks[i])));
        free(blocks[i]);
        EXPECT(reading_faults(blocks[i]) && writing_faults(blocks[i] + size - 1));
        EXPECT(free_is_refused(blocks[i]) && realloc_is_refused(blocks[i]));
        EXPECT(reading_faults(blocks[i])); /* a report that does not return leaves that as it is */
    }
}

/* A pointer that is left over when another block is there. */
static void check_reused(size_t size)
{
    int met = 0, other = 0;
    for (int i = 0; i < 20000 && met < 20; i++) {
        char *old = malloc(size), *next = NULL;
        free(old);
        for (int j = 0; j < 5000 && without_tag(next) != without_tag(old); j++) {
            next = malloc(size);
            if (without_tag(next) != without_tag(old))
                free(next);
        }
        if (without_tag(next) != without_tag(old))
            continue;
        met++;
        if (next != old) {
            other++;
            EXPECT(reading_faults(old) && free_is_refused(old) && realloc_is_refused(old));
            EXPECT(!writing_faults(next));
        }
        free(next);
    }
    EXPECT(met >= 10 && other * 10 >= met * 6);
}

static void check_resized(void)
{
    char *block = memset(malloc(200), 7, 200);
    for (size_t size = 200; size < 3000; size += 13) {
        block = realloc(block, size);
        EXPECT(block[0] == 7 && block[size - 1 < 199 ? size - 1 : 199] == 7);
        EXPECT(!writing_faults(&block[size - 1]) && malloc_usable_size(block) == size);
        block[size - 1] = 7;
    }
    block = realloc(block, 4000);
    char *stays = realloc(block, 3950); /* of the same class */
    EXPECT(stays == block && stays[0] == 7);
    EXPECT(reading_faults(end_of(stays, 3950)) && !writing_faults(stays + 3949));
    EXPECT(realloc(stays, 3990) == stays && !writing_faults(stays + 3989));
    char *large = realloc(stays, 300000);
    EXPECT(!has_tag(large) && large[0] == 7 && reading_faults(stays));
    char *small = realloc(large, 30);
    EXPECT(has_tag(small) && small[0] == 7);
    free(small);
}

static void check_others(void)
{
    char *zeros = calloc(7, 100), *aligned = memalign(256, 700), *large = malloc(8000);
    void *page = NULL;
    for (int i = 0; i < 700; i++)
        EXPECT(zeros[i] == 0);
    EXPECT(has_tag(zeros) && has_tag(aligned) && (uintptr_t)aligned % 256 == 0 && !has_tag(large));
    EXPECT(posix_memalign(&page, 4096, 3000) == 0 && (uintptr_t)page % 4096 == 0);
    memset(page, 1, 3000);
    int ends[2];
    EXPECT(pipe(ends) == 0 && write(ends[1], zeros, 700) == 700 &&
           read(ends[0], aligned, 700) == 700);
    EXPECT(memcmp(zeros, aligned, 700) == 0);
    EXPECT(snug_heap_of(zeros) == NULL && snug_check() == 0);
    char *wrong = (char *)((uintptr_t)zeros ^ (uintptr_t)1 << 57);
    EXPECT(writing_faults(wrong) && free_is_refused(wrong) && free_is_refused(zeros + 16));
    EXPECT(free_is_refused((char *)((uintptr_t)large | (uintptr_t)3 << 56)));
    snug_free_sized(zeros, 700);
    free(aligned);
    free(page);
    free(large);
}

static int visit(void *context, void *block, size_t bytes)
{
    EXPECT(bytes == 100 && !writing_faults(block));
    ++*(int *)context;
    return 1;
}

/* Heaps of the program's own. */
static void check_heap(void)
{
    struct snug_heap_config config = {.size = sizeof(config), .flags = SNUG_HEAP_HARDENED};
    snug_heap *heap = snug_heap_create(&config);
    EXPECT(heap != NULL);
    char *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++)
        memset(blocks[i] = snug_heap_malloc(heap, 100), 1, 100);
    int count = 0;
    EXPECT(snug_heap_visit(heap, visit, &count) == 1 && count == BLOCKS);
    EXPECT(has_tag(blocks[0]) && snug_heap_of(blocks[0]) == heap && snug_heap_check(heap) == 0);
    blocks[1] = snug_heap_realloc(heap, blocks[1], 2000);
    snug_heap_free(heap, blocks[0]);
    EXPECT(reading_faults(blocks[0]) && !writing_faults(&blocks[1][1999]));
    free(blocks[1]);
    snug_heap_clear(heap);
    memset(snug_heap_malloc(heap, 100), 1, 100);
    snug_heap_destroy(heap);
}

static void *check_all(void *unused)
{
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
        check_bounds(sizes[i]);
    check_reused(40);
    check_resized();
    check_others();
    check_heap();
    return unused;
}

/* One thread at a time, as they share where a fault leads. */
static void check_thread_and_child(void)
{
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, check_all, NULL) == 0 && pthread_join(thread, NULL) == 0);
    pid_t child = fork();
    if (child == 0) {
        check_all(NULL);
        _exit(0);
    }
    int status = 1;
    EXPECT(waitpid(child, &status, 0) == child && status == 0);
}

int main(int count, char **arguments)
{
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    bool on = count == 2 && strcmp(arguments[1], "on") == 0;
    sigaction(SIGSEGV, &action, NULL);
    snug_set_misuse_handler(on_misuse);
    char *block = malloc(40);
    EXPECT(has_tag(block) == on);
    if (on) {
        check_all(NULL);
        check_thread_and_child();
    } else {
        EXPECT(!reading_faults(block) && !writing_faults(block));
    }
    free(block);
    EXPECT(free_is_refused(block) && snug_check() == 0);
    puts("ok");
    return 0;
}
