/*
 * heaps_fork.c - heaps in buffers that a child of fork has, shares with its parent, or has not.
 *
 * usage: heaps_fork [SHARE]      0 if all is as it should be; of FORKS one in SHARE is made
 *
 * The parent's threads go on with its heap while children are made and end; a child uses the heap
 * if it has one of its own. Whoever waits for ever is ended by an alarm.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "snug/snug.h"

enum { BUFFER = 8 << 20, THREADS = 3, SLOTS = 64, FORKS = 200, MEDIUM = 5000 };

static snug_heap *heap;
static int stop;
static unsigned share = 1;

static snug_heap *heap_in(char *buffer)
{
    struct snug_heap_config config = {
        .size = sizeof(config), .buffer = buffer, .buffer_bytes = BUFFER};
    snug_heap *made = snug_heap_create(&config);
    CHECK_MSG(made != NULL, "there is no heap in a buffer");
    return made;
}

static char *buffer_of(int flags)
{
    if (flags == 0)
        return malloc(BUFFER);
    char *buffer = mmap(NULL, BUFFER, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
    CHECK_MSG(buffer != MAP_FAILED, "there is no buffer");
    return buffer;
}

/* Takes and frees blocks of up to MEDIUM bytes, and looks whether they are its own. */
static void *use(void *argument)
{
    unsigned seed = *(unsigned *)argument;
    unsigned char *blocks[SLOTS] = {NULL}, tag = (unsigned char)(seed * 37 + 1);
    size_t bytes[SLOTS];
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        size_t i = (size_t)rand_r(&seed) % SLOTS;
        if (blocks[i] == NULL) {
            bytes[i] = 16 + (size_t)rand_r(&seed) % MEDIUM;
            blocks[i] = snug_heap_malloc(heap, bytes[i]);
            CHECK_MSG(blocks[i] != NULL, "the buffer is full");
            memset(blocks[i], tag, bytes[i]);
            continue;
        }
        for (size_t at = 0; at < bytes[i]; at++)
            CHECK_MSG(blocks[i][at] == tag, "a block is another thread's");
        snug_heap_free(heap, blocks[i]);
        blocks[i] = NULL;
    }
    return NULL;
}

/* Hardly anything else, so that a fork mostly finds it in the middle. */
static void *take_and_free(void *argument)
{
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
        snug_heap_free(heap, snug_heap_malloc(heap, MEDIUM));
    return argument;
}

static void run_child(int has_one)
{
    alarm(20);
    for (unsigned i = 0; has_one && i < 20; i++) {
        void *block = snug_heap_malloc(heap, MEDIUM);
        CHECK_MSG(block != NULL, "the child has no memory");
        snug_heap_free(heap, block);
    }
    snug_heap *other = snug_heap_create(NULL);
    CHECK_MSG(other != NULL && snug_heap_malloc(other, 100) != NULL, "the child has no heap");
    free(malloc(300000)); /* all heaps may be asked for it */
    CHECK_MSG(snug_check() == 0, "the child's heaps are damaged");
    _exit(0);
}

static void fork_and_wait(int has_one, const char *what)
{
    pid_t child = fork();
    int status;
    if (child == 0)
        run_child(has_one);
    CHECK_MSG(waitpid(child, &status, 0) == child && status == 0, "%s: a child ended with %#x",
              what, (unsigned)status);
}

static void check_threads(int flags, int has_one, const char *what)
{
    pthread_t threads[THREADS];
    static unsigned seeds[THREADS];
    heap = heap_in(buffer_of(flags));
    stop = 0;
    for (unsigned i = 0; i < THREADS; i++) {
        seeds[i] = i + 1;
        CHECK_MSG(pthread_create(&threads[i], NULL, i == 0 ? take_and_free : use, &seeds[i]) == 0,
                  "no thread");
    }
    for (unsigned i = 0; i < FORKS / share; i++)
        fork_and_wait(has_one, what);
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    CHECK_MSG(snug_heap_check(heap) == 0, "%s: the heap is damaged", what);
    snug_heap_destroy(heap);
}

/* Of five heaps those in the middle are not handed on. */
static void check_not_handed_on(int advice, const char *what)
{
    enum { HEAPS = 5, FIRST = 1, LAST = 3 };
    snug_heap *heaps[HEAPS];
    for (unsigned i = 0; i < HEAPS; i++) {
        char *buffer = buffer_of(MAP_PRIVATE);
        heaps[i] = heap_in(buffer);
        CHECK_MSG(snug_heap_malloc(heaps[i], 100) != NULL, "no block");
        if (i >= FIRST && i <= LAST)
            CHECK_MSG(madvise(buffer, BUFFER, advice) == 0, "%s is not to be had", what);
    }
    heap = heaps[HEAPS - 1];
    fork_and_wait(1, what);
    heap = heaps[0];
    fork_and_wait(1, what);
    for (unsigned i = 0; i < HEAPS; i++) {
        CHECK_MSG(snug_heap_malloc(heaps[i], MEDIUM) != NULL, "%s: the parent's is lost", what);
        snug_heap_destroy(heaps[i]);
    }
}

/* A thread that the child does not have was in the function for the limit. */
static pthread_barrier_t inside;

static void on_limit(void *calls, snug_heap *over, size_t missing)
{
    (void)over, (void)missing;
    ++*(int *)calls;
    if (*(int *)calls == 1) {
        pthread_barrier_wait(&inside);
        pthread_barrier_wait(&inside);
    }
}

static void *ask_too_much(void *limited)
{
    CHECK_MSG(snug_heap_malloc(limited, 8 << 20) == NULL, "the quota is not kept");
    return NULL;
}

static void check_limit(void)
{
    int calls = 0, status;
    pthread_t thread;
    struct snug_heap_config config = {
        .size = sizeof(config), .quota = 4 << 20, .on_limit = on_limit, .context = &calls};
    snug_heap *limited = snug_heap_create(&config);
    CHECK_MSG(limited != NULL, "no heap with a quota");
    pthread_barrier_init(&inside, NULL, 2);
    CHECK_MSG(pthread_create(&thread, NULL, ask_too_much, limited) == 0, "no thread");
    pthread_barrier_wait(&inside);
    pid_t child = fork();
    if (child == 0) {
        ask_too_much(limited);
        _exit(calls);
    }
    CHECK_MSG(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 2,
              "in the child the function was not called: %#x", (unsigned)status);
    pthread_barrier_wait(&inside);
    pthread_join(thread, NULL);
    snug_heap_destroy(limited);
}

int main(int argc, char **argv)
{
    test_begin(120);
    if (argc > 1)
        share = (unsigned)atoi(argv[1]);
    check_not_handed_on(MADV_DONTFORK, "MADV_DONTFORK"); /* without threads, */
    check_not_handed_on(MADV_WIPEONFORK, "MADV_WIPEONFORK");
    check_threads(MAP_PRIVATE, 1, "private");
    check_threads(0, 1, "malloc's"); /* which may be in a file */
    check_threads(MAP_SHARED, 0, "shared");
    check_not_handed_on(MADV_DONTFORK, "MADV_DONTFORK"); /* and after there were some */
    check_limit();
    return test_end();
}
