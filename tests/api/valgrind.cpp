/*
 * valgrind.cpp - every form of new with the forms of delete that fit it, and malloc's functions; to
 * be run under Valgrind, which puts functions of its own in the place of a library's (valgrind.sh).
 */
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <new>

int main()
{
    constexpr std::align_val_t aligned{64};
    constexpr std::size_t bytes = 40;
    ::operator delete(::operator new(bytes));
    ::operator delete(::operator new(bytes), bytes);
    ::operator delete(::operator new(bytes, std::nothrow), std::nothrow);
    ::operator delete[](::operator new[](bytes));
    ::operator delete[](::operator new[](bytes), bytes);
    ::operator delete[](::operator new[](bytes, std::nothrow), std::nothrow);
    ::operator delete(::operator new(bytes, aligned), aligned);
    ::operator delete(::operator new(bytes, aligned), bytes, aligned);
    ::operator delete[](::operator new[](bytes, aligned), aligned);
    ::operator delete[](::operator new[](bytes, aligned), bytes, aligned);
    std::free(std::realloc(std::malloc(bytes), 2 * bytes));
    std::free(std::calloc(2, bytes));
    std::free(std::aligned_alloc(64, 64));
    std::puts("done");
    return 0;
}
