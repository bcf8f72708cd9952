/* hostile.c - a program on snug that lies to whoever looks into it. Each line of its input is `KIND
 * SEED`: it writes that into its anchor, and into the memory to which that leads, and says "ready".
 *
 *   circle    every word is the address of such a word: lists without end, counts without measure
 *   zero      all is zero
 *   ones      all is one, and nothing is an address
 *   many      small numbers where addresses are, large ones elsewhere
 *   random    by the seed: addresses of this memory, small numbers and large ones
 *   moving    the same, written again and again while it is looked at
 *   work      the anchor as it was, but a borrowed thread works without end
 *   layout    another layout, and a version with escape sequences
 *   names     the anchor as it was; the process's name with escape sequences
 */
#define _GNU_SOURCE
#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "report/anchor.h"

enum {
    WORDS = 1 << 20,
    HEADER = offsetof(struct anchor, heap) / sizeof(uint64_t),
    ENTRY = offsetof(struct anchor, borrow_entry) / sizeof(uint64_t),
    POINTERS = sizeof(struct anchor) / sizeof(uint64_t) - HEADER
};

static uint64_t *anchor, *area, saved[HEADER + POINTERS];
static volatile int moving;

static int find(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    (void)context;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        char *at = (char *)info->dlpi_addr + header->p_vaddr, *end = at + header->p_memsz;
        if (header->p_type != PT_NOTE)
            continue;
        while (at + 12 < end) {
            ElfW(Nhdr) *note = (ElfW(Nhdr) *)at;
            char *name = at + sizeof *note, *contents = name + (note->n_namesz + 3) / 4 * 4;
            int64_t distance;
            if (note->n_namesz == 5 && strcmp(name, "snug") == 0) {
                memcpy(&distance, contents, sizeof distance);
                anchor = (uint64_t *)(contents + distance);
                return 1;
            }
            at = contents + (note->n_descsz + 3) / 4 * 4;
        }
    }
    return 0;
}

static uint64_t next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static uint64_t word_of(const char *kind, uint64_t *state, size_t at)
{
    uint64_t inside = (uint64_t)(area + (next(state) % (WORDS / 2) + WORDS / 4));
    switch (*kind) {
    case 'c':
        return (uint64_t)(area + WORDS / 2);
    case 'z':
        return 0;
    case 'o':
        return ~(uint64_t)0;
    default:
        if (strcmp(kind, "many") == 0)
            return at % 2 == 0 ? next(state) % 100 : next(state);
        switch (next(state) % 6) {
        case 0:
            return next(state) % 10;
        case 1:
            return next(state);
        case 2:
            return next(state) % (1 << 20);
        default:
            return inside;
        }
    }
}

static void fill(const char *kind, uint64_t seed)
{
    uint64_t state = seed * 2 + 1;
    for (size_t i = 0; i < WORDS; i++)
        area[i] = word_of(kind, &state, i);
    for (size_t i = HEADER; i < HEADER + POINTERS; i++)
        if (strcmp(kind, "random") != 0 || next(&state) % 4 != 0)
            anchor[i] = (uint64_t)(area + WORDS / 2 + next(&state) % 1000);
}

static void *move(void *unused)
{
    uint64_t state = 77;
    for (;;) {
        for (int i = 0; i < 1000 && moving; i++) {
            size_t at = next(&state) % WORDS;
            area[at] = word_of("random", &state, at);
            anchor[HEADER + at % POINTERS] = (uint64_t)(area + WORDS / 2 + at % 1000);
        }
        usleep(moving ? 1 : 1000);
    }
    return unused;
}

static void work(void)
{
    for (;;)
        __asm__ volatile("");
}

static void lie(const char *kind, uint64_t seed)
{
    static const char bad[] = "\033]0;owned\a\033[2J\302\233";
    moving = 0;
    usleep(2000);
    memcpy(anchor, saved, sizeof saved);
    if (strcmp(kind, "layout") == 0) {
        ((uint32_t *)anchor)[3] ^= 1;
        memcpy((char *)anchor + 16, bad, 16);
    } else if (strcmp(kind, "work") == 0) {
        anchor[ENTRY] = (uint64_t)work;
    } else if (strcmp(kind, "names") == 0) {
        prctl(PR_SET_NAME, bad);
    } else {
        fill(kind, seed);
        moving = strcmp(kind, "moving") == 0;
    }
}

int main(void)
{
    char line[100], kind[50];
    unsigned long seed;
    free(malloc(100));
    dl_iterate_phdr(find, NULL);
    if (anchor == NULL)
        return 1;
    uintptr_t page = (uintptr_t)anchor & ~(uintptr_t)4095;
    if (mprotect((void *)page, 8192, PROT_READ | PROT_WRITE) != 0)
        return 2;
    area = mmap(NULL, WORDS * 8, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(saved, anchor, sizeof saved);
    pthread_t thread;
    pthread_create(&thread, NULL, move, NULL);
    while (write(1, "ready\n", 6) == 6) {
        ssize_t length = read(0, line, sizeof line - 1);
        if (length <= 0)
            break;
        line[length] = 0;
        if (sscanf(line, "%49s %lu", kind, &seed) == 2)
            lie(kind, seed);
    }
    _exit(0);
}
