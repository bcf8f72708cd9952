/*
 * A program that moves its blocks to give memory back: a cache of 300,000 entries of many sizes, of
 * which nine in ten go, at random. What is left lies a few to a page; it is moved where snug says
 * that it helps, until nothing should move any more, and the pages come back. Contents stay, and
 * each round moves less. What is no block that could be moved is left alone.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "snug/snug.h"

enum { ENTRIES = 300000, KEPT_PART = 10, SMALLEST = 16, LARGEST = 512, ROUNDS_MOST = 20 };

static struct entry {
    unsigned char *bytes;
    uint32_t size;
} entries[ENTRIES];

static size_t resident_bytes(void)
{
    size_t pages = 0;
    FILE *statm = fopen("/proc/self/statm", "r");
    CHECK(statm != NULL && fscanf(statm, "%*s %zu", &pages) == 1);
    fclose(statm);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static uint32_t draw(void)
{
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 32);
}

static unsigned char pattern(size_t index)
{
    return (unsigned char)(index * 31 + 7);
}

static void fill(void)
{
    for (size_t i = 0; i < ENTRIES; i++) {
        entries[i].size = SMALLEST + draw() % (LARGEST - SMALLEST + 1);
        entries[i].bytes = snug_malloc(entries[i].size);
        CHECK(entries[i].bytes != NULL);
        memset(entries[i].bytes, pattern(i), entries[i].size);
    }
}

/* Frees all but one in KEPT_PART; returns the bytes of those. */
static size_t thin_out(void)
{
    size_t kept = 0;
    for (size_t i = 0; i < ENTRIES; i++) {
        if (draw() % KEPT_PART == 0) {
            kept += entries[i].size;
            continue;
        }
        snug_free(entries[i].bytes);
        entries[i].bytes = NULL;
    }
    return kept;
}

/* Moves what should move; returns how many did. */
static size_t move_round(void)
{
    size_t moved = 0;
    snug_malloc_trim(0);
    for (size_t i = 0; i < ENTRIES; i++) {
        unsigned char *old = entries[i].bytes;
        int should = snug_should_move(old);
        unsigned char *now = snug_move(old);
        CHECK_MSG(now == NULL || should, "%p moved although it should not", (void *)old);
        if (now == NULL)
            continue;
        entries[i].bytes = now;
        moved++;
    }
    snug_malloc_trim(0);
    return moved;
}

static void check_contents(void)
{
    for (size_t i = 0; i < ENTRIES; i++)
        for (size_t j = 0; entries[i].bytes != NULL && j < entries[i].size; j++)
            CHECK_MSG(entries[i].bytes[j] == pattern(i), "entry %zu changed at byte %zu", i, j);
}

/* Of a class with as many free places as a slab in twenty, about every second block, and not more,
 * is in a slab that is emptier than most. */
static void check_dense(void)
{
    enum { BLOCKS = 20000, BYTES = 192 };
    static void *blocks[BLOCKS];
    size_t should = 0, live = 0;
    for (size_t i = 0; i < BLOCKS; i++)
        blocks[i] = snug_malloc(BYTES);
    for (size_t i = 0; i < BLOCKS; i++)
        if (draw() % 20 == 0) {
            snug_free(blocks[i]);
            blocks[i] = NULL;
        }
    snug_malloc_trim(0);
    for (size_t i = 0; i < BLOCKS; i++) {
        live += blocks[i] != NULL;
        should += (size_t)snug_should_move(blocks[i]);
        snug_free(blocks[i]);
    }
    CHECK_MSG(should < live / 4 * 3, "%zu of %zu should move", should, live);
}

static void check_left_alone(void)
{
    static char outside[64];
    char *medium = snug_malloc(5000), *large = snug_malloc(1000000);
    void *none[] = {NULL, outside, medium, medium + 16, large, &none};
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
        CHECK_MSG(!snug_should_move(none[i]) && snug_move(none[i]) == NULL, "case %zu moved", i);
    snug_free(medium);
    snug_free(large);
}

int main(int argc, char **argv)
{
    bool planted = argc > 1 && strcmp(argv[1], "unmoved") == 0;
    test_begin(60);
    memset(entries, 1, sizeof(entries)); /* so that it is resident from the start */
    size_t before = resident_bytes();
    fill();
    size_t kept = thin_out();
    snug_malloc_trim(0);
    size_t thin = resident_bytes() - before;
    size_t moved = 0, round = 0, last = 1;
    for (; !planted && last != 0 && round < ROUNDS_MOST; round++) {
        last = move_round();
        moved += last;
    }
    size_t dense = resident_bytes() - before;
    printf("kept %zu KiB; resident %zu KiB, after %zu moves in %zu rounds %zu KiB\n", kept >> 10,
           thin >> 10, moved, round, dense >> 10);
    check_contents();
    CHECK_MSG(round < ROUNDS_MOST, "still moving after %zu rounds", round);
    CHECK_MSG(dense < thin / 2 && dense < kept + kept / 2, "%zu KiB of %zu are still there",
              dense >> 10, thin >> 10);
    check_left_alone();
    check_dense();
    return test_end();
}
