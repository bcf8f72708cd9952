/*
 * misuse.c - one program per misuse: does one wrong thing to the heap, then ends normally.
 *
 *   misuse warm|cold CASE [SIZE [NUMBER]]
 *
 * "warm": each thread has allocated and freed blocks of SIZE before, so that its caches are in use;
 * "cold": the misuse is among the first calls of the thread. It says on stdout which block it
 * misuses ("block ADDRESS USABLE"), then which address it hands in
 * ("bad ADDRESS"), then "after" when the call came back, and "end" before it returns from main.
 * misuse.py runs it and compares how it ends. If the same memory is handed out twice, it ends
 * with 3; if the heap is not consistent at the end, with 1.
 */
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"

enum { HANDED_OUT_TWICE = 3, MOST = 10000 };

static bool warm;
static size_t size_argument = 64;
static size_t number_argument;
static void *blocks[MOST];

static void say(const char *what, const void *address)
{
    dprintf(STDOUT_FILENO, "%s %p\n", what, address);
}

static void after(void)
{
    dprintf(STDOUT_FILENO, "after\n");
}

/* Up and down a few times, further each time, as a program does that has been running for long. */
static void warm_up(void)
{
    enum { WIDEST = 300 };
    void *some[WIDEST];
    size_t widest = size_argument <= 5000 ? WIDEST : 4;
    for (size_t width = 1; warm && width <= widest; width = width * 3 / 2 + 1) {
        for (size_t i = 0; i < width; i++)
            some[i] = opaque(malloc(size_argument));
        for (size_t i = 0; i < width; i++)
            free(some[i]);
    }
}

static unsigned char *new_block(void)
{
    unsigned char *block = opaque(malloc(size_argument));
    CHECK(block != NULL);
    dprintf(STDOUT_FILENO, "block %p %zu\n", (void *)block, malloc_usable_size(block));
    return block;
}

static void free_badly(void *address)
{
    say("bad", address);
    free(opaque(address));
    after();
}

static void in_a_thread(void *(*function)(void *), void *argument)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, function, argument) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
}

/* ---- Freed twice ----------------------------------------------------------------------------- */

static void nothing_wrong(void)
{
    free(new_block());
}

static void twice(void)
{
    unsigned char *block = new_block();
    free(opaque(block));
    free_badly(block);
}

/* NUMBER other blocks are freed in between, so the first waits in a magazine, the depot, a slab. */
static void twice_with_others_between(void)
{
    CHECK(number_argument <= MOST);
    for (size_t i = 0; i < number_argument; i++)
        blocks[i] = opaque(malloc(size_argument));
    unsigned char *block = new_block();
    free(opaque(block));
    for (size_t i = 0; i < number_argument; i++)
        free(blocks[i]);
    free_badly(block);
}

/* ... half of the others before it, so that a whole slab or magazine goes with it. */
static void twice_amid_others(void)
{
    CHECK(number_argument <= MOST);
    unsigned char *block = NULL;
    for (size_t i = 0; i < number_argument; i++) {
        if (i == number_argument / 2)
            block = new_block();
        blocks[i] = opaque(malloc(size_argument));
    }
    for (size_t i = 0; i < number_argument / 2; i++)
        free(blocks[i]);
    free(opaque(block));
    for (size_t i = number_argument / 2; i < number_argument; i++)
        free(blocks[i]);
    free_badly(block);
}

static void twice_with_other_sizes_between(void)
{
    unsigned char *block = new_block();
    free(opaque(block));
    for (size_t size = 1; size < 40000; size += 61)
        free(opaque(malloc(size + size_argument)));
    free_badly(block);
}

/* All blocks of the size are freed and their memory given back before the second free. */
static void twice_after_trimming(void)
{
    for (size_t i = 0; i < 2000; i++)
        blocks[i] = opaque(malloc(size_argument));
    unsigned char *block = new_block();
    for (size_t i = 0; i < 2000; i++)
        free(blocks[i]);
    free(opaque(block));
    malloc_trim(0);
    free_badly(block);
}

/* A stray write into the freed block destroys whatever the allocator may have put there. */
static void twice_with_a_write_between(void)
{
    unsigned char *block = new_block();
    size_t usable = malloc_usable_size(block);
    free(opaque(block));
    memset(opaque(block), 0x55, usable);
    free_badly(block);
}

/* The first of the two frees is realloc's own, of the place it moved the block from. */
static void twice_by_realloc(void)
{
    unsigned char *block = new_block();
    free(opaque(realloc(opaque(block), size_argument * 3 + 100)));
    free_badly(block);
}

static void *free_it(void *block)
{
    warm_up();
    free(block);
    return NULL;
}

static void *free_it_badly(void *block)
{
    warm_up();
    free_badly(block);
    return NULL;
}

static void first_in_a_thread_that_is_gone(void)
{
    unsigned char *block = new_block();
    in_a_thread(free_it, block);
    free_badly(block);
}

static void second_in_a_thread(void)
{
    unsigned char *block = new_block();
    free(opaque(block));
    in_a_thread(free_it_badly, block);
}

static pthread_barrier_t barrier;

static void *free_it_and_stay(void *block)
{
    warm_up();
    free(block);
    pthread_barrier_wait(&barrier); /* freed */
    pthread_barrier_wait(&barrier); /* freed again by the other */
    return NULL;
}

static void first_in_a_thread_that_stays(void)
{
    unsigned char *block = new_block();
    pthread_t thread;
    CHECK(pthread_barrier_init(&barrier, NULL, 2) == 0);
    CHECK(pthread_create(&thread, NULL, free_it_and_stay, block) == 0);
    pthread_barrier_wait(&barrier);
    free_badly(block);
    pthread_barrier_wait(&barrier);
    CHECK(pthread_join(thread, NULL) == 0);
}

static int by_address(const void *a, const void *b)
{
    uintptr_t x = *(const uintptr_t *)a, y = *(const uintptr_t *)b;
    return x < y ? -1 : x > y;
}

/* After the double free the size is asked for 10,000 times: no two blocks may be the same. */
static void check_not_handed_out_twice(void)
{
    size_t count = size_argument <= 20000 ? MOST : 20;
    for (size_t i = 0; i < count; i++)
        blocks[i] = opaque(malloc(size_argument));
    qsort(blocks, count, sizeof *blocks, by_address);
    for (size_t i = 1; i < count; i++)
        if (blocks[i] == blocks[i - 1]) {
            say("handed out twice:", blocks[i]);
            _exit(HANDED_OUT_TWICE);
        }
    for (size_t i = 0; i < count; i++)
        free(blocks[i]);
}

static void twice_then_asked_for(void)
{
    if (number_argument > 0)
        twice_with_others_between();
    else
        twice();
    check_not_handed_out_twice();
}

static void twice_by_threads_then_asked_for(void)
{
    first_in_a_thread_that_stays();
    check_not_handed_out_twice();
}

/* ---- Into the middle ------------------------------------------------------------------------- */

/* NUMBER is the offset. */
static void inside(void)
{
    unsigned char *block = new_block();
    free_badly(block + number_argument);
}

static void inside_in_a_thread(void)
{
    unsigned char *block = new_block();
    in_a_thread(free_it_badly, block + number_argument);
}

/* The bad pointer waits in the magazine while the program goes on. */
static void inside_then_much_traffic(void)
{
    unsigned char *block = new_block();
    free_badly(block + number_argument);
    for (int round = 0; round < 20; round++)
        check_not_handed_out_twice();
}

/* A place in a slab where an object could begin, but which was never handed out. */
static void never_handed_out(void)
{
    unsigned char *block = new_block();
    free_badly(block + 3 * malloc_usable_size(block));
}

static void past_the_end(void)
{
    unsigned char *block = new_block();
    free_badly(block + malloc_usable_size(block));
}

/* ---- Not from here --------------------------------------------------------------------------- */

static char static_bytes[256] __attribute__((aligned(64)));
static const char constant_bytes[256] __attribute__((aligned(64))) = "constant";

static void on_the_stack(void)
{
    char bytes[256] __attribute__((aligned(64)));
    free_badly(bytes + 64);
}

static void in_static_memory(void)
{
    free_badly(static_bytes + 64);
}

static void in_constant_memory(void)
{
    free_badly((void *)(uintptr_t)(constant_bytes + 64));
}

static void in_code(void)
{
    free_badly((void *)((uintptr_t)in_code & ~(uintptr_t)15));
}

static void in_libc(void)
{
    free_badly((void *)((uintptr_t)stdout & ~(uintptr_t)15));
}

static void mapped_by_the_program(void)
{
    char *page = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED);
    memset(page, 0x41, 65536);
    free_badly(page + number_argument);
}

static void mapped_without_access(void)
{
    char *page = mmap(NULL, 65536, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED);
    free_badly(page + number_argument);
}

static void from_the_program_break(void)
{
    char *old = sbrk(65536);
    CHECK(old != (char *)-1);
    free_badly((char *)(((uintptr_t)old + 4095) & ~(uintptr_t)4095));
}

/* SIZE is the address itself. */
static void at_an_address(void)
{
    free_badly((void *)size_argument);
}

/* ---- Other functions ------------------------------------------------------------------------- */

static void realloc_badly(void *address)
{
    say("bad", address);
    void *moved = opaque(realloc(opaque(address), 5000));
    after();
    (void)moved; /* in warn mode: whatever it is, NULL or a block */
}

static void realloc_of_freed(void)
{
    unsigned char *block = new_block();
    free(opaque(block));
    realloc_badly(block);
}

static void realloc_inside(void)
{
    realloc_badly(new_block() + number_argument);
}

static void realloc_at_an_address(void)
{
    realloc_badly((void *)size_argument);
}

static void realloc_of_static(void)
{
    realloc_badly(static_bytes + 64);
}

static void usable_size_badly(void *address)
{
    say("bad", address);
    size_t usable = malloc_usable_size(opaque(address));
    after();
    CHECK_MSG(usable == 0, "usable size %zu of a bad pointer", usable);
}

static void usable_size_inside(void)
{
    usable_size_badly(new_block() + number_argument);
}

static void usable_size_at_an_address(void)
{
    usable_size_badly((void *)size_argument);
}

static void usable_size_of_static(void)
{
    usable_size_badly(static_bytes + 64);
}

/* ---- Many at once ---------------------------------------------------------------------------- */

/* NUMBER wrong frees of all kinds among good ones: "bad" lines count them. */
static void many(void)
{
    uint64_t random = 4242;
    for (size_t i = 0; i < number_argument; i++) {
        size_t size = 1 + random_next(&random) % 3000;
        unsigned char *block = opaque(malloc(size));
        unsigned char *other = opaque(malloc(size));
        memset(block, 0x11, size);
        switch (i % 4) {
        case 0:
            free(opaque(block));
            free_badly(block);
            break;
        case 1:
            free_badly(block + 1);
            free(block);
            break;
        case 2:
            free_badly(static_bytes + 16 * (i % 8));
            free(block);
            break;
        default:
            free_badly((void *)(0xdead000000000000 + 16 * i));
            free(block);
        }
        free(other);
    }
}

/* The start of every mapping of this process that holds none of its blocks. */
static void every_mapping(void)
{
    static char text[256 * 1024];
    FILE *maps = fopen("/proc/self/maps", "r");
    CHECK(maps != NULL);
    size_t length = fread(text, 1, sizeof text - 1, maps);
    CHECK(length > 0 && length < sizeof text - 1);
    fclose(maps);
    size_t count = 0;
    for (size_t size = 1; size < 40000; size += size / 8 + 8) {
        CHECK(count < MOST);
        blocks[count++] = opaque(malloc(size));
    }
    for (char *line = text; line != NULL && *line != '\0'; line = strchr(line, '\n')) {
        if (*line == '\n')
            line++;
        char *rest = NULL;
        uintptr_t start = strtoul(line, &rest, 16);
        if (rest == line)
            break;
        uintptr_t end = strtoul(rest + 1, NULL, 16);
        bool ours = false;
        for (size_t i = 0; i < count; i++)
            ours = ours || ((uintptr_t)blocks[i] >= start && (uintptr_t)blocks[i] < end);
        if (ours)
            continue;
        free_badly((void *)start);
        free_badly((void *)(start + 64));
        free_badly((void *)(start + (end - start) / 2));
        free_badly((void *)(end - 16));
    }
}

static const struct {
    const char *name;
    void (*function)(void);
    bool size_is_an_address;
} cases[] = {
    {"nothing-wrong", nothing_wrong, false},
    {"twice", twice, false},
    {"twice-with-others-between", twice_with_others_between, false},
    {"twice-amid-others", twice_amid_others, false},
    {"twice-with-other-sizes-between", twice_with_other_sizes_between, false},
    {"twice-after-trimming", twice_after_trimming, false},
    {"twice-with-a-write-between", twice_with_a_write_between, false},
    {"twice-by-realloc", twice_by_realloc, false},
    {"first-in-a-thread-that-is-gone", first_in_a_thread_that_is_gone, false},
    {"second-in-a-thread", second_in_a_thread, false},
    {"first-in-a-thread-that-stays", first_in_a_thread_that_stays, false},
    {"twice-then-asked-for", twice_then_asked_for, false},
    {"twice-by-threads-then-asked-for", twice_by_threads_then_asked_for, false},
    {"inside", inside, false},
    {"inside-in-a-thread", inside_in_a_thread, false},
    {"inside-then-much-traffic", inside_then_much_traffic, false},
    {"never-handed-out", never_handed_out, false},
    {"past-the-end", past_the_end, false},
    {"on-the-stack", on_the_stack, false},
    {"in-static-memory", in_static_memory, false},
    {"in-constant-memory", in_constant_memory, false},
    {"in-code", in_code, false},
    {"in-libc", in_libc, false},
    {"mapped-by-the-program", mapped_by_the_program, false},
    {"mapped-without-access", mapped_without_access, false},
    {"from-the-program-break", from_the_program_break, false},
    {"at-an-address", at_an_address, true},
    {"realloc-of-freed", realloc_of_freed, false},
    {"realloc-inside", realloc_inside, false},
    {"realloc-at-an-address", realloc_at_an_address, true},
    {"realloc-of-static", realloc_of_static, false},
    {"usable-size-inside", usable_size_inside, false},
    {"usable-size-at-an-address", usable_size_at_an_address, true},
    {"usable-size-of-static", usable_size_of_static, false},
    {"many", many, false},
    {"every-mapping", every_mapping, false},
};

int main(int argc, char **argv)
{
    test_begin(30);
    CHECK(argc >= 3);
    warm = strcmp(argv[1], "warm") == 0;
    if (argc > 3)
        size_argument = strtoul(argv[3], NULL, 0);
    if (argc > 4)
        number_argument = strtoul(argv[4], NULL, 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (strcmp(argv[2], cases[i].name) != 0)
            continue;
        if (!cases[i].size_is_an_address)
            warm_up();
        cases[i].function();
        check_heap();
        dprintf(STDOUT_FILENO, "end\n");
        return 0;
    }
    check_failed(__FILE__, __LINE__, "no such case: %s", argv[2]);
}
