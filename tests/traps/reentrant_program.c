/*
 * reentrant_program.c - trap 3: the program that runs with the allocator and reentrant.c both
 * preloaded, in either order. It allocates in threads and calls the wrapped functions itself.
 * Fault it finds (planted.c): init_lock, which hangs before main begins.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"

extern int reentrant_calls(void) __attribute__((weak));

static int count_object(struct dl_phdr_info *info, size_t size, void *count)
{
    (void)info, (void)size;
    ++*(int *)count;
    free(opaque(malloc(100)));
    return 0;
}

static void *work(void *argument)
{
    uint64_t random = (uintptr_t)argument + 1;
    void *blocks[300] = {NULL};
    for (int step = 0; step < 20000; step++) {
        void **block = &blocks[random_next(&random) % 300];
        free(*block);
        size_t size = 1 + random_next(&random) % (step % 100 == 0 ? 2000000 : 2000);
        *block = opaque(malloc(size));
        CHECK(*block != NULL);
        pattern_fill(*block, size < 100 ? size : 100, size);
    }
    for (size_t i = 0; i < 300; i++)
        free(blocks[i]);
    return NULL;
}

static void call_wrapped_functions(void)
{
    int before = reentrant_calls();
    int objects = 0;
    CHECK(dl_iterate_phdr(count_object, &objects) == 0 && objects >= 3);
    int file = open("/dev/zero", O_RDONLY);
    CHECK(file >= 0);
    char byte = 1;
    CHECK(read(file, &byte, 1) == 1 && byte == 0);
    close(file);
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED && munmap(page, 4096) == 0);
    CHECK(reentrant_calls() >= before + 5);
}

int main(void)
{
    test_begin(30);
    CHECK_MSG(reentrant_calls != NULL, "the wrappers are not preloaded");
    call_wrapped_functions();
    pthread_t threads[4];
    for (uintptr_t i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
    for (size_t i = 0; i < 4; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    call_wrapped_functions();
    (void)malloc_trim(0);
    return test_end();
}
