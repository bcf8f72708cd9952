/*
 * The thread that SNUG_PURGE_THREAD=1 asks for: it lets go of what a program that has fallen idle
 * keeps. It is there while something is kept, or more is in use than a heap keeps in any case, and
 * not in the child of a fork until that takes memory as well.
 *
 * It is begun only in calls that take memory, and so before anything is kept: libc frees what was
 * of an ended thread with the lock held that pthread_create needs.
 */
#ifndef SNUG_HEAP_PURGE_THREAD_H
#define SNUG_HEAP_PURGE_THREAD_H

/* Has it started when malloc's heap keeps something that may become old. */
void purge_thread_init(void);

/* In the child of a fork, which has only the thread that forked. */
void purge_thread_forget(void);

#endif
