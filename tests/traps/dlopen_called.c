/*
 * dlopen_called.c - a planted fault for dlopen.c: a wrapper that makes an ordinary call. libc takes
 * the wrapper's file for the caller then.
 */
#include <dlfcn.h>
#include <string.h>

__attribute__((visibility("default"))) void *dlopen(const char *path, int mode)
{
    void *(*next)(const char *, int);
    void *found = dlsym(RTLD_NEXT, "dlopen");
    memcpy(&next, &found, sizeof(next));
    void *volatile handle = next(path, mode & ~RTLD_DEEPBIND);
    return handle;
}
