/*
 * The provider of memory in files: a heap may be larger than memory and swap, or lie on a disk that
 * is chosen for it.
 *
 * The idea: each extent is a file of its own, mapped shared and closed at once, that has no name
 * any more. So nothing stays open that a program could close, nothing stays behind when the process
 * ends, however it ends, and growing is just another file. All blocks are reserved on disk before
 * memory is handed out: a full disk is a NULL, never a SIGBUS.
 *
 * Fork: parent and child must not write to the same pages. Before a fork the pages handed out are
 * copied to files for the child (to memory, if the disk is full), which maps them over its own
 * before anything else runs in it.
 */
#ifndef SNUG_PROVIDER_FILE_H
#define SNUG_PROVIDER_FILE_H

#include "provider/pool.h"

struct file_settings {
    const char *directory; /* where the files are made */
    const char *path;      /* or: what they are called; further ones get a number */
    size_t bytes;          /* of the first */
    bool grows;            /* further files when it is full */
    size_t factor;         /* by how much the whole grows at least, in thousandths; above 1000 */
    bool silent;           /* failures are not reported on stderr */
};

struct file_provider {
    struct pool pool;
    struct file_settings settings; /* with strings that stay */
    bool reported;                 /* a failure was reported; only once */
    bool begun;                    /* the first file was made, or could not be had */
    struct list link;              /* in the list of those that a fork copies */
};

/* Makes the first file. Returns 0, or an errno if it cannot be had; the reason is then one line on
 * stderr, unless `silent`. The provider serves what `fallback` does, NULL: nothing, until it has a
 * file; if it grows, later requests try again to make one. */
int provider_file_init(struct file_provider *file, const struct file_settings *settings,
                       const struct provider *fallback);

/* Unmaps all of it; the files vanish. */
void provider_file_end(struct file_provider *file);

/* Whether an address is in one of the files. Takes their locks. */
bool provider_files_have(uintptr_t address);

/* Around fork. The locks of the list and of all providers (provider_lock.h) are taken before and
 * released after. */
void provider_files_fork_before(void);
void provider_files_fork_in_parent(void);
void provider_files_fork_in_child(void);

#endif
