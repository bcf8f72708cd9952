/*
 * Text of any length to a descriptor through a buffer of the caller's, since the heap must stay as
 * it is while it is described; and numbers as people read them.
 */
#ifndef SNUG_REPORT_WRITER_H
#define SNUG_REPORT_WRITER_H

#include "platform/output.h"

/* The least buffer, which fits on any stack; and what is asked for at a time. */
enum { WRITER_BUFFER = 2048, WRITER_ROOM = 512 };

struct writer {
    int descriptor;
    bool failed;
    struct text text;
};

/* What is written goes out whole if the buffer has WRITER_ROOM bytes more than it needs. */
void writer_begin(struct writer *writer, int descriptor, char *buffer, size_t capacity);

/* Room for WRITER_ROOM more bytes. */
struct text *writer_room(struct writer *writer);

/* Writes what is left. False: something could not be written. */
bool writer_end(struct writer *writer);

/* "1.5 MiB" in 10 columns or more, and a number with commas in `width`. */
void text_add_size(struct text *text, uint64_t bytes);
void text_add_count(struct text *text, uint64_t number, size_t width);

/* What text_print is given for a size, a number with commas, and a part of a whole: "1.5 MiB",
 * "1,234", "12.5 %" or, if the whole is 0, "-". */
struct shown {
    char text[32];
};

struct shown size_short(uint64_t bytes);
struct shown count_long(uint64_t number);
struct shown share(uint64_t part, uint64_t whole);

/* A power of two in its unit: "512 KiB"; `between` stands between both. */
void text_add_power(struct text *text, uint64_t bytes, const char *between);

#endif
