/*
 * secure.c - for secure.py, which makes it set-user-ID, set-group-ID or gives it capabilities:
 * says what a process that runs with other rights than its caller's has of SNUG_* variables.
 *
 *   secure               one line: whether the system calls the process secure (AT_SECURE), how
 * many SNUG_ variables the environment has, and what snug did of what they ask for secure exec
 * COMMAND  becomes root for good, and then COMMAND
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "check.h"

#define LARGE ((size_t)64 << 20) /* more than SNUG_PROVIDER_SIZE of secure.py */

static int variables(void)
{
    int count = 0;
    for (char **variable = environ; *variable != NULL; variable++)
        count += strncmp(*variable, "SNUG_", 5) == 0;
    return count;
}

/* Whether a mapping of the process has `name` in its path. */
static bool is_mapped(const char *name)
{
    char line[4096];
    bool found = false;
    FILE *maps = fopen("/proc/self/maps", "r");
    CHECK(maps != NULL);
    while (fgets(line, sizeof line, maps) != NULL)
        found = found || strstr(line, name) != NULL;
    CHECK(fclose(maps) == 0);
    return found;
}

static bool is_caught(int number)
{
    struct sigaction action;
    CHECK(sigaction(number, NULL, &action) == 0);
    return (action.sa_flags & SA_SIGINFO) != 0 || action.sa_handler != SIG_DFL;
}

int main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "exec") == 0) {
        CHECK(setuid(0) == 0 && setgid(0) == 0);
        execv(argv[2], argv + 2);
        CHECK_MSG(false, "%s", argv[2]);
    }
    for (size_t i = 0; i < 10000; i++)
        free(opaque(malloc(1 + i)));
    void *large = opaque(malloc(LARGE));
    printf("secure %lu variables %d large %d file %d signal %d\n", getauxval(AT_SECURE),
           variables(), large != NULL, is_mapped("snugheap"), is_caught(SIGUSR2));
    free(large);
    return 0;
}
