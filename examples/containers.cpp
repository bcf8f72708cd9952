/*
 * Standard containers in a heap: through std::pmr, and through an allocator of their own.
 *
 *   c++ -std=c++17 containers.cpp -lsnug && ./a.out
 */
#include <cstdio>
#include <map>
#include <memory_resource>
#include <string>
#include <vector>

#include <snug/snug.hpp>

int main()
{
    snug::heap heap("containers");
    snug::memory_resource resource(heap);

    /* The map, its nodes and their strings: all of it lies in the heap. */
    std::pmr::map<std::pmr::string, int> lengths(&resource);
    for (const char *word : {"snug", "a name that is too long to be kept inside of the string"})
        lengths.emplace(word, static_cast<int>(std::pmr::string(word).size()));
    for (const auto &[word, length] : lengths)
        std::printf("%2d %s\n", length, word.c_str());

    std::vector<double, snug::allocator<double>> numbers(1000, 0.5, heap);
    std::printf("in the heap: %s, %s\n", heap.owns(numbers.data()) ? "yes" : "no",
                heap.owns(&*lengths.begin()) ? "yes" : "no");

    std::size_t blocks = 0;
    heap.visit([&blocks](void *, std::size_t) {
        blocks++;
        return true;
    });
    std::printf("live blocks: %s\n", blocks >= 4 ? "four or more" : "too few");
    return 0;
}
