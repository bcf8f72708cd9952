/*
 * attacks.c - the well-known ways to make a heap with metadata among user data hand out memory of
 * an attacker's choice, or the same memory twice, each tried on blocks of a size.
 *
 *   attacks NAME SIZE warm|cold    warm: the thread has caches
 *
 * The attacker may write to blocks that are free, over the end of a block and before it, and free
 * what is none; secrets of the process he does not know. It ends with 0 and "held" if malloc went
 * on to give sound blocks; with 3 and what he got if he did; by a report of snug's otherwise.
 */
#include "check.h"

#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { WON = 3, FEW = 12, ROOM = 8192 };

static size_t size;
static bool warm;

/* Where he wants a block: it looks like one, with headers as other allocators have. */
static uint64_t target[ROOM] __attribute__((aligned(4096)));

static unsigned char *get(void)
{
    unsigned char *block = opaque(malloc(size));
    CHECK(block != NULL);
    return block;
}

static void give(void *block)
{
    free(opaque(block));
}

static _Noreturn void won(const char *what)
{
    printf("%s\n", what);
    fflush(stdout);
    _exit(WON);
}

/* Takes a few blocks: none may be in the target, none may share a byte with another. */
static void go_on(void)
{
    unsigned char *blocks[FEW];
    for (int i = 0; i < FEW; i++) {
        blocks[i] = get();
        uintptr_t start = (uintptr_t)blocks[i];
        if (start - (uintptr_t)target < sizeof(target))
            won("a block where the attacker wants it");
        for (int j = 0; j < i; j++)
            if (start < (uintptr_t)blocks[j] + size && (uintptr_t)blocks[j] < start + size)
                won("two blocks that overlap");
    }
    for (int i = 0; i < FEW; i++)
        give(blocks[i]);
}

/* Some blocks between which the attacked ones lie. */
static unsigned char *first, *before, *block, *behind, *last;

static void line_up(void)
{
    for (int i = 0; warm && i < 100; i++) {
        unsigned char *some = get();
        give(get());
        give(some);
    }
    first = get();
    before = get();
    block = get();
    behind = get();
    last = get();
}

static void write_word(unsigned char *at, uint64_t word)
{
    memcpy(opaque(at), &word, sizeof(word));
}

/* ---- Free blocks that are written to ---- */

/* Poisoning of a cache: the first word of the block that was freed last is its link to the next. */
static void poison(void)
{
    line_up();
    give(first);
    give(block);
    write_word(block, (uintptr_t)&target[2]);
    go_on();
}

/* The same with every word that a link may be. */
static void poison_all(void)
{
    line_up();
    give(first);
    give(block);
    for (size_t i = 0; i < 4; i++)
        write_word(block + 8 * i, (uintptr_t)&target[2]);
    go_on();
}

/* Unlinking: both links of a free block lead to a place that is written when it leaves its list. */
static void unlink_free(void)
{
    line_up();
    give(block);
    write_word(block, (uintptr_t)&target[2]);
    write_word(block + 8, (uintptr_t)&target[2]);
    uint64_t old[ROOM];
    memcpy(old, target, sizeof(old));
    give(behind);
    if (memcmp(old, target, sizeof(old)) != 0)
        won("a write where the attacker wants it");
    give(before);
    go_on();
}

/* The same of the first block of its list: only the link to the next, which is taken out by writing
 * behind it. */
static void unlink_first(void)
{
    line_up();
    give(block);
    write_word(block, (uintptr_t)&target[2]);
    write_word(block + 8, 0);
    uint64_t old[ROOM];
    memcpy(old, target, sizeof(old));
    get();
    if (memcmp(old, target, sizeof(old)) != 0)
        won("a write where the attacker wants it");
    go_on();
}

/* The house of lore: the list leads to a block of the attacker's that leads back. */
static void lore(void)
{
    line_up();
    give(block);
    target[2] = (uintptr_t)block;
    target[3] = (uintptr_t)block;
    write_word(block, (uintptr_t)&target[2]);
    go_on();
}

/* ---- Blocks that are freed twice ---- */

static void duplicate(void)
{
    line_up();
    give(before);
    give(block);
    give(before);
    go_on();
}

/* What marks the block as free is wiped between. */
static void duplicate_wiped(void)
{
    line_up();
    give(block);
    memset(opaque(block), 0, 16);
    give(block);
    go_on();
}

/* ---- Frees of what is no block ---- */

/* The house of spirit: a block of the attacker's own, with a header such as a true one has. */
static void spirit(void)
{
    line_up();
    memcpy(&target[1], opaque(block - 8), 8);
    if (size / 8 < ROOM - 1)
        memcpy(&target[1 + size / 8], opaque(block - 8), 8);
    give(&target[2]);
    go_on();
}

/* The same inside of a block. */
static void spirit_inside(void)
{
    line_up();
    memcpy(opaque(block + 24), opaque(block - 8), 8);
    give(block + 32);
    go_on();
}

/* ---- Headers that are written over ---- */

/* A size that is forged makes a block cover the next. */
static void overlap(void)
{
    line_up();
    uint16_t units;
    memcpy(&units, opaque(block - 8), sizeof(units));
    units *= 2;
    memcpy(opaque(block - 8), &units, sizeof(units));
    give(block);
    get(), go_on();
}

/* The house of einherjar: the one before is said to be free, and to begin in the attacker's data.
 */
static void einherjar(void)
{
    line_up();
    size_t usable = malloc_usable_size(before);
    uint64_t forged = usable / 2 / 16;
    write_word(before + usable - 8, forged);
    *(unsigned char *)opaque(block - 8 + 3) = 1; /* the header's byte that says so */
    memcpy(opaque(block - 8 - 16 * forged), opaque(block - 8), 8);
    give(block);
    go_on();
}

/* The house of force: the rest of the heap, behind the last block, becomes endless. */
static void force(void)
{
    line_up();
    memset(opaque(last + malloc_usable_size(last)), 0xff, 8);
    go_on();
}

static const struct {
    const char *name;
    void (*act)(void);
} attacks[] = {
    {"poison", poison},
    {"poison-all", poison_all},
    {"unlink", unlink_free},
    {"unlink-first", unlink_first},
    {"lore", lore},
    {"dup", duplicate},
    {"dup-wiped", duplicate_wiped},
    {"spirit", spirit},
    {"spirit-inside", spirit_inside},
    {"overlap", overlap},
    {"einherjar", einherjar},
    {"force", force},
};

int main(int count, char **arguments)
{
    test_begin(30);
    CHECK(count == 4);
    warm = strcmp(arguments[3], "warm") == 0;
    size = strtoul(arguments[2], NULL, 10);
    for (size_t i = 0; i < ROOM; i++)
        target[i] = i % 2 == 0 ? 0 : size | 1;
    for (size_t i = 0; i < sizeof(attacks) / sizeof(*attacks); i++)
        if (strcmp(arguments[1], attacks[i].name) == 0) {
            attacks[i].act();
            puts("held");
            return 0;
        }
    check_failed(__FILE__, __LINE__, "no such attack: %s", arguments[1]);
}
