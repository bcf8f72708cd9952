/*
 * One input: its first two bytes are settings, then each byte chooses an operation, which reads
 * what it needs. All invariants are checked every so many operations; in the end everything is
 * given back, and nothing may be left. See world.h.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "meta/meta.h"
#include "meta/page_map.h"
#include "options/options.h"
#include "slab/size_class.h"
#include "world.h"

const char *fuzz_operation = "start";
static size_t operation_number;

struct page_heap page_heap;

_Noreturn void fuzz_fail(const char *format, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    fprintf(stderr, "fuzz: operation %zu (%s): %s\n", operation_number, fuzz_operation, text);
    abort();
}

/* ---- Contents ---- */

static uint32_t pattern_next;

uint32_t pattern_new(void)
{
    return ++pattern_next;
}

static uint64_t pattern_word(size_t offset, uint32_t id)
{
    return (id + (uint64_t)offset * 0x9e3779b97f4a7c15u) * 0xd1b54a32d192ed03u | 1;
}

/* How far the next word of a pattern is. */
static size_t pattern_step(size_t offset, size_t bytes)
{
    bool near_an_end = offset < 64 || offset + 64 + 512 >= bytes;
    return near_an_end ? sizeof(uint64_t) : 512;
}

void pattern_fill(uintptr_t block, size_t bytes, uint32_t id)
{
    for (size_t at = 0; at + sizeof(uint64_t) <= bytes; at += pattern_step(at, bytes))
        *(uint64_t *)(block + at) = pattern_word(at, id);
}

void pattern_expect(uintptr_t block, size_t bytes, size_t kept, uint32_t id)
{
    for (size_t at = 0; at + sizeof(uint64_t) <= kept; at += pattern_step(at, bytes))
        EXPECT(*(uint64_t *)(block + at) == pattern_word(at, id),
               "a block of %zu bytes has lost its contents at %zu", bytes, at);
}

/* ---- Misuse ---- */

static bool expecting;
static size_t reports;
static struct misuse last_report;

void misuse_expect(void)
{
    expecting = true;
    reports = 0;
}

struct misuse misuse_expected(size_t *count)
{
    expecting = false;
    *count = reports;
    return last_report;
}

/* Stands for misuse_report (the linker's --wrap). */
void __wrap_misuse_report(const char *call, const struct misuse *misuse);
void __wrap_misuse_report(const char *call, const struct misuse *misuse)
{
    if (misuse->kind == MISUSE_NONE)
        return;
    EXPECT(expecting, "an invalid %s of %#zx is reported, of kind %d, but there was none", call,
           (size_t)misuse->address, (int)misuse->kind);
    last_report = *misuse;
    reports++;
}

/* ---- Operations of nobody ---- */

static void fail_takes(struct input *input)
{
    fuzz_provider.fail_takes = input_byte(input) % 4;
}

static void fail_gives(struct input *input)
{
    fuzz_provider.fail_gives = input_byte(input) % 4;
}

static void fail_purges(struct input *input)
{
    fuzz_provider.fail_purges = input_byte(input) % 4;
}

static const struct operation provider_operations[] = {
    {"takes fail", fail_takes, 1},
    {"gives fail", fail_gives, 1},
    {"purges fail", fail_purges, 1},
    {NULL, NULL, 0},
};

/* ---- One input ---- */

static const struct operation *const kinds[] = {
    cells_operations, slabs_operations, large_operations, provider_operations, hardened_operations};
enum { KINDS = 5, PLAIN_KINDS = KINDS - 1 };

/* Each operation as often as its weight says: without a hardened heap, and with one. */
static const struct operation *tables[2][256];

static void table_fill(const struct operation **table, size_t kinds_of_it)
{
    size_t entries = 0;
    while (entries < 256)
        for (size_t kind = 0; kind < kinds_of_it; kind++)
            for (const struct operation *each = kinds[kind]; each->name != NULL; each++)
                for (unsigned i = 0; i < each->weight && entries < 256; i++)
                    table[entries++] = each;
}

static void start_once(void)
{
    static bool done;
    if (done)
        return;
    done = true;
    size_classes_init();
    page_map_set_key(
        0x5eed5eed5eed5eedu); /* no secret, so that inputs do the same in each process */
    table_fill(tables[false], PLAIN_KINDS);
    table_fill(tables[true], KINDS);
    provider_begin(SIZE_MAX);
    hardened_warm();
    provider_end();
}

static void page_heap_expect_sound(void)
{
    const char *wrong = page_heap_check(&page_heap);
    EXPECT(wrong == NULL, "spans_check: %s", wrong);
    size_t pages = cells_pages() + slabs_pages() + large_pages();
    EXPECT(page_heap.used_pages == pages, "%zu pages are in use, not %zu", page_heap.used_pages,
           pages);
}

static void expect_sound(void)
{
    cells_expect_sound();
    slabs_expect_sound();
    large_expect_sound();
    hardened_expect_sound();
    page_heap_expect_sound();
}

/* The page map's nodes stay. */
static size_t used_but_nodes(void)
{
    size_t bytes = meta_system.used;
    for (size_t i = 0; i < PAGE_MAP_NODES; i++)
        bytes -= page_map_nodes[i] != NULL ? sizeof(struct page_map_node) : 0;
    return bytes;
}

/* So does the table of large blocks, of the size that the most of them needed. */
static size_t table_bytes(void)
{
    size_t bytes = page_heap.large.slots == NULL ? 0 : sizeof(struct span *) << page_heap.large.log;
    return bytes <= META_MOST ? bytes : 0;
}

static void expect_nothing_left(size_t meta_before)
{
    fuzz_operation = "end";
    provider_begin(SIZE_MAX);
    cells_end();
    slabs_end();
    large_end();
    hardened_end_all();
    page_heap_expect_sound();
    page_heap_purge(&page_heap, 0);
    page_heap_expect_sound();
    EXPECT(page_heap.segment_pages == 0, "%zu pages stay after all was freed",
           page_heap.segment_pages);
    provider_end();
    size_t meta_after = used_but_nodes() - table_bytes();
    EXPECT(meta_after == meta_before, "%zu bytes of metadata are in use, before it was %zu",
           meta_after, meta_before);
}

/* After how many operations all is checked. SNUG_FUZZ_CHECK_ALL: after each. */
static size_t check_interval(uint8_t settings)
{
#if defined(SNUG_FUZZ_CHECK_ALL)
    (void)settings;
    return 1;
#else
    static const uint8_t intervals[] = {1, 8, 32, 128};
    return intervals[settings % 4];
#endif
}

/* One in four. */
static bool is_hardened(uint8_t settings)
{
    return settings / 64 == 2;
}

/* Time stands still, so that inputs do the same each time. */
static uint64_t no_clock(void)
{
    return 1000000000;
}

static void world_begin(uint8_t settings, uint8_t cells_settings)
{
    static const size_t most[] = {SIZE_MAX, 4 * MIB, 640 * KIB, 64 * KIB};
    static const size_t dirty[] = {4 * MIB, 256 * KIB, 16 * KIB, 0};
    provider_begin(most[settings / 4 % 4]);
    options.dirty = dirty[settings / 16 % 4];
    page_heap = (struct page_heap){0};
    page_heap_init(&page_heap, &fuzz_provider.provider);
    page_heap.now = page_heap.now_exact = no_clock;
    pattern_next = 0;
    cells_begin(cells_settings);
    slabs_begin();
    large_begin();
    hardened_begin(is_hardened(settings));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {data, data + (size < INPUT_MOST ? size : INPUT_MOST)};
    start_once();
    size_t meta_before = used_but_nodes();
    uint8_t settings = input_byte(&input);
    size_t interval = check_interval(settings);
    world_begin(settings, input_byte(&input));
    for (operation_number = 1; !input_ended(&input); operation_number++) {
        const struct operation *operation = tables[is_hardened(settings)][input_byte(&input)];
        fuzz_operation = operation->name;
        operation->run(&input);
        if (operation_number % interval == 0)
            expect_sound();
    }
    expect_nothing_left(meta_before);
    return 0;
}
