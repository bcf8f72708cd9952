/*
 * operator new in all its forms. It differs from malloc in what happens when there is no memory:
 * the program's new handler is called and may free some, again and again; without one,
 * std::bad_alloc is thrown.
 *
 * The library depends on no C++ runtime, so it looks for what it needs of one when it needs it: a
 * C++ plugin may bring the runtime long after the library was loaded, and not for all to see. In
 * the static library this file is an object of its own with plain references, which a linker takes
 * only for a C++ program, and which then make it take the runtime's part too. The nothrow forms are
 * left to the runtime there: its own call these, inside try and catch.
 *
 * A program may have its own of some of these forms; see operators.h.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

#include "api/operators.h"
#include "api/slow.h"
#include "snug/snug.h"

typedef void (*new_handler)(void);
new_handler _ZSt15get_new_handlerv(void); /* std::get_new_handler() */
#if defined(SNUG_STATIC)
void _ZSt17__throw_bad_allocv(void); /* std::__throw_bad_alloc() */
#endif

#if !defined(SNUG_STATIC)
/* Where the object that the code at `caller` is in, or what that is linked with, defines `name`. */
static COLD void *function_for(const void *caller, const char *name)
{
    Dl_info info;
    void *object =
        dladdr(caller, &info) == 0 ? NULL : dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    if (object == NULL)
        return NULL;
    void *found = dlsym(object, name);
    dlclose(object);
    return found;
}

/* Where the C++ runtime of the code at `caller` defines `name`: a plugin may have one of its own in
 * it, whose exceptions no other's are. NULL if there is none in the process. No `caller`: any
 * runtime. */
static COLD void *runtime_function(const void *caller, const char *name)
{
    static const char runtimes[][16] = {"libstdc++.so.6", "libc++.so.1", "libc++abi.so.1"};
    void *found = caller == NULL ? NULL : function_for(caller, name);
    if (found == NULL)
        found = dlsym(RTLD_NEXT, name);
    for (size_t i = 0; found == NULL && i < sizeof(runtimes) / sizeof(*runtimes); i++) {
        void *runtime = dlopen(runtimes[i], RTLD_LAZY | RTLD_NOLOAD);
        if (runtime != NULL)
            found = dlsym(runtime, name);
    }
    return found;
}
#endif

static COLD new_handler current_handler(const void *caller)
{
#if defined(SNUG_STATIC)
    (void)caller;
    return _ZSt15get_new_handlerv();
#else
    new_handler (*get)(void);
    void *found = runtime_function(caller, "_ZSt15get_new_handlerv");
    memcpy(&get, &found, sizeof(get)); /* ISO C has no conversion */
    return found == NULL ? NULL : get();
#endif
}

static COLD _Noreturn void throw_bad_alloc(const void *caller)
{
#if defined(SNUG_STATIC)
    (void)caller;
    _ZSt17__throw_bad_allocv();
#else
    /* By what the ABI says of exceptions, and has in every runtime. Source: Itanium C++ ABI,
     * Exception Handling, 2.4. */
    void *type = runtime_function(caller, "_ZTISt9bad_alloc");
    void *(*allocate)(size_t);
    void (*throw)(void *, void *, void *);
    char *virtual = runtime_function(caller, "_ZTVSt9bad_alloc");
    void *end = runtime_function(caller, "_ZNSt9bad_allocD1Ev");
    void *found[2] = {runtime_function(caller, "__cxa_allocate_exception"),
                      runtime_function(caller, "__cxa_throw")};
    memcpy(&allocate, &found[0], sizeof(allocate));
    memcpy(&throw, &found[1], sizeof(throw));
    if (type != NULL && virtual != NULL && found[0] != NULL && found[1] != NULL) {
        char **exception = allocate(sizeof(*exception));
        *exception = virtual + 2 * sizeof(void *); /* behind the distance to the top and the type */
        throw(exception, type, end);
    }
#endif
    __builtin_trap(); /* operator new without the C++ runtime */
}

/* ---- The throwing forms ---- */

/* Who made a block is not kept in the static library (library.c). */
static inline void note_maker(void *block, enum maker maker)
{
#if defined(SNUG_STATIC)
    (void)block;
    (void)maker;
#else
    if (UNLIKELY(heap_makers_count) && block != NULL)
        heap_set_maker(block, maker);
#endif
}

/* `maker` is of a form without an alignment. */
static NOINLINE void *take(size_t size, size_t alignment, enum maker maker)
{
    void *block = alignment == 0 ? snug_malloc(size) : snug_aligned_alloc(alignment, size);
    note_maker(block, alignment == 0 ? maker : MADE_BY_NEW_ALIGNED);
    return block;
}

/* Called by jumps, unless nothing is optimised: its return address is that of the form's caller. */
static NOINLINE void *new_slow(size_t size, size_t alignment, enum maker maker)
{
    void *block = take(size, alignment, maker);
    while (UNLIKELY(block == NULL)) {
        const void *caller = __builtin_return_address(0);
        new_handler handler = current_handler(caller);
        if (handler == NULL)
            throw_bad_alloc(caller);
        handler();
        block = take(size, alignment, maker);
    }
    return block;
}

#if defined(SNUG_STATIC)
/* The magazines are out of reach for an object of its own. */
OPERATOR void *_Znwm(size_t size)
{
    return new_slow(size, 0, MADE_BY_NEW);
}

OPERATOR void *_ZnwmSt11align_val_t(size_t size, size_t alignment)
{
    return new_slow(size, alignment, MADE_BY_NEW);
}

OPERATOR void *_Znam(size_t size)
{
    return _Znwm(size);
}

OPERATOR void *_ZnamSt11align_val_t(size_t size, size_t alignment)
{
    return _ZnwmSt11align_val_t(size, alignment);
}
#else

/* What a magazine has, or NULL. */
static ALWAYS_INLINE void *take_fast(size_t size, size_t alignment, const size_t *sizes)
{
    struct cache *cache = thread_self.cache;
    return alignment == 0 ? cache_pop_below(cache, size, sizes)
                          : cache_pop_aligned_below(cache, alignment, size, sizes);
}

static ALWAYS_INLINE void *new_block(size_t size, size_t alignment)
{
    void *block = take_fast(size, alignment, &page_map.small_sizes);
    return LIKELY(block != NULL) ? block : new_slow(size, alignment, MADE_BY_NEW);
}

HOT OPERATOR void *_Znwm(size_t size)
{
    return new_block(size, 0);
}

HOT OPERATOR void *_ZnwmSt11align_val_t(size_t size, size_t alignment)
{
    return new_block(size, alignment);
}

static NOINLINE void *new_array_slow(size_t size, size_t alignment)
{
    if (LIKELY(!page_map.forms_replaced))
        return new_slow(size, alignment, MADE_BY_NEW_ARRAY);
    return alignment == 0 ? _Znwm(size) : _ZnwmSt11align_val_t(size, alignment);
}

static ALWAYS_INLINE void *new_array(size_t size, size_t alignment)
{
    void *block = take_fast(size, alignment, &page_map.form_sizes);
    return LIKELY(block != NULL) ? block : new_array_slow(size, alignment);
}

OPERATOR void *_Znam(size_t size)
{
    return new_array(size, 0);
}

OPERATOR void *_ZnamSt11align_val_t(size_t size, size_t alignment)
{
    return new_array(size, alignment);
}

/* ---- The nothrow forms ---- */

/* They return NULL whatever happens, also if the new handler or the program's own form throws, and
 * C cannot catch: then the runtime's own forms are called, which try the throwing ones and catch.
 */
typedef void *quiet_form(size_t size, const void *nothrow);
typedef void *quiet_aligned_form(size_t size, size_t alignment, const void *nothrow);

enum { ARRAY = 1, ALIGNED = 2 };

static const char quiet_names[][40] = {"_ZnwmRKSt9nothrow_t", "_ZnamRKSt9nothrow_t",
                                       "_ZnwmSt11align_val_tRKSt9nothrow_t",
                                       "_ZnamSt11align_val_tRKSt9nothrow_t"};

/* The runtime's, looked for at the start if the program has forms of its own. */
static void *quiet_forms[4];

static COLD void *alloc_by(void *form, size_t size, size_t alignment, const void *nothrow)
{
    if (alignment == 0) {
        quiet_form *quietly;
        memcpy(&quietly, &form, sizeof(quietly)); /* as above */
        return quietly(size, nothrow);
    }
    quiet_aligned_form *quietly;
    memcpy(&quietly, &form, sizeof(quietly));
    return quietly(size, alignment, nothrow);
}

static COLD void *alloc_quietly(size_t size, size_t alignment, const void *nothrow,
                                const void *caller)
{
    if (current_handler(caller) == NULL)
        return NULL;
    /* The caller may be linked with this library, whose own form this is: so the runtime's is
     * looked for. */
    void *form = runtime_function(NULL, quiet_names[alignment == 0 ? 0 : ALIGNED]);
    return form == NULL ? NULL : alloc_by(form, size, alignment, nothrow);
}

static NOINLINE void *new_quietly_slow(size_t size, size_t alignment, const void *nothrow,
                                       unsigned form)
{
    if (UNLIKELY(page_map.forms_replaced) && quiet_forms[form] != NULL)
        return alloc_by(quiet_forms[form], size, alignment, nothrow);
    enum maker maker = (form & ARRAY) != 0 ? MADE_BY_NEW_ARRAY : MADE_BY_NEW;
    void *block = take(size, alignment, maker);
    if (LIKELY(block != NULL))
        return block;
    block = alloc_quietly(size, alignment, nothrow, __builtin_return_address(0));
    /* The runtime's form took it by one that throws, which noted itself. */
    note_maker(block, alignment == 0 ? maker : MADE_BY_NEW_ALIGNED);
    return block;
}

static ALWAYS_INLINE void *new_quietly(size_t size, const void *nothrow, unsigned form)
{
    void *block = take_fast(size, 0, &page_map.form_sizes);
    return LIKELY(block != NULL) ? block : new_quietly_slow(size, 0, nothrow, form);
}

#define QUIET(name, form) \
    quiet_form name; \
    OPERATOR void *name(size_t size, const void *nothrow) \
    { \
        return new_quietly(size, nothrow, form); \
    }
/* Too seldom for a fast path of their own. */
#define QUIET_ALIGNED(name, form) \
    quiet_aligned_form name; \
    OPERATOR void *name(size_t size, size_t alignment, const void *nothrow) \
    { \
        return new_quietly_slow(size, alignment, nothrow, form); \
    }

QUIET(_ZnwmRKSt9nothrow_t, 0)
QUIET(_ZnamRKSt9nothrow_t, ARRAY)
QUIET_ALIGNED(_ZnwmSt11align_val_tRKSt9nothrow_t, ALIGNED)
QUIET_ALIGNED(_ZnamSt11align_val_tRKSt9nothrow_t, ALIGNED | ARRAY)

/* ---- The program's own ---- */

OWN(_Znwm, own_new)
OWN(_Znam, own_new_array)
OWN(_ZnwmSt11align_val_t, own_new_aligned)
OWN(_ZnamSt11align_val_t, own_new_array_aligned)

AT_START bool new_is_replaced(void)
{
    return IS_REPLACED(_Znwm, own_new) || IS_REPLACED(_Znam, own_new_array) ||
           IS_REPLACED(_ZnwmSt11align_val_t, own_new_aligned) ||
           IS_REPLACED(_ZnamSt11align_val_t, own_new_array_aligned);
}

COLD void new_find_quiet_forms(void)
{
    for (size_t form = 0; form < 4; form++)
        quiet_forms[form] = runtime_function(NULL, quiet_names[form]);
}

/* Whether what the process finds by a name is in another object than this. */
static COLD bool is_elsewhere(const char *name)
{
    Dl_info found, own;
    void *form = dlsym(RTLD_DEFAULT, name);
    return form != NULL && !os_is_stub((uintptr_t)form) && dladdr(form, &found) != 0 &&
           dladdr(quiet_names, &own) != 0 && found.dli_fbase != own.dli_fbase;
}

COLD bool other_forms_are_replaced(void)
{
    static const char names[][40] = {"_ZdlPvm",
                                     "_ZdaPvm",
                                     "_ZdlPvmSt11align_val_t",
                                     "_ZdaPvmSt11align_val_t",
                                     "_ZdlPvRKSt9nothrow_t",
                                     "_ZdaPvRKSt9nothrow_t",
                                     "_ZdlPvSt11align_val_tRKSt9nothrow_t",
                                     "_ZdaPvSt11align_val_tRKSt9nothrow_t"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (is_elsewhere(names[i]))
            return true;
    for (size_t form = 0; form < sizeof(quiet_names) / sizeof(*quiet_names); form++)
        if (is_elsewhere(quiet_names[form]))
            return true;
    return false;
}
#endif
