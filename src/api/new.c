/*
 * operator new in all its forms. It differs from malloc in what happens when there is no memory:
 * the program's new handler is called and may free some, again and again; without one,
 * std::bad_alloc is thrown.
 *
 * The library depends on no C++ runtime, so it names the two functions of it by their symbols, and
 * weakly: a C program has neither and calls neither. In the static library this file is an object
 * of its own with strong references (SNUG_STATIC), which a linker takes only for a C++ program, and
 * which then make it take the C++ runtime's part too.
 */
#include <stdint.h>

#include "snug/snug.h"

#if defined(SNUG_STATIC)
#define RUNTIME
#else
#define RUNTIME __attribute__((weak))
#endif

typedef void (*new_handler)(void);
new_handler _ZSt15get_new_handlerv(void) RUNTIME;         /* std::get_new_handler() */
void _ZSt17__throw_bad_allocv(void) RUNTIME;              /* std::__throw_bad_alloc() */

#define OPERATOR __attribute__((visibility("default")))

static new_handler current_handler(void)
{
#if !defined(SNUG_STATIC)
    if (_ZSt15get_new_handlerv == NULL)
        return NULL;
#endif
    return _ZSt15get_new_handlerv();
}

static void *take(size_t size, size_t alignment)
{
    return alignment == 0 ? snug_malloc(size) : snug_aligned_alloc(alignment, size);
}

/* Without a handler: throws, or, for the nothrow forms, returns NULL. A handler that throws ends
 * the nothrow forms' promise; libstdc++ catches there, which C cannot: std::terminate follows from
 * their exception specification in the caller, as for any noexcept function. */
static __attribute__((noinline, cold)) void *take_again(size_t size, size_t alignment,
                                                        int may_throw)
{
    for (;;) {
        new_handler handler = current_handler();
        if (handler == NULL)
            break;
        handler();
        void *block = take(size, alignment);
        if (block != NULL)
            return block;
    }
    if (!may_throw)
        return NULL;
#if !defined(SNUG_STATIC)
    if (_ZSt17__throw_bad_allocv == NULL)
        __builtin_trap(); /* operator new without the C++ runtime */
#endif
    _ZSt17__throw_bad_allocv();
    __builtin_unreachable();
}

static inline void *new_block(size_t size, size_t alignment, int may_throw)
{
    void *block = take(size, alignment);
    return __builtin_expect(block != NULL, 1) ? block : take_again(size, alignment, may_throw);
}

/* new, new[]; then nothrow, aligned, aligned nothrow. The nothrow argument is a reference to an
 * empty object. */
#define NEW(suffix, PARAMETERS, alignment, may_throw)        \
    OPERATOR void *_Znw##suffix PARAMETERS;                  \
    OPERATOR void *_Znw##suffix PARAMETERS                   \
    {                                                        \
        return new_block(size, alignment, may_throw);        \
    }                                                        \
    OPERATOR void *_Zna##suffix PARAMETERS;                  \
    OPERATOR void *_Zna##suffix PARAMETERS                   \
    {                                                        \
        return new_block(size, alignment, may_throw);        \
    }

NEW(m, (size_t size), 0, 1)
NEW(mRKSt9nothrow_t, (size_t size, const void *nothrow __attribute__((unused))), 0, 0)
NEW(mSt11align_val_t, (size_t size, size_t alignment), alignment, 1)
NEW(mSt11align_val_tRKSt9nothrow_t,
    (size_t size, size_t alignment, const void *nothrow __attribute__((unused))), alignment, 0)
