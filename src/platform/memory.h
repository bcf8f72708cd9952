/*
 * Address space from the system: map, unmap, give pages back, move.
 *
 * All addresses and sizes are multiples of os_page_size(), which is at least PAGE_BYTES. Every
 * function is safe in any thread, takes no lock and leaves errno alone.
 */
#ifndef SNUG_PLATFORM_MEMORY_H
#define SNUG_PLATFORM_MEMORY_H

#include "base/common.h"

/* The calls that were made, the refused ones included, and the bytes in them; for mremap, the new
 * size. Read by the statistics (base/peek.h). */
struct os_calls {
    uint64_t mmap_calls, mmap_bytes;
    uint64_t munmap_calls, munmap_bytes;
    uint64_t madvise_calls, madvise_bytes;
    uint64_t mremap_calls, mremap_bytes;
};

extern INTERNAL struct os_calls os_calls;

/* relaxed: totals that nothing is decided by */
#define OS_COUNT(call, bytes) \
    ((void)__atomic_fetch_add(&os_calls.call##_calls, 1, __ATOMIC_RELAXED), \
     (void)__atomic_fetch_add(&os_calls.call##_bytes, (bytes), __ATOMIC_RELAXED))

/* The system's page size in bytes: 4, 16 or 64 KiB. */
size_t os_page_size(void);

/* The kernel's own page size: the same, unless the library was built for larger pages
 * (memory.c). */
size_t os_kernel_page_size(void);

/* What the pages of a mapping may be; any of them together. */
enum os_pages {
    OS_PAGES_ANY = 0,
    /* The system does not serve it by huge pages of its own accord. */
    OS_PAGES_SMALL = 1,
    /* Address space of which little will ever be memory: the system does not ask whether it has
     * that much. Without this it decides as it does for every program, and may refuse. */
    OS_PAGES_UNRESERVED = 2
};

/* `bytes` of fresh, zero, private memory, or NULL. `pages`: a sum of enum os_pages. */
void *os_map(size_t bytes, unsigned pages);

/* As os_map, at a multiple of `alignment` (a power of two). */
void *os_map_aligned(size_t bytes, size_t alignment, unsigned pages);

/* As os_map, with the memory there at once: later writes to it cannot fail for lack of memory. NULL
 * also if that cannot be had. */
void *os_map_present(size_t bytes);

/* Address space that can be neither read nor written, and takes no memory; or NULL. */
void *os_reserve(size_t bytes);

/* Moves a mapping of `bytes` to `to`, over what is there. */
bool os_move(void *from, void *to, size_t bytes);

/* Unmaps; much is purged in pieces before. Returns false if the system refuses (too many mappings,
 * for one): then all is still the caller's, its contents as before, or zero. */
bool os_unmap(void *start, size_t bytes);

/* Gives the pages back, many in pieces; they read as zero afterwards. Returns false if the system
 * refuses: then the contents are as before, or zero. */
bool os_purge(void *start, size_t bytes);

/* Layout: a bit for each range. */
enum { OS_RANGES_MOST = 64 };

struct iovec;

/* The same for up to OS_RANGES_MOST ranges, by one system call where the kernel has one. Returns a
 * bit for each that was purged. */
uint64_t os_purge_ranges(const struct iovec *ranges, size_t count);

/* Makes pages inaccessible, and gives them back. False: they are as they were. */
bool os_shut(void *start, size_t bytes);

/* The same, and the contents stay. */
bool os_hide(void *start, size_t bytes);

/* Makes pages that were shut or hidden accessible again; those that were shut read as zero. False:
 * they stay as they are. */
bool os_open(void *start, size_t bytes);

/* Asks the system not to join the mapping of these pages with its neighbours; no more than a hint.
 * The pages are left out of core dumps. */
void os_set_apart(void *start, size_t bytes);

/* Drops the contents of a range and has every access to it fault, until it is unmapped. Where the
 * kernel can (Linux 6.13, private memory that is not locked) this makes no further mapping;
 * otherwise it makes up to two, of which a process has vm.max_map_count. False: the range is as
 * before. */
bool os_guard(void *start, size_t bytes);

/* The same, but only where it makes no further mapping. */
bool os_mark_guard(void *start, size_t bytes);

/* Of each page of the kernel's (os_kernel_page_size) in a range, whether it is in memory, as bit 0
 * of a byte. What is not was never written to, or was purged, or is swapped out. False: the system
 * does not say. */
bool os_which_resident(const void *start, size_t bytes, uint8_t *present);

/* How many bytes of a range occupy memory; `bytes` if the system does not say. Of a range of more
 * than 65,536 pages about so many are looked at, in 128 places as far from each other, and stand
 * for the rest: each takes the system 2 us. */
size_t os_resident_bytes(const void *start, size_t bytes);

/* The least of the limits on what the process may map (RLIMIT_AS, RLIMIT_DATA), in bytes; SIZE_MAX:
 * there is none. */
size_t os_address_limit(void);

/* Makes pages present, with their contents. False: there is no memory for all of them. */
bool os_populate(void *start, size_t bytes);

/* Asks the system to serve a range by huge pages, or not to; no more than a hint. */
#define OS_HUGE_PAGE (2 * MIB)
void os_advise_huge_pages(void *start, size_t bytes, bool huge);

/* Resizes a mapping, moving it if `may_move`; the contents go along and growth reads as zero.
 * Returns the new start, or NULL and the mapping is untouched. */
void *os_remap(void *start, size_t old_bytes, size_t new_bytes, bool may_move);

/* Moves the pages of a part of a mapping into one of its own, and returns where that begins. The
 * part stays mapped, and reads as zero. NULL: the system cannot (before Linux 5.7, or what is
 * locked in memory), and nothing has changed. */
void *os_detach(void *start, size_t bytes);

/* Whether the system serves by huge pages what nobody asked it about. It is tried, once. */
bool os_huge_pages_by_default(void);

/* Names a mapping for those who read /proc/PID/smaps, if the kernel can: it shows as "[anon:NAME]".
 * A kernel that cannot is asked once. */
void os_name(const void *start, size_t bytes, const char *name);

#endif
