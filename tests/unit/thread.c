/*
 * Tests of platform/thread.h: identity, processors, the end of a thread, fork, and randomness.
 */
#include "support.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "platform/thread.h"

static void *thread_id(void *argument)
{
    *(long *)argument = os_thread_id();
    return NULL;
}

TEST(threads_have_different_ids)
{
    long other = 0;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, thread_id, &other), 0);
    pthread_join(thread, NULL);
    assert_int_equal(os_thread_id(), getpid()); /* the first thread */
    assert_true(other > 0);
    assert_int_not_equal(other, os_thread_id());
}

TEST(processors_are_counted)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
    assert_int_equal(os_cpu_count(), CPU_COUNT(&set));
}

TEST(a_pinned_thread_knows_its_processor)
{
    cpu_set_t all, one;
    CPU_ZERO(&all);
    assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
    unsigned count = os_cpu_count();
    for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &all))
            continue;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
        assert_int_equal(os_cpu(), cpu);
    }
    assert_int_equal(os_cpu_count(), count); /* as it was at the start */
    assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
}

/* ---- The end of a thread ---- */

static unsigned exits;
static void *last_argument;

static void note_exit(void *argument)
{
    __atomic_fetch_add(&exits, 1, __ATOMIC_RELAXED);
    last_argument = argument;
}

static void *arm_and_end(void *argument)
{
    return os_thread_exit_arm(argument) ? argument : NULL;
}

static void *end_unarmed(void *argument)
{
    return argument;
}

static void run_thread(void *(*body)(void *), void *argument, void *expected)
{
    pthread_t thread;
    void *result;
    assert_int_equal(pthread_create(&thread, NULL, body, argument), 0);
    pthread_join(thread, &result);
    assert_ptr_equal(result, expected);
}

TEST(armed_threads_tell_of_their_end)
{
    int first, second;
    os_thread_exit_init(note_exit);
    exits = 0;
    run_thread(end_unarmed, &first, &first);
    assert_int_equal(exits, 0);
    run_thread(arm_and_end, &first, &first);
    assert_int_equal(exits, 1);
    assert_ptr_equal(last_argument, &first);
    run_thread(arm_and_end, &second, &second);
    assert_int_equal(exits, 2);
    assert_ptr_equal(last_argument, &second);
}

/* ---- Fork ---- */

static char steps[16];

static void step(char what)
{
    size_t length = strlen(steps);
    if (length + 1 < sizeof(steps))
        steps[length] = what;
}

static void before(void)
{
    step('b');
}
static void in_parent(void)
{
    step('p');
}
static void in_child(void)
{
    step('c');
}

TEST(fork_calls_its_handlers)
{
    os_fork_init(before, in_parent, in_child);
    steps[0] = 0;
    pid_t child = fork();
    if (child == 0)
        _exit(strcmp(steps, "bc") == 0 ? 0 : 1);
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_string_equal(steps, "bp");
}

/* ---- Randomness and time ---- */

/* What os_random gives in a new process: this program, started with an argument. */
static uint64_t random_of_another_process(void)
{
    char program[4096];
    ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
    assert_true(length > 0);
    program[length] = 0;
    int file = text_file();
    pid_t child = fork();
    if (child == 0) {
        dup2(file, 1);
        execl(program, program, "--random", (char *)NULL);
        _exit(errno == ENOEXEC ? TEST_SKIPPED : 127);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    NEED(!WIFEXITED(status) || WEXITSTATUS(status) != TEST_SKIPPED,
         "the kernel itself does not run programs like this one");
    assert_int_equal(status, 0);
    uint64_t number = strtoull(text_written(file), NULL, 16);
    close(file);
    return number;
}

TEST(random_bits_differ_between_processes)
{
    assert_true(os_random() != os_random());
    uint64_t first = random_of_another_process();
    uint64_t second = random_of_another_process();
    assert_true(first != second);
    assert_true(first != os_random());
    assert_true(first != 0 && second != 0);
    /* About half of the bits differ: 32 +- 8 standard deviations. */
    int differing = __builtin_popcountll(first ^ second);
    assert_in_range(differing, 1, 63);
}

/* ---- The environment ---- */

TEST(variables_are_removed_in_place)
{
    char *none[] = {NULL};
    os_environment_remove(none, "SNUG_");
    assert_null(none[0]);
    char first[] = "SNUG_A=1", path[] = "PATH=/bin", alike[] = "SNUGGLE=1", last[] = "SNUG_";
    char *some[] = {first, path, first, alike, last, NULL, first};
    os_environment_remove(some, "SNUG_");
    assert_ptr_equal(some[0], path);
    assert_ptr_equal(some[1], alike);
    for (size_t i = 2; i < 6; i++)
        assert_null(some[i]); /* who looks for the old end finds nothing before it */
    assert_ptr_equal(some[6], first);
}

int main(int count, char **arguments)
{
    if (count > 1 && strcmp(arguments[1], "--random") == 0) {
        printf("%" PRIx64 "\n", os_random());
        return 0;
    }
    static const struct CMUnitTest tests[] = {
        ROW(threads_have_different_ids),
        ROW(processors_are_counted),
        ROW(a_pinned_thread_knows_its_processor),
        ROW(armed_threads_tell_of_their_end),
        ROW(fork_calls_its_handlers),
        ROW(random_bits_differ_between_processes),
        ROW(variables_are_removed_in_place),
    };
    return needs_end(cmocka_run_group_tests(tests, NULL, NULL));
}
