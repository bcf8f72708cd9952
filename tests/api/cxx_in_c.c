/*
 * cxx_in_c.c - a C program opens a C++ plugin, which brings the C++ library with it, in a scope of
 * its own (RTLD_LOCAL), long after the allocator was loaded. The operators must find the new
 * handler and throw std::bad_alloc all the same.
 *
 *   cxx_in_c PLUGIN
 */
#include <dlfcn.h>

#include "check.h"

int main(int argc, char **argv)
{
    test_begin(20);
    CHECK(argc == 2);
    CHECK_MSG(dlsym(RTLD_DEFAULT, "__cxa_throw") == NULL, "this program has a C++ library");
    void *plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    CHECK_MSG(plugin != NULL, "%s", dlerror());
    int (*run)(size_t) = (int (*)(size_t))dlsym(plugin, "plugin_run");
    CHECK(run != NULL);
    int result = run(opaque_size(SIZE_MAX / 2 + 1));
    CHECK_MSG(result == 0, "the plugin's step %d failed", result);
    CHECK(dlclose(plugin) == 0);
    return test_end();
}
