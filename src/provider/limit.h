/*
 * The limit on what the process takes from the system for all its heaps (SNUG_LIMIT).
 *
 * The idea: a request that would go over the limit is refused here, where memory comes from. So the
 * layers above give back what is cached, try again, and then tell the program, as they do when the
 * system itself has no more. The memory taken for blocks is counted, in use or free; snug's own
 * structures, a few percent of it, are not.
 *
 * Thread-safe, takes no lock.
 */
#ifndef SNUG_PROVIDER_LIMIT_H
#define SNUG_PROVIDER_LIMIT_H

#include "base/common.h"

/* Counts `bytes` more, unless that would be over the limit: then false. */
bool limit_take(size_t bytes);

/* Counts `bytes` less. */
void limit_give(size_t bytes);

/* The bytes that are counted now. */
size_t limit_used(void);

/* The limit in force in bytes; SIZE_MAX: none. */
size_t limit_bytes(void);

/* Call as the process starts: what the system lets it map is noted. */
void limit_begin(void);

/* Whether addresses are to be saved: by this limit, or by one of the system that was there at the
 * start. */
bool limit_is_known(void);

/* The least memory limit, in bytes, of a control group and of those around it; versions 1 and 2.
 * The file `membership` names the group (as /proc/self/cgroup), and `root` is the directory of all
 * groups (as /sys/fs/cgroup). SIZE_MAX: there is no limit. 0: the membership cannot be read. */
size_t limit_of_cgroup(const char *membership, const char *root);

#endif
