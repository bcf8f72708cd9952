/*
 * A profile that is begun and ended over and over, in a program that does all that a program can do
 * meanwhile: threads that end, fork and exec, dlopen and dlclose, stacks of the least size,
 * coroutines, handlers that allocate, longjmp out of calls. Nothing crashes, no sample is left of
 * what was freed, and memory does not grow.
 *
 *   load many PLUGIN       SNUG_PROFILE_BYTES=1: on and off by snug_profile_begin and _end
 *   load loader PLUGIN     a thread is in dlopen, and holds the loader's lock, while another
 * samples
 */
#include "check.h"
#include "view.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "snug/snug.h"

#pragma weak snug_profile_begin
#pragma weak snug_profile_end

static bool ended; /* atomic: the workers are to end */
static const char *plugin;

static bool goes_on(void)
{
    return !__atomic_load_n(&ended, __ATOMIC_RELAXED);
}

/* ---- Workers ---- */

static void churn(unsigned turns, uint64_t seed)
{
    void *kept[16] = {NULL};
    for (unsigned i = 0; i < turns; i++) {
        void **one = &kept[random_next(&seed) % 16];
        *one = realloc(*one, random_next(&seed) % 2000 + 1);
    }
    for (unsigned i = 0; i < 16; i++)
        free(kept[i]);
}

static void *short_life(void *argument)
{
    churn(200, (uintptr_t)argument + 1);
    return NULL;
}

static void *threads_end(void *argument)
{
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, PTHREAD_STACK_MIN);
    for (uintptr_t i = 0; goes_on(); i++) {
        pthread_t thread;
        CHECK(pthread_create(&thread, &small, short_life, (void *)i) == 0);
        pthread_join(thread, NULL);
    }
    pthread_attr_destroy(&small);
    return argument;
}

static void *forks(void *argument)
{
    for (unsigned i = 0; goes_on(); i++) {
        int child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            churn(300, i + 1);
            if (i % 2 != 0)
                execl("/bin/true", "true", (char *)NULL);
            _exit(0);
        }
        check_child(child, "a child");
    }
    return argument;
}

static void *opens(void *argument)
{
    while (goes_on()) {
        void *handle = dlopen(plugin, RTLD_NOW | RTLD_LOCAL);
        CHECK(handle != NULL);
        void (*call)(void) = (void (*)(void))dlsym(handle, "plugin_allocates");
        CHECK(call != NULL);
        call();
        dlclose(handle);
    }
    return argument;
}

static ucontext_t outside, inside;

static void coroutine(void)
{
    churn(50, 3);
    swapcontext(&inside, &outside);
    churn(50, 4);
}

static void run_coroutine(char *stack, size_t bytes)
{
    getcontext(&inside);
    inside.uc_stack.ss_sp = stack;
    inside.uc_stack.ss_size = bytes;
    inside.uc_link = &outside;
    makecontext(&inside, coroutine, 0);
    swapcontext(&outside, &inside);
    churn(20, 5);
    swapcontext(&outside, &inside);
}

static void on_signal(int number)
{
    (void)number;
    churn(20, 6);
}

static void jump(void)
{
    static jmp_buf back;
    if (setjmp(back) == 0) {
        churn(20, 7);
        longjmp(back, 1);
    }
}

/* Coroutines on stacks of 8 KiB, handlers on one of their own, jumps. */
static void *contexts(void *argument)
{
    enum { STACK = 8192, OTHER = 16384 };
    char *stack = malloc(STACK), *other = malloc(OTHER);
    stack_t of_handlers = {.ss_sp = other, .ss_size = OTHER};
    CHECK(sigaltstack(&of_handlers, NULL) == 0);
    while (goes_on()) {
        run_coroutine(stack, STACK);
        pthread_kill(pthread_self(), SIGUSR1);
        jump();
    }
    of_handlers.ss_flags = SS_DISABLE;
    sigaltstack(&of_handlers, NULL);
    free(stack);
    free(other);
    return argument;
}

/* ---- On and off ---- */

static void turn(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        snug_profile_begin();
        usleep(2000);
        snug_profile_end();
        usleep(500);
    }
}

static void many(void)
{
    void *(*const workers[])(void *) = {threads_end, forks, opens, contexts};
    enum { WORKERS = sizeof(workers) / sizeof(workers[0]) };
    pthread_t threads[WORKERS];
    struct sigaction action;
    unsigned count = (unsigned)test_scale(50, 1000);
    memset(&action, 0, sizeof(action));
    action.sa_handler = on_signal;
    action.sa_flags = SA_ONSTACK;
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    for (unsigned i = 0; i < WORKERS; i++)
        pthread_create(&threads[i], NULL, workers[i], NULL);
    turn(count / 2);
    size_t resident = resident_kib();
    uint32_t nodes = view_profile()->stacks.nodes.table.used;
    turn(count / 2);
    size_t grown = resident_kib() - resident,
           tables = view_profile()->stacks.nodes.table.used - nodes;
    __atomic_store_n(&ended, true, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < WORKERS; i++)
        pthread_join(threads[i], NULL);
    /* What is in the tables stays: 24 bytes a call, and a library that is opened again may be
     * somewhere else each time. */
    CHECK_MSG((ssize_t)grown < (ssize_t)(16384 + tables * 64 / 1024), "%zu KiB more", grown);
}

/* ---- While the loader is at it ---- */

static sem_t is_in, may_go;

void plugin_is_in(void); /* the plugin's constructor calls it */

__attribute__((visibility("default"))) void plugin_is_in(void)
{
    sem_post(&is_in);
    sem_wait(&may_go);
}

static void *open_slowly(void *argument)
{
    void *handle = dlopen(plugin, RTLD_NOW);
    CHECK(handle != NULL);
    dlclose(handle);
    return argument;
}

static void loader(void)
{
    pthread_t thread;
    setenv("PLUGIN_WAITS", "1", 1);
    sem_init(&is_in, 0, 0);
    sem_init(&may_go, 0, 0);
    snug_profile_begin();
    pthread_create(&thread, NULL, open_slowly, NULL);
    sem_wait(&is_in);
    const struct profile *profile = view_profile();
    uint32_t before = profile->sites.used;
    churn(1000, 8);
    CHECK(profile->sites.used > before);
    sem_post(&may_go);
    pthread_join(thread, NULL);
    snug_profile_end();
}

static void say_what_is_left(const struct profile *profile)
{
    for (uint32_t number = 1; number < profile->sites.used; number++) {
        const struct site *site = view_site(profile, number);
        if (site->live_samples != 0)
            fprintf(stderr, "%u samples of %lu bytes are live\n", site->live_samples,
                    (unsigned long)site->live_bytes);
    }
}

int main(int count, char **arguments)
{
    test_begin(60);
    CHECK(count == 3 && &snug_profile_begin != NULL);
    plugin = arguments[2];
    churn(100, 1);
    if (strcmp(arguments[1], "many") == 0)
        many();
    else
        loader();
    const struct profile *profile = view_profile();
    CHECK(profile->lost == 0);
    CHECK_MSG(profile->totals.live_bytes < 65536, "%lu bytes are live",
              (unsigned long)profile->totals.live_bytes);
    if (getenv("LOAD_SAYS") != NULL)
        say_what_is_left(profile);
    return test_end();
}
