/*
 * sandbox.c - trap 8: once the program has started, a seccomp filter leaves it only mmap, munmap,
 * brk, futex, read, write and exit.
 *
 *   sandbox errno     any other system call fails with EPERM: the heap grows, shrinks, is trimmed
 *                     and grows again, and errno is kept by free
 *   sandbox kill      any other system call kills: the heap grows, in threads as well, and blocks
 *                     are freed and used again. To be run with SNUG_DIRTY so large that no pages
 *                     are given back but by munmap.
 *
 * The threads are started before the filter, since starting one takes other calls.
 * Fault it finds: run on glibc's malloc, "kill" dies, since its arenas use mprotect.
 */
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "check.h"

enum { THREADS = 3, BLOCKS = 20000 };

#define ALLOW(number) \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1), \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static void install_filter(unsigned int otherwise)
{
    struct sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(SYS_mmap),
        ALLOW(SYS_munmap),
        ALLOW(SYS_brk),
        ALLOW(SYS_futex),
        ALLOW(SYS_read),
        ALLOW(SYS_write),
        ALLOW(SYS_exit),
        ALLOW(SYS_exit_group),
        BPF_STMT(BPF_RET | BPF_K, otherwise),
    };
    struct sock_fprog filter = {sizeof program / sizeof *program, program};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        test_skip("no_new_privs is not to be had");
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter) != 0)
        test_skip("seccomp filters are not to be had");
}

static size_t size_of(size_t i, uint64_t *random)
{
    if (i % 1000 == 0)
        return 1000000 + random_next(random) % 8000000;
    if (i % 50 == 0)
        return 10000 + random_next(random) % 200000;
    return 1 + random_next(random) % 2000;
}

struct block {
    void *start;
    size_t size;
};

/* Grows by some 200 MB in all kinds of sizes, and frees all of it, in another order. */
static void grow_and_shrink(struct block *blocks, uint64_t seed)
{
    uint64_t random = seed;
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i].size = size_of(i, &random);
        errno = 4242;
        blocks[i].start = opaque(malloc(blocks[i].size));
        CHECK_MSG(blocks[i].start != NULL, "block %zu of %zu bytes", i, blocks[i].size);
        CHECK_MSG(errno == 4242, "malloc set errno to %d", errno);
        pattern_fill(blocks[i].start, blocks[i].size, i);
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        struct block *block = &blocks[i * 7919 % BLOCKS];
        size_t index = i * 7919 % BLOCKS;
        CHECK(pattern_holds(block->start, block->size, block->size, index));
        errno = 4242;
        free(block->start);
        CHECK_MSG(errno == 4242, "free set errno to %d", errno);
    }
}

static void resize_large_blocks(void)
{
    size_t size = 1 << 20;
    void *block = opaque(malloc(size));
    pattern_fill(block, size, 1);
    for (size_t next = 2 * size; next < (size_t)100 << 20; next *= 2) {
        block = opaque(realloc(block, next));
        CHECK(block != NULL && pattern_holds(block, size, size, 1));
    }
    block = opaque(realloc(block, size));
    CHECK(block != NULL && pattern_holds(block, size, size, 1));
    free(block);
}

static pthread_barrier_t filtered;
static struct block all_blocks[THREADS + 1][BLOCKS];

static void *thread_main(void *argument)
{
    pthread_barrier_wait(&filtered); /* the thread is there */
    pthread_barrier_wait(&filtered); /* the filter is there */
    size_t i = (uintptr_t)argument;
    for (int round = 0; round < 2; round++)
        grow_and_shrink(all_blocks[i], i + 100);
    pthread_barrier_wait(&filtered); /* all are done */
    pthread_barrier_wait(&filtered); /* never: a thread's end would take other calls */
    return NULL;
}

int main(int argc, char **argv)
{
    test_begin(60);
    CHECK(argc == 2);
    bool kill = strcmp(argv[1], "kill") == 0;
    CHECK(kill || strcmp(argv[1], "errno") == 0);
    free(opaque(malloc(100)));

    pthread_t threads[THREADS];
    CHECK(pthread_barrier_init(&filtered, NULL, THREADS + 1) == 0);
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, thread_main, (void *)i) == 0);
    pthread_barrier_wait(&filtered);
    install_filter(kill ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ERRNO | EPERM);
    pthread_barrier_wait(&filtered);
    grow_and_shrink(all_blocks[THREADS], 7);
    if (!kill) {
        resize_large_blocks();
        (void)malloc_trim(0);
    }
    grow_and_shrink(all_blocks[THREADS], 8);
    pthread_barrier_wait(&filtered);
    check_heap();
    _exit(0);
}
