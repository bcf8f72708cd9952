/*
 * The world of one input: cells, bins of slabs and large spans that share one set of spans, and in
 * some a hardened heap, on a provider with little memory that may fail; and, beside it, the shadow:
 * what is live, where, how large, and with what contents, kept by code that has nothing in common
 * with the library's.
 *
 * fuzz.c has what they share, cells.c, slabs.c, large.c and hardened.c the operations on each kind.
 * An operation predicts what the library must do from the shadow alone, calls it, and compares.
 *
 * Of the shadow, one byte for each 16 bytes of the memory says whose they are. Blocks claim and
 * release what they occupy, so no two can overlap, of whatever kinds, and the provider knows which
 * memory may be purged.
 */
#ifndef SNUG_TESTS_FUZZ_WORLD_H
#define SNUG_TESTS_FUZZ_WORLD_H

#include "input.h"
#include "meta/misuse.h"
#include "pageheap/page_heap.h"

/* Ends the program with what is wrong, and where it was found. */
_Noreturn void fuzz_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

#define EXPECT(condition, ...) \
    do { \
        if (!(condition)) \
            fuzz_fail(__VA_ARGS__); \
    } while (0)

/* What is being done, for the message. */
extern const char *fuzz_operation;

/* All that the library works on, but for what snug keeps for itself. */
extern struct page_heap page_heap;

/* ---- The memory ---- */

/* The provider, and how it fails; see provider.c. */
extern struct fuzz_provider {
    struct provider provider;
    unsigned fail_takes;  /* so many takes from now fail, */
    unsigned fail_gives;  /* gives, */
    unsigned fail_purges; /* and purges */
    bool may_lose;        /* who cannot give a range back now forgets it */
    size_t most;          /* no larger range is handed out */
    size_t refused;       /* takes that failed so far, whatever for */
} fuzz_provider;

void provider_begin(size_t most);

/* Fails unless everything came back. */
void provider_end(void);

/* ---- Whose memory is whose ---- */

enum claim { CLAIM_NONE, CLAIM_FREE_CELL, CLAIM_BLOCK };

/* Marks a range of whole units of 16 bytes. Fails unless all of it was `from`. */
void claim(uintptr_t start, size_t bytes, enum claim from, enum claim to);

/* The same, whatever it was. */
void claim_anew(uintptr_t start, size_t bytes, enum claim to);

/* Whether all of a range is in the memory and `what`. */
bool claimed_as(uintptr_t start, size_t bytes, enum claim what);

/* Whether none of a range is in a block. */
bool claimed_by_no_block(uintptr_t start, size_t bytes);

/* ---- Contents ---- */

/* Fills a block of at least 8 bytes: both ends, and one word in every 512 bytes. */
void pattern_fill(uintptr_t block, size_t bytes, uint32_t id);

/* Fails unless the first `kept` bytes of a block that was filled with `bytes` are as they were. */
void pattern_expect(uintptr_t block, size_t bytes, size_t kept, uint32_t id);

/* A number for the contents of a new block. */
uint32_t pattern_new(void);

/* ---- Misuse ---- */

/* The library reports what is wrong with a pointer to the harness. Only between these two may it do
 * that; the second returns the last report, of `count`. */
void misuse_expect(void);
struct misuse misuse_expected(size_t *count);

/* ---- Operations ---- */

/* An operation, with a name for messages; how many there are of it among all operations says how
 * often it is done. */
struct operation {
    const char *name;
    void (*run)(struct input *input);
    unsigned weight;
};

/* Each kind's: start on an empty world, its operations up to one without a name, all invariants,
 * and the end, which gives everything back. `*_pages` are the pages that it should have. */
void cells_begin(uint8_t settings);
extern const struct operation cells_operations[];
void cells_expect_sound(void);
size_t cells_pages(void);
void cells_end(void);

void slabs_begin(void);
extern const struct operation slabs_operations[];
void slabs_expect_sound(void);
size_t slabs_pages(void);
void slabs_end(void);

void large_begin(void);
extern const struct operation large_operations[];
void large_expect_sound(void);
size_t large_pages(void);
void large_end(void);

/* What all inputs need, once; and `hard`: with a heap, or nothing is done. */
void hardened_warm(void);
void hardened_begin(bool hard);
extern const struct operation hardened_operations[];
void hardened_expect_sound(void);
void hardened_end_all(void);

/* The longest input that is used to its end. */
enum { INPUT_MOST = 4096 };

/* Runs one input from an empty world to an empty world. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
