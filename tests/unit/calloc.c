/*
 * Tests of calloc on every kind of memory that a heap can have: the system's, memory taken ahead,
 * files, a buffer, the program's own functions, with a quota or without. Whatever was in a block,
 * and however much of it was touched, the next one that calloc gives is zero throughout.
 */
#include "heap_support.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "options/options.h"
#include "platform/memory.h"
#include "snug/snug.h"

#define HEAP_BYTES (192 * MIB)

/* ---- The program's own memory ---- */

static struct own {
    bool zeroed;   /* what it gives is */
    bool purges;   /* it can drop contents */
    size_t purged; /* bytes */
    size_t asked;
} own;

static void *own_take(void *context, size_t bytes, size_t alignment)
{
    const struct own *settings = context;
    char *start = os_map_aligned(bytes, alignment, OS_PAGES_SMALL);
    if (start != NULL && !settings->zeroed)
        for (size_t at = 0; at < bytes; at += 1024)
            start[at] = 0x5a;
    return start;
}

static int own_give(void *context, void *start, size_t bytes)
{
    (void)context;
    return os_unmap(start, bytes);
}

static int own_purge(void *context, void *start, size_t bytes)
{
    struct own *settings = context;
    settings->asked += bytes;
    if (!settings->purges)
        return 0;
    settings->purged += bytes;
    return os_purge(start, bytes);
}

static snug_provider *own_provider(bool zeroed, bool purges)
{
    own = (struct own){.zeroed = zeroed, .purges = purges};
    struct snug_provider_functions functions = {.size = sizeof(functions),
                                                .context = &own,
                                                .take = own_take,
                                                .give = own_give,
                                                .purge = own_purge,
                                                .zeroed = zeroed};
    snug_provider *provider = snug_provider_create(&functions);
    assert_non_null(provider);
    return provider;
}

/* ---- Blocks that come and go ---- */

/* Of each layer, at odd counts of bytes too, below and above what is cleared by hand. */
static const size_t sizes[] = {24,           1000,        1025,   5000,   40001,   100000,
                               131064,       131072,      131073, 300001, 1048575, 3 * MIB + 12345,
                               32 * MIB - 1, 32 * MIB + 1};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]), EACH = 3 };

/* Writes to none of a block, to a page, to half of its pages, most, or all of it. */
enum { TOUCHES = 5 };

static void touch(char *block, size_t bytes, unsigned how)
{
    static const size_t parts[TOUCHES] = {0, 0, 4, 6, 8};
    if (how == 1 && bytes != 0)
        block[bytes / 2] = 0x11;
    if (how == TOUCHES - 1)
        memset(block, 0xff, bytes);
    for (size_t at = 0; at < bytes && how < TOUCHES - 1; at += PAGE_BYTES)
        if (at / PAGE_BYTES % 8 < parts[how])
            memset(block + at, 0xee, size_min(PAGE_BYTES, bytes - at));
}

static void turn(snug_heap *heap, size_t size, unsigned how, size_t count, const char *what)
{
    char *blocks[EACH];
    for (size_t i = 0; i < count; i++) {
        blocks[i] = snug_heap_calloc(heap, i % 2 == 0 ? 1 : size, i % 2 == 0 ? size : 1);
        ASSERT_THAT(blocks[i] != NULL, "%s: no block of %zu bytes", what, size);
        ASSERT_THAT(all_zero(blocks[i], size), "%s: %zu bytes after touching %u", what, size, how);
        touch(blocks[i], size, how);
    }
    for (size_t i = 0; i < count; i++)
        snug_heap_free(heap, blocks[i]);
}

static void use(snug_heap *heap, const char *what)
{
    assert_non_null(heap);
    for (size_t i = 0; i < SIZES; i++)
        for (unsigned how = 0; how < (sizes[i] > 16 * MIB ? 3 : 2 * TOUCHES); how++)
            turn(heap, sizes[i], (how * 3 + 1) % TOUCHES, sizes[i] > MIB ? 1 : EACH, what);
    /* What was of one size comes as another, in parts. */
    uint64_t seed = 1;
    for (unsigned round = 0; round < 200; round++) {
        turn(heap, sizes[random_below(&seed, SIZES - 2)], (unsigned)random_below(&seed, TOUCHES), 1,
             what);
        if (round % 50 == 49)
            snug_heap_trim(heap);
    }
    assert_int_equal(snug_heap_check(heap), 0);
    snug_heap_destroy(heap);
}

static void use_provider(snug_provider *provider, size_t quota, const char *what)
{
    assert_non_null(provider);
    struct snug_heap_config config = {.size = sizeof(config), .provider = provider, .quota = quota};
    use(snug_heap_create(&config), what);
    snug_provider_destroy(provider);
}

/* ---- The kinds ---- */

TEST(the_system)
{
    use(snug_heap_create(NULL), "the system's");
    struct snug_heap_config config = {.size = sizeof(config), .quota = HEAP_BYTES};
    use(snug_heap_create(&config), "the system's, with a quota");
}

TEST(the_system_where_much_is_kept)
{
    options.dirty = GIB;
    use(snug_heap_create(NULL), "the system's, kept");
}

TEST(memory_taken_ahead)
{
    use_provider(snug_provider_prealloc(HEAP_BYTES, 0), 0, "taken ahead");
}

TEST(memory_taken_ahead_that_is_too_little)
{
    use_provider(snug_provider_prealloc(16 * MIB, 1), 0, "taken ahead in part");
}

TEST(files)
{
    struct snug_file_config config = {
        .size = sizeof(config), .directory = "/tmp", .bytes = 64 * MIB, .grow_factor = 2};
    snug_provider *provider = snug_provider_file(&config);
    if (provider == NULL && errno == ENOSPC) {
        print_message("SKIP: there is no room for the files\n");
        skip();
    }
    use_provider(provider, 0, "a file");
}

static void use_buffer(size_t offset)
{
    char *buffer = os_map(HEAP_BYTES, OS_PAGES_SMALL);
    assert_non_null(buffer);
    memset(buffer, 0x77, 48 * MIB); /* it need not be zero */
    struct snug_heap_config config = {
        .size = sizeof(config), .buffer = buffer + offset, .buffer_bytes = HEAP_BYTES - offset};
    use(snug_heap_create(&config), "a buffer");
    assert_true(os_unmap(buffer, HEAP_BYTES));
}

TEST(a_buffer)
{
    use_buffer(0);
    use_buffer(1234);
}

TEST(own_functions)
{
    use_provider(own_provider(true, true), 0, "own, zero");
    assert_true(own.purged != 0);
    use_provider(own_provider(false, true), 0, "own, not zero");
    assert_true(own.purged != 0);
}

TEST(own_functions_of_a_block_that_is_a_range_of_its_own)
{
    snug_provider *provider = own_provider(false, true);
    struct snug_heap_config config = {.size = sizeof(config), .provider = provider};
    snug_heap *heap = snug_heap_create(&config);
    turn(heap, 129 * MIB, 1, 1, "own, fresh");
    turn(heap, 129 * MIB, 1, 1, "own, again");
    snug_heap_destroy(heap);
    snug_provider_destroy(provider);
}

TEST(own_functions_that_cannot_purge)
{
    use_provider(own_provider(true, false), 0, "own, zero, without purging");
    assert_true(own.asked != 0);
    use_provider(own_provider(false, false), HEAP_BYTES, "own, not zero, without purging");
    assert_true(own.asked != 0);
}

TEST(own_functions_outside)
{
    snug_provider *provider = own_provider(false, true);
    struct snug_heap_config config = {
        .size = sizeof(config), .provider = provider, .flags = SNUG_HEAP_OUTSIDE};
    use(snug_heap_create(&config), "own, outside");
    snug_provider_destroy(provider);
}

TEST(mallocs_own)
{
    for (size_t i = 0; i < SIZES; i++)
        for (unsigned how = 0; how < TOUCHES; how++) {
            char *block = snug_calloc(sizes[i], 1);
            ASSERT_THAT(all_zero(block, sizes[i]), "%zu bytes after touching %u", sizes[i], how);
            touch(block, sizes[i], how);
            snug_free(block);
        }
    assert_heap_sound();
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW(the_system),
        ROW(the_system_where_much_is_kept),
        ROW(memory_taken_ahead),
        ROW(memory_taken_ahead_that_is_too_little),
        ROW(files),
        ROW(a_buffer),
        ROW(own_functions),
        ROW(own_functions_of_a_block_that_is_a_range_of_its_own),
        ROW(own_functions_that_cannot_purge),
        ROW(own_functions_outside),
        ROW(mallocs_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
