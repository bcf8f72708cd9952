/*
 * Zeros, in each width. See zeros.h.
 */
#include "platform/zeros.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

enum zeros_width zeros_width;

/* ---- What a width has ---- */

/* Vectors at multiples of 8 bytes, and whether one is zero. */
typedef uint64_t vector_16 __attribute__((may_alias, vector_size(16), aligned(8)));

static ALWAYS_INLINE bool is_zero_16(vector_16 vector)
{
    return (vector[0] | vector[1]) == 0;
}

#define TARGET_16

#if defined(__x86_64__)
typedef uint64_t vector_32 __attribute__((may_alias, vector_size(32), aligned(8)));
typedef uint64_t vector_64 __attribute__((may_alias, vector_size(64), aligned(8)));

#define TARGET_32 __attribute__((target("avx2")))
#define TARGET_64 __attribute__((target("avx512f")))
#define is_zero_32(vector) _mm256_testz_si256((__m256i)(vector), (__m256i)(vector))
#define is_zero_64(vector) (_mm512_test_epi64_mask((__m512i)(vector), (__m512i)(vector)) == 0)
#endif

/* ---- The functions, of a width ---- */

/* Bytes: a step of the longer ones. */
enum { STEP = 128 };

#define UNROLLED _Pragma("GCC unroll 8")

/* Bytes: at both ends of a short one, up to 512 and up to 1,024; what is between is met twice. */
enum { SHORT_HALF = 256, LONG_HALF = 512 };

#define ZEROS_OF(W) \
    static ALWAYS_INLINE TARGET_##W vector_##W step_##W(uintptr_t at) \
    { \
        vector_##W found = *(const vector_##W *)at; \
        UNROLLED for (size_t i = W; i < STEP; i += W) found |= *(const vector_##W *)(at + i); \
        return found; \
    } \
    static ALWAYS_INLINE TARGET_##W void step_make_##W(uintptr_t at) \
    { \
        UNROLLED for (size_t i = 0; i < STEP; i += W) * (vector_##W *)(at + i) = (vector_##W){0}; \
    } \
    static ALWAYS_INLINE TARGET_##W bool step_is_zero_##W(uintptr_t at, bool make) \
    { \
        bool zero = is_zero_##W(step_##W(at)); \
        if (!zero && make) \
            step_make_##W(at); \
        return zero || make; \
    } \
    static TARGET_##W bool long_##W(uintptr_t at, uintptr_t end, bool make) \
    { \
        bool zero = step_is_zero_##W(end - STEP, make); \
        for (; zero && at < end - STEP; at += STEP) \
            zero = step_is_zero_##W(at, make); \
        return zero; \
    } \
    static TARGET_##W bool short_##W(uintptr_t at, size_t bytes, bool make) \
    { \
        size_t half = bytes <= LONG_HALF ? SHORT_HALF : LONG_HALF; \
        uintptr_t last = at + bytes - half; \
        vector_##W found = {0}; \
        for (size_t i = 0; i < half; i += STEP) \
            if (make) { \
                step_make_##W(at + i); \
                step_make_##W(last + i); \
            } else { \
                found |= step_##W(at + i) | step_##W(last + i); \
            } \
        return is_zero_##W(found); \
    }

ZEROS_OF(16)

/* ---- Which ---- */

#if defined(__x86_64__)
ZEROS_OF(32)
ZEROS_OF(64)

/* Layout: bits of cpuid and of the register that says what the system saves of a thread. */
enum { ECX1_OSXSAVE = 1 << 27, EBX7_AVX2 = 1 << 5, EBX7_AVX512F = 1 << 16, ECX7_VBMI = 1 << 1 };
enum { SAVED_32 = 0x06, SAVED_64 = 0xe6 };

static unsigned saved_by_system(void)
{
    unsigned a, b, c, d;
    if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & ECX1_OSXSAVE) == 0)
        return 0;
    __asm__("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
    return a;
}

/* Asks cpuid by hand: the compiler's library would find out everything about the processor, in each
 * program that starts. Processors that slow down as they use the widest registers lack VBMI, so
 * those registers are not used without it. */
void zeros_begin(void)
{
    unsigned a, b, c, d, saved = saved_by_system();
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0)
        return;
    if ((saved & SAVED_64) == SAVED_64 && (b & EBX7_AVX512F) != 0 && (c & ECX7_VBMI) != 0)
        zeros_width = ZEROS_64;
    else if ((saved & SAVED_32) == SAVED_32 && (b & EBX7_AVX2) != 0)
        zeros_width = ZEROS_32;
}

#define BY_WIDTH(function, ...) \
    (LIKELY(zeros_width == ZEROS_64) ? function##_64(__VA_ARGS__) \
     : zeros_width == ZEROS_32       ? function##_32(__VA_ARGS__) \
                                     : function##_16(__VA_ARGS__))
#else
void zeros_begin(void) {}

#define BY_WIDTH(function, ...) function##_16(__VA_ARGS__)
#endif

/* Bytes: between pages, and between lines of a processor's cache. */
enum { PAGE = 4096, LINE = 64 };

/* Lines: of each page but the first, that are asked for ahead: a processor reads ahead by itself
 * within a page only, once it has met some. */
enum { LINES_AHEAD = 4 };

bool zeros_long(uintptr_t at, uintptr_t end, bool make)
{
    for (uintptr_t page = (at | (PAGE - 1)) + 1; page < end; page += PAGE)
        for (size_t line = 0; line < LINES_AHEAD; line++)
            __builtin_prefetch((const void *)(page + line * LINE));
    return BY_WIDTH(long, at, end, make);
}

bool zeros_short(uintptr_t at, size_t bytes, bool make)
{
    return BY_WIDTH(short, at, bytes, make);
}
