/*
 * makers.cpp - in the hardened preset a block is to be freed by the function that belongs to the
 * one which made it: each maker with each way to free, in blocks of all layers, also where a thread
 * made the block and after a realloc. SNUG_MISUSE=warn, so the program goes on.
 *
 *   makers WRONG     which of the pairs that do not belong together are to be reported: all, those
 *                    of forms of new (new), none
 *
 * The program is also built without PIE, where it has a stub of operator delete whose address it
 * takes for the function's.
 *
 * Fault it finds: SNUG_CHECK_DELETE=none reports none.
 */
#include <malloc.h>
#include <snug/snug.h>

#include <cstdlib>
#include <cstring>
#include <new>
#include <thread>

#include <sys/resource.h>

#include "check.h"

namespace
{

const std::align_val_t alignment{16}, wide{64};
const std::size_t sizes[] = {1, 40, 1000, 5000, 40000, 300000};

enum kind { MALLOC, NEW, ARRAY, ALIGNED, KINDS };

struct maker {
    const char *name;
    kind what;
    void *(*make)(std::size_t size);
};

struct freer {
    const char *name;
    kind what;
    void (*free)(void *block, std::size_t size);
};

const maker makers[] = {
    {"malloc", MALLOC, [](std::size_t size) { return std::malloc(size); }},
    {"malloc", MALLOC, [](std::size_t size) { return std::calloc(size, 1); }},
    {"malloc", MALLOC, [](std::size_t size) { return memalign(64, size); }},
    {"operator new", NEW, [](std::size_t size) { return ::operator new(size); }},
    {"operator new", NEW, [](std::size_t size) { return ::operator new(size, std::nothrow); }},
    {"operator new[]", ARRAY, [](std::size_t size) { return ::operator new[](size); }},
    {"operator new[]", ARRAY,
     [](std::size_t size) { return ::operator new[](size, std::nothrow); }},
    {"aligned operator new", ALIGNED, [](std::size_t size) { return ::operator new(size, wide); }},
    {"aligned operator new", ALIGNED,
     [](std::size_t size) { return ::operator new[](size, alignment); }},
    {"aligned operator new", ALIGNED,
     [](std::size_t size) { return ::operator new(size, alignment, std::nothrow); }},
    {"aligned operator new", ALIGNED,
     [](std::size_t size) { return ::operator new[](size, alignment, std::nothrow); }},
};

const freer freers[] = {
    {"free", MALLOC, [](void *block, std::size_t) { std::free(block); }},
    {"free", MALLOC, [](void *block, std::size_t size) { snug_free_sized(block, size); }},
    {"realloc", MALLOC,
     [](void *block, std::size_t size) {
         void *moved = std::realloc(block, size * 2);
         std::free(moved);
     }},
    {"realloc", MALLOC,
     [](void *block, std::size_t size) {
         void *stays = std::realloc(block, size);
         std::free(stays);
     }},
    {"operator delete", NEW, [](void *block, std::size_t) { ::operator delete(block); }},
    {"operator delete", NEW, [](void *block, std::size_t size) { ::operator delete(block, size); }},
    {"operator delete", NEW,
     [](void *block, std::size_t) { ::operator delete(block, std::nothrow); }},
    {"operator delete[]", ARRAY, [](void *block, std::size_t) { ::operator delete[](block); }},
    {"operator delete[]", ARRAY,
     [](void *block, std::size_t size) { ::operator delete[](block, size); }},
    {"operator delete[]", ARRAY,
     [](void *block, std::size_t) { ::operator delete[](block, std::nothrow); }},
    {"aligned operator delete", ALIGNED,
     [](void *block, std::size_t) { ::operator delete(block, alignment); }},
    {"aligned operator delete", ALIGNED,
     [](void *block, std::size_t) { ::operator delete[](block, alignment); }},
    {"aligned operator delete", ALIGNED,
     [](void *block, std::size_t size) { ::operator delete(block, size, alignment); }},
    {"aligned operator delete", ALIGNED,
     [](void *block, std::size_t size) { ::operator delete[](block, size, alignment); }},
    {"aligned operator delete", ALIGNED,
     [](void *block, std::size_t) { ::operator delete[](block, alignment, std::nothrow); }},
};

thread_local const char *told_call;
thread_local char told_line[200];
thread_local int told;

void note(const snug_misuse *misuse)
{
    told++;
    told_call = misuse->call;
    std::strncpy(told_line, misuse->line, sizeof(told_line) - 1);
    CHECK(std::strcmp(misuse->kind, "wrong-maker") == 0);
}

bool is_told(kind made, kind freed, const char *wrong)
{
    bool of_c = made == MALLOC || freed == MALLOC;
    bool all = std::strcmp(wrong, "all") == 0, none = std::strcmp(wrong, "none") == 0;
    return made != freed && (of_c ? all : !none);
}

void pair(const maker &maker, const freer &freer, std::size_t size, const char *wrong)
{
    void *block = opaque(maker.make(size));
    CHECK(block != nullptr);
    told = 0;
    freer.free(block, size);
    if (!is_told(maker.what, freer.what, wrong)) {
        CHECK_MSG(told == 0, "%s, then %s of %zu: %s", maker.name, freer.name, size, told_line);
        return;
    }
    CHECK_MSG(told == 1, "%s, then %s of %zu is reported %d times", maker.name, freer.name, size,
              told);
    CHECK_MSG(std::strcmp(told_call, freer.name) == 0, "%s of %s", told_call, maker.name);
    const char *says = std::strstr(told_line, " was made by ");
    CHECK_MSG(says != nullptr && std::strcmp(says + 13, maker.name) == 0, "%s: %s", maker.name,
              told_line);
}

void pairs(const char *wrong)
{
    for (std::size_t size : sizes)
        for (const maker &maker : makers)
            for (const freer &freer : freers)
                pair(maker, freer, size, wrong);
}

/* What nobody made may be freed by all, and what has no bytes has no maker. */
void nothing()
{
    told = 0;
    for (const freer &freer : freers) {
        if (std::strcmp(freer.name, "realloc") == 0)
            continue;
        freer.free(nullptr, 0);
        freer.free(opaque(std::malloc(0)), 0);
        freer.free(opaque(::operator new[](0)), 0);
    }
    CHECK(told == 0);
}

/* A new[] that gives NULL in place of throwing, after the new handler made room. */
void after_the_handler()
{
    static const rlimit all = {RLIM_INFINITY, RLIM_INFINITY};
    rlimit little;
    std::set_new_handler([] {
        setrlimit(RLIMIT_AS, &all);
        std::set_new_handler(nullptr);
    });
    getrlimit(RLIMIT_AS, &little);
    if (little.rlim_max != RLIM_INFINITY)
        return;
    little.rlim_cur = 400u << 20;
    CHECK(setrlimit(RLIMIT_AS, &little) == 0);
    told = 0;
    void *block = opaque(::operator new[](800u << 20, std::nothrow));
    CHECK(block != nullptr && std::get_new_handler() == nullptr);
    ::operator delete[](block);
    CHECK_MSG(told == 0, "%s", told_line);
}

/* In code without PIE the address that is handed in is that of a stub in the program. */
__attribute__((noinline)) void free_by(void (*free)(void *), void *block)
{
    reinterpret_cast<void (*)(void *)>(opaque(reinterpret_cast<void *>(free)))(block);
}

} // namespace

int main(int count, char **arguments)
{
    CHECK(count == 2);
    const char *wrong = arguments[1];
    snug_set_misuse_handler(note);
    pairs(wrong);
    nothing();
    after_the_handler();
    free_by(::operator delete, opaque(::operator new(100)));
    std::thread([wrong] { pairs(wrong); }).join();
    std::thread others[2];
    for (std::thread &other : others)
        other = std::thread([wrong] { pairs(wrong); });
    for (std::thread &other : others)
        other.join();
    puts("makers: each pair was judged");
    return 0;
}
