/*
 * wrong.c - pointers that are no blocks, handed to free, realloc and malloc_usable_size.
 */
#include "kinds.h"

#include <malloc.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Frees what lies `offset` bytes behind the beginning of a block. */
static bool free_inside(size_t size, ptrdiff_t offset)
{
    struct around around;
    around_make(&around, size);
    unsigned char *block = around_victim(&around);
    free(opaque(block + offset));
    return handed_out_twice(size, block + offset) || around_is_damaged(&around);
}

static bool inside_1(size_t size)
{
    return free_inside(size, 1);
}

static bool inside_8(size_t size)
{
    return free_inside(size, 8);
}

static bool inside_16(size_t size)
{
    return free_inside(size, 16);
}

static bool inside_half(size_t size)
{
    return free_inside(size, (ptrdiff_t)(size / 2 & ~(size_t)15));
}

static bool past_the_end(size_t size)
{
    struct around around;
    around_make(&around, size);
    unsigned char *block = around.blocks[AROUND - 1];
    free(opaque(block + malloc_usable_size(block)));
    return true;
}

/* Memory of the program, with a word before it that looks like the header of a chunk of glibc. */
static void forge(unsigned char *memory, size_t size)
{
    size_t chunk = (size + 8 + 15) & ~(size_t)15;
    memset(memory, 0, 2 * size + 64);
    memcpy(memory + 8, &chunk, sizeof chunk);
    memcpy(memory + 8 + chunk, &chunk, sizeof chunk);
}

static bool on_the_stack(size_t size)
{
    unsigned char memory[2 * size + 64] __attribute__((aligned(16)));
    memset(memory, 0, sizeof memory);
    free(opaque(memory + 16));
    return handed_out_twice(size, memory + 16);
}

static bool on_the_stack_forged(size_t size)
{
    unsigned char memory[2 * size + 64] __attribute__((aligned(16)));
    forge(memory, size);
    free(opaque(memory + 16));
    return handed_out_twice(size, memory + 16);
}

static unsigned char statics[700000] __attribute__((aligned(16)));

static bool in_static_memory(size_t size)
{
    free(opaque(statics + 16));
    return handed_out_twice(size, statics + 16);
}

static bool in_static_memory_forged(size_t size)
{
    forge(statics, size);
    free(opaque(statics + 16));
    return handed_out_twice(size, statics + 16);
}

static bool constant(size_t size)
{
    static const char text[] __attribute__((aligned(16))) = "a text that is nobody's block";
    free(opaque(text));
    return handed_out_twice(size, text);
}

static bool code(size_t size)
{
    free(opaque((const void *)(uintptr_t)code));
    return handed_out_twice(size, NULL);
}

static unsigned char *mapped(size_t size)
{
    unsigned char *memory =
        mmap(NULL, size + 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    return memory;
}

static bool of_mmap(size_t size)
{
    unsigned char *memory = mapped(size);
    free(opaque(memory));
    return handed_out_twice(size, memory);
}

static bool of_mmap_inside(size_t size)
{
    unsigned char *memory = mapped(size);
    free(opaque(memory + 16));
    return handed_out_twice(size, memory + 16);
}

static bool of_the_break(size_t size)
{
    unsigned char *memory = sbrk((intptr_t)(size + 8192));
    CHECK(memory != (void *)-1);
    memory = (unsigned char *)(((uintptr_t)memory + 15) & ~(uintptr_t)15);
    free(opaque(memory));
    return handed_out_twice(size, memory);
}

static bool wild(size_t size)
{
    free(opaque((const void *)(0x123456780 + size * 16)));
    return handed_out_twice(size, NULL);
}

static bool not_canonical(size_t size)
{
    free(opaque((const void *)(0x4141414141414140 + size * 16)));
    return handed_out_twice(size, NULL);
}

static bool small_number(size_t size)
{
    free(opaque((const void *)(size & ~(size_t)15)));
    return handed_out_twice(size, NULL);
}

/* ---- The same of realloc and malloc_usable_size ---- */

static bool realloc_freed(size_t size)
{
    void *block = secret_block(size);
    free(block);
    void *moved = opaque(realloc(opaque(block), size + 100));
    return moved != NULL;
}

static bool realloc_inside(size_t size)
{
    struct around around;
    around_make(&around, size);
    void *moved = opaque(realloc(opaque(around_victim(&around) + 16), 2 * size));
    return moved != NULL;
}

static bool realloc_static(size_t size)
{
    return opaque(realloc(opaque(statics + 16), size)) != NULL;
}

static bool realloc_wild(size_t size)
{
    return opaque(realloc(opaque((const void *)0x4141414141414140), size)) != NULL;
}

static bool usable_size_of_freed(size_t size)
{
    void *block = secret_block(size);
    free(block);
    return malloc_usable_size(opaque(block)) != 0;
}

static bool usable_size_inside(size_t size)
{
    return malloc_usable_size(opaque(secret_block(size) + 16)) != 0;
}

static bool usable_size_of_static(size_t size)
{
    forge(statics, size);
    return malloc_usable_size(opaque(statics + 16)) != 0;
}

static const struct kind table[] = {
    {"inside-1", "a pointer 1 byte into a block is freed", inside_1},
    {"inside-8", "... 8 bytes", inside_8},
    {"inside-16", "... 16 bytes", inside_16},
    {"inside-half", "... half of the block", inside_half},
    {"past-the-end", "... its whole usable size: one past its end", past_the_end},
    {"stack", "memory of the stack is freed", on_the_stack},
    {"stack-forged", "... with a forged header before it", on_the_stack_forged},
    {"static", "a static variable is freed", in_static_memory},
    {"static-forged", "... with a forged header before it", in_static_memory_forged},
    {"constant", "a string literal is freed", constant},
    {"code", "a function is freed", code},
    {"mmap", "memory of `mmap` is freed", of_mmap},
    {"mmap-inside", "... 16 bytes into it", of_mmap_inside},
    {"break", "memory of `sbrk` is freed", of_the_break},
    {"wild", "an address where nothing is is freed", wild},
    {"not-canonical", "... which no processor has", not_canonical},
    {"small-number", "... a small number", small_number},
    {"realloc-freed", "`realloc` of a block that was freed", realloc_freed},
    {"realloc-inside", "`realloc` of a pointer into a block", realloc_inside},
    {"realloc-static", "`realloc` of a static variable", realloc_static},
    {"realloc-wild", "`realloc` of an address that no processor has", realloc_wild},
    {"usable-freed", "`malloc_usable_size` of a block that was freed", usable_size_of_freed},
    {"usable-inside", "`malloc_usable_size` of a pointer into a block", usable_size_inside},
    {"usable-static", "`malloc_usable_size` of a static variable", usable_size_of_static},
};

const struct kinds kinds_wrong = KINDS("Pointers that are no block", table);
