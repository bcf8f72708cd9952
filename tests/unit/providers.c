/*
 * Tests of the providers other than the system's: what they hand out, what becomes of it, and when
 * they refuse.
 */
#include "scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "options/options.h"
#include "platform/memory.h"
#include "provider/limit.h"
#include "provider/provider_file.h"
#include "provider/provider_prealloc.h"
#include "provider/quota.h"
#include "stats/stats.h"

/* Takes ranges until there is no more, checks that they are zero, aligned and apart, gives them
 * back, and takes them again. Returns how many bytes there were. */
static size_t exercise(const struct provider *provider, size_t most)
{
    enum { RANGES = 64 };
    char *ranges[RANGES];
    size_t bytes[RANGES], total = 0;
    for (unsigned round = 0; round < 3; round++) {
        size_t count = 0;
        total = 0;
        while (count < RANGES) {
            size_t alignment = (size_t)os_page_size() << (count % 5);
            bytes[count] = os_page_size() * (1 + count * 7 % 40);
            if (total + bytes[count] > most)
                break;
            ranges[count] = provider->take(provider, bytes[count], alignment);
            if (ranges[count] == NULL)
                break;
            assert_int_equal((uintptr_t)ranges[count] % alignment, 0);
            for (size_t i = 0; i < bytes[count]; i++)
                ASSERT_THAT(ranges[count][i] == 0, "byte %zu of range %zu", i, count);
            memset(ranges[count], (int)count + 1, bytes[count]);
            total += bytes[count];
            count++;
        }
        for (size_t i = 0; i < count; i++)
            ASSERT_THAT(ranges[i][0] == (char)(i + 1) && ranges[i][bytes[i] - 1] == (char)(i + 1),
                        "range %zu", i);
        for (size_t i = 0; i < count; i++)
            assert_true(provider->give(provider, ranges[i], bytes[i]));
    }
    return total;
}

static void resize_in_place(const struct provider *provider)
{
    size_t page = os_page_size();
    char *first = provider->take(provider, 4 * page, page);
    memset(first, 7, 4 * page);
    char *second = provider->take(provider, page, page);
    assert_ptr_equal(second, first + 4 * page); /* first fit */
    assert_null(provider->resize(provider, first, 4 * page, 5 * page, true));
    assert_ptr_equal(provider->resize(provider, first, 4 * page, 2 * page, true), first);
    assert_ptr_equal(provider->resize(provider, first, 2 * page, 4 * page, true), first);
    assert_int_equal(first[2 * page - 1], 7);
    assert_int_equal(first[2 * page], 0);
    assert_true(provider->give(provider, first, 4 * page));
    assert_true(provider->give(provider, second, page));
}

/* ---- prealloc ---- */

TEST(memory_taken_ahead_is_all_there_is)
{
    struct pool pool;
    assert_true(provider_prealloc_init(&pool, 4 * MIB, NULL));
    assert_in_range(exercise(&pool.provider, SIZE_MAX), 3 * MIB, 4 * MIB);
    char *all = pool.provider.take(&pool.provider, 4 * MIB, os_page_size());
    assert_non_null(all);
    assert_null(pool.provider.take(&pool.provider, os_page_size(), os_page_size()));
    assert_false(pool.provider.purge(&pool.provider, all, os_page_size()));
    assert_true(pool.provider.give(&pool.provider, all, 4 * MIB));
    resize_in_place(&pool.provider);
    pool_end(&pool);
}

TEST(memory_taken_ahead_may_have_a_fallback)
{
    struct pool pool;
    assert_true(provider_prealloc_init(&pool, MIB, &provider_os));
    assert_int_equal(exercise(&pool.provider, 8 * MIB) > MIB, true);
    char *fallback = pool.provider.take(&pool.provider, 2 * MIB, os_page_size());
    memset(fallback, 1, 2 * MIB);
    assert_true(pool.provider.purge(&pool.provider, fallback, MIB));
    assert_int_equal(fallback[0], 0);
    fallback = pool.provider.resize(&pool.provider, fallback, 2 * MIB, 3 * MIB, true);
    assert_int_equal(fallback[2 * MIB - 1], 1);
    assert_true(pool.provider.give(&pool.provider, fallback, 3 * MIB));
    pool_end(&pool);
}

TEST(what_cannot_be_taken_ahead_is_known_at_once)
{
    struct pool pool;
    assert_false(provider_prealloc_init(&pool, (size_t)1 << 60, NULL));
    assert_null(pool.provider.take(&pool.provider, MIB, os_page_size()));
    pool_end(&pool);
}

/* ---- Files ---- */

static struct file_settings settings(size_t bytes, bool grows)
{
    return (struct file_settings){
        .directory = scratch, .bytes = bytes, .grows = grows, .factor = 1600};
}

TEST(a_file_of_fixed_size)
{
    struct file_provider file;
    struct file_settings fixed = settings(2 * MIB, false);
    assert_int_equal(provider_file_init(&file, &fixed, NULL), 0);
    assert_int_equal(scratch_count(), 0);
    assert_in_range(exercise(&file.pool.provider, SIZE_MAX), MIB, 2 * MIB);
    assert_null(file.pool.provider.take(&file.pool.provider, 3 * MIB, os_page_size()));
    resize_in_place(&file.pool.provider);
    provider_file_end(&file);
}

TEST(files_grow_by_a_factor)
{
    struct file_provider file;
    struct file_settings growing = settings(10 * MIB, true);
    assert_int_equal(provider_file_init(&file, &growing, NULL), 0);
    assert_int_equal(file.pool.bytes, 10 * MIB);
    const struct provider *provider = &file.pool.provider;
    char *first = provider->take(provider, 10 * MIB, os_page_size());
    char *second = provider->take(provider, MIB, os_page_size());
    assert_int_equal(file.pool.bytes, 16 * MIB);
    char *third = provider->take(provider, 100 * MIB, os_page_size());
    assert_int_equal(file.pool.bytes, 116 * MIB);
    assert_true(provider->give(provider, third, 100 * MIB));
    assert_int_equal(file.pool.bytes, 16 * MIB); /* what is free goes back to the disk */
    assert_true(provider->give(provider, first, 10 * MIB));
    assert_true(provider->give(provider, second, MIB));
    assert_true(exercise(provider, 8 * MIB) > 4 * MIB);
    provider_file_end(&file);
}

TEST(a_file_by_its_name_leaves_others_alone)
{
    char path[96];
    snprintf(path, sizeof(path), "%s/heap", scratch);
    FILE *other = fopen(path, "w");
    fputs("important", other);
    fclose(other);
    struct file_provider file;
    struct file_settings named = settings(MIB, true);
    named.path = path;
    assert_int_equal(provider_file_init(&file, &named, NULL), 0);
    exercise(&file.pool.provider, 8 * MIB);
    assert_int_equal(scratch_count(), 1);
    provider_file_end(&file);
    char text[16] = "";
    other = fopen(path, "r");
    assert_non_null(fgets(text, sizeof(text), other));
    fclose(other);
    assert_string_equal(text, "important");
    unlink(path);
}

/* ---- Where files must have names ---- */

static void write_file(const char *name, const char *text)
{
    char path[160];
    snprintf(path, sizeof(path), "%s/%s", scratch, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

/* What musl opens files by, where there is such a call. */
#ifdef SYS_open
#define OLD_OPEN SYS_open
#else
#define OLD_OPEN (~0u)
#endif

/* From here on, files without a name are not to be had, as on some file systems. */
static void forbid_files_without_names(void)
{
    struct sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OLD_OPEN, 0, 5),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
        BPF_STMT(BPF_JMP | BPF_JA, 1),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_TMPFILE & ~O_DIRECTORY, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof(program) / sizeof(program[0]), program};
    CHILD_CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHILD_CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) == 0);
}

static void use_named_files(void *argument)
{
    (void)argument;
    struct file_provider file;
    struct file_settings growing = settings(MIB, true);
    forbid_files_without_names();
    CHILD_CHECK(open(scratch, O_RDWR | O_TMPFILE, 0600) < 0 && errno == EOPNOTSUPP);
    CHILD_CHECK(provider_file_init(&file, &growing, NULL) == 0);
    CHILD_CHECK(exercise(&file.pool.provider, 8 * MIB) > 4 * MIB);
    provider_file_end(&file);
}

TEST(where_files_need_a_name_it_goes_at_once)
{
    char said[TEXT_MOST];
    char path[96];
    NEED(kernel_filters_calls(),
         "without filters of calls, files without a name cannot be refused");
    write_file("snug.1.0", ""); /* that happens to be called so */
    assert_int_equal(child_status(use_named_files, NULL, said), 0);
    assert_string_equal(said, "");
    snprintf(path, sizeof(path), "%s/snug.1.0", scratch);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(scratch_count(), 0);
}

TEST(what_no_file_can_be_made_in_is_said_once)
{
    struct file_provider file;
    struct file_settings wrong = settings(MIB, true);
    wrong.directory = "/no/such/directory";
    stderr_capture();
    assert_int_equal(provider_file_init(&file, &wrong, NULL), ENOENT);
    assert_null(file.pool.provider.take(&file.pool.provider, MIB, os_page_size()));
    assert_string_equal(stderr_restore(), "snug: no file of 1 MiB for the heap in "
                                          "/no/such/directory: there is no such directory\n");
    provider_file_end(&file);
    stderr_capture();
    assert_int_equal(provider_file_init(&file, &wrong, &provider_os), ENOENT);
    assert_contains(stderr_restore(), "; using memory\n");
    exercise(&file.pool.provider, 8 * MIB);
    provider_file_end(&file);
}

/* RLIMIT_FSIZE stands for a full disk; its signal must not come. */
static void grow_beyond_limit(void *argument)
{
    (void)argument;
    struct rlimit limit = {3 * MIB, 3 * MIB};
    struct file_provider file;
    struct file_settings growing = settings(MIB, true);
    CHILD_CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    CHILD_CHECK(provider_file_init(&file, &growing, NULL) == 0);
    const struct provider *provider = &file.pool.provider;
    CHILD_CHECK(provider->take(provider, 2 * MIB, os_page_size()) != NULL);
    CHILD_CHECK(provider->take(provider, 4 * MIB, os_page_size()) == NULL);
    CHILD_CHECK(provider->take(provider, 2 * MIB, os_page_size()) != NULL);
}

TEST(a_file_that_cannot_grow_refuses)
{
    char said[TEXT_MOST];
    assert_int_equal(child_status(grow_beyond_limit, NULL, said), 0);
    assert_int_equal(count_of(said, "snug: no file of 4 MiB"), 1);
    assert_contains(said, "the file would be too large");
}

/* ---- Fork ---- */

static void write_all(char *start, char value)
{
    memset(start, value, MIB);
}

static bool all_are(const char *start, char value)
{
    for (size_t i = 0; i < MIB; i++)
        if (start[i] != value)
            return false;
    return true;
}

static void parent_and_child_differ(struct file_provider *file)
{
    const struct provider *provider = &file->pool.provider;
    char *start = provider->take(provider, MIB, os_page_size());
    write_all(start, 'a');
    int to_child[2], to_parent[2];
    char byte = 0;
    assert_int_equal(pipe(to_child) | pipe(to_parent), 0);
    fflush(NULL);
    pid_t child = fork(); /* whose handlers are the library's */
    if (child == 0) {
        bool right = all_are(start, 'a') && read(to_child[0], &byte, 1) == 1 && all_are(start, 'a');
        write_all(start, 'c');
        right = right && provider->take(provider, 16 * os_page_size(), os_page_size()) != NULL;
        right = right && write(to_parent[1], &byte, 1) == 1;
        _exit(right && all_are(start, 'c') ? 0 : 1);
    }
    write_all(start, 'p');
    assert_int_equal(write(to_child[1], &byte, 1), 1);
    assert_int_equal(read(to_parent[0], &byte, 1), 1);
    assert_true(all_are(start, 'p'));
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(all_are(start, 'p'));
    for (int i = 0; i < 2; i++) {
        close(to_child[i]);
        close(to_parent[i]);
    }
    assert_true(provider->give(provider, start, MIB));
}

TEST(a_fork_copies_files)
{
    struct file_provider file;
    struct file_settings growing = settings(2 * MIB, true);
    assert_int_equal(provider_file_init(&file, &growing, NULL), 0);
    parent_and_child_differ(&file);
    provider_file_end(&file);
}

TEST(a_fork_copies_to_memory_where_no_file_can_be_made)
{
    struct file_provider file;
    struct file_settings growing = settings(2 * MIB, true);
    assert_int_equal(provider_file_init(&file, &growing, NULL), 0);
    file.settings.directory = "/no/such/directory";
    file.settings.silent = true;
    parent_and_child_differ(&file);
    provider_file_end(&file);
}

/* ---- Quota ---- */

TEST(a_quota_counts_and_refuses)
{
    struct quota quota;
    quota_init(&quota, &provider_os, 2 * MIB);
    const struct provider *provider = &quota.provider;
    char *first = provider->take(provider, MIB, os_page_size());
    assert_int_equal(quota_used(&quota), MIB);
    assert_null(provider->take(provider, MIB + os_page_size(), os_page_size()));
    char *second = provider->take(provider, MIB, 4 * MIB);
    assert_int_equal(quota_used(&quota), 2 * MIB);
    assert_null(provider->resize(provider, second, MIB, 2 * MIB, true));
    assert_true(provider->give(provider, first, MIB));
    second = provider->resize(provider, second, MIB, 2 * MIB, true);
    assert_non_null(second);
    assert_int_equal(quota_used(&quota), 2 * MIB);
    assert_int_equal(quota.peak, 2 * MIB);
    assert_false(provider->give(provider, NOWHERE, os_page_size()));
    assert_int_equal(quota_used(&quota), 2 * MIB);
    assert_non_null(provider->resize(provider, second, 2 * MIB, MIB, true));
    assert_int_equal(quota_used(&quota), MIB);
    assert_null(provider->take(provider, SIZE_MAX - 4095, os_page_size()));
    assert_int_equal(quota_used(&quota), MIB);
    assert_true(provider_might_take(provider, 2 * MIB, 0));
    assert_false(provider_might_take(provider, 2 * MIB + PAGE_BYTES, 0));
    assert_true(provider_might_take(provider, 3 * MIB, 2 * MIB));
    assert_int_equal(quota_used(&quota), MIB);
}

/* ---- Limits ---- */

TEST(the_limit_counts_all_that_the_system_gives)
{
    size_t before = COUNTED(map_bytes) - COUNTED(unmap_bytes);
    options.limit = before + 4 * MIB;
    const struct provider *os = &provider_os;
    char *first = os->take(os, 2 * MIB, os_page_size());
    assert_non_null(first);
    assert_null(os->take(os, 2 * MIB + os_page_size(), os_page_size()));
    assert_null(os->take_block(os, 2 * MIB + os_page_size(), os_page_size()));
    char *block = os->take_block(os, 2 * MIB, os_page_size());
    assert_non_null(block);
    assert_null(os->take(os, os_page_size(), os_page_size()));
    assert_true(os->give(os, block, 2 * MIB));
    assert_null(os->resize(os, first, 2 * MIB, 5 * MIB, true));
    first = os->resize(os, first, 2 * MIB, 4 * MIB, true);
    assert_non_null(first);
    assert_null(os->take(os, os_page_size(), os_page_size()));
    struct pool pool;
    assert_false(provider_prealloc_init(&pool, MIB, NULL));
    pool_end(&pool);
    assert_true(os->give(os, first, 4 * MIB));
    assert_non_null(first = os->take(os, 4 * MIB, os_page_size()));
    assert_true(os->give(os, first, 4 * MIB));
}

/* The limit of a group may be lowered while more is in use. */
TEST(over_the_limit_memory_can_still_be_given)
{
    size_t before = COUNTED(map_bytes) - COUNTED(unmap_bytes);
    const struct provider *os = &provider_os;
    options.limit = before + 8 * MIB;
    char *block = os->take(os, 8 * MIB, os_page_size());
    assert_non_null(block);
    options.limit = before + MIB;
    assert_null(os->take(os, os_page_size(), os_page_size()));
    assert_null(os->resize(os, block, 8 * MIB, 9 * MIB, true));
    block = os->resize(os, block, 8 * MIB, 4 * MIB, true);
    assert_non_null(block);
    assert_true(os->give(os, block, 4 * MIB));
}

/* While another thread asks for what it cannot have. */
static bool asking;

static void *ask_in_vain(void *much)
{
    while (__atomic_load_n(&asking, __ATOMIC_RELAXED))
        assert_false(limit_take(*(size_t *)much));
    return NULL;
}

TEST(what_is_refused_is_in_nobodys_way)
{
    size_t before = limit_used(), much = (size_t)1 << 40;
    pthread_t thread;
    options.limit = before + 2 * MIB;
    asking = true;
    assert_int_equal(pthread_create(&thread, NULL, ask_in_vain, &much), 0);
    for (unsigned i = 0; i < 1000000; i++) {
        assert_true(limit_take(MIB));
        limit_give(MIB);
    }
    __atomic_store_n(&asking, false, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
    assert_int_equal(limit_used(), before);
}

TEST(what_the_system_refuses_does_not_count)
{
    size_t too_much = (size_t)1 << 50, before = COUNTED(map_bytes) - COUNTED(unmap_bytes);
    struct quota quota;
    struct pool pool;
    quota_init(&quota, &provider_os, 2 * too_much);
    const struct provider *providers[] = {&provider_os, &quota.provider};
    for (size_t i = 0; i < 2; i++) {
        const struct provider *provider = providers[i];
        options.limit = 2 * too_much;
        char *first = provider->take(provider, MIB, os_page_size());
        assert_non_null(first);
        assert_null(provider->take(provider, too_much, os_page_size()));
        assert_null(provider->take(provider, too_much, MIB));
        assert_null(provider->take_block(provider, too_much, os_page_size()));
        assert_null(provider->resize(provider, first, MIB, too_much, true));
        assert_false(provider_prealloc_init(&pool, too_much, NULL));
        pool_end(&pool);
        /* All but the first MiB can still be had. */
        options.limit = before + 4 * MIB;
        char *second = provider->take(provider, 3 * MIB, os_page_size());
        assert_non_null(second);
        assert_int_equal(quota_used(&quota), i * 4 * MIB);
        assert_true(provider->give(provider, first, MIB));
        assert_true(provider->give(provider, second, 3 * MIB));
    }
    options.limit = LIMIT_NONE;
}

static size_t limit_in(const char *membership, bool version_1)
{
    char group[96], root[96];
    write_file("cgroup", membership);
    snprintf(group, sizeof(group), "%s/cgroup", scratch);
    snprintf(root, sizeof(root), "%s/%s", scratch, version_1 ? "v1" : "v2");
    return limit_of_cgroup(group, root);
}

TEST(the_limit_of_a_control_group)
{
    static const char *const directories[] = {"v2", "v2/a",      "v2/a/b",
                                              "v1", "v1/memory", "v1/memory/c"};
    char path[400];
    for (size_t i = 0; i < 6; i++) {
        snprintf(path, sizeof(path), "%s/%s", scratch, directories[i]);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    write_file("v2/a/memory.max", "1000000\n");
    write_file("v2/a/b/memory.max", "max\n");
    write_file("v1/memory/memory.limit_in_bytes", "9223372036854771712\n");
    write_file("v1/memory/c/memory.limit_in_bytes", "300000\n");
    assert_int_equal(limit_in("0::/a/b\n", false), 1000000);
    write_file("v2/a/b/memory.max", "5000\n");
    assert_int_equal(limit_in("0::/a/b\n", false), 5000);
    assert_int_equal(limit_in("0::/a\n", false), 1000000);
    assert_int_equal(limit_in("0::/\n", false), SIZE_MAX);
    assert_int_equal(limit_in("0::/gone/away\n", false), SIZE_MAX);
    assert_int_equal(limit_in("12:cpu,cpuacct:/c\n7:memory:/c\n0::/x\n", true), 300000);
    assert_int_equal(limit_in("7:memory:/\n", true), 9223372036854771712u);
    assert_int_equal(limit_in("nonsense", false), SIZE_MAX);
    assert_int_equal(limit_in("", false), SIZE_MAX);
    assert_int_equal(limit_of_cgroup("/no/such/file", scratch), 0);
    snprintf(path, sizeof(path), "rm -r %s/v1 %s/v2 %s/cgroup", scratch, scratch, scratch);
    assert_int_equal(system(path), 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW(memory_taken_ahead_is_all_there_is),
        ROW(memory_taken_ahead_may_have_a_fallback),
        ROW(what_cannot_be_taken_ahead_is_known_at_once),
        ROW_WITH(a_file_of_fixed_size, scratch_begin, scratch_end),
        ROW_WITH(files_grow_by_a_factor, scratch_begin, scratch_end),
        ROW_WITH(a_file_by_its_name_leaves_others_alone, scratch_begin, scratch_end),
        ROW_WITH(where_files_need_a_name_it_goes_at_once, scratch_begin, scratch_end),
        ROW_WITH(what_no_file_can_be_made_in_is_said_once, scratch_begin, scratch_end),
        ROW_WITH(a_file_that_cannot_grow_refuses, scratch_begin, scratch_end),
        ROW_WITH(a_fork_copies_files, scratch_begin, scratch_end),
        ROW_WITH(a_fork_copies_to_memory_where_no_file_can_be_made, scratch_begin, scratch_end),
        ROW(a_quota_counts_and_refuses),
        ROW(the_limit_counts_all_that_the_system_gives),
        ROW(over_the_limit_memory_can_still_be_given),
        ROW(what_is_refused_is_in_nobodys_way),
        ROW(what_the_system_refuses_does_not_count),
        ROW_WITH(the_limit_of_a_control_group, scratch_begin, scratch_end),
    };
    return needs_end(cmocka_run_group_tests(tests, NULL, NULL));
}
