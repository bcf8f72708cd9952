/*
 * orphan_handler.c - a child of fork takes back what waited for a thread that is not there, and
 * finds a block whose header was written over. The misuse handler allocates, as it may: no lock is
 * held.
 *
 * With SNUG_MISUSE=warn. It is preloaded.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "snug/snug.h"

enum { BLOCKS = 8, BYTES = 9000, STRIDE = BYTES + 100 };

static pthread_barrier_t all;
static volatile int told;

static void handler(const struct snug_misuse *misuse)
{
    (void)misuse;
    for (size_t bytes = 16; bytes <= 1024; bytes += 16)
        CHECK(opaque(malloc(bytes)) != NULL);
    told++;
}

/* Has blocks wait in the thread's lists, one of which ran over the next block's header. */
static void *leave(void *argument)
{
    static char *blocks[BLOCKS];
    for (size_t i = 0; i < 400; i++)
        free(opaque(malloc(1100 + i % 8)));
    for (size_t i = 0; i < BLOCKS; i++)
        CHECK((blocks[i] = opaque(malloc(BYTES))) != NULL);
    size_t i = 0;
    while (i + 1 < BLOCKS && (size_t)(blocks[i + 1] - blocks[i]) > STRIDE)
        i++;
    CHECK(i + 1 < BLOCKS);
    memset(blocks[i], 'x', (size_t)(blocks[i + 1] - blocks[i]) - 2);
    free(blocks[i]);
    pthread_barrier_wait(&all);
    pthread_barrier_wait(&all);
    return argument;
}

int main(void)
{
    void (*set)(snug_misuse_handler);
    void *found = dlsym(RTLD_DEFAULT, "snug_set_misuse_handler");
    pthread_t thread;
    int status;
    CHECK(found != NULL);
    memcpy(&set, &found, sizeof(set));
    set(handler);
    pthread_barrier_init(&all, NULL, 2);
    CHECK(pthread_create(&thread, NULL, leave, NULL) == 0);
    pthread_barrier_wait(&all);
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        CHECK(opaque(malloc(1 << 20)) != NULL); /* fresh memory, so that orphans are taken back */
        _exit(told == 1 ? 0 : 1);
    }
    CHECK(waitpid(child, &status, 0) == child);
    CHECK_MSG(status == 0, "the child: %#x", status);
    pthread_barrier_wait(&all);
    CHECK(pthread_join(thread, NULL) == 0);
    return 0;
}
