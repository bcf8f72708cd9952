/*
 * program.c - reads the file of operations; see program.h.
 */
#include "program.h"

#include "memory.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static void read_at(int file, void *to, size_t size, uint64_t offset)
{
    for (char *at = to; size > 0;) {
        ssize_t got = pread(file, at, size, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            errno = got == 0 ? EINVAL : errno;
            die("cannot read the program");
        }
        at += got;
        offset += (uint64_t)got;
        size -= (size_t)got;
    }
}

struct program program_open(const char *path)
{
    struct program program = {.file = open(path, O_RDONLY | O_CLOEXEC)};
    if (program.file < 0)
        die(path);
    read_at(program.file, &program.header, sizeof program.header, 0);
    const struct program_header *header = &program.header;
    if (header->magic != PROGRAM_MAGIC || header->threads == 0) {
        errno = EINVAL;
        die(path);
    }
    size_t chunks = header->chunks * sizeof *program.chunks;
    size_t threads = header->threads * sizeof *program.threads;
    program.chunks = memory_of_our_own(chunks);
    program.threads = memory_of_our_own(threads);
    read_at(program.file, program.chunks, chunks, header->chunk_table);
    read_at(program.file, program.threads, threads, header->thread_table);
    return program;
}

uint64_t program_read(const struct program *program, uint64_t chunk, struct operation *operations)
{
    const struct program_chunk *found = &program->chunks[chunk];
    if (found->operations > PROGRAM_CHUNK) {
        errno = EINVAL;
        die("the program has a chunk that is too long");
    }
    read_at(program->file, operations, found->operations * sizeof *operations, found->offset);
    return found->operations;
}
