/*
 * The thread that SNUG_PURGE_THREAD=1 asks for: it lets go of what a program that has fallen idle
 * keeps. It is started, in a slow path that holds no lock, when there is something to wait for,
 * ends when there is nothing any more, and is not there in the child of a fork until that has
 * something to wait for as well.
 */
#ifndef SNUG_HEAP_PURGE_THREAD_H
#define SNUG_HEAP_PURGE_THREAD_H

/* Has it started when malloc's heap keeps something that may become old. */
void purge_thread_init(void);

/* In the child of a fork, which has only the thread that forked. */
void purge_thread_forget(void);

#endif
