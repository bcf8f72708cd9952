/*
 * deepbind.c - trap 4: a plugin opened with RTLD_DEEPBIND searches itself and its own dependencies
 * before the program, and so finds libc's malloc before a preloaded one, unless the flag is
 * dropped.
 *
 *   deepbind own PLUGIN        the plugin only frees what it made itself: that works everywhere
 *   deepbind exchange PLUGIN   it frees what the program's strdup returned, resizes the program's
 *                              block, and returns blocks that the program frees
 *
 * PLUGIN is built from deepbind_plugin.c, alone or linked with the allocator. Linked, both sides
 * have one malloc and may exchange blocks in any case. Alone, they have if the library drops the
 * flag; where it holds (SNUG_DEEPBIND=keep), the plugin's free is libc's own.
 */
#include <dlfcn.h>
#include <string.h>

#include "check.h"

static void (*take)(char *);
static char *(*grow)(char *, size_t);
static char *(*make)(size_t);

static void exchange(void)
{
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
}

/* Two heaps in one process, each with its own blocks. */
static void own(void)
{
    for (size_t size = 1; size < 3000000; size = size * 3 + 1) {
        char *theirs = opaque(make(size));
        char *ours = opaque(malloc(size));
        pattern_fill(ours, size, 1);
        theirs = opaque(grow(theirs, size * 2));
        CHECK(theirs != NULL && theirs != ours);
        pattern_fill(theirs, size * 2, 2);
        CHECK(pattern_holds(ours, size, size, 1));
        take(theirs);
        free(ours);
    }
}

int main(int argc, char **argv)
{
    test_begin(20);
    CHECK(argc == 3);
    void *plugin = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    CHECK_MSG(plugin != NULL, "%s", dlerror());
    take = (void (*)(char *))dlsym(plugin, "plugin_take");
    grow = (char *(*)(char *, size_t))dlsym(plugin, "plugin_grow");
    make = (char *(*)(size_t))dlsym(plugin, "plugin_make");
    void *(*plugins_free)(void) = (void *(*)(void))dlsym(plugin, "plugin_free_function");
    CHECK(take != NULL && grow != NULL && make != NULL && plugins_free != NULL);
    if (strcmp(argv[1], "own") == 0) {
        own();
    } else {
        CHECK_MSG(plugins_free() == (void *)free, "the plugin's free is not the program's");
        exchange();
    }
    CHECK(dlclose(plugin) == 0);
    return test_end();
}
