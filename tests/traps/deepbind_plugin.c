/*
 * deepbind_plugin.c - the plugin of trap 4 (deepbind.c): frees, resizes and makes blocks.
 */
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT void plugin_take(char *block)
{
    free(block);
}

EXPORT char *plugin_grow(char *block, size_t size)
{
    return realloc(block, size);
}

EXPORT char *plugin_make(size_t size)
{
    char *block = malloc(size);
    if (block != NULL)
        memset(block, 1, size);
    return block;
}

EXPORT void *plugin_free_function(void)
{
    return (void *)free;
}
