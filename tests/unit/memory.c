/*
 * Tests of platform/memory.h: mapping, alignment, purging and moving, seen from inside the memory
 * and from the kernel's account of the process.
 */
#include "support.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "platform/look.h"
#include "platform/memory.h"

/* The address space of the process in pages of the system, as the kernel counts it. */
static size_t mapped_pages(void)
{
    char text[128] = {0};
    int file = open("/proc/self/statm", O_RDONLY);
    assert_true(file >= 0);
    assert_true(read(file, text, sizeof(text) - 1) > 0);
    close(file);
    return strtoul(text, NULL, 10);
}

/* Whether that is the program's own space alone, as /proc/self/maps lists it: an emulator has
 * mappings of its own in the process, and makes more as it runs. */
static bool mapped_pages_are_ours(void)
{
    enum { ALIKE = 64 }; /* pages: libc may map between the two looks, and the kernel has its own */
    FILE *maps = fopen("/proc/self/maps", "r");
    size_t pages = 0, start, end;
    char line[512];
    assert_non_null(maps);
    while (fgets(line, sizeof(line), maps) != NULL)
        if (sscanf(line, "%zx-%zx", &start, &end) == 2 && strstr(line, "[vsyscall]") == NULL)
            pages += (end - start) / (size_t)sysconf(_SC_PAGESIZE);
    fclose(maps);
    return mapped_pages() < pages + ALIKE;
}

#define NEED_OWN_PAGES() \
    NEED(mapped_pages_are_ours(), "an emulator has mappings of its own in the process")

TEST(the_page_size_is_the_systems)
{
    assert_int_equal(os_page_size(), sysconf(_SC_PAGESIZE));
    assert_int_equal(os_page_size(), os_page_size());
    assert_true(os_page_size() % PAGE_BYTES == 0);
}

TEST(fresh_memory_is_zero_and_writable)
{
    size_t bytes = 5 * os_page_size();
    char *start = os_map(bytes, OS_PAGES_SMALL);
    assert_non_null(start);
    assert_int_equal((uintptr_t)start % os_page_size(), 0);
    assert_true(all_bytes_are(start, bytes, 0));
    memset(start, 0x5a, bytes);
    assert_true(all_bytes_are(start, bytes, 0x5a));
    assert_true(os_unmap(start, bytes));
}

TEST(unmapped_memory_is_gone)
{
    NEED_OWN_PAGES();
    size_t page = os_page_size();
    size_t before = mapped_pages();
    char *start = os_map(8 * page, OS_PAGES_SMALL);
    assert_int_equal(mapped_pages(), before + 8);
    assert_true(os_unmap(start + 2 * page, page)); /* a hole */
    assert_int_equal(mapped_pages(), before + 7);
    start[2 * page - 1] = 1;
    start[3 * page] = 1;
    assert_true(os_unmap(start, 2 * page));
    assert_true(os_unmap(start + 3 * page, 5 * page));
    assert_int_equal(mapped_pages(), before);
}

/* All of it or nothing: a part that is gone while the rest is refused would be used by two. */
TEST(much_is_unmapped_by_one_call)
{
    char *start = os_map(64 * MIB, OS_PAGES_SMALL);
    uint64_t calls = os_calls.munmap_calls;
    for (size_t i = 0; i < 64 * MIB; i += os_page_size())
        start[i] = 1;
    assert_true(os_unmap(start, 64 * MIB));
    assert_int_equal(os_calls.munmap_calls, calls + 1);
    assert_false(os_is_readable((uintptr_t)start));
}

TEST(aligned_memory_leaves_no_slack)
{
    NEED_OWN_PAGES();
    size_t page = os_page_size();
    for (size_t alignment = 1; alignment <= GIB; alignment *= 2)
        for (size_t pages = 1; pages <= 16; pages *= 4) {
            size_t before = mapped_pages();
            char *start = os_map_aligned(pages * page, alignment, OS_PAGES_SMALL);
            assert_non_null(start);
            assert_int_equal((uintptr_t)start & (alignment - 1), 0);
            assert_int_equal(mapped_pages(), before + pages);
            start[0] = 1;
            start[pages * page - 1] = 1;
            assert_true(os_unmap(start, pages * page));
            assert_int_equal(mapped_pages(), before);
        }
}

TEST(what_the_system_refuses_is_told)
{
    size_t before = mapped_pages();
    errno = 77;
    assert_null(os_map(0, OS_PAGES_SMALL));
    assert_null(os_map((size_t)1 << 60, OS_PAGES_SMALL));
    assert_null(os_map(SIZE_MAX - os_page_size() + 1, OS_PAGES_SMALL));
    assert_null(os_map_aligned((size_t)1 << 60, 2 * MIB, OS_PAGES_SMALL));
    assert_null(os_map_aligned(os_page_size(), (size_t)1 << 62, OS_PAGES_SMALL));
    assert_null(os_map_aligned(os_page_size(), (size_t)1 << 63, OS_PAGES_SMALL));
    assert_false(os_unmap(NOWHERE, os_page_size()));
    assert_int_equal(errno, 77);
    NEED_OWN_PAGES();
    assert_int_equal(mapped_pages(), before);
}

TEST(purged_memory_is_zero)
{
    size_t page = os_page_size();
    char *start = os_map(4 * page, OS_PAGES_SMALL);
    memset(start, 1, 4 * page);
    assert_true(os_purge(start + page, 2 * page));
    assert_true(all_bytes_are(start, page, 1));
    assert_true(all_bytes_are(start + page, 2 * page, 0));
    assert_true(all_bytes_are(start + 3 * page, page, 1));
    start[page] = 2; /* and can be used again */
    assert_int_equal(start[page], 2);
    assert_true(os_unmap(start, 4 * page));
}

TEST(a_refused_purge_changes_nothing)
{
    size_t page = os_page_size();
    char *start = os_map(2 * page, OS_PAGES_SMALL);
    NEED(kernel_refuses_advice(),
         "what agrees to any advice agrees about memory that is locked, or not there");
    memset(start, 1, 2 * page);
    /* Of the kernel itself: sanitizers have an mlock() that does nothing. */
    assert_int_equal(syscall(SYS_mlock, start, 2 * page), 0);
    errno = 77;
    assert_false(os_purge(start, page));
    assert_true(all_bytes_are(start, 2 * page, 1));
    assert_true(os_unmap(start, 2 * page));
    assert_int_equal(errno, 77);
    errno = 77;
    assert_false(os_purge(start, page)); /* not mapped */
    assert_int_equal(errno, 77);
}

TEST(ranges_are_purged_together)
{
    size_t page = os_page_size();
    char *start = os_map(9 * page, OS_PAGES_SMALL);
    memset(start, 1, 9 * page);
    struct iovec ranges[3] = {
        {start, page}, {start + 2 * page, 3 * page}, {start + 7 * page, page}};
    uint64_t calls = os_calls.madvise_calls;
    errno = 77;
    assert_int_equal(os_purge_ranges(ranges, 3), 7);
    assert_true(os_calls.madvise_calls - calls <= 4);
    for (size_t i = 0; i < 9; i++)
        assert_true(all_bytes_are(start + i * page, page, i == 1 || i == 5 || i == 6 || i == 8));
    assert_int_equal(errno, 77);
    NEED(kernel_refuses_advice(),
         "what agrees to any advice agrees about memory that is not there");
    /* One that is not mapped does not keep the others. */
    errno = 77;
    memset(start, 1, 9 * page);
    assert_true(os_unmap(start + 2 * page, 3 * page));
    assert_int_equal(os_purge_ranges(ranges, 3), 5);
    assert_true(all_bytes_are(start, page, 0));
    assert_true(all_bytes_are(start + 7 * page, page, 0));
    assert_true(all_bytes_are(start + 8 * page, page, 1));
    assert_int_equal(errno, 77);
    assert_true(os_unmap(start, 2 * page));
    assert_true(os_unmap(start + 5 * page, 4 * page));
}

/* ---- Guards ---- */

/* From here on the system agrees to guards and makes none. */
static void only_agree_to_guards(void)
{
    enum { GUARD_INSTALL = 102 }; /* MADV_GUARD_INSTALL of newer headers */
    struct sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, GUARD_INSTALL, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO), /* with 0: the call is not made */
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof(program) / sizeof(program[0]), program};
    CHILD_CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHILD_CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) == 0);
}

static void guard_pages(void *only_agrees)
{
    size_t page = os_page_size();
    char *start = os_map(8 * page, OS_PAGES_SMALL);
    memset(start, 1, 8 * page);
    if (only_agrees != NULL)
        only_agree_to_guards();
    for (size_t i = 1; i < 8; i += 2)
        CHILD_CHECK(os_guard(start + i * page, page));
    for (size_t i = 0; i < 8; i++)
        CHILD_CHECK(os_is_readable((uintptr_t)start + i * page) == (i % 2 == 0));
    CHILD_CHECK(all_bytes_are(start, page, 1) && all_bytes_are(start + 6 * page, page, 1));
}

/* Of 384 pieces every third is looked at: the others may even be missing. */
TEST(much_is_looked_at_in_places)
{
    size_t page = os_kernel_page_size(), piece = 512 * page;
    char *start = os_map(384 * piece, OS_PAGES_SMALL | OS_PAGES_UNRESERVED);
    assert_non_null(start);
    memset(start, 1, 3 * page);
    memset(start + 3 * piece, 1, page);
    assert_int_equal(os_resident_bytes(start, 128 * piece), 4 * page);
    assert_true(os_unmap(start + 127 * piece, piece));
    assert_int_equal(os_resident_bytes(start, 128 * piece), 128 * piece); /* it cannot be told */
    assert_true(os_unmap(start + piece, 2 * piece));
    assert_int_equal(os_resident_bytes(start, 384 * piece), 3 * 4 * page);
    os_unmap(start, 384 * piece);
}

TEST(guards_guard)
{
    assert_succeeds(guard_pages, NULL);
}

TEST(guards_guard_where_the_system_only_agrees)
{
    static bool only_agrees;
    NEED(kernel_filters_calls(), "without filters of calls, the system cannot be made to lie");
    assert_succeeds(guard_pages, &only_agrees);
}

/* ---- Moving ---- */

TEST(remapping_shrinks_in_place)
{
    size_t page = os_page_size();
    size_t before = mapped_pages();
    char *start = os_map(8 * page, OS_PAGES_SMALL);
    memset(start, 3, 8 * page);
    assert_ptr_equal(os_remap(start, 8 * page, 5 * page, true), start);
    assert_ptr_equal(os_remap(start, 5 * page, 3 * page, false), start);
    assert_true(all_bytes_are(start, 3 * page, 3));
    size_t after = mapped_pages();
    assert_true(os_unmap(start, 3 * page));
    NEED_OWN_PAGES();
    assert_int_equal(after, before + 3);
}

TEST(remapping_moves_only_if_it_may)
{
    size_t page = os_page_size();
    size_t before = mapped_pages();
    char *start = os_map(4 * page, OS_PAGES_SMALL);
    memset(start, 3, 4 * page);
    /* The first two pages cannot grow: the third is there. */
    errno = 77;
    assert_null(os_remap(start, 2 * page, 6 * page, false));
    assert_int_equal(errno, 77);
    assert_true(all_bytes_are(start, 4 * page, 3));
    char *moved = os_remap(start, 2 * page, 6 * page, true);
    assert_non_null(moved);
    assert_ptr_not_equal(moved, start);
    assert_true(all_bytes_are(moved, 2 * page, 3));
    assert_true(all_bytes_are(moved + 2 * page, 4 * page, 0));
    assert_true(all_bytes_are(start + 2 * page, 2 * page, 3));
    size_t after = mapped_pages();
    assert_true(os_unmap(moved, 6 * page));
    assert_true(os_unmap(start + 2 * page, 2 * page));
    NEED_OWN_PAGES();
    assert_int_equal(after, before + 2 + 6);
}

TEST(a_refused_remap_changes_nothing)
{
    size_t page = os_page_size();
    char *start = os_map(2 * page, OS_PAGES_SMALL);
    memset(start, 3, 2 * page);
    assert_null(os_remap(start, 2 * page, (size_t)1 << 60, true));
    assert_true(all_bytes_are(start, 2 * page, 3));
    assert_true(os_unmap(start, 2 * page));
}

TEST(detaching_leaves_zero_pages)
{
    size_t page = os_page_size();
    char *start = os_map(6 * page, OS_PAGES_SMALL);
    memset(start, 3, 6 * page);
    errno = 77;
    char *moved = os_detach(start + 2 * page, 2 * page);
    assert_int_equal(errno, 77);
    if (moved == NULL) {
        assert_true(all_bytes_are(start, 6 * page, 3));
        assert_true(os_unmap(start, 6 * page));
#if !defined(__SANITIZE_THREAD__) /* which has to be told of each mapping, so none is made */
        NEED(false, "the kernel moves no pages away from what stays mapped");
#endif
        return;
    }
    assert_true(moved + 2 * page <= start || moved >= start + 6 * page);
    assert_true(all_bytes_are(moved, 2 * page, 3));
    assert_true(all_bytes_are(start, 2 * page, 3));
    assert_true(all_bytes_are(start + 4 * page, 2 * page, 3));
    /* The system takes what was left for memory: it reads there, and gives the addresses to nobody.
     */
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], start + 2 * page, page), page);
    close(ends[0]);
    close(ends[1]);
    for (size_t i = 0; i < 100; i++) {
        char *other = os_map(2 * page, OS_PAGES_SMALL);
        assert_true(other + 2 * page <= start || other >= start + 6 * page);
    }
    assert_true(all_bytes_are(start + 2 * page, 2 * page, 0));
    memset(start + 2 * page, 4, 2 * page);
    assert_true(all_bytes_are(moved, 2 * page, 3));
    moved = os_remap(moved, 2 * page, 40 * page, true);
    assert_non_null(moved);
    assert_true(all_bytes_are(moved, 2 * page, 3));
    assert_true(all_bytes_are(moved + 2 * page, 38 * page, 0));
    assert_true(os_unmap(moved, 40 * page));
    assert_true(os_unmap(start, 6 * page));
}

/* The kernel would unlock all of the mapping. */
TEST(what_is_locked_is_not_detached)
{
    size_t page = os_page_size();
    char *start = os_map(4 * page, OS_PAGES_SMALL);
    memset(start, 3, 4 * page);
    NEED(kernel_refuses_advice(), "what agrees to any advice agrees about memory that is locked");
    assert_int_equal(syscall(SYS_mlock, start, 4 * page), 0);
    errno = 77;
    assert_null(os_detach(start + page, page));
    assert_int_equal(errno, 77);
    assert_true(all_bytes_are(start, 4 * page, 3));
    assert_false(os_purge(start, page)); /* still locked */
    assert_true(os_unmap(start, 4 * page));
}

/* It would not be zero afterwards where it was, and what is added would be the file's. */
TEST(what_is_of_a_file_is_not_detached)
{
    NEED(kernel_refuses_advice(), "what agrees to any advice agrees about files");
    size_t page = os_page_size();
    char *start = os_map(4 * page, OS_PAGES_SMALL), text[] = "the file's";
    int file = memfd_create("part", MFD_CLOEXEC);
    assert_int_equal(ftruncate(file, (off_t)(8 * page)), 0);
    memset(start, 3, 4 * page);
    for (int shared = 0; shared < 2; shared++) {
        int flags = MAP_FIXED | (shared ? MAP_SHARED : MAP_PRIVATE);
        char *part = start + page;
        assert_ptr_equal(mmap(part, 2 * page, PROT_READ | PROT_WRITE, flags, file, 0), part);
        memcpy(part, text, sizeof(text));
        assert_null(os_detach(part, 2 * page));
        assert_string_equal(part, text);
        assert_true(all_bytes_are(part + page, page, 0));
    }
    close(file);
    assert_true(all_bytes_are(start, page, 3));
    assert_true(all_bytes_are(start + 3 * page, page, 3));
    assert_true(os_unmap(start, 4 * page));
}

enum { STACK_BYTES = 96 << 20 }; /* more than glibc keeps of ended threads' stacks */

static void *write_on_stack(void *unused)
{
    volatile char here[64 << 10];
    for (size_t i = 0; i < sizeof(here); i++)
        here[i] = 1;
    return unused;
}

/* Waits without an order that the thread sanitizer could see, as the kernel gives none when it
 * hands out addresses again. */
static void *map_later(void *ended)
{
    while (!__atomic_load_n((bool *)ended, __ATOMIC_RELAXED))
        sched_yield();
    char *mapped = os_map(STACK_BYTES, OS_PAGES_SMALL);
    size_t page = os_page_size();
    char *grown = os_remap(os_map(page, OS_PAGES_SMALL), page, STACK_BYTES, true);
    assert_non_null(mapped);
    assert_non_null(grown);
    for (size_t i = 0; i < STACK_BYTES; i += PAGE_BYTES)
        mapped[i] = grown[i] = 1;
    os_unmap(mapped, STACK_BYTES);
    os_unmap(grown, STACK_BYTES);
    return NULL;
}

TEST(addresses_of_ended_stacks_are_new_memory)
{
    static bool ended;
    pthread_t mapper, writer[2];
    pthread_attr_t large;
    assert_int_equal(pthread_create(&mapper, NULL, map_later, &ended), 0);
    pthread_attr_init(&large);
    assert_int_equal(pthread_attr_setstacksize(&large, STACK_BYTES), 0);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&writer[i], &large, write_on_stack, NULL), 0);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(pthread_join(writer[i], NULL), 0);
    pthread_attr_destroy(&large);
    __atomic_store_n(&ended, true, __ATOMIC_RELAXED); /* on purpose: see map_later */
    assert_int_equal(pthread_join(mapper, NULL), 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW(the_page_size_is_the_systems),
        ROW(fresh_memory_is_zero_and_writable),
        ROW(unmapped_memory_is_gone),
        ROW(much_is_unmapped_by_one_call),
        ROW(aligned_memory_leaves_no_slack),
        ROW(what_the_system_refuses_is_told),
        ROW(purged_memory_is_zero),
        ROW(a_refused_purge_changes_nothing),
        ROW(ranges_are_purged_together),
        ROW(remapping_shrinks_in_place),
        ROW(remapping_moves_only_if_it_may),
        ROW(a_refused_remap_changes_nothing),
        ROW(detaching_leaves_zero_pages),
        ROW(what_is_locked_is_not_detached),
        ROW(what_is_of_a_file_is_not_detached),
        ROW(addresses_of_ended_stacks_are_new_memory),
        ROW(much_is_looked_at_in_places),
        ROW(guards_guard),
        ROW(guards_guard_where_the_system_only_agrees),
    };
    return needs_end(cmocka_run_group_tests(tests, NULL, NULL));
}
