/*
 * The few words that every file of the library shares: compiler hints, size arithmetic that cannot
 * overflow unseen, and the unit that all page numbers count in.
 *
 * Nothing here knows the operating system or any structure of the allocator.
 */
#ifndef SNUG_BASE_COMMON_H
#define SNUG_BASE_COMMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define NOINLINE __attribute__((noinline))
#define ALWAYS_INLINE inline __attribute__((always_inline))
/* A variable of the library's own. Said where it is declared, it is read without a detour through
 * the table of what other libraries may replace. */
#define INTERNAL __attribute__((visibility("hidden")))
#define COLD __attribute__((cold, noinline))
/* Runs when the library is loaded and when the process ends. The linker puts these functions, which
 * are all that a program without memory runs, into the same pages (src/CMakeLists.txt). */
#define AT_START __attribute__((section(".text.startup"), noinline))
/* A constant that every program reads. The linker puts these beside the addresses that the loader
 * writes, in pages that each process has anyway; constants of what few programs run lie apart. */
#define READ_BY_ALL __attribute__((section(".data.rel.ro.read_by_all")))
/* A large variable, of which a small program touches few pages. The linker puts these behind all
 * others, so that those share one page. */
#define BULKY __attribute__((section(".bss.bulky")))
/* A large variable of which every program writes the first words: these share the last page of the
 * small ones. */
#define BULKY_BUT_BEGUN __attribute__((section(".bss.begun")))
/* Hides from the compiler how a value came about, so that it does not keep the parts in registers
 * to compute something from them that the value itself tells. */
#define OPAQUE(value) __asm__("" : "+r"(value))
/* Begins with a cache line. The fast paths were up to a tenth slower where they happened not to. */
#define HOT __attribute__((aligned(64)))

/* Layout: units of bytes. */
#define KIB ((size_t)1024)
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)

/* Layout: the page of the page map and of all spans, 4 KiB whatever the system's page size is, so
 * that one binary serves 4, 16 and 64 KiB kernels. What is asked of the system is rounded to its
 * own pages in platform/. */
#define PAGE_SHIFT 12
#define PAGE_BYTES ((size_t)1 << PAGE_SHIFT)

/* One part in: of what there is, so little more memory is worth fewer calls, faults and copies. */
enum { SLACK_SHARE = 8 };

/* One part in: of a whole, one of many may have so little for itself: a thread of what waits, a
 * huge page of what is full, others of a group's limit. Nobody else can have it then. */
enum { ONE_OF_MANY = 16 };

/* One part in: more of something than this is most of it. */
enum { MOST_SHARE = 2 };

/* Layout: malloc's guaranteed alignment, alignof(max_align_t) on both supported machines. */
#define MIN_ALIGN ((size_t)16)

/* Layout: no request above this is tried, PTRDIFF_MAX less what rounding up may add. */
#define MAX_REQUEST ((size_t)PTRDIFF_MAX - 64 * MIB)

static inline size_t align_up(size_t value, size_t alignment)
{
    return (value + alignment - 1) & ~(alignment - 1);
}

static inline size_t align_down(size_t value, size_t alignment)
{
    return value & ~(alignment - 1);
}

static inline bool is_power_of_two(size_t value)
{
    return value != 0 && (value & (value - 1)) == 0;
}

static inline size_t bytes_to_pages(size_t bytes)
{
    return (bytes + PAGE_BYTES - 1) >> PAGE_SHIFT;
}

static inline size_t size_min(size_t a, size_t b)
{
    return a < b ? a : b;
}

static inline size_t size_max(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* The structure of type `type` whose field `field` is at `address`. */
#define CONTAINER_OF(address, type, field) ((type *)((char *)(address) - offsetof(type, field)))

#endif
