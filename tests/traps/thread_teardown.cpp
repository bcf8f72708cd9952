/*
 * thread_teardown.cpp - trap 6: memory is allocated and freed while a thread ends, after the
 * allocator has taken the thread's cache down, and nothing may be lost by it.
 *
 * Keys whose destructors set themselves again until the system gives up, C++ thread_local objects
 * that allocate in their destructors, threads that never allocate but free, and threads that
 * allocate what others free. 10,000 threads of all kinds, 100,000 in a full run; resident memory
 * must be flat from the first tenth on.
 * Fault it finds (planted.c): thread_leak.
 */
#include <pthread.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "check.h"

namespace
{

// ---- Keys that set themselves again -------------------------------------------------------------

constexpr int key_count = 24; // some made before, some after the allocator's own, if it has one
pthread_key_t keys[key_count];
unsigned long destructor_calls;

// Frees what the key holds and sets the key again, to a new block while there is a next pass.
template <int index>
void destroy(void *value)
{
    char *text = static_cast<char *>(value);
    CHECK(pattern_holds(text + 1, 99, 99, std::uint64_t(index)));
    const int passes_left = text[0];
    std::free(value);
    __atomic_fetch_add(&destructor_calls, 1, __ATOMIC_RELAXED);
    std::free(opaque(std::malloc(std::size_t(index) * 37 + 1)));
    if (passes_left == 0)
        return;
    char *again = static_cast<char *>(opaque(std::malloc(100)));
    CHECK(again != nullptr);
    again[0] = char(passes_left - 1);
    pattern_fill(again + 1, 99, std::uint64_t(index));
    CHECK(pthread_setspecific(keys[index], again) == 0);
}

template <int index>
void make_keys()
{
    if constexpr (index < key_count) {
        CHECK(pthread_key_create(&keys[index], destroy<index>) == 0);
        make_keys<index + 1>();
    }
}

// The system goes through the keys four times (PTHREAD_DESTRUCTOR_ITERATIONS): the block of the
// last pass sets no key again, so that the program itself loses nothing.
void *with_keys(void *argument)
{
    for (int i = 0; i < key_count; i++) {
        char *text = static_cast<char *>(opaque(std::malloc(100)));
        CHECK(text != nullptr);
        text[0] = char(i % 4);
        pattern_fill(text + 1, 99, std::uint64_t(i));
        CHECK(pthread_setspecific(keys[i], text) == 0);
    }
    return argument;
}

// ---- Objects with destructors -------------------------------------------------------------------

struct talkative {
    std::string name{"a name that is too long to be kept inside of the string object itself"};
    std::vector<int> numbers = std::vector<int>(300, 7);

    ~talkative()
    {
        std::vector<std::string> words;
        for (int i = 0; i < 20; i++)
            words.push_back(name + std::to_string(i));
        CHECK(words[19].size() > name.size() && numbers[299] == 7);
    }
};

struct late { // constructed by the destructor of the next, when the thread is already ending
    std::string text = std::string(500, 'x');
    ~late() { std::free(opaque(std::malloc(3000))); }
};

struct early {
    std::string *owned = new std::string(200, 'y');
    ~early()
    {
        static thread_local late one_more;
        CHECK(one_more.text.size() == 500);
        delete owned;
    }
};

thread_local talkative talk;
thread_local early first;

void *with_objects(void *argument)
{
    CHECK(talk.numbers[0] == 7 && first.owned->size() == 200);
    return argument;
}

// ---- Threads that only free, or only allocate ---------------------------------------------------

struct parcel {
    void *blocks[64];
};

void *only_frees(void *argument)
{
    parcel *all = static_cast<parcel *>(argument);
    for (void *block : all->blocks)
        std::free(block);
    return nullptr;
}

void *only_allocates(void *argument)
{
    parcel *all = static_cast<parcel *>(argument);
    for (std::size_t i = 0; i < 64; i++) {
        all->blocks[i] = opaque(std::malloc(1 + i * 61));
        CHECK(all->blocks[i] != nullptr);
        std::memset(all->blocks[i], 3, 1 + i * 61);
    }
    return nullptr;
}

void *does_nothing(void *argument)
{
    return argument;
}

// ---- All of them, many times --------------------------------------------------------------------

pthread_attr_t small_stack;

void in_a_thread(void *(*function)(void *), void *argument)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, &small_stack, function, argument) == 0);
    CHECK(pthread_join(thread, nullptr) == 0);
}

// Two at a time, so that caches are taken over in another order than they were made.
void in_two_threads(void *(*function)(void *))
{
    pthread_t one, two;
    CHECK(pthread_create(&one, &small_stack, function, nullptr) == 0);
    CHECK(pthread_create(&two, &small_stack, function, nullptr) == 0);
    CHECK(pthread_join(one, nullptr) == 0);
    CHECK(pthread_join(two, nullptr) == 0);
}

void eight_threads()
{
    parcel all;
    in_two_threads(with_keys);
    in_two_threads(with_objects);
    in_a_thread(only_allocates, &all);
    in_a_thread(only_frees, &all);
    only_allocates(&all);
    in_a_thread(only_frees, &all);
    in_a_thread(does_nothing, nullptr);
}

} // namespace

int main()
{
    test_begin(100);
    make_keys<0>();
    CHECK(pthread_attr_init(&small_stack) == 0);
    CHECK(pthread_attr_setstacksize(&small_stack, 128 * 1024) == 0);
    const std::size_t rounds = test_scale(10000, 100000) / 8;
    std::size_t settled = 0;
    for (std::size_t round = 0; round < rounds; round++) {
        eight_threads();
        if (round == rounds / 10)
            settled = resident_kib();
    }
    const std::size_t at_the_end = resident_kib();
    // One lost 16-byte object a thread would come to some 300 KiB, a magazine to many MiB.
    CHECK_MSG(at_the_end <= settled + 1024, "resident memory grew from %zu to %zu KiB", settled,
              at_the_end);
    // 24 keys, a quarter of them each with 1, 2, 3 and 4 passes; two threads a round.
    CHECK(destructor_calls == rounds * 2 * (24 / 4) * (1 + 2 + 3 + 4));
    return test_end();
}
