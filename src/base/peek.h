/*
 * Reading words that other threads write meanwhile: those of this process, or of another process
 * that is looked at from outside.
 *
 * The idea: all that statistics need to know stands in words that are written whole, by relaxed
 * stores under whatever lock guards them, and that are read here one by one without that lock. So a
 * reader waits for nobody and nobody for it; it may be a signal handler, and it may be another
 * process. What it sees is exact while the heap rests; while the heap moves, its words are moments
 * apart.
 *
 * Structures are reached through their real types, in the other process too: PEEK computes the
 * address of a field and never looks at it directly.
 */
#ifndef SNUG_BASE_PEEK_H
#define SNUG_BASE_PEEK_H

#include "base/common.h"

/* How to read another process. NULL in place of one: this process. */
struct peek {
    bool (*read)(void *context, uintptr_t address, void *value, size_t bytes);
    void *context;
    bool failed; /* a read did not succeed: nothing that was read is worth anything */
};

/* The word of 1, 4 or 8 bytes at an address; 0 where reading fails. */
uint64_t peek_word(struct peek *peek, const void *address, size_t bytes);

/* A reader for one walk: what it finds that is not there counts for nothing else. */
static inline struct peek *peek_apart(struct peek *apart, const struct peek *peek)
{
    if (peek == NULL)
        return NULL;
    *apart = *peek;
    return apart;
}

/* The difference of two numbers that were read at different moments, at least 0. */
static inline size_t rest_of(size_t whole, size_t parts)
{
    return whole > parts ? whole - parts : 0;
}

/* Of 8 bytes, as most are: calls are shorter without that number. */
uint64_t peek_long(struct peek *peek, const void *address);

/* The value of a field of 1, 4 or 8 bytes. */
#define PEEK(peek, field) \
    ((__typeof__(field))(sizeof(field) == 8 ? peek_long((peek), &(field)) \
                                            : peek_word((peek), &(field), sizeof(field))))

/* Adds to a word that is read by PEEK, under the lock that guards it, or by its only writer. */
#define GAUGE_ADD(word, change) __atomic_store_n(&(word), (word) + (change), __ATOMIC_RELAXED)
#define GAUGE_SET(word, value) __atomic_store_n(&(word), (value), __ATOMIC_RELAXED)

/* The same of its only writer where every instruction counts. In memory: compilers make a load, a
 * sum and a store of the above. The steps say whether the byte went over, or came back from 0. */
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
static ALWAYS_INLINE void gauge_give(int32_t *word, uint32_t change)
{
    __asm__("addl %[change], %[word]" : [word] "+m"(*word) : [change] "r"(change) : "cc");
}

static ALWAYS_INLINE void gauge_take(int32_t *word, uint32_t change)
{
    __asm__("subl %[change], %[word]" : [word] "+m"(*word) : [change] "r"(change) : "cc");
}

static ALWAYS_INLINE bool gauge_step_up(uint8_t *byte)
{
    bool over;
    __asm__("addb $1, %[byte]" : [byte] "+m"(*byte), "=@ccc"(over));
    return over;
}

static ALWAYS_INLINE bool gauge_step_down(uint8_t *byte)
{
    bool below;
    __asm__("subb $1, %[byte]" : [byte] "+m"(*byte), "=@ccc"(below));
    return below;
}

/* Sets two words at a multiple of 16 bytes, by one store: behind one to memory that is far all
 * stores wait, and a processor has room for some fifty. Other threads see each word whole. */
static ALWAYS_INLINE void gauge_set_pair(uint64_t *words, uint64_t first, uint64_t second)
{
    typedef uint64_t pair __attribute__((vector_size(16), may_alias));
    *(pair *)words = (pair){first, second};
}
#else
static ALWAYS_INLINE void gauge_set_pair(uint64_t *words, uint64_t first, uint64_t second)
{
    GAUGE_SET(words[0], first);
    GAUGE_SET(words[1], second);
}

static ALWAYS_INLINE void gauge_give(int32_t *word, uint32_t change)
{
    GAUGE_ADD(*word, (int32_t)change);
}

static ALWAYS_INLINE void gauge_take(int32_t *word, uint32_t change)
{
    GAUGE_ADD(*word, -(int32_t)change);
}

static ALWAYS_INLINE bool gauge_step_up(uint8_t *byte)
{
    GAUGE_SET(*byte, (uint8_t)(*byte + 1));
    return *byte == 0;
}

static ALWAYS_INLINE bool gauge_step_down(uint8_t *byte)
{
    GAUGE_SET(*byte, (uint8_t)(*byte - 1));
    return *byte == UINT8_MAX;
}
#endif

/* The same for a word that several threads write without a lock. */
static inline void gauge_change(size_t *word, size_t change)
{
    __atomic_fetch_add(word, change, __ATOMIC_RELAXED);
}

/* Adds to such a word, unless more than `most` would come of it; `*sum` is what came of it. What is
 * refused was never added, and so is in nobody's way. Nothing can be added to any sum. */
static inline bool gauge_change_within(size_t *word, size_t change, size_t most, size_t *sum)
{
    /* relaxed: a sum that is only compared with a bound */
    size_t old = __atomic_load_n(word, __ATOMIC_RELAXED);
    do {
        if (change != 0 && (change > most || old > most - change))
            return false;
        *sum = old + change;
    } while (
        !__atomic_compare_exchange_n(word, &old, *sum, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return true;
}

/* Raises a peak. */
#define GAUGE_RAISE(word, value) \
    do { \
        if ((value) > (word)) \
            GAUGE_SET(word, value); \
    } while (0)

#endif
