/*
 * operator new in all its forms. It differs from malloc in what happens when there is no memory:
 * the program's new handler is called and may free some, again and again; without one,
 * std::bad_alloc is thrown.
 *
 * The library depends on no C++ runtime, so it looks for what it needs of one when it needs it: a
 * C++ plugin may bring the runtime long after the library was loaded, and not for all to see. In
 * the static library this file is an object of its own (SNUG_STATIC) with plain references, which
 * a linker takes only for a C++ program, and which then make it take the runtime's part too. The
 * nothrow forms are left to the runtime there: its own call these, inside try and catch.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

#include "api/slow.h"
#include "snug/snug.h"

#define OPERATOR __attribute__((visibility("default")))

typedef void (*new_handler)(void);
new_handler _ZSt15get_new_handlerv(void); /* std::get_new_handler() */
void _ZSt17__throw_bad_allocv(void);      /* std::__throw_bad_alloc() */

#if !defined(SNUG_STATIC)
/* Where the C++ runtime defines `name`; NULL if there is none in the process. */
static COLD void *runtime_function(const char *name)
{
    static const char runtimes[][16] = {"libstdc++.so.6", "libc++.so.1", "libc++abi.so.1"};
    void *found = dlsym(RTLD_NEXT, name);
    for (size_t i = 0; found == NULL && i < sizeof(runtimes) / sizeof(*runtimes); i++) {
        void *runtime = dlopen(runtimes[i], RTLD_LAZY | RTLD_NOLOAD);
        if (runtime != NULL)
            found = dlsym(runtime, name);
    }
    return found;
}
#endif

static COLD new_handler current_handler(void)
{
#if defined(SNUG_STATIC)
    return _ZSt15get_new_handlerv();
#else
    new_handler (*get)(void);
    void *found = runtime_function("_ZSt15get_new_handlerv");
    memcpy(&get, &found, sizeof(get)); /* ISO C has no conversion */
    return found == NULL ? NULL : get();
#endif
}

static COLD _Noreturn void throw_bad_alloc(void)
{
#if defined(SNUG_STATIC)
    _ZSt17__throw_bad_allocv();
#else
    void (*throw)(void);
    void *found = runtime_function("_ZSt17__throw_bad_allocv");
    memcpy(&throw, &found, sizeof(throw));
    if (found != NULL)
        throw();
#endif
    __builtin_trap(); /* operator new without the C++ runtime */
}

/* ---- The throwing forms ---- */

static void *take(size_t size, size_t alignment)
{
    return alignment == 0 ? snug_malloc(size) : snug_aligned_alloc(alignment, size);
}

#if defined(SNUG_STATIC)
/* The magazines are out of reach for an object of its own. */
static ALWAYS_INLINE void *take_fast(size_t size, size_t alignment)
{
    (void)size;
    (void)alignment;
    return NULL;
}
#else
/* What a magazine has, or NULL. */
static ALWAYS_INLINE void *take_fast(size_t size, size_t alignment)
{
    struct cache *cache = thread_self.cache;
    return alignment == 0 ? cache_pop_bytes(cache, size)
                          : cache_pop_aligned(cache, alignment, size);
}
#endif

static NOINLINE void *new_slow(size_t size, size_t alignment)
{
    void *block = take(size, alignment);
    while (UNLIKELY(block == NULL)) {
        new_handler handler = current_handler();
        if (handler == NULL)
            throw_bad_alloc();
        handler();
        block = take(size, alignment);
    }
    return block;
}

static ALWAYS_INLINE void *new_block(size_t size, size_t alignment)
{
    void *block = take_fast(size, alignment);
    return LIKELY(block != NULL) ? block : new_slow(size, alignment);
}

/* Each also as new[], which is the same. */
#define NEW(suffix, PARAMETERS, RESULT) \
    OPERATOR void *_Znw##suffix PARAMETERS; \
    HOT OPERATOR void *_Znw##suffix PARAMETERS \
    { \
        return RESULT; \
    } \
    OPERATOR void *_Zna##suffix PARAMETERS; \
    OPERATOR void *_Zna##suffix PARAMETERS \
    { \
        return RESULT; \
    }

NEW(m, (size_t size), new_block(size, 0))
NEW(mSt11align_val_t, (size_t size, size_t alignment), new_block(size, alignment))

/* ---- The nothrow forms ---- */

#if !defined(SNUG_STATIC)
/* The nothrow forms return NULL whatever happens, also if the new handler throws, and C cannot
 * catch: when there is a handler, the runtime's own form is called, which tries the throwing one
 * above and catches. */
static COLD void *alloc_quietly(size_t size, size_t alignment, const void *nothrow)
{
    if (current_handler() == NULL)
        return NULL;
    void *found = runtime_function(alignment == 0 ? "_ZnwmRKSt9nothrow_t"
                                                  : "_ZnwmSt11align_val_tRKSt9nothrow_t");
    if (found == NULL)
        return NULL;
    if (alignment == 0) {
        void *(*quietly)(size_t, const void *);
        memcpy(&quietly, &found, sizeof(quietly));
        return quietly(size, nothrow);
    }
    void *(*quietly)(size_t, size_t, const void *);
    memcpy(&quietly, &found, sizeof(quietly));
    return quietly(size, alignment, nothrow);
}

static NOINLINE void *new_quietly_slow(size_t size, size_t alignment, const void *nothrow)
{
    void *block = take(size, alignment);
    return LIKELY(block != NULL) ? block : alloc_quietly(size, alignment, nothrow);
}

static ALWAYS_INLINE void *new_quietly(size_t size, size_t alignment, const void *nothrow)
{
    void *block = take_fast(size, alignment);
    return LIKELY(block != NULL) ? block : new_quietly_slow(size, alignment, nothrow);
}

NEW(mRKSt9nothrow_t, (size_t size, const void *nothrow), new_quietly(size, 0, nothrow))
NEW(mSt11align_val_tRKSt9nothrow_t, (size_t size, size_t alignment, const void *nothrow),
    new_quietly(size, alignment, nothrow))
#endif
