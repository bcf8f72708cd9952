/*
 * more_than_there_is.c - trap 15: a program asks for more than memory and swap together. Where
 * vm.overcommit_memory is 0 the system refuses such a mapping, and so the program gets NULL and
 * ENOMEM, not a block on which it meets the out-of-memory killer.
 *
 *   more_than_there_is refused      from a little more than there is up to 8 TiB, by every
 * function; what the program has stays as it was, what is kept for it too more_than_there_is same
 * around the border the answer is that of a plain mmap more_than_there_is overcommit   with
 * SNUG_OVERCOMMIT=1 there are such blocks
 *
 * Fault it finds: SNUG_OVERCOMMIT=1 under `refused`.
 */
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>

#include "check.h"

#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)
#define TIB ((size_t)1 << 40)

/* Bytes of memory and swap. */
static size_t all_there_is(void)
{
    struct sysinfo info;
    CHECK(sysinfo(&info) == 0);
    return ((size_t)info.totalram + info.totalswap) * info.mem_unit;
}

static void need_heuristic(void)
{
    char mode = '?';
    FILE *file = fopen("/proc/sys/vm/overcommit_memory", "r");
    if (file == NULL || fread(&mode, 1, 1, file) != 1 || mode != '0')
        test_skip("vm.overcommit_memory is not 0");
    fclose(file);
    if (all_there_is() >= 4 * TIB)
        test_skip("this machine has 4 TiB and more");
}

/* `block` has 1 GiB. */
static void refuse(size_t size, char *block)
{
    void *none = NULL;
    size = opaque_size(size);
    CHECK_REFUSED(malloc(size), size);
    CHECK_REFUSED(calloc(size, 1), size);
    CHECK_REFUSED(calloc(size / 4096, 4096), size);
    CHECK_REFUSED(aligned_alloc(64, size), size);
    CHECK_REFUSED(aligned_alloc(2 * MIB, size), size);
    CHECK(posix_memalign(&none, 4096, size) == ENOMEM && none == NULL);
    CHECK_REFUSED(realloc(NULL, size), size);
    if (size - GIB > all_there_is()) /* it is asked about the growth alone */
        CHECK_REFUSED(realloc(block, size), size);
}

/* Free blocks that are kept for the program, and occupy memory. */
static void fill_caches(void)
{
    void *blocks[3000];
    for (size_t i = 0; i < 3000; i++) {
        blocks[i] = opaque(malloc(1000));
        CHECK(blocks[i] != NULL);
        memset(blocks[i], 1, 1000);
    }
    for (size_t i = 0; i < 3000; i++)
        free(blocks[i]);
}

static void refused(void)
{
    size_t there = all_there_is();
    char *block = opaque(malloc(GIB));
    CHECK(block != NULL);
    pattern_fill(block, GIB, 15);
    fill_caches();
    size_t before = resident_kib();
    for (size_t size = 8 * TIB; size > there; size = size / 10 * 9)
        refuse(size, block);
    refuse(there + 16 * MIB, block);
    if (there < 1000000000000)
        for (int i = 0; i < 1000; i++)
            CHECK_REFUSED(malloc(opaque_size(1000000000000)), 1000000000000);
    size_t after = resident_kib();
    /* The system's malloc gives back what it has before it gives up. */
    CHECK_MSG(getenv("SNUG_TEST_EXPECT") == NULL || after + 512 > before,
              "%zu KiB were resident, then %zu: what was kept is gone", before, after);
    CHECK(pattern_holds(block, GIB, GIB, 15));
    free(block);
}

static bool system_has(size_t bytes)
{
    void *start = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return start != MAP_FAILED && (munmap(start, bytes), true);
}

static void same(void)
{
    size_t there = all_there_is();
    bool both[2] = {false, false};
    for (size_t part = 1; part <= 40; part++) {
        size_t size = opaque_size(there / 20 * part);
        bool expected = system_has(size);
        both[expected] = true;
        for (int way = 0; way < 3; way++) {
            char *block = way == 0   ? malloc(size)
                          : way == 1 ? calloc(size, 1)
                                     : realloc(malloc(9), size);
            CHECK_MSG((block != NULL) == expected, "%zu bytes: the system %s, malloc %s", size,
                      expected ? "has them" : "refuses", expected ? "refuses" : "has them");
            if (block != NULL)
                block[size - 1] = 1;
            free(block);
        }
    }
    CHECK(both[0] && both[1]);
    /* It is asked about each mapping alone: together they may be more. */
    char *blocks[3];
    for (size_t i = 0; i < 3; i++) {
        blocks[i] = opaque(malloc(there / 2));
        CHECK(blocks[i] != NULL);
        blocks[i][there / 4] = (char)i;
    }
    for (size_t i = 0; i < 3; i++) {
        CHECK(blocks[i][there / 4] == (char)i);
        free(blocks[i]);
    }
}

static void overcommit(void)
{
    for (size_t size = 8 * TIB; size > all_there_is(); size /= 3) {
        char *block = opaque(malloc(opaque_size(size)));
        CHECK_MSG(block != NULL, "%zu bytes", size);
        block[0] = block[size - 1] = 7;
        block = opaque(realloc(block, size + GIB));
        CHECK_MSG(block != NULL, "%zu bytes grow by 1 GiB", size);
        CHECK(block[0] == 7 && block[size - 1] == 7 && block[size + GIB - 1] == 0);
        free(block);
    }
}

int main(int argc, char **argv)
{
    test_begin(60);
    CHECK(argc == 2);
    need_heuristic();
    if (strcmp(argv[1], "refused") == 0)
        refused();
    else if (strcmp(argv[1], "same") == 0)
        same();
    else if (strcmp(argv[1], "overcommit") == 0)
        overcommit();
    else
        check_failed(__FILE__, __LINE__, "no such case: %s", argv[1]);
    return test_end();
}
