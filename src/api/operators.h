/*
 * Forms of operator new and delete that a program may have instead of ours. The standard lets it
 * replace any, and says which of them all others stand for: a program that has a plain operator new
 * and delete of its own, and no more, expects them to be called for arrays, for nothrow, and where
 * a delete states a size.
 *
 *   new(nothrow), new[]                      ->  new
 *   new[](nothrow)                           ->  new[]
 *   delete(size), delete(nothrow), delete[]  ->  delete
 *   delete[](size), delete[](nothrow)        ->  delete[]       the same of aligned ones
 *
 * So these names, alone of all that the library exports, are looked up in the whole process
 * (operators.list), and one of the program's comes before ours. If it has any, no form that stands
 * for another is served from the fast path (page_map.form_home, form_sizes); what such a form costs
 * in all other programs is not an instruction more.
 *
 * In the static library they are weak, so that a program's own take their place. In the shared one
 * they are not: tools that stand in for an allocator's functions (Valgrind) leave weak ones alone.
 */
#ifndef SNUG_API_OPERATORS_H
#define SNUG_API_OPERATORS_H

#include <stddef.h>

#include "platform/imports.h"

/* Another may come before it: a compiler believes that of a weak one, and with
 * -fsemantic-interposition of any that others see. */
#if defined(SNUG_STATIC)
#define OPERATOR __attribute__((weak, visibility("default")))
#else
#define OPERATOR __attribute__((visibility("default")))
#endif

OPERATOR void *_Znwm(size_t size);
OPERATOR void *_Znam(size_t size);
OPERATOR void *_ZnwmSt11align_val_t(size_t size, size_t alignment);
OPERATOR void *_ZnamSt11align_val_t(size_t size, size_t alignment);
OPERATOR void _ZdlPv(void *block);
OPERATOR void _ZdaPv(void *block);
OPERATOR void _ZdlPvSt11align_val_t(void *block, size_t alignment);
OPERATOR void _ZdaPvSt11align_val_t(void *block, size_t alignment);

/* Another name for ours, which stays ours, and whether the process has another by the first. */
#define OWN(name, own) \
    extern __typeof(name) own __attribute__((alias(#name), visibility("hidden")));
#define IS_REPLACED(name, own) \
    form_is_replaced(function_address((void (*)(void))(name)), (void (*)(void))(own))

/* Where a function is that the process has, which the compiler must not think it knows. */
static ALWAYS_INLINE void (*function_address(void (*function)(void)))(void)
{
    OPAQUE(function);
    return function;
}

static ALWAYS_INLINE bool form_is_replaced(void (*found)(void), void (*own)(void))
{
    return UNLIKELY(found != own) && !os_is_stub((uintptr_t)found);
}

/* Not in the static library. */
bool new_is_replaced(void);
void new_find_quiet_forms(void);

/* Whether a form is that stands for no other: with a size, or a nothrow one. Nothing depends on
 * that in most programs, so these names are asked for here, and not of the loader in each. */
bool other_forms_are_replaced(void);

bool delete_is_replaced(void);

#endif
