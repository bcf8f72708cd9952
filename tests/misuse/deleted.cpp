// deleted.cpp - blocks that are freed as another kind or size than they were taken.
//
// By the names that the compiler gives the operators: what is compiled is a call of that name, and
// no compiler warns of what it is meant to be.
#include "kinds.h"

#include <new>

extern "C" {
__attribute__((weak)) void free_sized(void *block, size_t size);
__attribute__((weak)) void free_aligned_sized(void *block, size_t alignment, size_t size);
}

namespace
{

constexpr std::align_val_t PAGE{4096}, LINE{64};

void *fresh(size_t size)
{
    return opaque(::operator new(size));
}

bool sized_less(size_t size)
{
    ::operator delete(fresh(size), opaque_size(size / 4 + 1));
    return true;
}

bool sized_more(size_t size)
{
    ::operator delete(fresh(size), opaque_size(size * 4));
    return true;
}

bool sized_a_little_more(size_t size)
{
    ::operator delete(fresh(size), opaque_size(size + 64));
    return true;
}

bool sized_most(size_t size)
{
    ::operator delete(fresh(size), opaque_size(SIZE_MAX));
    return true;
}

/* A block may be at the other alignment by chance; a large one is at the start of a page. */
bool sized_misaligned(size_t size)
{
    size_t other = size < 4096 * 16 ? 4096 : size_t{1} << 30;
    void *block;
    do
        block = opaque(::operator new(size, LINE));
    while (reinterpret_cast<uintptr_t>(block) % other == 0);
    ::operator delete(block, opaque_size(size), std::align_val_t{opaque_size(other)});
    return true;
}

bool array_sized_less(size_t size)
{
    ::operator delete[](opaque(::operator new[](size)), opaque_size(size / 4 + 1));
    return true;
}

bool c_sized_less(size_t size)
{
    void *block = opaque(malloc(size));
    if (free_sized != nullptr)
        free_sized(block, opaque_size(size / 4 + 1));
    return true;
}

bool c_sized_more(size_t size)
{
    void *block = opaque(malloc(size));
    if (free_sized != nullptr)
        free_sized(block, opaque_size(size * 4));
    return true;
}

bool c_aligned_sized_less(size_t size)
{
    void *block = opaque(aligned_alloc(64, (size + 63) / 64 * 64));
    if (free_aligned_sized != nullptr)
        free_aligned_sized(block, 64, opaque_size(size / 4 + 1));
    return true;
}

bool array_as_one(size_t size)
{
    ::operator delete(opaque(::operator new[](size)));
    return true;
}

bool one_as_array(size_t size)
{
    ::operator delete[](fresh(size));
    return true;
}

bool new_as_malloc(size_t size)
{
    free(fresh(size));
    return true;
}

bool malloc_as_new(size_t size)
{
    ::operator delete(opaque(malloc(size)));
    return true;
}

bool aligned_as_plain(size_t size)
{
    ::operator delete(opaque(::operator new(size, LINE)));
    return true;
}

bool plain_as_aligned(size_t size)
{
    ::operator delete(fresh(size), PAGE);
    return true;
}

bool deleted_twice(size_t size)
{
    void *block = fresh(size);
    ::operator delete(opaque(block));
    ::operator delete(opaque(block));
    return handed_out_twice(size, nullptr);
}

bool deleted_inside(size_t size)
{
    ::operator delete[](opaque(static_cast<char *>(fresh(size)) + 8));
    return handed_out_twice(size, nullptr);
}

/* An array of these begins behind the number of its elements. */
struct Ended {
    ~Ended() { last = this; }
    long value;
    static const volatile Ended *last;
};
const volatile Ended *Ended::last;

bool deleted_cookie(size_t size)
{
    delete static_cast<Ended *>(opaque(new Ended[size / sizeof(Ended)]));
    return handed_out_twice(size, nullptr);
}

/* Nothing in the second base tells `delete` where the whole begins. */
bool deleted_base(size_t size)
{
    struct First {
        long first[2];
    };
    struct Second {
        long second[2];
    };
    struct Whole : First, Second {
    };
    Second *second = new (fresh(size)) Whole;
    delete static_cast<Second *>(opaque(second));
    return handed_out_twice(size, nullptr);
}

bool write_new_0(size_t size)
{
    volatile char *block = static_cast<char *>(fresh(0));
    block[size < 1000 ? 0 : size < 100000 ? 15 : 4000] = 1;
    return true;
}

const struct kind table[] = {
    {"sized-less", "`delete` with a fourth of the size", sized_less},
    {"sized-more", "... with four times the size", sized_more},
    {"sized-64-more", "... with 64 bytes more", sized_a_little_more},
    {"sized-most", "... with the largest number", sized_most},
    {"sized-misaligned", "aligned `delete` with another alignment than `new`", sized_misaligned},
    {"array-sized-less", "`delete[]` with a fourth of the size", array_sized_less},
    {"free-sized-less", "`free_sized` with a fourth of the size", c_sized_less},
    {"free-sized-more", "... with four times the size", c_sized_more},
    {"free-aligned-sized", "`free_aligned_sized` with a fourth of the size", c_aligned_sized_less},
    {"array-as-one", "`delete` of what `new[]` made", array_as_one},
    {"one-as-array", "`delete[]` of what `new` made", one_as_array},
    {"new-as-malloc", "`free` of what `new` made", new_as_malloc},
    {"malloc-as-new", "`delete` of what `malloc` made", malloc_as_new},
    {"aligned-as-plain", "plain `delete` of what an aligned `new` made", aligned_as_plain},
    {"plain-as-aligned", "aligned `delete` of what a plain `new` made", plain_as_aligned},
    {"deleted-twice", "`delete` twice", deleted_twice},
    {"deleted-inside", "`delete[]` of a pointer 8 bytes into a block", deleted_inside},
    {"deleted-cookie", "`delete` of what `new[]` made, of a class with a destructor",
     deleted_cookie},
    {"deleted-base", "`delete` through a second base without a virtual destructor", deleted_base},
    {"write-new-0", "a byte of `new char[0]` is written: the first, the 16th, the 4001st",
     write_new_0},
};

} // namespace

extern "C" const struct kinds kinds_deleted = KINDS("Freed as something else", table);
