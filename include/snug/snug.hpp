/*
 * snug.hpp - heaps for C++: snug::heap owns one, snug::allocator puts a standard container's
 * elements in it, snug::memory_resource does so for std::pmr.
 *
 * A thin layer over snug.h, which says what each call promises. C++17; no other dependency. What
 * cannot be had throws std::bad_alloc; what cannot be made, std::system_error with the errno.
 */
#ifndef SNUG_SNUG_HPP
#define SNUG_SNUG_HPP

#include <cerrno>
#include <cstddef>
#include <exception>
#include <limits>
#include <memory_resource>
#include <new>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

#include "snug/snug.h"

namespace snug
{

/* malloc's guaranteed alignment. */
inline constexpr std::size_t default_alignment = alignof(std::max_align_t);

namespace detail
{

[[noreturn]] inline void throw_errno(const char *what)
{
    throw std::system_error(errno, std::generic_category(), what);
}

/* NULL stands for malloc's heap. */
inline void *allocate(snug_heap *heap, std::size_t bytes, std::size_t alignment)
{
    void *block;
    if (alignment > default_alignment)
        block = heap == nullptr ? snug_aligned_alloc(alignment, bytes)
                                : snug_heap_aligned_alloc(heap, alignment, bytes);
    else
        block = heap == nullptr ? snug_malloc(bytes) : snug_heap_malloc(heap, bytes);
    if (block == nullptr)
        throw std::bad_alloc();
    return block;
}

inline void deallocate(snug_heap *heap, void *block) noexcept
{
    if (heap == nullptr)
        snug_free(block);
    else
        snug_heap_free(heap, block);
}

} // namespace detail

/* A source of memory for heaps. It must outlive those made on it. */
class provider
{
  public:
    /* `bytes` of memory taken ahead; with `fallback`, more from the system when they are used up.
     */
    static provider prealloc(std::size_t bytes, bool fallback = false)
    {
        return provider(snug_provider_prealloc(bytes, fallback));
    }

    /* A file in `directory` of `bytes`, and with a factor above 1 further ones. */
    static provider file(const std::string &directory, std::size_t bytes, double grow_factor = 0)
    {
        snug_file_config config{};
        config.size = sizeof(config);
        config.directory = directory.c_str();
        config.bytes = bytes;
        config.grow_factor = grow_factor;
        return provider(snug_provider_file(&config));
    }

    explicit provider(const snug_file_config &config) : provider(snug_provider_file(&config)) {}

    explicit provider(const snug_provider_functions &functions)
        : provider(snug_provider_create(&functions))
    {
    }

    provider(provider &&other) noexcept : handle(std::exchange(other.handle, nullptr)) {}

    provider &operator=(provider &&other) noexcept
    {
        std::swap(handle, other.handle);
        return *this;
    }

    ~provider() { snug_provider_destroy(handle); }

    snug_provider *get() const noexcept { return handle; }

  private:
    explicit provider(snug_provider *made) : handle(made)
    {
        if (handle == nullptr)
            detail::throw_errno("snug::provider");
    }

    snug_provider *handle;
};

/* A heap, and with it everything allocated from it. */
class heap
{
  public:
    using config = snug_heap_config;

    /* A config to fill in. */
    static config make_config() noexcept
    {
        config made{};
        made.size = sizeof(made);
        return made;
    }

    /* On the system's memory. */
    heap() : heap(make_config()) {}

    explicit heap(const char *name) : heap(named(name)) {}

    explicit heap(const provider &source, const char *name = nullptr)
        : heap(on_provider(source, name))
    {
    }

    /* In a buffer that outlives it, and in nothing else. */
    heap(void *buffer, std::size_t bytes) : heap(in_buffer(buffer, bytes)) {}

    explicit heap(const config &settings) : handle(snug_heap_create(&settings))
    {
        if (handle == nullptr)
            detail::throw_errno("snug::heap");
    }

    heap(heap &&other) noexcept : handle(std::exchange(other.handle, nullptr)) {}

    heap &operator=(heap &&other) noexcept
    {
        std::swap(handle, other.handle);
        return *this;
    }

    ~heap() { snug_heap_destroy(handle); }

    void *allocate(std::size_t bytes, std::size_t alignment = default_alignment)
    {
        return detail::allocate(handle, bytes, alignment);
    }

    void deallocate(void *block) noexcept { snug_heap_free(handle, block); }

    /* Frees everything at once. No destructor of what lies in it is called. */
    void clear() noexcept { snug_heap_clear(handle); }

    bool trim() noexcept { return snug_heap_trim(handle) != 0; }

    const char *name() const noexcept { return snug_heap_name(handle); }

    snug_heap_statistics statistics() const noexcept
    {
        snug_heap_statistics filled{};
        filled.size = sizeof(filled);
        snug_heap_get_statistics(handle, &filled);
        return filled;
    }

    /* Calls visit(block, bytes) for every live block, until it returns false. What it throws ends
     * the visit and comes out of here. */
    template <typename Visit>
    bool visit(Visit visit) const
    {
        struct {
            Visit &visit;
            std::exception_ptr thrown;
        } call{visit, nullptr};
        using context_type = decltype(call);
        bool all = snug_heap_visit(
                       handle,
                       [](void *context, void *block, std::size_t bytes) -> int {
                           auto &of = *static_cast<context_type *>(context);
                           try {
                               return of.visit(block, bytes);
                           } catch (...) {
                               of.thrown = std::current_exception();
                               return 0;
                           }
                       },
                       &call) != 0;
        if (call.thrown)
            std::rethrow_exception(call.thrown);
        return all;
    }

    bool owns(const void *block) const noexcept { return snug_heap_of(block) == handle; }

    snug_heap *get() const noexcept { return handle; }

  private:
    static config named(const char *name) noexcept
    {
        config made = make_config();
        made.name = name;
        return made;
    }

    static config on_provider(const provider &source, const char *name) noexcept
    {
        config made = named(name);
        made.provider = source.get();
        return made;
    }

    static config in_buffer(void *buffer, std::size_t bytes) noexcept
    {
        config made = make_config();
        made.buffer = buffer;
        made.buffer_bytes = bytes;
        return made;
    }

    snug_heap *handle;
};

/* For standard containers. One that was not given a heap uses malloc's. A container that is moved,
 * copied or swapped takes its heap along; a copy of a container lies in the same heap. */
template <typename T>
class allocator
{
  public:
    using value_type = T;
    using propagate_on_container_copy_assignment = std::true_type;
    using propagate_on_container_move_assignment = std::true_type;
    using propagate_on_container_swap = std::true_type;
    using is_always_equal = std::false_type;

    allocator() noexcept = default;
    allocator(heap &in) noexcept : handle(in.get()) {}
    explicit allocator(snug_heap *in) noexcept : handle(in) {}
    template <typename U>
    allocator(const allocator<U> &other) noexcept : handle(other.get())
    {
    }

    T *allocate(std::size_t count)
    {
        if (count > std::numeric_limits<std::size_t>::max() / sizeof(T))
            throw std::bad_array_new_length();
        return static_cast<T *>(detail::allocate(handle, count * sizeof(T), alignof(T)));
    }

    void deallocate(T *block, std::size_t) noexcept { detail::deallocate(handle, block); }

    snug_heap *get() const noexcept { return handle; }

  private:
    snug_heap *handle = nullptr;
};

template <typename T, typename U>
bool operator==(const allocator<T> &a, const allocator<U> &b) noexcept
{
    return a.get() == b.get();
}

template <typename T, typename U>
bool operator!=(const allocator<T> &a, const allocator<U> &b) noexcept
{
    return !(a == b);
}

/* For std::pmr. It does not own the heap; without one it uses malloc's. */
class memory_resource : public std::pmr::memory_resource
{
  public:
    memory_resource() noexcept = default;
    explicit memory_resource(heap &in) noexcept : handle(in.get()) {}
    explicit memory_resource(snug_heap *in) noexcept : handle(in) {}

    snug_heap *get() const noexcept { return handle; }

  private:
    void *do_allocate(std::size_t bytes, std::size_t alignment) override
    {
        return detail::allocate(handle, bytes, alignment);
    }

    void do_deallocate(void *block, std::size_t, std::size_t) override
    {
        detail::deallocate(handle, block);
    }

    bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override
    {
        const auto *same = dynamic_cast<const memory_resource *>(&other);
        return same != nullptr && same->handle == handle;
    }

    snug_heap *handle = nullptr;
};

} // namespace snug

#endif /* SNUG_SNUG_HPP */
