/*
 * replaced.cpp - a program that has a plain operator new and delete of its own, and an aligned
 * pair. The standard says that all other forms call these: each block that a form gives is counted
 * by them, and each that a form takes back has the header that they put before it.
 */
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "check.h"

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wsized-deallocation" // it should have one with a size as well
#endif

namespace
{

struct header {
    std::size_t mark, before; // how far before the block that malloc gave begins
};

const std::size_t mark = 0x736e7567;
const std::size_t sizes[] = {1, 8, 24, 100, 1000, 1024, 5000, 300000};
const std::size_t too_much = std::size_t(-1) / 2;
long live, taken;

void *own_new(std::size_t size, std::size_t alignment)
{
    char *block = size > too_much / 2
                      ? nullptr
                      : static_cast<char *>(std::aligned_alloc(alignment, size + alignment));
    if (block == nullptr)
        throw std::bad_alloc();
    live++;
    taken++;
    header *own = reinterpret_cast<header *>(block + alignment) - 1;
    own->mark = mark;
    own->before = alignment;
    return block + alignment;
}

void own_delete(void *block)
{
    if (block == nullptr)
        return;
    header *own = static_cast<header *>(block) - 1;
    CHECK_MSG(own->mark == mark, "a block that operator new did not give: %p", block);
    own->mark = 0;
    live--;
    std::free(static_cast<char *>(block) - own->before);
}

} // namespace

void *operator new(std::size_t size)
{
    return own_new(size, 16);
}
void operator delete(void *block) noexcept
{
    own_delete(block);
}

void *operator new(std::size_t size, std::align_val_t alignment)
{
    return own_new(size, std::size_t(alignment));
}

void operator delete(void *block, std::align_val_t) noexcept
{
    own_delete(block);
}

namespace
{

// Counted, written to its end, and handed on.
void *counted(void *block, std::size_t size, const char *form)
{
    static long before;
    CHECK_MSG(block != nullptr, "%s gave nothing", form);
    CHECK_MSG(taken == before + 1, "%s of %zu bytes did not call operator new", form, size);
    before = taken;
    std::memset(block, 1, size);
    return opaque(block);
}

#define COUNTED(form, size) counted(::operator form, size, #form)

void plain(std::size_t size)
{
    ::operator delete(COUNTED(new (size), size), size);
    ::operator delete(COUNTED(new (size), size), std::nothrow);
    ::operator delete[](COUNTED(new[](size), size));
    ::operator delete[](COUNTED(new[](size), size), size);
    ::operator delete(COUNTED(new (size, std::nothrow), size));
    ::operator delete[](COUNTED(new[](size, std::nothrow), size), std::nothrow);
}

void aligned(std::size_t size, std::align_val_t to)
{
    ::operator delete(COUNTED(new (size, to), size), size, to);
    ::operator delete(COUNTED(new (size, to), size), to, std::nothrow);
    ::operator delete[](COUNTED(new[](size, to), size), to);
    ::operator delete[](COUNTED(new[](size, to), size), size, to);
    ::operator delete(COUNTED(new (size, to, std::nothrow), size), to);
    ::operator delete[](COUNTED(new[](size, to, std::nothrow), size), to, std::nothrow);
}

// Its buffer is taken by a nothrow form, and given back by the plain one.
void sorted()
{
    std::vector<int> numbers;
    for (int i = 0; i < 10000; i++)
        numbers.push_back(i * 7919 % 10007);
    std::stable_sort(numbers.begin(), numbers.end());
    CHECK(std::is_sorted(numbers.begin(), numbers.end()));
}

} // namespace

int main()
{
    test_begin(20);
    // Often enough that a thread has a cache, from whose magazines nothing may come or go.
    for (int turn = 0; turn < 100; turn++)
        for (std::size_t size : sizes) {
            plain(size);
            for (std::size_t alignment = 16; alignment <= 4096; alignment *= 4)
                aligned(size, std::align_val_t(alignment));
        }
    sorted();
    CHECK(::operator new(opaque_size(too_much), std::nothrow) == nullptr);
    CHECK(::operator new[](opaque_size(too_much), std::nothrow) == nullptr);
    CHECK_MSG(live == 0, "%ld blocks were not given back to operator delete", live);
    return test_end();
}
