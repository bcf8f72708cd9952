/*
 * Text to a file descriptor without stdio, which may allocate or hold a lock: a line is put
 * together in a buffer on the stack and written by one call. A line too long for the buffer is cut
 * short, never overrun. Safe in signal handlers.
 */
#ifndef SNUG_PLATFORM_OUTPUT_H
#define SNUG_PLATFORM_OUTPUT_H

#include "base/common.h"

struct text {
    char *buffer;
    size_t capacity;
    size_t length;
};

void text_init(struct text *text, char *buffer, size_t capacity);
void text_add(struct text *text, const char *string);
void text_add_bytes(struct text *text, const char *bytes, size_t count);
void text_add_decimal(struct text *text, uint64_t number);
/* Right-aligned in `width` columns. */
void text_add_column(struct text *text, uint64_t number, unsigned width);
void text_add_hex(struct text *text, uintptr_t number);
void text_pad(struct text *text, size_t column);

/* Moves what was added since the text had the length `from` to the right end of `width` columns. */
void text_align_right(struct text *text, size_t from, size_t width);

/* Adds text as printf does, of whose conversions it knows %s, %.*s, %zu, %#zx and %%, and a width,
 * as in %8zu. */
__attribute__((format(printf, 2, 3))) void text_print(struct text *text, const char *format, ...);

/* Writes a line, which is at most 1,024 bytes long, as text_print adds it. */
__attribute__((format(printf, 2, 3))) void os_print(int descriptor, const char *format, ...);

/* Notes what descriptor 2 leads to before the program's own code runs; see os_write. */
void os_errors_note(void);

/* Writes all of it, in spite of interruptions. Returns false if the descriptor refuses, or if it is
 * 2 and a file of the program's own: 2 was closed at the start, or is now a file with a name
 * that can be read and written at any place. */
bool os_write(int descriptor, const char *bytes, size_t count);
bool text_write(const struct text *text, int descriptor);

/* Moves a file to a descriptor behind those of the standard streams: one of these may be closed,
 * and what is printed to it must not go into the file. Returns the new descriptor, or -errno, which
 * `file` may be already. */
int os_behind_streams(int file);

/* Opens `path` for writing at its end, and makes the file if there is none. Does not wait: a FIFO
 * that nobody reads is refused. Returns the descriptor, or -errno. */
int os_open_output(const char *path);

/* Keeps other processes that do the same from writing to this file until it is closed, so that what
 * they print does not mix. Waits for them, but gives up after `milliseconds`, since one of them may
 * have been stopped. */
void os_lock_output(int descriptor, unsigned milliseconds);

/* Empties the file, if it is one that can be. */
void os_cut_output(int descriptor);
void os_close(int descriptor);

/* Whether a descriptor is of a regular file, with nothing in it. */
bool os_output_is_empty(int descriptor);

/* Empties a regular file. True: it is empty, or there is none. */
bool os_empty_file(const char *path);

/* Which file a descriptor leads to, the same for all that lead there. False: to none. */
struct os_identity {
    uint64_t device, file;
};

bool os_identify(int descriptor, struct os_identity *identity);

/* A second descriptor for the same file, out of the way of the program's own, which an exec closes;
 * or -errno. */
int os_duplicate(int descriptor);

/* Lets a millisecond pass; safe in a signal handler. */
void os_rest(void);

/* Ends the process by abort(). Of the program's own code only a handler of SIGABRT runs. */
_Noreturn void os_abort(void);

/* Raises SIGTRAP in the calling thread. Returns if the signal is ignored or handled, or if a
 * debugger goes on. */
void os_trap(void);

/* The process id, as a system call. */
int os_process_id(void);

#endif
