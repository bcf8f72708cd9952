/*
 * How to get from a function's frame to its caller's, as the compiler wrote it down: the tables
 * that every program and library carries for exceptions (.eh_frame), frame pointers or not.
 *
 * The idea: for each place in the code there is a row: where the caller's stack pointer is (the
 * canonical frame address, CFA), and for each register whether it still has the caller's value or
 * where on the stack that was saved. The rows are a little program, which is run up to the place. A
 * table sorted by address, .eh_frame_hdr, leads to the program of a function.
 *
 * The tables belong to code that is on the stack, so they are mapped, and are read directly. This
 * takes no lock, allocates nothing, and calls no other library. Code has no row if its tables are
 * not understood.
 *
 * Cost: a binary search, and some 20 steps of that program: about 150 ns where it is cached. A row
 * that was worked out before is kept (rows.h). Source: DWARF 5, 6.4 (Call Frame Information); Linux
 * Standard Base 5.0, 10.6 (Exception Frames).
 */
#ifndef SNUG_PROFILE_CFI_H
#define SNUG_PROFILE_CFI_H

#include "base/common.h"

/* Layout: DWARF's numbers of the registers of x86-64 that can matter; the last stands for the
 * return address. */
enum { CFI_RBP = 6, CFI_RSP = 7, CFI_RETURN = 16, CFI_REGISTERS };

enum cfi_where {
    CFI_SAME,      /* it still has the caller's value */
    CFI_UNDEFINED, /* that value is lost; of the return address: there is no caller */
    CFI_AT,        /* it stands at CFA + offset */
    CFI_IS,        /* it is CFA + offset */
    CFI_AT_EXPRESSION,
    CFI_IS_EXPRESSION,
    CFI_IN_REGISTER /* number `offset` */
};

struct cfi_rule {
    union {
        int64_t offset;
        const uint8_t *expression; /* its length as LEB128, then it */
    };
    uint8_t where; /* enum cfi_where */
};

struct cfi_row {
    struct cfi_rule cfa; /* CFI_IS: register cfa_register + offset; or CFI_IS_EXPRESSION */
    uint8_t cfa_register;
    bool is_signal; /* the frame that the kernel made for a signal handler */
    struct cfi_rule rules[CFI_REGISTERS];
};

/* The entry (FDE) of the function that may be around `pc`, in an object with this .eh_frame_hdr;
 * NULL if there is none. Its first four bytes are its length. The next four say how far before
 * themselves the entry lies that this one shares with others (CIE). */
const uint8_t *cfi_entry(const uint8_t *header, uintptr_t pc);

/* Whether an entry, and the one that it shares, lie between two addresses: in the object that they
 * are of. Those of a program that was packed or stripped by hand may be anything. */
bool cfi_is_within(const uint8_t *entry, uintptr_t start, uintptr_t end);

/* The row for code at `pc` by that entry. False: there is none. */
bool cfi_row_of(const uint8_t *entry, uintptr_t pc, struct cfi_row *row);

/* Reads a word of memory; false: it is not there. */
typedef bool (*cfi_read)(void *context, uintptr_t address, uintptr_t *value);

/* Evaluates an expression, which begins with `first` on its stack. False: it is not understood, or
 * memory that it reads is not there. */
bool cfi_evaluate(const uint8_t *expression, const uintptr_t registers[CFI_REGISTERS],
                  uintptr_t first, cfi_read read, void *context, uintptr_t *value);

/* ---- Numbers in these tables ---- */

static inline uint64_t cfi_take(const uint8_t **at, unsigned bytes)
{
    uint64_t value = 0; /* all machines are little-endian, and addresses need not be aligned */
    __builtin_memcpy(&value, *at, bytes);
    *at += bytes;
    return value;
}

static inline int64_t cfi_take_signed(const uint8_t **at, unsigned bytes)
{
    unsigned spare = 64 - 8 * bytes;
    return (int64_t)(cfi_take(at, bytes) << spare) >> spare;
}

static inline uint64_t cfi_take_leb(const uint8_t **at)
{
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
        uint8_t byte = *(*at)++;
        if (shift < 64)
            value |= (uint64_t)(byte & 0x7f) << shift;
        if ((byte & 0x80) == 0)
            return value;
    }
}

static inline int64_t cfi_take_leb_signed(const uint8_t **at)
{
    uint64_t value = 0;
    for (unsigned shift = 0;;) {
        uint8_t byte = *(*at)++;
        if (shift < 64)
            value |= (uint64_t)(byte & 0x7f) << shift;
        shift += 7;
        if ((byte & 0x80) == 0)
            return (int64_t)((byte & 0x40) != 0 && shift < 64 ? value | ~(uint64_t)0 << shift
                                                              : value);
    }
}

#endif
