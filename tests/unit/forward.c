/*
 * The door before a function that goes on unseen: what it hands over, and what it leaves as it was.
 */
#include "support.h"

#include <string.h>

#include "platform/forward.h"

struct seen {
    uintptr_t arguments[FORWARD_ARGUMENTS];
    const void *caller;
};

static struct seen seen;
static void *next;
static bool aligned;

typedef uintptr_t target(uintptr_t a, uintptr_t b, uintptr_t c);

target forward_door;
forward_choose forward_test_choose;

static NOINLINE uintptr_t record(uintptr_t a, uintptr_t b, uintptr_t c)
{
    seen = (struct seen){{a, b, c}, __builtin_return_address(0)};
    return a ^ b ^ c;
}

FORWARD_CHOOSE void *forward_test_choose(uintptr_t arguments[FORWARD_ARGUMENTS])
{
    uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
    __asm__("" : "+r"(frame)); /* or the compiler knows that it is aligned */
    aligned = frame % 16 == 0;
    assert_int_equal(arguments[0], 11);
    assert_int_equal(arguments[2], UINTPTR_MAX);
    arguments[1] += 1;
    return next;
}

FORWARD(forward_door, forward_test_choose);

/* One place that calls both, so that their return addresses are the same. */
static NOINLINE uintptr_t call(target *volatile function, uintptr_t b)
{
    uintptr_t result = function(11, b, UINTPTR_MAX);
    __asm__ volatile("" : "+r"(result)); /* the call is not the last thing */
    return result;
}

TEST(what_follows_sees_the_caller)
{
    target *function = record;
    memcpy(&next, &function, sizeof(next)); /* ISO C has no conversion */
    uintptr_t direct = call(record, 23);
    struct seen directly = seen;
    seen = (struct seen){{0}, NULL};
    uintptr_t forwarded = call(forward_door, 22);
    assert_int_equal(forwarded, direct);
    assert_memory_equal(seen.arguments, directly.arguments, sizeof(seen.arguments));
    assert_ptr_equal(seen.caller, directly.caller);
    assert_true(aligned);
}

TEST(without_a_way_on_it_is_null)
{
    next = NULL;
    seen = (struct seen){{0}, NULL};
    assert_int_equal(call(forward_door, 22), 0);
    assert_null(seen.caller);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW(what_follows_sees_the_caller),
        ROW(without_a_way_on_it_is_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
