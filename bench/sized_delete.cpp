/*
 * sized_delete.cpp - a working set of blocks that are freed with their size.
 *
 * usage: sized_delete LOW HIGH [OPERATIONS [SLOTS]]       1,000,000 and 400 unless given
 *
 * It imitates programs in C++, whose compilers pass the size of an object to operator delete. An
 * operation draws one of SLOTS slots, deletes what is in it, saying its size, and puts LOW to HIGH
 * bytes from operator new there. The first and the last byte are written.
 */
#include <new>

extern "C" {
#include "workload.h"
}

/* Some compilers declare it only if they are told to call it. */
void operator delete(void *block, std::size_t size) noexcept;

namespace
{

const long most_slots = 1000000;

struct slot {
    unsigned char *block;
    uint32_t size;
} *slots;

int64_t replace(slot *slot, uint32_t size)
{
    int64_t difference = static_cast<int64_t>(size) - slot->size;
    operator delete(slot->block, slot->size);
    slot->block = static_cast<unsigned char *>(operator new(size));
    slot->block[0] = slot->block[size - 1] = static_cast<unsigned char>(size);
    slot->size = size;
    return difference;
}

} // namespace

int main(int argc, char **argv)
{
    if (argc < 3 || argc > 5) {
        fprintf(stderr, "usage: %s LOW HIGH [OPERATIONS [SLOTS]]\n", argv[0]);
        return 2;
    }
    uint32_t low = static_cast<uint32_t>(number_argument(argv[1], 1, 1 << 30));
    uint32_t high = static_cast<uint32_t>(number_argument(argv[2], low, 1 << 30));
    long operations = argc > 3 ? number_argument(argv[3], 1, 1000000000000) : 1000000;
    uint32_t count =
        static_cast<uint32_t>(argc > 4 ? number_argument(argv[4], 1, most_slots) : 400);
    uint64_t state = 0x9e3779b97f4a7c15u;
    int64_t live = 0;
    slots = static_cast<slot *>(memory_of_our_own(count * sizeof *slots));
    for (uint32_t i = 0; i < count; i++)
        live += replace(&slots[i], random_between(&state, low, high));

    uint64_t start = now_ns();
    for (long i = 0; i < operations; i++) {
        uint64_t drawn = random_next(&state) >> 8;
        slot *slot = &slots[static_cast<uint32_t>(drawn) % count];
        live += replace(slot, low + static_cast<uint32_t>(drawn >> 32) % (high - low + 1));
        meter_set(0, live);
    }
    uint64_t end = now_ns();
    print_figures(static_cast<uint64_t>(operations),
                  static_cast<double>(end - start) / static_cast<double>(operations));
    return 0;
}
