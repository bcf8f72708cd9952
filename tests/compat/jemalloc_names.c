/*
 * jemalloc's names on snug: blocks of mallocx and of malloc are the same kind, flags do what they
 * say, and mallctl tells what is so and refuses the rest as jemalloc does.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "check.h"

void *mallocx(size_t size, int flags);
void *rallocx(void *block, size_t size, int flags);
size_t xallocx(void *block, size_t size, size_t extra, int flags);
size_t sallocx(const void *block, int flags);
void dallocx(void *block, int flags);
void sdallocx(void *block, size_t size, int flags);
size_t nallocx(size_t size, int flags);
void *je_malloc(size_t size);
void *je_mallocx(size_t size, int flags);
void je_free(void *block);
int mallctl(const char *name, void *old, size_t *old_bytes, void *new, size_t new_bytes);
int mallctlnametomib(const char *name, size_t *mib, size_t *parts);
int mallctlbymib(const size_t *mib, size_t parts, void *old, size_t *old_bytes, void *new,
                 size_t new_bytes);
void malloc_stats_print(void (*print)(void *, const char *), void *context, const char *options);
size_t malloc_usable_size(void *block);

enum { ZERO = 64, TCACHE_NONE = 1 << 8, ARENA_0 = 1 << 20 };

static int log_of(size_t alignment)
{
    return __builtin_ctzl(alignment);
}

static void check_blocks(void)
{
    static const size_t sizes[] = {1, 16, 100, 1000, 5000, 100000, 3000000};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        size_t size = sizes[i];
        char *block = mallocx(size, TCACHE_NONE | ARENA_0);
        CHECK(block != NULL && malloc_usable_size(block) >= size);
        CHECK(sallocx(block, 0) == malloc_usable_size(block));
        CHECK_MSG(nallocx(size, 0) >= size && nallocx(size, 0) <= size + size / 4 + 4096,
                  "%zu: %zu", size, nallocx(size, 0));
        CHECK(xallocx(block, size * 10, 0, 0) == sallocx(block, 0));
        memset(block, 7, size);
        block = rallocx(block, size * 2, ZERO);
        CHECK(block != NULL && block[0] == 7 && block[size - 1] == 7);
        sdallocx(block, size * 2, 0);
        for (size_t alignment = 32; alignment <= 65536; alignment *= 2) {
            block = mallocx(size, log_of(alignment) | ZERO);
            CHECK((uintptr_t)block % alignment == 0 && block[0] == 0 && block[size - 1] == 0);
            block[size - 1] = 9;
            block = rallocx(block, size + 64, log_of(alignment * 2));
            CHECK((uintptr_t)block % (alignment * 2) == 0 && block[size - 1] == 9);
            dallocx(block, 0);
        }
    }
    free(mallocx(100, 0));
    dallocx(malloc(100), 0);
    je_free(je_mallocx(100, 0));
    free(je_malloc(100));
    CHECK(mallocx((size_t)1 << 62, 0) == NULL && nallocx((size_t)-1, 0) == 0);
}

/* What grows at the end of a block is zero even if it was used before. */
static void check_zero_growth(void)
{
    for (int turn = 0; turn < 1000; turn++) {
        char *dirty = malloc(4000);
        memset(dirty, 255, 4000);
        free(dirty);
        unsigned char *block = mallocx(100, 0);
        size_t old = sallocx(block, 0);
        block = rallocx(block, 4000, ZERO);
        for (size_t i = old; i < 4000; i++)
            CHECK_MSG(block[i] == 0, "byte %zu", i);
        dallocx(block, 0);
    }
}

/* All that a block has room for is zero, not only what was asked for: rallocx goes on from there.
 */
static void check_zero_usable(void)
{
    for (size_t size = 1; size < 5000; size += 7) {
        char *dirty = malloc(size);
        memset(dirty, 255, malloc_usable_size(dirty));
        free(dirty);
        unsigned char *block = mallocx(size - size / 16, ZERO);
        for (size_t i = 0; i < sallocx(block, 0); i++)
            CHECK_MSG(block[i] == 0, "byte %zu of %zu", i, size - size / 16);
        dallocx(block, 0);
    }
}

static size_t ask_size(const char *name)
{
    size_t value = 0, bytes = sizeof(value);
    CHECK_MSG(mallctl(name, &value, &bytes, NULL, 0) == 0, "%s", name);
    return value;
}

static void check_statistics(void)
{
    uint64_t epoch = 1;
    size_t bytes = sizeof(epoch);
    size_t before = ask_size("stats.allocated");
    void *block = malloc(10 << 20);
    memset(block, 1, 10 << 20);
    CHECK(mallctl("epoch", &epoch, &bytes, &epoch, sizeof(epoch)) == 0);
    CHECK(ask_size("stats.allocated") >= before + (10 << 20));
    CHECK(ask_size("stats.active") >= ask_size("stats.allocated"));
    CHECK(ask_size("stats.resident") >= ask_size("stats.active"));
    CHECK(ask_size("stats.mapped") >= 10 << 20 && ask_size("arenas.page") >= 4096);
    free(block);
    CHECK(ask_size("stats.allocated") < before + (1 << 20));
    CHECK(mallctl("arena.0.purge", NULL, NULL, NULL, 0) == 0);
    CHECK(mallctl("arena.4096.decay", NULL, NULL, NULL, 0) == 0);
}

/* An arena and a cache of one's own, as redis has them for its scripts. */
static void check_creating(void)
{
    unsigned arena = 99, tcache = 99;
    size_t bytes = sizeof(arena);
    CHECK(mallctl("arenas.create", &arena, &bytes, NULL, 0) == 0 && arena == 1);
    CHECK(mallctl("tcache.create", &tcache, &bytes, NULL, 0) == 0 && tcache == 0);
    int flags = (int)((tcache + 2) << 8 | (arena + 1) << 20);
    char *block = mallocx(100, flags);
    CHECK(block != NULL && (block = rallocx(block, 100000, flags)) != NULL);
    memset(block, 1, 100000);
    dallocx(block, flags);
    CHECK(ask_size("stats.arenas.1.small.allocated") == 0 &&
          ask_size("stats.arenas.1.pactive") == 0);
    CHECK(ask_size("stats.arenas.0.small.allocated") == ask_size("stats.allocated"));
    CHECK(ask_size("stats.arenas.4096.pactive") ==
          ask_size("stats.active") / ask_size("arenas.page"));
    CHECK(ask_size("stats.arenas.4096.pmuzzy") == 0);
    CHECK(mallctl("tcache.flush", NULL, NULL, &tcache, sizeof(tcache)) == 0);
    CHECK(mallctl("tcache.destroy", NULL, NULL, &tcache, sizeof(tcache)) == 0);
    CHECK(mallctl("tcache.destroy", &tcache, &bytes, NULL, 0) == EPERM);
}

static void check_refusals(void)
{
    size_t value = 5, bytes = sizeof(value), mib[3], parts = 3;
    CHECK(mallctl("stats.nonsense", &value, &bytes, NULL, 0) == ENOENT);
    CHECK(mallctl("arena.x.purge", NULL, NULL, NULL, 0) == ENOENT);
    CHECK(mallctl("stats.allocated", NULL, NULL, &value, sizeof(value)) == EPERM);
    bytes = 4;
    CHECK(mallctl("stats.allocated", &value, &bytes, NULL, 0) == EINVAL && bytes == 4);
    CHECK(mallctl("background_thread", NULL, NULL, &value, sizeof(value)) == EINVAL);
    CHECK(mallctlnametomib("arena.0.purge", mib, &parts) == 0 && parts == 3);
    mib[1] = 17;
    CHECK(mallctlbymib(mib, parts, NULL, NULL, NULL, 0) == 0);
    parts = 1;
    CHECK(mallctlnametomib("stats.allocated", mib, &parts) == EINVAL);
    parts = 3;
    CHECK(mallctlnametomib("nonsense", mib, &parts) == ENOENT);
    mib[0] = 12345;
    CHECK(mallctlbymib(mib, 3, NULL, NULL, NULL, 0) == ENOENT);
}

static void keep(void *context, const char *text)
{
    strncat(context, text, 500);
}

static void check_text(void)
{
    char text[1000] = "";
    const char *version = NULL;
    size_t bytes = sizeof(version);
    malloc_stats_print(keep, text, "J");
    CHECK_MSG(strstr(text, "snug") != NULL && strstr(text, "in use") != NULL, "%s", text);
    CHECK(mallctl("version", &version, &bytes, NULL, 0) == 0 && strstr(version, "snug") != NULL);
}

int main(void)
{
    test_begin(30);
    check_blocks();
    check_zero_growth();
    check_zero_usable();
    check_statistics();
    check_creating();
    check_refusals();
    check_text();
    return test_end();
}
