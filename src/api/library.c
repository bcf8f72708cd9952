/*
 * What happens when the library is loaded and when the process ends.
 */
#include <stdlib.h>
#include <unistd.h>

#include "api/copies.h"
#include "api/operators.h"
#include "heap/heap.h"
#include "platform/output.h"
#include "report/report.h"

/* Notes whether the program, or a library that is loaded before this one, has operators of its
 * own. */
AT_START static void operators_begin(void)
{
#if defined(SNUG_STATIC)
    if (delete_is_replaced())
        page_map_replace_forms();
#elif defined(SNUG_SHARED)
    if (!delete_is_replaced() && !new_is_replaced())
        return;
    page_map_replace_forms();
    new_find_quiet_forms();
#endif
}

/* Begins to keep who made a block, if all who do are the library's own. In the static library that
 * is not known of operator new, which is an object of its own (new.c). */
AT_START static void makers_begin(void)
{
#if defined(SNUG_SHARED)
    if (heap_makers_are_wanted() && !page_map.forms_replaced && !other_forms_are_replaced())
        heap_makers_begin();
#endif
}

/* In the static library no loader puts it first: other constructors of the program's are called in
 * the order of their numbers, most of which have none and come last. */
#if defined(SNUG_STATIC)
#define FIRST_CONSTRUCTOR __attribute__((constructor(101)))
#else
#define FIRST_CONSTRUCTOR __attribute__((constructor))
#endif

/* glibc hands every constructor the program's arguments and environment, and calls this one, which
 * asks to be first, before it sets environ itself. Others pass nothing. */
FIRST_CONSTRUCTOR AT_START static void library_start(int count, char **arguments,
                                                     char **environment)
{
    (void)count;
    (void)arguments;
    operators_begin();
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
    makers_begin();
    report_start();
    if (report_is_wanted())
        at_quick_exit(report_at_exit);
}

__attribute__((destructor)) AT_START static void library_end(void)
{
    report_at_exit();
    heap_exit();
}
