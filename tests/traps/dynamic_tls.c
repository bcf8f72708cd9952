/*
 * dynamic_tls.c - trap 2: shared objects with dynamic thread-local variables come and go while
 * eight threads allocate. The loader allocates a thread's copy of such variables with malloc, from
 * inside of the variable's first access: a malloc that has such variables itself would recurse.
 *
 *   dynamic_tls PLUGIN         PLUGIN: built from tls_plugin.c
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>

#include "check.h"

enum { THREADS = 8 };

static const char *plugin_path;
static atomic_int loads;
static int loads_wanted;

/* Opens the object, uses its variables in this thread, and closes it. */
static void open_use_close(uint64_t value)
{
    void *plugin = dlopen(plugin_path, RTLD_NOW | RTLD_LOCAL);
    CHECK_MSG(plugin != NULL, "%s", dlerror());
    uint64_t (*touch)(uint64_t) = (uint64_t (*)(uint64_t))dlsym(plugin, "plugin_touch");
    CHECK(touch != NULL);
    /* The count goes on from where it was if another thread has the object open as well. */
    uint64_t first = touch(value);
    CHECK(first > value && touch(value) == first + 1);
    CHECK(dlclose(plugin) == 0);
}

static void *churn(void *argument)
{
    enum { BLOCKS = 200 };
    void *blocks[BLOCKS] = {NULL};
    size_t sizes[BLOCKS] = {0};
    uint64_t random = (uintptr_t)argument * 31 + 7;
    for (uint64_t step = 0; atomic_load(&loads) < loads_wanted; step++) {
        size_t i = random_next(&random) % BLOCKS;
        if (blocks[i] != NULL)
            CHECK(pattern_holds(blocks[i], sizes[i], sizes[i], i));
        free(blocks[i]);
        sizes[i] = 1 + random_next(&random) % 3000;
        blocks[i] = opaque(malloc(sizes[i]));
        CHECK(blocks[i] != NULL);
        pattern_fill(blocks[i], sizes[i], i);
        if (step % 500 == 0 && (uintptr_t)argument % 2 == 0) {
            open_use_close(step);
            atomic_fetch_add(&loads, 1);
        }
    }
    for (size_t i = 0; i < BLOCKS; i++)
        free(blocks[i]);
    return NULL;
}

/* Threads that start and end while the object is open get their own copies, and lose them. */
static void *short_lived(void *touch)
{
    CHECK(((uint64_t (*)(uint64_t))touch)(5) == 6);
    free(opaque(malloc(100)));
    return NULL;
}

static void threads_come_and_go(void)
{
    void *plugin = dlopen(plugin_path, RTLD_NOW | RTLD_LOCAL);
    CHECK(plugin != NULL);
    void *touch = dlsym(plugin, "plugin_touch");
    CHECK(touch != NULL);
    for (int i = 0; i < 200; i++) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, short_lived, touch) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
    }
    CHECK(dlclose(plugin) == 0);
}

int main(int argc, char **argv)
{
    test_begin(60);
    CHECK(argc == 2);
    plugin_path = argv[1];
    loads_wanted = (int)test_scale(400, 20000);
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, churn, (void *)i) == 0);
    threads_come_and_go();
    for (size_t i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    return test_end();
}
