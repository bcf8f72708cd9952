/*
 * makers_own.cpp - programs that have only some of operator new and delete of their own, and give
 * and take blocks by malloc and free there. In the hardened preset they are right all the same.
 *
 * OWN_NEW: an operator new; OWN_SIZED: an operator delete with a size; OWN_QUIET: a nothrow new[],
 * whose blocks delete[] may free though they are operator new's.
 */
#include <cstdlib>
#include <initializer_list>
#include <new>

#include "check.h"

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wsized-deallocation" // it should have one without a size as well
#endif

namespace
{
int calls;
}

#if defined(OWN_NEW)
void *operator new(std::size_t size)
{
    calls++;
    void *block = std::malloc(size);
    return block != nullptr ? block : throw std::bad_alloc();
}
#elif defined(OWN_QUIET)
void *operator new[](std::size_t size, const std::nothrow_t &) noexcept
{
    calls++;
    return ::operator new(size);
}
#else
void operator delete(void *block, std::size_t) noexcept
{
    calls++;
    std::free(block);
}
#endif

int main()
{
    for (std::size_t size : {8, 100, 5000, 300000}) {
        ::operator delete(opaque(::operator new(size)));
        ::operator delete(opaque(::operator new(size)), size);
        ::operator delete[](opaque(::operator new[](size)));
        ::operator delete[](opaque(::operator new[](size, std::nothrow)));
    }
    CHECK(calls != 0);
    return 0;
}
