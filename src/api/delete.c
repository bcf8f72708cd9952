/*
 * operator delete in all its forms: free, but that each says who made its block (meta/maker.h). See
 * operators.h for what forms stand for others.
 */
#include "api/operators.h"
#include "api/sized.h"
#include "api/slow.h"
#include "snug/snug.h"

/* What no magazine took; the forms of all makers share it. */
static NOINLINE void delete_above(void *block, size_t class, enum maker maker)
{
    if (UNLIKELY(class == PAGE_MAP_HARDENED))
        heap_free_hardened(NULL, block, said_unsized(maker_that_counts(maker)));
    else
        free_above(block, class, thread_self.cache);
}

/* Blocks wherever they are, for what is far from home, and for the form that is seldom called. */
static NOINLINE void delete_far(void *block, enum maker maker)
{
    uintptr_t address = (uintptr_t)block;
    size_t class = page_map_class(address);
    if (!class_byte_is_small(class) || !cache_push_of(thread_self.cache, address, class))
        delete_above(block, class, maker);
}

/* ---- The forms that others stand for ---- */

HOT OPERATOR void _ZdlPv(void *block)
{
    uintptr_t address = (uintptr_t)block;
    if (UNLIKELY(!page_map_is_home(address))) {
        delete_far(block, MADE_BY_NEW);
        return;
    }
    size_t class = page_map_home_class(address);
    if (UNLIKELY(!cache_put(thread_self.cache, address, class)))
        delete_above(block, class, MADE_BY_NEW);
}

OPERATOR void _ZdlPvSt11align_val_t(void *block, size_t alignment)
{
    (void)alignment;
    delete_far(block, MADE_BY_NEW_ALIGNED);
}

/* ---- Those that stand for the plain one ---- */

static NOINLINE void delete_array_slow(void *block)
{
    if (UNLIKELY(page_map.forms_replaced))
        _ZdlPv(block);
    else
        delete_far(block, MADE_BY_NEW_ARRAY);
}

HOT OPERATOR void _ZdaPv(void *block)
{
    uintptr_t address = (uintptr_t)block;
    if (UNLIKELY(!page_map_is_form_home(address))) {
        delete_array_slow(block);
        return;
    }
    size_t class = page_map_form_class(address);
    if (UNLIKELY(!cache_put(thread_self.cache, address, class)))
        delete_above(block, class, MADE_BY_NEW_ARRAY);
}

OPERATOR void _ZdlPvRKSt9nothrow_t(void *block, const void *nothrow);
OPERATOR void _ZdlPvRKSt9nothrow_t(void *block, const void *nothrow)
{
    (void)nothrow;
    _ZdlPv(block);
}

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
           LIKELY(cache_put(thread_self.cache, address, page_map_form_class(address)));
}

/* A form with a size: its parameters and how it hands them on, the alignment that they state, who
 * made the block, and a call of the form without a size that it stands for. */
#define SIZED(name, parameters, arguments, alignment, maker, plain) \
    static NOINLINE void slow##name parameters \
    { \
        if (UNLIKELY(page_map.forms_replaced)) \
            plain; \
        else \
            free_stated(block, alignment, size, maker); \
    } \
    HOT OPERATOR void name parameters \
    { \
        if (!delete_fast(block)) \
            slow##name arguments; \
    }
#define SIZED_PLAIN(name, maker, plain) \
    SIZED(name, (void *block, size_t size), (block, size), 1, maker, plain(block))
#define SIZED_ALIGNED(name, plain) \
    SIZED(name, (void *block, size_t size, size_t alignment), (block, size, alignment), alignment, \
          MADE_BY_NEW_ALIGNED, plain(block, alignment))

SIZED_PLAIN(_ZdlPvm, MADE_BY_NEW, _ZdlPv)
SIZED_PLAIN(_ZdaPvm, MADE_BY_NEW_ARRAY, _ZdaPv)
SIZED_ALIGNED(_ZdlPvmSt11align_val_t, _ZdlPvSt11align_val_t)
OWN(_ZdlPvmSt11align_val_t, own_delete_aligned_sized)

/* Its maker is that of the form above, which is served fast unless the program has forms of its
 * own. */
OPERATOR void _ZdaPvmSt11align_val_t(void *block, size_t size, size_t alignment)
{
    if (UNLIKELY(page_map.forms_replaced))
        _ZdaPvSt11align_val_t(block, alignment);
    else
        own_delete_aligned_sized(block, size, alignment);
}

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

OWN(_ZdlPv, own_delete)
OWN(_ZdaPv, own_delete_array)
OWN(_ZdlPvSt11align_val_t, own_delete_aligned)
OWN(_ZdaPvSt11align_val_t, own_delete_array_aligned)

AT_START bool delete_is_replaced(void)
{
    return IS_REPLACED(_ZdlPv, own_delete) || IS_REPLACED(_ZdaPv, own_delete_array) ||
           IS_REPLACED(_ZdlPvSt11align_val_t, own_delete_aligned) ||
           IS_REPLACED(_ZdaPvSt11align_val_t, own_delete_array_aligned);
}
