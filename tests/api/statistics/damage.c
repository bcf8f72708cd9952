/*
 * A program that damages its own heap, as programs do, and has it checked; for checks.py.
 *
 *     damage DAMAGE HOW [BYTES]
 *
 * DAMAGE: what is written to, see the table at the end; `none`: nothing.
 * HOW: who checks: `call`: snug_check(); `signal`, `interval`, `exit`: SNUG_CHECK_ON, which gets a
 * reason to. BYTES: of the blocks that it then takes, and does not free, instead of large ones.
 * Prints the address of the block that was damaged.
 */
#include <malloc.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "snug/snug.h"

enum { COUNT = 200, MEDIUM = 5000, SMALL = 100 };

static char *blocks[COUNT];

static void fill(size_t bytes)
{
    for (size_t i = 0; i < COUNT; i++)
        blocks[i] = memset(malloc(bytes), 1, bytes);
}

/* A block among others that are in use. */
static char *live(size_t bytes)
{
    fill(bytes);
    return blocks[COUNT / 2];
}

/* One that was freed last, and waits with its thread. */
static char *freed(size_t bytes)
{
    char *block = live(bytes);
    free(block);
    return block;
}

/* One that is back where it came from. */
static char *given_back(size_t bytes)
{
    char *block = freed(bytes);
    malloc_trim(0);
    return block;
}

static uint64_t *word(char *block, long index)
{
    return (uint64_t *)block + index;
}

/* ---- Damage ---- */

static char *overrun(void) /* by a string that is too long */
{
    char *block = live(MEDIUM);
    memset(block, 'x', malloc_usable_size(block) + 8);
    return block + malloc_usable_size(block) + 8; /* the next one's header */
}

static char *overrun_by_one(void)
{
    char *block = live(MEDIUM);
    block[malloc_usable_size(block)] ^= 1;
    return block + malloc_usable_size(block) + 8;
}

static char *check_value(void) /* the upper half of the header */
{
    char *block = live(MEDIUM);
    *word(block, -1) ^= (uint64_t)1 << 50;
    return block;
}

static char *quick_link(void)
{
    char *block = freed(MEDIUM);
    *word(block, 0) = 0x4141414141414141;
    return block;
}

static char *free_header(void)
{
    char *block = given_back(MEDIUM);
    *word(block, -1) = 0;
    return block;
}

static char *free_link(void)
{
    char *block = given_back(MEDIUM);
    *word(block, 1) = (uintptr_t)&blocks;
    return block;
}

static char *free_trailer(void)
{
    char *block = given_back(MEDIUM);
    size_t usable = malloc_usable_size(blocks[0]);
    *word(block, (long)usable / 8 - 1) = 7;
    return block;
}

static char *small_waiting(void)
{
    char *block = freed(SMALL);
    memset(block, 'x', SMALL);
    return block;
}

static char *small_free(void)
{
    char *block = given_back(SMALL);
    memset(block, 'x', SMALL);
    return block;
}

static char *none(void)
{
    given_back(SMALL);
    return live(MEDIUM);
}

static const struct {
    const char *name;
    char *(*damage)(void);
} table[] = {
    {"overrun", overrun},           {"overrun_by_one", overrun_by_one},
    {"check_value", check_value},   {"quick_link", quick_link},
    {"free_header", free_header},   {"free_link", free_link},
    {"free_trailer", free_trailer}, {"small_waiting", small_waiting},
    {"small_free", small_free},     {"none", none},
};

/* ---- Checking ---- */

/* Without allocating. */
static void tell(const char *block)
{
    char line[32];
    int length = snprintf(line, sizeof(line), "%p\n", (const void *)block);
    if (write(1, line, (size_t)length) != length)
        _exit(3);
}

/* Takes slow paths that touch nothing that was damaged, for a while. */
static void work(size_t bytes)
{
    static void *volatile kept;
    const struct timespec moment = {0, 10000000};
    for (unsigned i = 0; i < 100; i++) {
        kept = malloc(bytes != 0 ? bytes : 300000);
        if (bytes == 0)
            free(kept);
        nanosleep(&moment, NULL);
    }
}

int main(int count, char **arguments)
{
    if (count < 3)
        return 2;
    const char *how = arguments[2];
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        if (strcmp(arguments[1], table[i].name) == 0) {
            tell(table[i].damage());
            if (strcmp(how, "call") == 0)
                _exit(snug_check()); /* without what else would be found at the end */
            if (strcmp(how, "signal") == 0)
                raise(SIGUSR2);
            if (strcmp(how, "exit") != 0)
                work(count > 3 ? strtoul(arguments[3], NULL, 0) : 0);
            return 0;
        }
    return 2;
}
