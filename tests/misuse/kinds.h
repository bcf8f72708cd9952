/*
 * kinds.h - what the kinds of misuse share: how one is written down, and the blocks around it.
 *
 * A kind is a function that does one wrong thing to a block of `size` bytes and says whether harm
 * was seen: a block of somebody else changed, the same memory handed out twice, what was freed read
 * by who should not know it. Harm does not say that nobody noticed: who notices ends the program.
 */
#ifndef SNUG_TESTS_MISUSE_KINDS_H
#define SNUG_TESTS_MISUSE_KINDS_H

#include "check.h"

#if defined(__cplusplus)
extern "C" {
#endif

struct kind {
    const char *name;
    const char *text; /* for docs/hardening.md */
    bool (*misuse)(size_t size);
};

struct kinds {
    const char *title;
    const struct kind *first;
    size_t count;
};

#define KINDS(title, table) {title, table, sizeof(table) / sizeof *(table)}

extern const struct kinds kinds_free, kinds_wrong, kinds_bounds, kinds_used, kinds_copied,
    kinds_deleted, kinds_strange;

/* ---- Blocks around the one that is misused ---- */

enum { AROUND = 24, SECRET = 0xa7 };

/* Blocks of the same size, in the order of their addresses, all bytes SECRET. */
struct around {
    unsigned char *blocks[AROUND];
    size_t size;
};

void around_make(struct around *around, size_t size);

/* The one in the middle: what is before and behind it is most likely somebody else's. */
unsigned char *around_victim(struct around *around);

/* Whether a block but for the victim has changed. */
bool around_is_damaged(const struct around *around);

/* Frees all of them, the victim too. */
void around_free(struct around *around);

/* ---- Others ---- */

/* A block, all bytes SECRET. */
unsigned char *secret_block(size_t size);

/* Reads the bytes; whether somebody's are among them: one that is SECRET may be so by chance,
 * several in a row are not. */
bool secret_is_seen(const unsigned char *bytes, size_t count);

/* Allocates and frees as a program does that has been running for a while. */
void traffic(size_t size);

/* Takes some blocks of the size; whether two of them, or one of them and `mine` (unless NULL), are
 * at the same place. */
bool handed_out_twice(size_t size, const void *mine);

/* Runs the function in a thread, to its end. */
void in_thread(void *(*function)(void *), void *argument);

/* free, as a thread's function. */
void *free_in_thread(void *block);

#if defined(__cplusplus)
}
#endif

#endif
