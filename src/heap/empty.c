/*
 * Blocks of size zero. See empty.h.
 */
#include "heap/empty.h"

#include "base/bits.h"
#include "magazine/fast.h"
#include "platform/memory.h"

/* Bytes (table): address space for 65,536 blocks, more than programs have of no size; its bits take
 * two pages. */
#define EMPTY_BYTES ((size_t)EMPTY_WORDS * 64 * MIN_ALIGN)

/* Layout: a block for each multiple of the guaranteed alignment, and words of bits for them. */
enum { EMPTY_WORDS_LOG = 10, EMPTY_WORDS = 1 << EMPTY_WORDS_LOG };

/* Looks: where so many words in a row have no clear bit, hardly any has. Each request would
 * look through all of them otherwise in a program that has more blocks of no size than there is
 * room. */
enum { EMPTY_LOOKS = 8 };

/* Layout: no address, instead of a range that cannot be had. */
#define NO_RANGE ((char *)1)

static char *range;
BULKY static uint64_t live[EMPTY_WORDS];

/* The range. The first thread reserves it; what another has reserved meanwhile is given back. */
static COLD char *range_new(void)
{
    char *made = os_reserve(EMPTY_BYTES), *none = NULL;
    if (made == NULL)
        made = NO_RANGE;
    if (__atomic_compare_exchange_n(&range, &none, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return made;
    if (made != NO_RANGE)
        os_unmap(made, EMPTY_BYTES);
    return none;
}

static uintptr_t range_start(void)
{
    return (uintptr_t)__atomic_load_n(&range, __ATOMIC_ACQUIRE);
}

/* The word at which a thread begins: what it knows of itself lies elsewhere than what another does.
 */
static size_t first_word(void)
{
    return bits_spread((uintptr_t)&thread_self, EMPTY_WORDS_LOG);
}

void *empty_alloc(void)
{
    uintptr_t start = range_start();
    if (UNLIKELY(start == 0))
        start = (uintptr_t)range_new();
    if (UNLIKELY(start == (uintptr_t)NO_RANGE))
        return NULL;
    /* Each request takes from another word, so that the first has a clear bit unless there are many
     * blocks. Threads begin at places of their own: they would wait for each other's lines. */
    size_t first = first_word() + thread_self.empty_turn++;
    for (size_t i = 0; i < EMPTY_LOOKS; i++) {
        size_t word = (first + i) % EMPTY_WORDS;
        uint64_t bits = __atomic_load_n(&live[word], __ATOMIC_RELAXED);
        while (bits != UINT64_MAX) {
            /* The highest, so that hardly any begins with a page, as large blocks do, for which
             * free looks under a lock. */
            unsigned index = bit_highest(~bits);
            uint64_t bit = (uint64_t)1 << index;
            /* acquire: pairs with the release of the free before */
            bits = __atomic_fetch_or(&live[word], bit, __ATOMIC_ACQUIRE);
            if ((bits & bit) == 0)
                return (void *)(start + (word * 64 + index) * MIN_ALIGN);
        }
    }
    return NULL;
}

bool empty_covers(uintptr_t address)
{
    uintptr_t start = range_start();
    return start > (uintptr_t)NO_RANGE && address - start < EMPTY_BYTES;
}

static uint64_t *word_of(uintptr_t address, uint64_t *bit)
{
    size_t index = (address - range_start()) / MIN_ALIGN;
    *bit = (uint64_t)1 << (index % 64);
    return &live[index / 64];
}

/* What is wrong with an address in the range at which no block begins. */
static COLD struct misuse misuse_of(uintptr_t address, bool is_live)
{
    struct misuse misuse = {.kind = MISUSE_DOUBLE_FREE, .address = address};
    if (is_live && address % MIN_ALIGN != 0) {
        misuse.kind = MISUSE_INSIDE;
        misuse.start = align_down(address, MIN_ALIGN);
    }
    return misuse;
}

struct misuse empty_misuse(uintptr_t address)
{
    uint64_t bit;
    bool is_live = (__atomic_load_n(word_of(address, &bit), __ATOMIC_RELAXED) & bit) != 0;
    if (is_live && address % MIN_ALIGN == 0)
        return (struct misuse){.kind = MISUSE_NONE};
    return misuse_of(address, is_live);
}

struct misuse empty_free(uintptr_t address)
{
    if (address % MIN_ALIGN != 0)
        return empty_misuse(address);
    uint64_t bit;
    uint64_t *word = word_of(address, &bit);
    /* release: what its owner did comes before it is handed out again */
    if ((__atomic_fetch_and(word, ~bit, __ATOMIC_RELEASE) & bit) == 0)
        return misuse_of(address, false);
    return (struct misuse){.kind = MISUSE_NONE};
}
