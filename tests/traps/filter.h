/*
 * filter.h - seccomp filters, put together call by call.
 */
#ifndef SNUG_TESTS_TRAPS_FILTER_H
#define SNUG_TESTS_TRAPS_FILTER_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>

enum { FILTER_MOST = 160 };

/* A filter begins with the number of the call loaded, and ends in an answer. */
struct filter {
    struct sock_filter code[FILTER_MOST];
    unsigned short length; /* 0: it is empty */
};

/* What ends a list of calls, as 0 is one. */
enum { CALLS_END = -1 };

void filter_add(struct filter *filter, struct sock_filter statement);

/* Loads a word of struct seccomp_data. */
void filter_load(struct filter *filter, size_t offset);

void filter_answer(struct filter *filter, unsigned answer);

/* The answer for each call of a list, whose number is loaded, or loaded now at the beginning. */
void filter_calls(struct filter *filter, const int *calls, unsigned answer);

/* Filters the calls of this thread from now on, or with SECCOMP_FILTER_FLAG_TSYNC of all. Where
 * that cannot be the test is skipped. */
void filter_install(const struct filter *filter, unsigned flags);

#endif
