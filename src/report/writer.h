/*
 * Writing text of any length to a descriptor through a buffer of the caller's, since a report must
 * not allocate from the heap that it describes; and numbers as people read them.
 */
#ifndef SNUG_REPORT_WRITER_H
#define SNUG_REPORT_WRITER_H

#include "platform/output.h"

/* Bytes: the smallest buffer, which fits on any stack; and the room that writer_room makes. */
enum { WRITER_BUFFER = 2048, WRITER_ROOM = 512 };

struct writer {
    int descriptor;
    bool failed;
    struct text text;
};

/* Begins writing. All goes out in one call if the buffer has WRITER_ROOM bytes more than the text
 * needs. */
void writer_begin(struct writer *writer, int descriptor, char *buffer, size_t capacity);

/* The text, with room for WRITER_ROOM more bytes. */
struct text *writer_room(struct writer *writer);

/* Writes what is left. False: something could not be written. */
bool writer_end(struct writer *writer);

/* Adds a size, "1.5 MiB", in 10 columns or more, or a number with commas in `width` columns or
 * more. */
void text_add_size(struct text *text, uint64_t bytes);
void text_add_count(struct text *text, uint64_t number, size_t width);

/* Short texts, for text_print: a size, a number with commas, and a part of a whole: "1.5 MiB",
 * "1,234", "12.5 %" or, if the whole is 0, "-". */
struct shown {
    char text[32];
};

struct shown size_short(uint64_t bytes);
struct shown count_long(uint64_t number);
struct shown share(uint64_t part, uint64_t whole);

/* Adds a power of two in the largest unit that fits, "512 KiB"; `between` stands between number and
 * unit. */
void text_add_power(struct text *text, uint64_t bytes, const char *between);

#endif
