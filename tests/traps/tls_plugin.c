/*
 * tls_plugin.c - a shared object with dynamic thread-local variables, too many for the static
 * block, so that the loader has to allocate them for each thread; opened by dynamic_tls.c.
 */
#include <stdint.h>

static __thread uint64_t counter = 0;
static __thread uint64_t initialised[1000] = {[0] = 11, [999] = 22};

__attribute__((visibility("default"))) uint64_t plugin_touch(uint64_t value)
{
    if (initialised[0] != 11 || initialised[999] != 22)
        return 0;
    initialised[500] = value;
    return value + ++counter;
}
