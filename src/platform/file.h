/*
 * Files that hold memory of a process. They have no name any more when os_file_new returns, so they
 * vanish with their last mapping, whatever ends the process. And reading and writing files without
 * libc.
 */
#ifndef SNUG_PLATFORM_FILE_H
#define SNUG_PLATFORM_FILE_H

#include "base/common.h"

/* No path is longer, its final 0 included: Linux's PATH_MAX. */
enum { OS_PATH_MOST = 4096 };

/* A new file of `bytes` (a multiple of os_page_size()), whose blocks on disk are all reserved, so
 * that writing to it cannot fail later. It is made in `directory`, or, if `path` is not NULL, by
 * that name, which it has only while it is opened. If there is something of that name, of whatever
 * kind, that is left alone, and the file has the process id and a number added to its name. Returns
 * a descriptor that an exec closes, or -errno. */
int os_file_new(const char *directory, const char *path, size_t bytes);

/* Maps `bytes` of a file for reading and writing, so that writes go to the file; at `at`, over what
 * is there, unless that is NULL. Returns NULL if it cannot be. */
void *os_file_map(int descriptor, void *at, size_t bytes);

/* Writes to a place in a file. False: it could not be written. */
bool os_file_write(int descriptor, const char *bytes, size_t count, size_t place);

/* Whether the page at an address, which is in memory, is shared with other processes or a file's;
 * no also where the system does not tell. Some system calls, of which one opens a file. */
bool os_is_shared(uintptr_t address);

/* The first `capacity` - 1 bytes of a file, as a string. Returns its length, or -errno. */
long os_file_read(const char *path, char *buffer, size_t capacity);

/* The errno for a lack of memory, ENOMEM. */
extern INTERNAL const int os_error_memory;

/* What an errno means, in a few words, for messages. */
const char *os_error_text(int error);

#endif
