/*
 * What happens when the library is loaded and when the process ends.
 */
#include <stdlib.h>
#include <unistd.h>

#include "api/copies.h"
#include "heap/heap.h"
#include "platform/output.h"
#include "report/report.h"

/* glibc hands every constructor the program's arguments and environment, and calls this one, which
 * asks to be first, before it sets environ itself. Others pass nothing. */
__attribute__((constructor)) AT_START static void library_start(int count, char **arguments,
                                                                char **environment)
{
    (void)count;
    (void)arguments;
    os_errors_note();
#if defined(__GLIBC__)
    heap_start(environ != NULL ? environ : environment);
#else
    (void)environment;
    heap_start(environ);
#endif
    copies_begin();
#if !defined(SNUG_ATFORK)
    heap_init(); /* with handlers of fork that are to be the first: see api/atfork.c */
#endif
    report_start();
    if (report_is_wanted())
        at_quick_exit(report_at_exit);
}

__attribute__((destructor)) AT_START static void library_end(void)
{
    report_at_exit();
    heap_exit();
}
