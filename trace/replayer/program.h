/*
 * program.h - what is replayed: a list of operations for each thread, in a file that
 * tool/src/trace/program.rs writes from a trace.
 *
 *     header
 *     chunks of at most PROGRAM_CHUNK operations, each of one thread
 *     table of the chunks: u64 offset in bytes, u64 operations; thread after thread
 *     table of the threads: u64 index of the first chunk, u64 number of chunks
 *
 * Threads read their chunks with pread into a buffer of their own: a mapped file would count as
 * resident memory, which is what is to be measured.
 *
 * An operation works on a slot, which holds one live block at a time. Where the operation before on
 * the same slot is another thread's, PROGRAM_WAITS is set and the operation waits until `turn`
 * operations were done on the slot: so a free waits for its malloc. Each waits only for what came
 * before it in the order of the trace, therefore none waits for ever.
 */
#ifndef SNUG_TRACE_PROGRAM_H
#define SNUG_TRACE_PROGRAM_H

#include <stdint.h>

#define PROGRAM_MAGIC UINT64_C(0x3159414c50455253)

enum { PROGRAM_CHUNK = 1024 };

enum operation_kind {
    OPERATION_MALLOC = 0,
    OPERATION_CALLOC = 1,
    OPERATION_ALIGNED = 2,
    OPERATION_FREE = 3,
    OPERATION_REALLOC = 4,
    OPERATION_SPAWN = 5, /* starts thread number `slot`; the first thread does all of these */
    OPERATION_JOIN = 6,  /* waits for its end */
    OPERATION_AT = 7,    /* waits until `size` ns after the first operation */
};

struct operation {
    uint32_t slot;
    uint32_t turn;
    uint64_t size : 48; /* bytes; that of the block for OPERATION_FREE */
    uint64_t kind : 8;
    uint64_t alignment : 7; /* log2 */
    uint64_t waits : 1;
};

struct program_header {
    uint64_t magic;
    uint64_t operations; /* of all threads, without SPAWN and JOIN */
    uint64_t slots;
    uint64_t threads;
    uint64_t chunks;
    uint64_t chunk_table; /* offset in bytes */
    uint64_t thread_table;
};

struct program_chunk {
    uint64_t offset;
    uint64_t operations;
};

struct program_thread {
    uint64_t first_chunk;
    uint64_t chunks;
};

struct program {
    int file;
    struct program_header header;
    struct program_chunk *chunks;
    struct program_thread *threads;
};

/* Ends the process with a message if the file cannot be used. */
struct program program_open(const char *path);

/* Reads a chunk into `operations`, which has room for PROGRAM_CHUNK; returns how many there are. */
uint64_t program_read(const struct program *program, uint64_t chunk, struct operation *operations);

#endif
