/*
 * Threads: who and where one is, and being told when one ends. Besides, handlers around fork, the
 * environment and random bits.
 */
#ifndef SNUG_PLATFORM_THREAD_H
#define SNUG_PLATFORM_THREAD_H

#include "base/common.h"

/* The kernel's id of the calling thread (a system call). */
long os_thread_id(void);

/* The processor that the calling thread runs on now, from 0. It may have moved on by the time the
 * answer is used: a hint for spreading load. */
unsigned os_cpu(void);

/* How many processors the process might run on at the first call; at least 1. */
unsigned os_cpu_count(void);

/* Has `at_exit` called in every thread that called os_thread_exit_arm, when it ends. Call
 * os_thread_exit_init once, when libc is up; before that, arming returns false. */
void os_thread_exit_init(void (*at_exit)(void *argument));
bool os_thread_exit_arm(void *argument);

/* Starts a thread of the library's own, which gets no signals and which nobody waits for. False: it
 * could not be started. Allocates: no lock may be held. */
bool os_thread_start(void *(*run)(void *argument), void *argument);

/* Sleeps for so many nanoseconds, or less. */
void os_sleep(uint64_t nanoseconds);

/* Has the three called around every fork(), in the forking thread. Of several registrations,
 * `before` of the last is called first, and the other two of the first. */
void os_fork_init(void (*before)(void), void (*in_parent)(void), void (*in_child)(void));

/* Has the forking thread hold the lock of libc that fork() takes later, and that threads hold while
 * they allocate (fork.c). To be called after the os_fork_init whose handlers take the heap's locks:
 * the thread takes libc's lock before those, and releases it after them. */
void os_fork_libc_first(void);

/* The environment as the process was given it, also before libc knows it; NULL if it cannot be had
 * yet. */
char **os_environment(void);

/* Whether the process has rights that whoever chose its environment need not have: it was started
 * set-user-ID, set-group-ID or with capabilities of its file. */
bool os_is_privileged(void);

/* Takes the variables that begin with `prefix` out, in place. Nobody else may use the environment
 * meanwhile. */
void os_environment_remove(char **environment, const char *prefix);

/* Random bits that an attacker cannot know, from what the kernel gave the process at its start:
 * other ones in each call, and none tells anything about the next. */
uint64_t os_random(void);

/* Call in a child of fork: from now on it draws other bits than its parent and its sisters. */
void os_random_fork(void);

#endif
