/*
 * pthread_atfork, behind the heap's own handlers. Those take the heap's locks, and are to be the
 * first that a process registers: then they run after all others before a fork, and before them
 * after it (heap/fork.c). They are registered when the heap is made, which a program that takes no
 * memory does without; so who registers others has it made first.
 *
 * Only with glibc, whose pthread_atfork is a piece of each program that calls __register_atfork
 * with a mark of its own; and only in the shared library: a fully static program has no next
 * function to be found. Elsewhere the heap is made when the library is loaded (library.c).
 */
#include <dlfcn.h>
#include <errno.h>

#include "heap/heap.h"

typedef void handler(void);

/* ENOMEM: the handlers were not registered. */
__attribute__((visibility("default"))) int __register_atfork(handler *before, handler *in_parent,
                                                             handler *in_child, void *mark);

int __register_atfork(handler *before, handler *in_parent, handler *in_child, void *mark)
{
    READ_BY_ALL static const char name[] = "__register_atfork";
    static int (*known)(handler *, handler *, handler *, void *);
    heap_init();
    /* relaxed: whoever looks finds the same */
    int (*next)(handler *, handler *, handler *, void *) =
        __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (next == NULL) {
        void *found = dlsym(RTLD_NEXT, name);
        __builtin_memcpy(&next, &found, sizeof(next));
        __atomic_store_n(&known, next, __ATOMIC_RELAXED);
    }
    return next != NULL ? next(before, in_parent, in_child, mark) : ENOMEM;
}
