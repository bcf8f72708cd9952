/*
 * A library that is opened and closed, and allocates as it comes and in between.
 */
#include <stdlib.h>

void plugin_is_in(void) __attribute__((weak));
void plugin_allocates(void);

static void *kept;

__attribute__((constructor)) static void begin(void)
{
    kept = malloc(100);
    if (getenv("PLUGIN_WAITS") != NULL && plugin_is_in != NULL)
        plugin_is_in();
}

__attribute__((destructor)) static void end(void)
{
    free(kept);
}

__attribute__((visibility("default"))) void plugin_allocates(void)
{
    for (unsigned i = 1; i < 20; i++) {
        void *block = malloc(i * 30);
        __asm__ volatile("" : "+r"(block));
        free(block);
    }
}
