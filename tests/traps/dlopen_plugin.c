/*
 * dlopen_plugin.c - the plugin of dlopen.c. It defines a name that the program has as well.
 */
#define EXPORT __attribute__((visibility("default")))

EXPORT int whose(void);

EXPORT int whose(void)
{
    return 2;
}

EXPORT int plugin_whose(void)
{
    int (*volatile found)(void) = whose; /* as the dynamic linker has bound it */
    return found();
}
