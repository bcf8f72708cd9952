/*
 * What happens when an invariant does not hold. See check.h.
 */
#include "platform/check.h"

#include "platform/output.h"

_Noreturn COLD void check_failed(const char *condition, const char *file, int line)
{
    os_print(2, "snug: internal error: %s:%zu: %s does not hold\n", file, (size_t)line, condition);
    os_abort();
}

static uintptr_t place_found;

void check_begin(void)
{
    __atomic_store_n(&place_found, 0, __ATOMIC_RELAXED);
}

const char *check_found(const void *place, const char *wrong)
{
    __atomic_store_n(&place_found, (uintptr_t)place, __ATOMIC_RELAXED);
    return wrong;
}

uintptr_t check_place(void)
{
    return __atomic_load_n(&place_found, __ATOMIC_RELAXED);
}
