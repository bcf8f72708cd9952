/*
 * What the headers of today's glibc call and glibc 2.31 had under another name only. See
 * scripts/older_libc.py.
 */
#include <sys/stat.h>

int __fxstat(int version, int file, struct stat *stat);

/* Layout: what x86-64's and aarch64's glibc call the only form of struct stat that they have. */
#ifdef __x86_64__
enum { STAT_FORM = 1 };
#else
enum { STAT_FORM = 0 };
#endif

__attribute__((visibility("hidden"))) int fstat(int file, struct stat *stat)
{
    return __fxstat(STAT_FORM, file, stat);
}
