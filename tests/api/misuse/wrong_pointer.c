/*
 * wrong_pointer.c - the cases of misuse.c in which a pointer is handed in that is no block: into
 * the middle of one, behind one, to memory that was never allocated, or to nowhere.
 */
#include "cases.h"

#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- Into the middle ------------------------------------------------------------------------- */

/* NUMBER is the offset. */
void inside(void)
{
    unsigned char *block = new_block();
    free_badly(block + number_argument);
}

void inside_in_a_thread(void)
{
    unsigned char *block = new_block();
    in_a_thread(free_it_badly, block + number_argument);
}

/* The bad pointer waits in the magazine while the program goes on. */
void inside_then_much_traffic(void)
{
    unsigned char *block = new_block();
    free_badly(block + number_argument);
    for (int round = 0; round < 20; round++)
        check_not_handed_out_twice();
}

/* A place in a slab where an object could begin, but which was never handed out. */
void never_handed_out(void)
{
    unsigned char *block = new_block();
    free_badly(block + 3 * malloc_usable_size(block));
}

/* ... and an eighth of NUMBER others are freed after it before the program returns, so that it does
 * not wait with the thread any more. */
void never_handed_out_amid_others(void)
{
    CHECK(number_argument <= MOST);
    returns_at_once = true;
    for (size_t i = 0; i < number_argument; i++)
        blocks[i] = opaque(malloc(size_argument));
    never_handed_out();
    for (size_t i = 0; i < number_argument / 8; i++)
        free(blocks[i]);
}

void past_the_end(void)
{
    unsigned char *block = new_block();
    free_badly(block + malloc_usable_size(block));
}

/* A medium block has a header before it, which a write past the end of the one before destroys. */
void after_an_overrun(void)
{
    unsigned char *block = NULL;
    unsigned char *before = opaque(malloc(size_argument));
    for (int i = 0; i < 1000; i++) {
        block = opaque(malloc(size_argument));
        ptrdiff_t distance = block - before;
        size_t usable = malloc_usable_size(before);
        if (distance >= (ptrdiff_t)usable && distance <= (ptrdiff_t)usable + 16)
            break;
        before = block;
    }
    CHECK_MSG(block > before && block <= before + malloc_usable_size(before) + 16,
              "no two blocks side by side");
    print("block %p %zu\n", (void *)block, malloc_usable_size(block));
    memset(opaque(before + malloc_usable_size(before)), 0x41,
           (size_t)(block - before) - malloc_usable_size(before));
    free_badly(block);
}

/* ---- Not from here --------------------------------------------------------------------------- */

static char static_bytes[256] __attribute__((aligned(64)));
static const char constant_bytes[256] __attribute__((aligned(64))) = "constant";

void on_the_stack(void)
{
    char bytes[256] __attribute__((aligned(64)));
    free_badly(bytes + 64);
}

void in_static_memory(void)
{
    free_badly(static_bytes + 64);
}

void in_constant_memory(void)
{
    free_badly((void *)(uintptr_t)(constant_bytes + 64));
}

void in_code(void)
{
    free_badly((void *)((uintptr_t)in_code & ~(uintptr_t)15));
}

void in_libc(void)
{
    free_badly((void *)((uintptr_t)stdout & ~(uintptr_t)15));
}

void mapped_by_the_program(void)
{
    char *page = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED);
    memset(page, 0x41, 65536);
    free_badly(page + number_argument);
}

void mapped_without_access(void)
{
    char *page = mmap(NULL, 65536, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED);
    free_badly(page + number_argument);
}

void from_the_program_break(void)
{
    char *old = sbrk(65536);
    CHECK(old != (char *)-1);
    free_badly((char *)(((uintptr_t)old + 4095) & ~(uintptr_t)4095));
}

/* SIZE is the address itself. */
void at_an_address(void)
{
    free_badly((void *)size_argument);
}

/* ---- Other functions ------------------------------------------------------------------------- */

static void realloc_badly(void *address)
{
    say("bad", address);
    void *moved = opaque(realloc(opaque(address), 5000));
    print("after\n");
    (void)moved; /* in warn mode: whatever it is, NULL or a block */
}

void realloc_of_freed(void)
{
    unsigned char *block = new_block();
    free(opaque(block));
    realloc_badly(block);
}

void realloc_inside(void)
{
    realloc_badly(new_block() + number_argument);
}

void realloc_at_an_address(void)
{
    realloc_badly((void *)size_argument);
}

void realloc_of_static(void)
{
    realloc_badly(static_bytes + 64);
}

static void usable_size_badly(void *address)
{
    say("bad", address);
    size_t usable = malloc_usable_size(opaque(address));
    print("after\n");
    CHECK_MSG(usable == 0, "usable size %zu of a bad pointer", usable);
}

void usable_size_inside(void)
{
    usable_size_badly(new_block() + number_argument);
}

void usable_size_at_an_address(void)
{
    usable_size_badly((void *)size_argument);
}

void usable_size_of_static(void)
{
    usable_size_badly(static_bytes + 64);
}

/* ---- Many at once ---------------------------------------------------------------------------- */

/* NUMBER wrong frees of all kinds among good ones: "bad" lines count them. */
void many(void)
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
void every_mapping(void)
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
