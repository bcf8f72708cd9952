/*
 * cases.h - what the cases of misuse.c share, and their names.
 */
#ifndef SNUG_TESTS_MISUSE_CASES_H
#define SNUG_TESTS_MISUSE_CASES_H

#include "check.h"

enum { HANDED_OUT_TWICE = 3, MOST = 10000 };

/* The arguments of the program, and room for as many blocks as a case wants. */
extern size_t size_argument;
extern bool heap_is_damaged; /* by the case itself: nothing is asserted of it at the end */
extern bool returns_at_once; /* nothing looks at the heap at the end but the allocator itself */
extern size_t number_argument;
extern void *blocks[MOST];

/* Writes to stdout without allocating. */
__attribute__((format(printf, 1, 2))) void print(const char *format, ...);
void say(const char *what, const void *address);

/* A block of SIZE bytes, of which stdout is told. */
unsigned char *new_block(void);

/* Says where a block is that was taken otherwise, and how large. */
unsigned char *note_block(void *block);

/* Hands in the address, and tells stdout before and after. */
void free_badly(void *address);

/* If the program was told "warm": brings the caches of this thread into use. */
void warm_up(void);

/* Runs the function in a thread of its own, to its end. */
void in_a_thread(void *(*function)(void *), void *argument);

/* Asks for the size 10,000 times: no two blocks may be the same. */
void check_not_handed_out_twice(void);

/* pthread_create's form of free_badly. */
void *free_it_badly(void *block);

/* ---- twice.c ---- */

void nothing_wrong(void);
void twice(void);
void twice_with_others_between(void);
void twice_amid_others(void);
void twice_with_other_sizes_between(void);
void twice_at_the_very_end(void);
void twice_after_trimming(void);
void twice_with_a_write_between(void);
void twice_by_realloc(void);
void first_in_a_thread_that_is_gone(void);
void second_in_a_thread(void);
void first_in_a_thread_that_stays(void);
void twice_then_asked_for(void);
void twice_by_threads_then_asked_for(void);

/* ---- wrong_pointer.c ---- */

void inside(void);
void inside_in_a_thread(void);
void inside_then_much_traffic(void);
void never_handed_out(void);
void never_handed_out_amid_others(void);
void past_the_end(void);
void after_an_overrun(void);
void on_the_stack(void);
void in_static_memory(void);
void in_constant_memory(void);
void in_code(void);
void in_libc(void);
void mapped_by_the_program(void);
void mapped_without_access(void);
void from_the_program_break(void);
void at_an_address(void);
void realloc_of_freed(void);
void realloc_inside(void);
void realloc_at_an_address(void);
void realloc_of_static(void);
void usable_size_inside(void);
void usable_size_at_an_address(void);
void usable_size_of_static(void);
void many(void);
void every_mapping(void);

/* ---- written.c ---- */

void written_when_free(void);
void written_when_free_then_asked_for(void);
void written_past_the_end(void);
void written_before_when_free(void);

/* ---- told.c ---- */

void told_and_returned(void);
void told_and_left(void);
void told_and_taking(void);
void told_and_freeing(void);
void told_of_many(void);
void told_and_using_heaps(void);
void told_and_left_a_heap(void);
void told_and_left_a_heap_of_many(void);

/* ---- sized.c ---- */

void sizes_stated_right(void);
void size_stated_wrong(void);

#endif
