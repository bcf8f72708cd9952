/*
 * copies_opened.c OBJECT COPY TEXT - SNUG_CHECK_COPIES=1 in a program whose threads open objects at
 * the same time: OBJECT and its COPY, opened_object.c, which take the loader long. TEXT is one with
 * relocations in its code ("none" where no linker makes it), and works as before.
 *
 * Faults it finds: words that are exchanged, or pages that are protected, while the loader still
 * writes there, and words in code, end the program.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "check.h"

enum { TURNS = 300 };

static void *open_often(void *path)
{
    for (unsigned turn = 0; turn < TURNS; turn++) {
        void *object = dlopen(path, RTLD_NOW);
        CHECK_MSG(object != NULL, "%s", dlerror());
        CHECK(dlclose(object) == 0);
    }
    return NULL;
}

static void call_copy(const char *path)
{
    void (*copy)(char *, const char *, size_t);
    char to[3] = "", from[3] = "ab";
    void *object = dlopen(path, RTLD_NOW);
    CHECK_MSG(object != NULL, "%s", dlerror());
    void *found = dlsym(object, "opened_copy");
    CHECK(found != NULL);
    memcpy(&copy, &found, sizeof copy);
    copy(to, from, sizeof from);
    CHECK(strcmp(to, "ab") == 0);
}

int main(int argc, char **argv)
{
    pthread_t threads[2];
    test_begin(60);
    CHECK(argc == 4);
    for (int i = 0; i < 2; i++)
        CHECK(pthread_create(&threads[i], NULL, open_often, argv[1 + i]) == 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    if (strcmp(argv[3], "none") != 0)
        call_copy(argv[3]);
    call_copy(argv[1]); /* and with that, what was opened before is looked at */
    return test_end();
}
