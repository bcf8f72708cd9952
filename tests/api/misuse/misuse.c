/*
 * misuse.c - one program per misuse: does one wrong thing to the heap, then ends normally.
 *
 *   misuse warm|cold CASE [SIZE [NUMBER]]
 *
 * "warm": each thread has allocated and freed blocks of SIZE before, so that its caches are in use;
 * "cold": the misuse is among the first calls of the thread. It says on stdout which block it
 * misuses ("block ADDRESS USABLE"), then which address it hands in ("bad ADDRESS"), then "after"
 * when the call came back, and "end" before it returns from main. misuse.py runs it and compares
 * how it ends. If the same memory is handed out twice, it ends with 3; if the heap is not
 * consistent at the end, with 1.
 */
#include "cases.h"

#include <malloc.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool warm;
size_t size_argument = 64;
bool heap_is_damaged;
bool returns_at_once;
size_t number_argument;
void *blocks[MOST];

/* By hand, since dprintf may allocate, and might be given the very block in question. */
void print(const char *format, ...)
{
    char text[200];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    CHECK(length > 0 && write(STDOUT_FILENO, text, (size_t)length) == length);
}

void say(const char *what, const void *address)
{
    print("%s %p\n", what, address);
}

/* Up and down a few times, further each time, as a program does that has been running for long. */
void warm_up(void)
{
    enum { WIDEST = 300 };
    void *some[WIDEST];
    size_t widest = size_argument <= 5000 ? WIDEST : 4;
    for (size_t width = 1; warm && width <= widest; width = width * 3 / 2 + 1) {
        for (size_t i = 0; i < width; i++)
            some[i] = opaque(malloc(size_argument));
        for (size_t i = 0; i < width; i++)
            free(some[i]);
    }
}

unsigned char *note_block(void *block)
{
    CHECK(block != NULL);
    print("block %p %zu\n", block, malloc_usable_size(block));
    return opaque(block);
}

unsigned char *new_block(void)
{
    return note_block(malloc(size_argument));
}

void free_badly(void *address)
{
    say("bad", address);
    free(opaque(address));
    print("after\n");
}

void in_a_thread(void *(*function)(void *), void *argument)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, function, argument) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
}

static const struct {
    const char *name;
    void (*function)(void);
    bool size_is_an_address;
} cases[] = {
    {"nothing-wrong", nothing_wrong, false},
    {"twice", twice, false},
    {"twice-with-others-between", twice_with_others_between, false},
    {"twice-amid-others", twice_amid_others, false},
    {"twice-with-other-sizes-between", twice_with_other_sizes_between, false},
    {"twice-at-the-very-end", twice_at_the_very_end, false},
    {"twice-after-trimming", twice_after_trimming, false},
    {"twice-with-a-write-between", twice_with_a_write_between, false},
    {"twice-by-realloc", twice_by_realloc, false},
    {"first-in-a-thread-that-is-gone", first_in_a_thread_that_is_gone, false},
    {"second-in-a-thread", second_in_a_thread, false},
    {"first-in-a-thread-that-stays", first_in_a_thread_that_stays, false},
    {"twice-then-asked-for", twice_then_asked_for, false},
    {"twice-by-threads-then-asked-for", twice_by_threads_then_asked_for, false},
    {"inside", inside, false},
    {"inside-in-a-thread", inside_in_a_thread, false},
    {"inside-then-much-traffic", inside_then_much_traffic, false},
    {"never-handed-out", never_handed_out, false},
    {"never-handed-out-amid-others", never_handed_out_amid_others, false},
    {"past-the-end", past_the_end, false},
    {"after-an-overrun", after_an_overrun, false},
    {"on-the-stack", on_the_stack, false},
    {"in-static-memory", in_static_memory, false},
    {"in-constant-memory", in_constant_memory, false},
    {"in-code", in_code, false},
    {"in-libc", in_libc, false},
    {"mapped-by-the-program", mapped_by_the_program, false},
    {"mapped-without-access", mapped_without_access, false},
    {"from-the-program-break", from_the_program_break, false},
    {"at-an-address", at_an_address, true},
    {"realloc-of-freed", realloc_of_freed, false},
    {"realloc-inside", realloc_inside, false},
    {"realloc-at-an-address", realloc_at_an_address, true},
    {"realloc-of-static", realloc_of_static, false},
    {"usable-size-inside", usable_size_inside, false},
    {"usable-size-at-an-address", usable_size_at_an_address, true},
    {"usable-size-of-static", usable_size_of_static, false},
    {"many", many, false},
    {"every-mapping", every_mapping, false},
    {"written-when-free", written_when_free, false},
    {"written-when-free-then-asked-for", written_when_free_then_asked_for, false},
    {"written-past-the-end", written_past_the_end, false},
    {"written-before-when-free", written_before_when_free, false},
    {"told-and-returned", told_and_returned, false},
    {"told-and-left", told_and_left, false},
    {"told-and-taking", told_and_taking, false},
    {"told-and-freeing", told_and_freeing, false},
    {"told-of-many", told_of_many, false},
    {"told-and-using-heaps", told_and_using_heaps, false},
    {"told-and-left-a-heap-of-many", told_and_left_a_heap_of_many, false},
    {"told-and-left-a-heap", told_and_left_a_heap, false},
    {"sizes-stated-right", sizes_stated_right, false},
    {"size-stated-wrong", size_stated_wrong, false},
};

int main(int argc, char **argv)
{
    test_begin(30);
    CHECK(argc >= 3);
    warm = strcmp(argv[1], "warm") == 0;
    if (argc > 3)
        size_argument = strtoul(argv[3], NULL, 0);
    if (argc > 4)
        number_argument = strtoul(argv[4], NULL, 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (strcmp(argv[2], cases[i].name) != 0)
            continue;
        if (!cases[i].size_is_an_address)
            warm_up();
        cases[i].function();
        if (!heap_is_damaged && !returns_at_once)
            check_heap();
        print("end\n");
        return 0;
    }
    check_failed(__FILE__, __LINE__, "no such case: %s", argv[2]);
}
