/*
 * dlopen.c - trap 4, the other side: the library takes dlopen over, and nothing but the flag
 * RTLD_DEEPBIND may become different by that. Above all libc must see who really calls.
 *
 *   dlopen runpath LIBRARY         LIBRARY has RUNPATH=$ORIGIN/plugins, and finds plugin.so by it
 *   dlopen origin LIBRARY          $ORIGIN in a path is the directory of LIBRARY, which calls
 *   dlopen failure LIBRARY         what dlerror says, and that it says it once
 *   dlopen handles LIBRARY         the program itself, RTLD_NOLOAD, and one handle for one object
 *   dlopen spaces LIBRARY PLUGIN   name spaces of their own keep their malloc; the base has ours
 *   dlopen threads LIBRARY         many threads call it, while others allocate
 *   dlopen clash LIBRARY NUMBER    a name that the program (1) and the plugin (2) define: whose is
 *                                  it for the plugin, if it is opened with RTLD_DEEPBIND?
 *
 * LIBRARY is built from dlopen_library.c, and plugins/plugin.so beside it from dlopen_plugin.c;
 * PLUGIN is that of deepbind.c. All but `spaces` and `clash` hold without the library, too.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "check.h"

__attribute__((visibility("default"))) int whose(void);

int whose(void)
{
    return 1;
}

static void *(*library_open)(const char *path, int mode);

static void *symbol(void *handle, const char *name)
{
    void *found = dlsym(handle, name);
    CHECK_MSG(found != NULL, "%s", dlerror());
    return found;
}

static void library_use(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    CHECK_MSG(library != NULL, "%s", dlerror());
    library_open = (void *(*)(const char *, int))symbol(library, "library_open");
}

/* Found by the library, whatever the mode, and not by the program. */
static void plugin_is_found(const char *path)
{
    static const int modes[] = {RTLD_NOW | RTLD_DEEPBIND, RTLD_NOW, RTLD_LAZY | RTLD_DEEPBIND};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        void *plugin = library_open(path, modes[i]);
        CHECK_MSG(plugin != NULL, "the caller's directory does not count: %s", dlerror());
        symbol(plugin, "plugin_whose");
        CHECK(dlclose(plugin) == 0);
        CHECK(dlopen(path, modes[i]) == NULL); /* the program has no such directory */
        CHECK(dlerror() != NULL);
    }
}

static void failure(void)
{
    static const char missing[] =
        "no-such-object.so: cannot open shared object file: No such file or directory";
    CHECK(dlerror() == NULL);
    for (int i = 0; i < 2; i++) {
        CHECK(library_open("no-such-object.so", RTLD_NOW | RTLD_DEEPBIND) == NULL);
        const char *said = dlerror();
        CHECK_MSG(said != NULL && strcmp(said, missing) == 0, "%s", said);
        CHECK(dlerror() == NULL);
    }
    CHECK(library_open("plugin.so", RTLD_DEEPBIND) == NULL); /* neither lazy nor now */
    const char *said = dlerror();
    CHECK_MSG(said != NULL &&
                  strcmp(said, "plugin.so: invalid mode for dlopen(): Invalid argument") == 0,
              "%s", said);
}

static void handles(void)
{
    void *self = library_open(NULL, RTLD_NOW);
    CHECK(self != NULL && symbol(self, "whose") == (void *)whose);
    CHECK(dlclose(self) == 0);
    CHECK(library_open("plugin.so", RTLD_NOW | RTLD_NOLOAD) == NULL);
    dlerror();
    void *first = library_open("plugin.so", RTLD_NOW);
    CHECK_MSG(first != NULL, "%s", dlerror());
    CHECK(library_open("plugin.so", RTLD_NOW | RTLD_NOLOAD | RTLD_DEEPBIND) == first);
    CHECK(dlclose(first) == 0 && dlclose(first) == 0);
    CHECK(library_open("plugin.so", RTLD_NOW | RTLD_NOLOAD) == NULL);
    dlerror();
}

static Lmid_t space_of(void *handle)
{
    Lmid_t space = -2;
    CHECK_MSG(dlinfo(handle, RTLD_DI_LMID, &space) == 0, "%s", dlerror());
    return space;
}

static void *free_of(void *plugin)
{
    return ((void *(*)(void))symbol(plugin, "plugin_free_function"))();
}

static void spaces(const char *library, const char *plugin)
{
    void *own = dlmopen(LM_ID_NEWLM, plugin, RTLD_NOW | RTLD_DEEPBIND);
    CHECK_MSG(own != NULL, "%s", dlerror());
    CHECK(space_of(own) != LM_ID_BASE && free_of(own) != (void *)free);
    char *(*make)(size_t) = (char *(*)(size_t))symbol(own, "plugin_make");
    void (*take)(char *) = (void (*)(char *))symbol(own, "plugin_take");
    for (size_t size = 1; size < 1000000; size *= 3)
        take(make(size));

    /* What is in that space opens others into it. */
    void *inside = dlmopen(space_of(own), library, RTLD_NOW);
    CHECK_MSG(inside != NULL, "%s", dlerror());
    void *(*open_inside)(const char *, int) =
        (void *(*)(const char *, int))symbol(inside, "library_open");
    void *opened = open_inside("plugin.so", RTLD_NOW | RTLD_DEEPBIND);
    CHECK_MSG(opened != NULL, "%s", dlerror());
    CHECK(space_of(opened) == space_of(own));

    void *base = dlmopen(LM_ID_BASE, plugin, RTLD_NOW | RTLD_DEEPBIND);
    CHECK_MSG(base != NULL, "%s", dlerror());
    CHECK_MSG(space_of(base) == LM_ID_BASE && free_of(base) == (void *)free,
              "the plugin's free is not the program's");
}

enum { OPENERS = 8, ALLOCATORS = 8 };

static pthread_barrier_t all_ready;

static void *open_often(void *unused)
{
    (void)unused;
    pthread_barrier_wait(&all_ready);
    for (size_t i = 0; i < test_scale(20, 300); i++) {
        void *plugin = library_open("plugin.so", RTLD_NOW | RTLD_DEEPBIND);
        CHECK_MSG(plugin != NULL, "%s", dlerror());
        CHECK(library_open("no-such-object.so", RTLD_NOW) == NULL && dlerror() != NULL);
        CHECK(dlclose(plugin) == 0);
    }
    return NULL;
}

static void *allocate_often(void *unused)
{
    (void)unused;
    pthread_barrier_wait(&all_ready);
    for (size_t i = 0; i < test_scale(20000, 300000); i++) {
        size_t size = 1 + i * 7919 % 5000;
        char *block = opaque(malloc(size));
        pattern_fill(block, size, i);
        CHECK(pattern_holds(block, size, size, i));
        free(block);
    }
    return NULL;
}

static void threads(void)
{
    pthread_t thread[OPENERS + ALLOCATORS];
    CHECK(pthread_barrier_init(&all_ready, NULL, OPENERS + ALLOCATORS) == 0);
    for (int i = 0; i < OPENERS + ALLOCATORS; i++)
        CHECK(pthread_create(&thread[i], NULL, i < OPENERS ? open_often : allocate_often, NULL) ==
              0);
    for (int i = 0; i < OPENERS + ALLOCATORS; i++)
        CHECK(pthread_join(thread[i], NULL) == 0);
}

static void clash(int expected)
{
    void *plugin = library_open("plugin.so", RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    CHECK_MSG(plugin != NULL, "%s", dlerror());
    int found = ((int (*)(void))symbol(plugin, "plugin_whose"))();
    CHECK_MSG(found == expected, "the plugin found the name of %d, not of %d", found, expected);
    void *plain = library_open("plugin.so", RTLD_NOW);
    CHECK(plain == plugin);
}

int main(int argc, char **argv)
{
    test_begin(30);
    CHECK(argc >= 3);
    const char *what = argv[1];
    library_use(argv[2]);
    if (strcmp(what, "runpath") == 0)
        plugin_is_found("plugin.so");
    else if (strcmp(what, "origin") == 0)
        plugin_is_found("$ORIGIN/plugins/plugin.so");
    else if (strcmp(what, "failure") == 0)
        failure();
    else if (strcmp(what, "handles") == 0)
        handles();
    else if (strcmp(what, "spaces") == 0)
        spaces(argv[2], argv[3]);
    else if (strcmp(what, "threads") == 0)
        threads();
    else if (strcmp(what, "clash") == 0)
        clash(atoi(argv[3]));
    else
        check_failed(__FILE__, __LINE__, "no such case: %s", what);
    return test_end();
}
