/*
 * dlopen_library.c - the library of dlopen.c, which opens what it is asked to. The call must not
 * be the last thing it does: a compiler would make a jump of it, and the caller were the program.
 */
#include <dlfcn.h>

__attribute__((visibility("default"))) void *library_open(const char *path, int mode)
{
    void *volatile handle = dlopen(path, mode);
    return handle;
}
