/*
 * operators.cpp - every operator new and delete: plain, array, nothrow, aligned, sized, and what
 * the standard says of failure: the new handler is called until it gives up, then std::bad_alloc.
 *
 * The operators are called by name, not by new expressions, so that each one is reached for sure.
 * Faults it finds (planted.c): misaligned, overlapping.
 */
#include <malloc.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "check.h"

namespace
{

const std::size_t sizes[] = {0,    1,    8,    16,    24,     64,      100,     1000,
                             1024, 1025, 5000, 40000, 300000, 1 << 20, 5 << 20, 20 << 20};
const std::size_t too_much = std::size_t(-1) / 2 + 1;

void *filled(void *block, std::size_t size, std::size_t alignment)
{
    CHECK(block != nullptr);
    CHECK_MSG(is_aligned(block, alignment), "size %zu, alignment %zu", size, alignment);
    CHECK(malloc_usable_size(block) >= size);
    pattern_fill(block, size, size);
    CHECK(pattern_holds(block, size, size, size));
    errno = 4711;
    return opaque(block);
}

// ---- Every operator, with every delete that may free its block ----------------------------------

void plain(std::size_t size)
{
    ::operator delete(filled(::operator new(size), size, 16));
    ::operator delete(filled(::operator new(size), size, 16), size);
    ::operator delete(filled(::operator new(size, std::nothrow), size, 16));
    ::operator delete(filled(::operator new(size, std::nothrow), size, 16), std::nothrow);
    ::operator delete[](filled(::operator new[](size), size, 16));
    ::operator delete[](filled(::operator new[](size), size, 16), size);
    ::operator delete[](filled(::operator new[](size, std::nothrow), size, 16));
    ::operator delete[](filled(::operator new[](size, std::nothrow), size, 16), std::nothrow);
    CHECK_MSG(errno == 4711, "delete set errno to %d", errno);
}

void aligned(std::size_t size, std::size_t alignment)
{
    const std::align_val_t value{alignment};
    ::operator delete(filled(::operator new(size, value), size, alignment), value);
    ::operator delete(filled(::operator new(size, value), size, alignment), size, value);
    ::operator delete(filled(::operator new(size, value, std::nothrow), size, alignment), value,
                      std::nothrow);
    ::operator delete[](filled(::operator new[](size, value), size, alignment), value);
    ::operator delete[](filled(::operator new[](size, value), size, alignment), size, value);
    ::operator delete[](filled(::operator new[](size, value, std::nothrow), size, alignment), value,
                        std::nothrow);
    CHECK_MSG(errno == 4711, "delete set errno to %d", errno);
}

void every_operator()
{
    for (std::size_t size : sizes) {
        plain(size);
        for (std::size_t alignment = 8; alignment <= 1 << 20; alignment *= 8)
            aligned(size, alignment);
    }
    ::operator delete(nullptr);
    ::operator delete[](nullptr);
    ::operator delete(nullptr, 10);
    ::operator delete(nullptr, std::nothrow);
    ::operator delete(nullptr, std::align_val_t{64});
    ::operator delete(nullptr, 10, std::align_val_t{64});
}

// malloc and new are one heap.
void mixed_with_malloc()
{
    std::free(filled(::operator new(100), 100, 16));
    ::operator delete(filled(std::malloc(100), 100, 16));
    ::operator delete(filled(std::aligned_alloc(64, 128), 128, 64), std::align_val_t{64});
}

void zero_is_unique()
{
    void *a = opaque(::operator new(opaque_size(0)));
    void *b = opaque(::operator new(opaque_size(0)));
    CHECK(a != nullptr && b != nullptr && a != b);
    ::operator delete(a);
    ::operator delete(b);
}

// ---- Failure ------------------------------------------------------------------------------------

int handler_calls;

template <typename Call>
bool throws_bad_alloc(Call call)
{
    try {
        ::operator delete(opaque(call()));
    } catch (const std::bad_alloc &) {
        return true;
    }
    return false;
}

// Each way to ask for too much; with `with_handler` the handler must have been called first.
void every_failure(void (*install)())
{
    const std::size_t size = opaque_size(too_much);
    const std::align_val_t value{64};
    void *volatile result = nullptr;
#define THROWS(call) \
    do { \
        install(); \
        CHECK(throws_bad_alloc([&] { return call; })); \
    } while (0)
#define GIVES_NULL(call) \
    do { \
        install(); \
        result = call; \
        CHECK(result == nullptr); \
    } while (0)
    THROWS(::operator new(size));
    THROWS(::operator new[](size));
    THROWS(::operator new(size, value));
    THROWS(::operator new[](size, value));
    GIVES_NULL(::operator new(size, std::nothrow));
    GIVES_NULL(::operator new[](size, std::nothrow));
    GIVES_NULL(::operator new(size, value, std::nothrow));
    GIVES_NULL(::operator new[](size, value, std::nothrow));
#undef THROWS
#undef GIVES_NULL
}

void without_a_handler()
{
    std::set_new_handler(nullptr);
    every_failure([] { std::set_new_handler(nullptr); });
}

// A handler that gives up after three calls.
void handler_gives_up()
{
    every_failure([] {
        handler_calls = 0;
        std::set_new_handler([] {
            if (++handler_calls == 3)
                std::set_new_handler(nullptr);
        });
    });
    CHECK_MSG(handler_calls == 3, "the last failure called the handler %d times", handler_calls);
    CHECK(std::get_new_handler() == nullptr);
}

// A handler may throw: the nothrow forms turn that into NULL.
void handler_throws()
{
    every_failure([] {
        handler_calls = 0;
        std::set_new_handler([] {
            handler_calls++;
            throw std::bad_alloc();
        });
    });
    CHECK_MSG(handler_calls == 1, "the last failure called the handler %d times", handler_calls);
    std::set_new_handler(nullptr);
}

struct own_exception : std::bad_alloc {
};

// What the handler throws is what arrives.
void handlers_exception_arrives()
{
    std::set_new_handler([] { throw own_exception(); });
    bool arrived = false;
    try {
        ::operator delete(opaque(::operator new(opaque_size(too_much))));
    } catch (const own_exception &) {
        arrived = true;
    }
    std::set_new_handler(nullptr);
    CHECK(arrived);
}

// A success calls no handler.
void handler_is_not_called_for_nothing()
{
    handler_calls = 0;
    std::set_new_handler([] {
        handler_calls++;
        throw std::bad_alloc();
    });
    for (std::size_t size : sizes)
        plain(size);
    std::set_new_handler(nullptr);
    CHECK(handler_calls == 0);
}

void impossible_arrays()
{
    const std::size_t count = opaque_size(std::size_t(1) << 62);
    CHECK(throws_bad_alloc([&] { return new long[count]; }));
    CHECK(throws_bad_alloc([&] { return new long[count * 2 - 1]; }));
    // And the memory is not gone: a program that catches the exception goes on.
    std::vector<int> survivor(100000, 7);
    CHECK(survivor[99999] == 7);
}

// ---- The library's own use ----------------------------------------------------------------------

struct alignas(128) wide {
    unsigned char bytes[200];
};

void use_containers()
{
    std::map<std::string, std::vector<std::string>> words;
    for (int i = 0; i < 5000; i++)
        words["a rather long key, number " + std::to_string(i % 700)].push_back(std::to_string(i));
    std::size_t count = 0;
    for (const auto &entry : words)
        count += entry.second.size();
    CHECK(words.size() == 700 && count == 5000);
    auto many = std::make_unique<wide[]>(50);
    CHECK(is_aligned(many.get(), 128));
    std::vector<wide> grown;
    for (int i = 0; i < 200; i++) {
        grown.emplace_back();
        std::memset(grown.back().bytes, i, sizeof grown.back().bytes);
        CHECK(is_aligned(grown.data(), 128));
    }
    for (int i = 0; i < 200; i++)
        CHECK(grown[std::size_t(i)].bytes[199] == (unsigned char)i);
}

void in_threads()
{
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; i++)
        threads.emplace_back(use_containers);
    for (auto &thread : threads)
        thread.join();
}

} // namespace

int main()
{
    test_begin(30);
    every_operator();
    mixed_with_malloc();
    zero_is_unique();
    without_a_handler();
    handler_gives_up();
    handler_throws();
    handlers_exception_arrives();
    handler_is_not_called_for_nothing();
    impossible_arrays();
    use_containers();
    in_threads();
    return test_end();
}
