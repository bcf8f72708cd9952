/*
 * operator delete in all its forms. What one does that no other stands for, and no program has
 * replaced, is snug_free; see operators.h for the rest.
 */
#include "api/operators.h"
#include "api/sized.h"
#include "api/slow.h"
#include "snug/snug.h"

/* ---- What stands for the plain one alone ---- */

static NOINLINE void delete_slow(void *block)
{
    if (UNLIKELY(page_map.forms_replaced))
        _ZdlPv(block);
    else
        snug_free(block);
}

void operator_delete(void *block);
HOT void operator_delete(void *block)
{
    uintptr_t address = (uintptr_t)block;
    if (UNLIKELY(!page_map_is_form_home(address))) {
        delete_slow(block);
        return;
    }
    size_t class = page_map_form_class(address);
    struct cache *cache = thread_self.cache;
    if (UNLIKELY(!cache_push_of(cache, address, class)))
        free_above(block, class, cache);
}

OPERATOR void _ZdaPv(void *block) __attribute__((alias("operator_delete")));
OPERATOR void _ZdlPvRKSt9nothrow_t(void *block) __attribute__((alias("operator_delete")));

OPERATOR void _ZdaPvSt11align_val_t(void *block, size_t alignment)
{
    _ZdlPvSt11align_val_t(block, alignment);
}

/* ---- With a size ---- */

OPERATOR void _ZdlPvm(void *block, size_t size);
OPERATOR void _ZdaPvm(void *block, size_t size);
OPERATOR void _ZdlPvmSt11align_val_t(void *block, size_t size, size_t alignment);
OPERATOR void _ZdaPvmSt11align_val_t(void *block, size_t size, size_t alignment);

static ALWAYS_INLINE bool delete_fast(void *block)
{
    uintptr_t address = (uintptr_t)block;
    return LIKELY(page_map_is_form_home(address)) &&
           LIKELY(cache_push_of(thread_self.cache, address, page_map_form_class(address)));
}

/* A form with a size: its parameters and how it hands them on, the alignment that they state, and a
 * call of the form without a size that it stands for. */
#define SIZED(name, parameters, arguments, alignment, plain) \
    static NOINLINE void slow##name parameters \
    { \
        if (UNLIKELY(page_map.forms_replaced)) \
            plain; \
        else \
            free_stated(block, alignment, size, STATED_IN_CXX); \
    } \
    HOT OPERATOR void name parameters \
    { \
        if (!delete_fast(block)) \
            slow##name arguments; \
    }
#define SIZED_PLAIN(name, plain) \
    SIZED(name, (void *block, size_t size), (block, size), 1, plain(block))
#define SIZED_ALIGNED(name, plain) \
    SIZED(name, (void *block, size_t size, size_t alignment), (block, size, alignment), alignment, \
          plain(block, alignment))

SIZED_PLAIN(_ZdlPvm, _ZdlPv)
SIZED_PLAIN(_ZdaPvm, _ZdaPv)
SIZED_ALIGNED(_ZdlPvmSt11align_val_t, _ZdlPvSt11align_val_t)
SIZED_ALIGNED(_ZdaPvmSt11align_val_t, _ZdaPvSt11align_val_t)

/* ---- For constructors that throw after a nothrow new, besides ---- */

OPERATOR void _ZdaPvRKSt9nothrow_t(void *block, const void *nothrow);
OPERATOR void _ZdlPvSt11align_val_tRKSt9nothrow_t(void *block, size_t alignment,
                                                  const void *nothrow);
OPERATOR void _ZdaPvSt11align_val_tRKSt9nothrow_t(void *block, size_t alignment,
                                                  const void *nothrow);

OPERATOR void _ZdaPvRKSt9nothrow_t(void *block, const void *nothrow)
{
    (void)nothrow;
    _ZdaPv(block);
}

OPERATOR void _ZdlPvSt11align_val_tRKSt9nothrow_t(void *block, size_t alignment,
                                                  const void *nothrow)
{
    (void)nothrow;
    _ZdlPvSt11align_val_t(block, alignment);
}

OPERATOR void _ZdaPvSt11align_val_tRKSt9nothrow_t(void *block, size_t alignment,
                                                  const void *nothrow)
{
    (void)nothrow;
    _ZdaPvSt11align_val_t(block, alignment);
}

/* ---- The program's own ---- */

OWN(_ZdaPvSt11align_val_t, own_delete_array_aligned)

AT_START bool delete_is_replaced(void)
{
    return IS_REPLACED(_ZdlPv, snug_free) || IS_REPLACED(_ZdaPv, operator_delete) ||
           IS_REPLACED(_ZdlPvSt11align_val_t, snug_free) ||
           IS_REPLACED(_ZdaPvSt11align_val_t, own_delete_array_aligned);
}
