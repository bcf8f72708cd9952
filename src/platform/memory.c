/*
 * Address space from Linux. See memory.h.
 */
#include "platform/memory.h"

#include <errno.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/utsname.h>

#include "platform/check.h"
#include "platform/clock.h"
#include "platform/look.h"
#include "platform/syscall.h"

struct os_calls os_calls;

/* A version as a number above 0. The numbers compare as the versions do. */
static uint32_t version_of(unsigned major, unsigned minor)
{
    return (major << 16 | minor) + 1;
}

/* The version of a release like "6.12.3-amd64". */
static uint32_t kernel_version(const char *release)
{
    unsigned number[2] = {0, 0};
    for (size_t i = 0; i < 2; i++) {
        for (; *release >= '0' && *release <= '9'; release++)
            number[i] = number[i] * 10 + (unsigned)(*release - '0');
        release += *release == '.';
    }
    return version_of(number[0], number[1]);
}

/* Layout: what a page has at least. A build with more than the system's is right there, too, and
 * shows on any machine what happens on one with larger pages. */
#if defined(SNUG_PAGE_BYTES)
enum { PAGE_LEAST = SNUG_PAGE_BYTES };
#else
enum { PAGE_LEAST = PAGE_BYTES };
#endif
enum { PAGES_ARE_LARGER = PAGE_LEAST > PAGE_BYTES };
_Static_assert(PAGE_LEAST >= PAGE_BYTES && (PAGE_LEAST & (PAGE_LEAST - 1)) == 0,
               "a power of two, 4 KiB or more");

size_t os_kernel_page_size(void)
{
    static size_t cached; /* written with the same value by whoever comes first */
    size_t bytes = __atomic_load_n(&cached, __ATOMIC_RELAXED);
    if (bytes == 0) {
        bytes = getauxval(AT_PAGESZ);
        /* relaxed: the value itself is all there is to see */
        __atomic_store_n(&cached, bytes, __ATOMIC_RELAXED);
    }
    return bytes;
}

size_t os_page_size(void)
{
    return size_max(os_kernel_page_size(), PAGE_LEAST);
}

/* The kernel rounds a length up to whole pages, so what lies behind a range would be dropped or
 * shut with it; and it refuses an address within a page. */
static void check_range(const void *start, size_t bytes)
{
    CHECK((((uintptr_t)start | bytes) & (os_page_size() - 1)) == 0);
    (void)start, (void)bytes;
}

static long advise(void *start, size_t bytes, int advice)
{
    OS_COUNT(madvise, bytes);
    return syscall3(SYS_madvise, (long)start, (long)bytes, advice);
}

/* Whether the kernel is this version or newer. */
static bool kernel_is_at_least(unsigned major, unsigned minor)
{
    /* 0: not known yet; written with the same value by whoever comes first */
    static uint32_t cached;
    uint32_t known = __atomic_load_n(&cached, __ATOMIC_RELAXED);
    if (known == 0) {
        struct utsname name;
        known = version_of(0, 0);
        if (syscall1(SYS_uname, (long)&name) == 0)
            known = kernel_version(name.release);
        __atomic_store_n(&cached, known, __ATOMIC_RELAXED);
    }
    return known >= version_of(major, minor);
}

/* The thread sanitizer remembers who wrote to an address last, and learns only from libc's mmap
 * that the memory there is new. glibc unmaps the stacks of ended threads without telling it, and
 * the kernel may hand their addresses to us next. So a build with the sanitizer maps new memory
 * once more, by libc. */
#if defined(__SANITIZE_THREAD__)
#define SANITIZER_LEARNS 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SANITIZER_LEARNS 1
#endif
#endif
#if !defined(SANITIZER_LEARNS)
#define SANITIZER_LEARNS 0
#endif

static void show_sanitizer(char *start, size_t bytes, int flags)
{
    if (SANITIZER_LEARNS && bytes != 0)
        (void)mmap(start, bytes, PROT_READ | PROT_WRITE, flags | MAP_FIXED, -1, 0);
}

/* At a multiple of the kernel's page. */
static void *map_anywhere(size_t bytes, unsigned pages)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS;
    if (pages & OS_PAGES_UNRESERVED)
        flags |= MAP_NORESERVE;
    /* Since Linux 6.7 a "stack" is a mapping without huge pages. Before, the flag does nothing, and
     * it takes madvise: a system call for each mapping, and one that a sandbox may forbid. */
    if (pages & OS_PAGES_SMALL)
        flags |= MAP_STACK;
    OS_COUNT(mmap, bytes);
    long result = syscall6(SYS_mmap, 0, (long)bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (is_error(result))
        return NULL;
    show_sanitizer((char *)result, bytes, flags);
    /* The first mapping asks for the version, however short it is: later a sandbox may forbid
     * that. */
    if (pages & OS_PAGES_SMALL && !kernel_is_at_least(6, 7) && bytes >= OS_HUGE_PAGE)
        os_advise_huge_pages((void *)result, bytes, false);
    return (void *)result;
}

void *os_reserve(size_t bytes)
{
    OS_COUNT(mmap, bytes);
    long result = syscall6(SYS_mmap, 0, (long)bytes, PROT_NONE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return is_error(result) ? NULL : (void *)result;
}

void *os_map(size_t bytes, unsigned pages)
{
    check_range(NULL, bytes);
    return PAGES_ARE_LARGER ? os_map_aligned(bytes, os_page_size(), pages)
                            : map_anywhere(bytes, pages);
}

static bool unmap(void *start, size_t bytes)
{
    OS_COUNT(munmap, bytes);
    return !is_error(syscall3(SYS_munmap, (long)start, (long)bytes, 0));
}

void *os_map_aligned(size_t bytes, size_t alignment, unsigned pages)
{
    char *start = map_anywhere(bytes, pages);
    if (start == NULL || ((uintptr_t)start & (alignment - 1)) == 0)
        return start;
    unmap(start, bytes);
    if (bytes + alignment < bytes)
        return NULL;
    start = map_anywhere(bytes + alignment, pages);
    if (start == NULL)
        return NULL;
    char *aligned = (char *)align_up((uintptr_t)start, alignment);
    size_t front = (size_t)(aligned - start);
    /* If the system refuses to cut the slack off it stays mapped and untouched: address space is
     * lost, no memory. */
    if (front != 0)
        unmap(start, front);
    if (front != alignment)
        unmap(aligned + bytes, alignment - front);
    return aligned;
}

#if !defined(MADV_POPULATE_WRITE)
#define MADV_POPULATE_WRITE 23 /* since Linux 5.14 */
#endif

bool os_populate(void *start, size_t bytes)
{
    check_range(start, bytes);
    long result;
    do {
        result = advise(start, bytes, MADV_POPULATE_WRITE);
    } while (result == -EINTR || result == -EAGAIN);
    if (result != -EINVAL)
        return !is_error(result);
    for (size_t place = 0; place < bytes; place += os_page_size()) { /* an older kernel */
        volatile char *page = (char *)start + place;
        *page = *page;
    }
    return true;
}

void *os_map_present(size_t bytes)
{
    char *start = os_map(bytes, OS_PAGES_ANY);
    if (start != NULL && !os_populate(start, bytes)) {
        os_unmap(start, bytes);
        return NULL;
    }
    return start;
}

bool os_move(void *from, void *to, size_t bytes)
{
    check_range(from, bytes);
    check_range(to, bytes);
    OS_COUNT(mremap, bytes);
    return !is_error(syscall6(SYS_mremap, (long)from, (long)bytes, (long)bytes,
                              MREMAP_MAYMOVE | MREMAP_FIXED, (long)to, 0));
}

/* Bytes (machine): while so much goes back, the kernel keeps the process's mappings from all other
 * threads for some 300 us. More goes in pieces. */
#define PIECE_LEAST (4 * MIB)

/* Nanoseconds (machine): of a piece that took less hardly anything was there, and the next may be
 * twice as long. */
#define PIECE_SHORT ((uint64_t)50000)

static size_t piece_next(size_t piece, uint64_t begun)
{
    return os_clock_exact() - begun < PIECE_SHORT ? 2 * piece : piece;
}

static bool purge(char *start, size_t bytes)
{
    return !is_error(advise(start, bytes, MADV_DONTNEED));
}

bool os_purge(void *start, size_t bytes)
{
    check_range(start, bytes);
    char *next = start;
    for (size_t piece = PIECE_LEAST; bytes > piece;) {
        uint64_t begun = os_clock_exact();
        if (!purge(next, piece))
            return false;
        next += piece;
        bytes -= piece;
        piece = piece_next(piece, begun);
    }
    return purge(next, bytes);
}

bool os_unmap(void *start, size_t bytes)
{
    check_range(start, bytes);
    /* What is there goes in pieces, the addresses at once: for a hole each may need a mapping more,
     * and when one is refused there must be none, or the caller would use what others have there.
     */
    if (bytes > PIECE_LEAST)
        os_purge(start, bytes);
    return unmap(start, bytes);
}

/* One call for both: a new mapping takes the place of the pages. */
bool os_shut(void *start, size_t bytes)
{
    check_range(start, bytes);
    OS_COUNT(mmap, bytes);
    return !is_error(syscall6(SYS_mmap, (long)start, (long)bytes, PROT_NONE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
}

bool os_hide(void *start, size_t bytes)
{
    check_range(start, bytes);
    return !is_error(syscall3(SYS_mprotect, (long)start, (long)bytes, PROT_NONE));
}

void os_set_apart(void *start, size_t bytes)
{
    check_range(start, bytes);
    advise(start, bytes, MADV_DONTDUMP);
}

bool os_open(void *start, size_t bytes)
{
    check_range(start, bytes);
    return !is_error(syscall3(SYS_mprotect, (long)start, (long)bytes, PROT_READ | PROT_WRITE));
}

#if !defined(MADV_GUARD_INSTALL)
#define MADV_GUARD_INSTALL 102 /* since Linux 6.13 */
#endif

/* An emulator of another machine accepts advice that it does not know, and does nothing. So the
 * first guard is tested; if it can be read, no other is asked for in this way. */
bool os_mark_guard(void *start, size_t bytes)
{
    enum { NOT_KNOWN, THEY_GUARD, THEY_DO_NOT };
    static unsigned guards; /* relaxed: whoever is early looks, too */
    check_range(start, bytes);
    unsigned known = __atomic_load_n(&guards, __ATOMIC_RELAXED);
    if (known == THEY_DO_NOT || !kernel_is_at_least(6, 13))
        return false;
    if (is_error(advise(start, bytes, MADV_GUARD_INSTALL)))
        return false;
    if (known == NOT_KNOWN) {
        known = os_is_readable((uintptr_t)start) ? THEY_DO_NOT : THEY_GUARD;
        __atomic_store_n(&guards, known, __ATOMIC_RELAXED);
    }
    return known == THEY_GUARD;
}

bool os_guard(void *start, size_t bytes)
{
    if (os_mark_guard(start, bytes))
        return true;
    if (!os_hide(start, bytes))
        return false;
    os_purge(start, bytes);
    return true;
}

/* From the kernel's interface: pidfd_open(2). The process by its calling thread; by its first it is
 * not found any more once that has ended. */
enum { THIS_THREAD = -10000 };

/* Purges several ranges by one call. The processor's tables are then flushed once for all of them,
 * and that is most of what purging a short range costs. Linux 6.15 and later; not tried before, as
 * a sandbox may kill for a call that it does not know. */
static bool purge_at_once(const struct iovec *ranges, size_t count, size_t bytes)
{
#if defined(SYS_process_madvise)
    OS_COUNT(madvise, bytes);
    long result =
        syscall6(SYS_process_madvise, THIS_THREAD, (long)ranges, (long)count, MADV_DONTNEED, 0, 0);
    return result == (long)bytes;
#else
    (void)ranges, (void)count, (void)bytes;
    return false;
#endif
}

uint64_t os_purge_ranges(const struct iovec *ranges, size_t count)
{
    static bool refused; /* relaxed, below: whoever is late asks once more */
    uint64_t all = ~(uint64_t)0 >> (OS_RANGES_MOST - count), done = 0;
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        check_range(ranges[i].iov_base, ranges[i].iov_len);
        bytes += ranges[i].iov_len;
    }
    bool asked =
        count > 1 && kernel_is_at_least(6, 15) && !__atomic_load_n(&refused, __ATOMIC_RELAXED);
    if (asked && purge_at_once(ranges, count, bytes))
        return all;
    for (size_t i = 0; i < count; i++)
        done |= (uint64_t)os_purge(ranges[i].iov_base, ranges[i].iov_len) << i;
    if (asked && done == all) /* none of the ranges was the reason */
        __atomic_store_n(&refused, true, __ATOMIC_RELAXED);
    return done;
}

AT_START size_t os_address_limit(void)
{
    struct rlimit of_data = {.rlim_cur = RLIM_INFINITY}, of_all = of_data;
    _Static_assert(RLIM_INFINITY == SIZE_MAX, "none is the most there is");
    syscall6(SYS_prlimit64, 0, RLIMIT_DATA, 0, (long)&of_data, 0, 0);
    syscall6(SYS_prlimit64, 0, RLIMIT_AS, 0, (long)&of_all, 0, 0);
    return size_min(of_data.rlim_cur, of_all.rlim_cur);
}

bool os_which_resident(const void *start, size_t bytes, uint8_t *present)
{
    return !is_error(syscall3(SYS_mincore, (long)start, (long)bytes, (long)present));
}

/* Looks (machine): at a range, each of as many pages. */
enum { LOOKS_MOST = 128, LOOK_PAGES = 512 };

size_t os_resident_bytes(const void *start, size_t bytes)
{
    uint8_t present[LOOK_PAGES]; /* one for each page */
    size_t page = os_kernel_page_size(), resident = 0;
    size_t each = (bytes - 1) / LOOKS_MOST / (LOOK_PAGES * page) + 1; /* of so many pieces one */
    for (size_t done = 0; done < bytes; done += each * LOOK_PAGES * page) {
        size_t piece = size_min(bytes - done, LOOK_PAGES * page);
        if (!os_which_resident((const char *)start + done, piece, present))
            return bytes;
        for (size_t i = 0; i < piece / page; i++)
            resident += (present[i] & 1) * page;
    }
    return resident * each;
}

/* Where the kernel may not choose the addresses: the sanitizer has to be told of them, or they have
 * to be at a multiple of more than its pages. */
enum { MOVES_TO_MAPPED = SANITIZER_LEARNS || PAGES_ARE_LARGER };

static long move_to_mapped(void *start, size_t old_bytes, size_t new_bytes)
{
    void *place = os_map(new_bytes, OS_PAGES_ANY);
    if (place == NULL)
        return -ENOMEM;
    long result = syscall6(SYS_mremap, (long)start, (long)old_bytes, (long)new_bytes,
                           MREMAP_MAYMOVE | MREMAP_FIXED, (long)place, 0);
    if (is_error(result))
        os_unmap(place, new_bytes);
    return result;
}

void *os_remap(void *start, size_t old_bytes, size_t new_bytes, bool may_move)
{
    check_range(start, old_bytes | new_bytes);
    OS_COUNT(mremap, new_bytes);
    may_move = may_move && new_bytes > old_bytes; /* emulators move whatever may be moved */
    long result = syscall6(SYS_mremap, (long)start, (long)old_bytes, (long)new_bytes,
                           may_move && !MOVES_TO_MAPPED ? MREMAP_MAYMOVE : 0, 0, 0);
    if (SANITIZER_LEARNS && !is_error(result) && new_bytes > old_bytes)
        show_sanitizer((char *)result + old_bytes, new_bytes - old_bytes,
                       MAP_PRIVATE | MAP_ANONYMOUS);
    if (MOVES_TO_MAPPED && is_error(result) && may_move)
        result = move_to_mapped(start, old_bytes, new_bytes);
    return is_error(result) ? NULL : (void *)result;
}

#if !defined(MADV_COLD)
#define MADV_COLD 20 /* since Linux 5.4 */
#endif
#if !defined(MADV_FREE)
#define MADV_FREE 8 /* since Linux 4.5 */
#endif
#if !defined(MREMAP_DONTUNMAP)
#define MREMAP_DONTUNMAP 4
#endif

void *os_detach(void *start, size_t bytes)
{
    size_t page = os_page_size();
    /* Locked memory can get no such advice. The kernel would unlock all of its mapping. */
    if (MOVES_TO_MAPPED || (((uintptr_t)start | bytes) & (page - 1)) != 0 ||
        is_error(advise(start, page, MADV_COLD)))
        return NULL;
    OS_COUNT(mremap, bytes);
    long result = syscall6(SYS_mremap, (long)start, (long)bytes, (long)bytes,
                           MREMAP_MAYMOVE | MREMAP_DONTUNMAP, 0, 0);
    if (is_error(result))
        return NULL;
    os_open(start, bytes); /* an emulator takes the part for unmapped, until it is told */
    /* What the program has mapped there of a file, or shares, is no such memory, and would not be
     * zero: then the call below fails. */
    if (is_error(advise(start, page, MADV_FREE)) && os_move((void *)result, start, bytes))
        return NULL;
    return (void *)result;
}

/* Its setting stands in a file, but a sandbox may forbid to open one. */
bool os_huge_pages_by_default(void)
{
    enum { NOT_KNOWN, BY_DEFAULT, ONLY_IF_ASKED };
    static uint8_t cached; /* relaxed, twice: whoever is early tries, too */
    uint8_t known = __atomic_load_n(&cached, __ATOMIC_RELAXED);
    if (known == NOT_KNOWN) {
        size_t page = os_kernel_page_size(), before;
        char *start = os_map_aligned(OS_HUGE_PAGE, OS_HUGE_PAGE, OS_PAGES_UNRESERVED);
        if (start == NULL)
            return false;
        char *last = start + OS_HUGE_PAGE - page;
        before = os_resident_bytes(last, page);
        *(volatile char *)start = 1;
        known = before == 0 && os_resident_bytes(last, page) != 0 ? BY_DEFAULT : ONLY_IF_ASKED;
        os_unmap(start, OS_HUGE_PAGE);
        if (before != 0) /* what is mapped is in memory at once, for now */
            return false;
        __atomic_store_n(&cached, known, __ATOMIC_RELAXED);
    }
    return known == BY_DEFAULT;
}

void os_advise_huge_pages(void *start, size_t bytes, bool huge)
{
    check_range(start, bytes);
    advise(start, bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
}

/* From the kernel's interface, whose headers not every libc brings along: prctl(2). */
enum { SET_VMA = 0x53564d41, SET_VMA_ANON_NAME = 0 };

void os_name(const void *start, size_t bytes, const char *name)
{
    static bool refused;
    if (__atomic_load_n(&refused, __ATOMIC_RELAXED))
        return;
    long result =
        syscall6(SYS_prctl, SET_VMA, SET_VMA_ANON_NAME, (long)start, (long)bytes, (long)name, 0);
    if (is_error(result))
        __atomic_store_n(&refused, true, __ATOMIC_RELAXED);
}
