/*
 * Rows that were worked out before (cfi.h), and are kept: running the little program anew is most
 * of what a step up the stack costs.
 *
 * The idea: a row depends on nothing but the bytes of its program and on how far it is run. So
 * these make its key: a hash of the function's entry, of the entry that it shares with others, and
 * of the addresses of both and of the code. Nobody need be told when a library is closed: if
 * another has come to its place the bytes differ, and if they do not, neither does the row. Only
 * rows of the form that nearly all have are kept. Two rows may have the same hash, by a chance of
 * one in 2^64; a wrong row cannot lead to a trap, since memory is read only where it is known to be
 * (unwind.h).
 *
 * Cost: some 230 instructions for a key; 24 bytes a row.
 */
#ifndef SNUG_PROFILE_ROWS_H
#define SNUG_PROFILE_ROWS_H

#include "profile/cfi.h"

/* Slots (table): a power of two; a program that allocates in a thousand ways passes through fewer
 * calls than that, as stacks share most of them. */
enum { KEPT_ROWS = 512 };

/* Layout: the registers that a function must leave as they were, and the return address. */
enum { KEPT_SAVED = 7 };

extern INTERNAL const uint8_t kept_registers[KEPT_SAVED];

/* The CFA is a register + offset; the caller's stack pointer is the CFA. */
struct kept_row {
    uint64_t key; /* 0: none is here */
    int32_t cfa_offset;
    uint8_t cfa_register;
    uint8_t saved[KEPT_SAVED]; /* each of kept_registers: words below the CFA; 0: it is the same */
};

/* All zero: there are none. */
struct kept_rows {
    struct kept_row rows[KEPT_ROWS];
};

/* The key of the row for code at `pc`, of the function with this entry (cfi_entry); 0: none. */
uint64_t rows_key(const uint8_t *entry, uintptr_t pc);

/* The place for the row of a key; a row with another key may be there, or none. */
static inline struct kept_row *rows_place(struct kept_rows *rows, uint64_t key)
{
    return &rows->rows[key % KEPT_ROWS];
}

/* Keeps a row there, if it has the form that nearly all have. */
void rows_keep(struct kept_row *place, uint64_t key, const struct cfi_row *row);

#endif
