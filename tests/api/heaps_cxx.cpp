/*
 * snug.hpp with standard containers: where their elements lie, what happens to the heap when they
 * are copied, moved and swapped, and what is thrown.
 */
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <memory_resource>
#include <new>
#include <set>
#include <string>
#include <system_error>
#include <unordered_map>
#include <vector>

#include "check.h"
#include "snug/snug.hpp"

namespace
{

template <typename T>
using vector_in = std::vector<T, snug::allocator<T>>;
using string_in = std::basic_string<char, std::char_traits<char>, snug::allocator<char>>;

void check_containers()
{
    snug::heap heap("containers");
    vector_in<int> numbers(heap);
    for (int i = 0; i < 10000; i++)
        numbers.push_back(i);
    CHECK(heap.owns(numbers.data()) && numbers[9999] == 9999);
    std::list<long, snug::allocator<long>> list({1, 2, 3}, heap);
    CHECK(heap.owns(&list.front()));
    std::map<int, int, std::less<int>, snug::allocator<std::pair<const int, int>>> map(heap);
    std::unordered_map<int, int, std::hash<int>, std::equal_to<int>,
                       snug::allocator<std::pair<const int, int>>>
        hashed(heap);
    std::set<int, std::less<int>, snug::allocator<int>> set(heap);
    for (int i = 0; i < 1000; i++) {
        map[i] = hashed[i] = i;
        set.insert(i * 7 % 1000);
    }
    CHECK(heap.owns(&map[500]) && heap.owns(&hashed[500]) && set.size() == 1000);
    string_in text("a text that is too long to lie inside of the string itself", heap);
    CHECK(heap.owns(text.data()));
    auto shared = std::allocate_shared<std::string>(snug::allocator<std::string>(heap), "shared");
    CHECK(heap.owns(shared.get()) && *shared == "shared");
    struct alignas(256) wide {
        char bytes[256];
    };
    vector_in<wide> wides(3, heap);
    CHECK(reinterpret_cast<std::uintptr_t>(wides.data()) % 256 == 0 && heap.owns(wides.data()));
    CHECK(snug_check() == 0);
}

void check_propagation()
{
    snug::heap one, two;
    vector_in<int> a(100, 1, one), b(200, 2, two);
    vector_in<int> copy = a;
    CHECK(one.owns(copy.data()) && copy.get_allocator() == a.get_allocator());
    CHECK(a.get_allocator() != b.get_allocator());
    a.swap(b);
    CHECK(two.owns(a.data()) && one.owns(b.data()) && a.size() == 200);
    a = b;
    CHECK(one.owns(a.data()) && a.size() == 100);
    a = vector_in<int>(50, 3, two);
    CHECK(two.owns(a.data()) && a[49] == 3);
    vector_in<int> other(std::move(b), snug::allocator<int>(two)); /* element by element */
    CHECK(two.owns(other.data()) && other.size() == 100);
    vector_in<int> plain(10, 5); /* malloc's heap */
    CHECK(snug_heap_of(plain.data()) == nullptr && !one.owns(plain.data()));
}

void check_pmr()
{
    snug::heap heap;
    snug::memory_resource resource(heap), same(heap), malloc_resource;
    CHECK(resource == same && !(resource == malloc_resource));
    CHECK(!resource.is_equal(*std::pmr::new_delete_resource()));
    std::pmr::map<std::pmr::string, std::pmr::vector<int>> map(&resource);
    map["a key that is too long to lie inside of the string itself"] = {1, 2, 3};
    auto &entry = *map.begin();
    CHECK(heap.owns(&entry) && heap.owns(entry.first.data()) && heap.owns(entry.second.data()));
    std::pmr::monotonic_buffer_resource monotonic(&resource);
    CHECK(heap.owns(monotonic.allocate(100)));
    std::pmr::vector<int> plain(100, &malloc_resource);
    CHECK(snug_heap_of(plain.data()) == nullptr);
    void *aligned = resource.allocate(100, 4096);
    CHECK(reinterpret_cast<std::uintptr_t>(aligned) % 4096 == 0);
    resource.deallocate(aligned, 100, 4096);
}

template <typename Exception, typename Call>
void check_throws(Call call)
{
    bool thrown = false;
    try {
        call();
    } catch (const Exception &) {
        thrown = true;
    }
    CHECK(thrown);
}

void check_exceptions()
{
    auto config = snug::heap::make_config();
    config.quota = 1 << 20;
    snug::heap small(config);
    check_throws<std::bad_alloc>([&] { small.allocate(2 << 20); });
    check_throws<std::bad_alloc>([&] { vector_in<int> much(1 << 20, small); });
    check_throws<std::bad_alloc>(
        [&] { (void)snug::allocator<long>(small).allocate(static_cast<std::size_t>(-1) / 2); });
    check_throws<std::system_error>([] { snug::provider::file("/no/such/directory", 1 << 20); });
    char tiny[100];
    check_throws<std::system_error>([&] { snug::heap heap(tiny, sizeof(tiny)); });
    vector_in<int> fits(1000, small);
    CHECK(small.owns(fits.data()));
}

void check_heaps()
{
    static char buffer[1 << 18];
    snug::heap in_buffer(buffer, sizeof(buffer));
    void *block = in_buffer.allocate(1000);
    CHECK(block >= buffer && block < buffer + sizeof(buffer));
    in_buffer.deallocate(block);
    snug::heap moved = std::move(in_buffer);
    CHECK(moved.owns(moved.allocate(10)));
    std::size_t blocks = 0;
    CHECK(moved.visit([&](void *, std::size_t bytes) {
        blocks += bytes >= 10;
        return true;
    }));
    CHECK(blocks == 1);
    CHECK(!moved.visit([](void *, std::size_t) { return false; }));
    int thrown = 0;
    try {
        moved.visit([](void *, std::size_t) -> bool { throw 7; });
    } catch (int number) {
        thrown = number;
    }
    CHECK(thrown == 7);
    CHECK(moved.statistics().used >= 10);
    moved.clear();
    CHECK(moved.statistics().used == 0);
    snug::provider ahead = snug::provider::prealloc(8 << 20, true);
    snug::provider source = std::move(ahead);
    snug::heap on_provider(source, "ahead");
    CHECK(std::string(on_provider.name()) == "ahead");
    CHECK(on_provider.owns(on_provider.allocate(20 << 20)));
    snug::heap other;
    other = std::move(on_provider);
    CHECK(std::string(other.name()) == "ahead");
}

} // namespace

int main()
{
    test_begin(60);
    check_containers();
    check_propagation();
    check_pmr();
    check_exceptions();
    check_heaps();
    return test_end();
}
