/*
 * What a program may ask of, and tell, its allocator: glibc's malloc.h beyond malloc itself.
 */
#include <errno.h>
#include <limits.h>

#include "heap/totals.h"
#include "report/report.h"
#include "snug/snug.h"

int snug_malloc_trim(size_t keep)
{
    int error = errno;
    bool trimmed = heap_trim(keep) != 0;
    errno = error;
    return trimmed ? 1 : 0;
}

int snug_should_move(const void *block)
{
    return heap_should_move(block);
}

void *snug_move(void *block)
{
    return heap_move(block);
}

int snug_mallopt(int parameter, int value)
{
    (void)value;
    /* glibc's: M_MXFAST (1), M_NLBLKS to M_KEEP (2 to 4, of no effect there either), M_PERTURB,
     * M_CHECK_ACTION, M_TOP_PAD, M_MMAP_MAX, M_MMAP_THRESHOLD, M_TRIM_THRESHOLD, M_ARENA_TEST and
     * M_ARENA_MAX (-8 to -1). */
    return (parameter >= 1 && parameter <= 4) || (parameter >= -8 && parameter <= -1);
}

/* Programs add the fields up as glibc's may be: what has a mapping of its own is not in `uordblks`,
 * and what is neither free nor the program's is. The parts are moments apart in a busy program;
 * they are cut so that the sums are right all the same. */
struct snug_mallinfo snug_mallinfo2(void)
{
    struct heap_totals totals = heap_totals();
    size_t cells_idle = totals.cells_free + totals.cells_cached;
    size_t small_idle = totals.small_free + totals.small_depots + totals.small_cached;
    size_t arena = totals.segments + totals.hardened.mapped;
    size_t idle = small_idle + cells_idle + totals.dirty + totals.clean + totals.hardened.mapped -
                  totals.hardened.live;
    idle = size_min(idle, arena);
    return (struct snug_mallinfo){
        .arena = arena,
        .ordblks = totals.free_runs + (cells_idle != 0),
        .smblks = totals.small_free_count,
        .hblks = totals.huge_count,
        .hblkhd = totals.huge,
        .fsmblks = size_min(small_idle, idle),
        .uordblks = arena - idle,
        .fordblks = idle,
        .keepcost = size_min(totals.dirty, idle),
    };
}

int snug_malloc_info(int flags, FILE *stream)
{
    if (flags != 0)
        return EINVAL;
    report_xml(stream);
    return 0;
}

void snug_malloc_stats(void)
{
    report_text(2);
}

int snug_check(void)
{
    return report_damage(heap_check());
}

const char *snug_version(void)
{
    return SNUG_VERSION_STRING;
}

#if defined(SNUG_OVERRIDE)

/* glibc's older mallinfo has int fields; what does not fit is cut to the largest int, which says
 * more than glibc's wrapping round. */
static int clip(size_t number)
{
    return number > INT_MAX ? INT_MAX : (int)number;
}

struct mallinfo_int {
    int arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost;
};

struct mallinfo_int mallinfo_of_ints(void);
struct mallinfo_int mallinfo_of_ints(void)
{
    struct snug_mallinfo info = snug_mallinfo2();
    return (struct mallinfo_int){clip(info.arena),   clip(info.ordblks),  clip(info.smblks),
                                 clip(info.hblks),   clip(info.hblkhd),   clip(info.usmblks),
                                 clip(info.fsmblks), clip(info.uordblks), clip(info.fordblks),
                                 clip(info.keepcost)};
}

/* Each name is made by the assembler, not declared: malloc.h has declared some of them with its
 * own structures, which have the same layout. */
#define OVERRIDE_ALLOC(name, function)
#define OVERRIDE_INFO(name, function) \
    extern __typeof(function) override_##name __asm__(#name) \
        __attribute__((alias(#function), visibility("default")));
#include "api/overrides.def"
#endif
