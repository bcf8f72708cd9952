/*
 * fork_in_handler.c - a signal handler forks in the middle of malloc and free, in a program with
 * one thread: fork is safe in signal handlers there with glibc's malloc. The child ends at once, as
 * it must; the parent goes on, and all its blocks are as it wrote them.
 *
 * Fault it finds: a handler of fork that waits for a lock which the interrupted call holds waits
 * for ever.
 */
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { SLOTS = 400, SECONDS = 60 };

static volatile sig_atomic_t forks, failed;

static void on_timer(int number)
{
    (void)number;
    int error = errno;
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    int status = 1;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
        failed = failed + 1;
    forks = forks + 1;
    errno = error;
}

static size_t size_of(uint64_t *random)
{
    static const size_t most[] = {200, 1000, 10000, 100000, 1000000};
    return 1 + random_next(random) % most[random_next(random) % 5];
}

int main(void)
{
    test_begin(SECONDS);
    static char *blocks[SLOTS];
    static size_t sizes[SLOTS];
    uint64_t random = 1;
    int wanted = (int)test_scale(300, 20000);
    struct sigaction action = {.sa_handler = on_timer, .sa_flags = SA_RESTART};
    struct itimerval often = {{0, 300}, {0, 300}};
    CHECK(sigaction(SIGVTALRM, &action, NULL) == 0);
    CHECK(setitimer(ITIMER_VIRTUAL, &often, NULL) == 0);
    while (forks < wanted) {
        size_t i = random_next(&random) % SLOTS;
        if (blocks[i] != NULL)
            CHECK(blocks[i][0] == (char)i && blocks[i][sizes[i] - 1] == (char)i);
        free(blocks[i]);
        sizes[i] = size_of(&random);
        blocks[i] = opaque(malloc(sizes[i]));
        CHECK(blocks[i] != NULL);
        blocks[i][0] = blocks[i][sizes[i] - 1] = (char)i;
    }
    CHECK_MSG(failed == 0, "%d children did not end well", (int)failed);
    return 0;
}
