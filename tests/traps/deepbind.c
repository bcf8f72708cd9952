/*
 * deepbind.c - trap 4: a plugin opened with RTLD_DEEPBIND finds libc's malloc before ours, but
 * exchanges blocks with the program: it frees what the program's strdup returned, resizes the
 * program's block, and returns blocks that the program frees.
 *
 *   deepbind PLUGIN           PLUGIN: built from deepbind_plugin.c
 */
#include <dlfcn.h>
#include <string.h>

#include "check.h"

int main(int argc, char **argv)
{
    test_begin(20);
    CHECK(argc == 2);
    void *plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    CHECK_MSG(plugin != NULL, "%s", dlerror());
    void (*take)(char *) = (void (*)(char *))dlsym(plugin, "plugin_take");
    char *(*grow)(char *, size_t) = (char *(*)(char *, size_t))dlsym(plugin, "plugin_grow");
    char *(*make)(size_t) = (char *(*)(size_t))dlsym(plugin, "plugin_make");
    CHECK(take != NULL && grow != NULL && make != NULL);
    for (size_t size = 1; size < 3000000; size = size * 3 + 1) {
        take(opaque(strdup("a string of the program's")));
        take(opaque(malloc(size)));
        char *block = opaque(malloc(size));
        pattern_fill(block, size, size);
        block = opaque(grow(block, size * 2));
        CHECK(block != NULL && pattern_holds(block, size, size, size));
        free(block);
        block = opaque(make(size));
        CHECK(block != NULL);
        block = opaque(realloc(block, size + 100));
        free(block);
    }
    CHECK(dlclose(plugin) == 0);
    return test_end();
}
