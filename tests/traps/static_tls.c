/*
 * static_tls.c - trap 1: the library is opened late, when thirty others have used up most of what
 * the loader keeps in reserve for static thread-local variables.
 *
 *   static_tls LIBRARY FILLER...      FILLER: built from tls_filler.c, each with its own variables
 *
 * The allocator is not this program's malloc here. Its functions are called through dlsym, in
 * several threads. Fault it finds: a library with 4 KiB of static TLS cannot be opened any more
 * (the planted run passes tls_hog, which is that).
 */
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "check.h"

static void *(*library_malloc)(size_t size);
static void *(*library_realloc)(void *block, size_t size);
static void (*library_free)(void *block);

static void *use_library(void *argument)
{
    enum { BLOCKS = 500 };
    void *blocks[BLOCKS];
    uint64_t random = (uintptr_t)argument + 1;
    for (int round = 0; round < 20; round++) {
        for (size_t i = 0; i < BLOCKS; i++) {
            size_t size = 16 + random_next(&random) % 4000;
            blocks[i] = library_malloc(size);
            CHECK(blocks[i] != NULL && is_aligned(blocks[i], 16));
            pattern_fill(blocks[i], 16, i);
        }
        for (size_t i = 0; i < BLOCKS; i++) {
            blocks[i] = library_realloc(blocks[i], 5000);
            CHECK(blocks[i] != NULL && pattern_holds(blocks[i], 16, 16, i));
            library_free(blocks[i]);
        }
    }
    return NULL;
}

int main(int argc, char **argv)
{
    test_begin(30);
    CHECK(argc > 2);
    for (int i = 2; i < argc; i++) {
        void *filler = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
        CHECK_MSG(filler != NULL, "%s", dlerror());
    }
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    CHECK_MSG(library != NULL, "%s", dlerror());
    library_malloc = (void *(*)(size_t))dlsym(library, "malloc");
    library_realloc = (void *(*)(void *, size_t))dlsym(library, "realloc");
    library_free = (void (*)(void *))dlsym(library, "free");
    CHECK(library_malloc != NULL && library_realloc != NULL && library_free != NULL);
    CHECK(library_malloc != malloc);

    pthread_t threads[4];
    for (uintptr_t i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, use_library, (void *)i) == 0);
    for (size_t i = 0; i < 4; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    use_library(NULL);
    return 0;
}
