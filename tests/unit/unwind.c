/*
 * Tests of profile/unwind.h: stacks without frame pointers, however deep, from signal handlers, on
 * stacks of the program's own, and while another thread holds the loader's lock.
 */
#include "support.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "profile/unwind.h"

#if defined(__x86_64__) && defined(__GLIBC__) && defined(DLFO_STRUCT_HAS_EH_DBASE)

/* The functions below must be called, and not become jumps or parts of each other. */
#define APART \
    __attribute__((noinline, noclone, aligned(512), section("apart"), \
                   optimize("no-optimize-sibling-calls")))
#if defined(__clang__)
#undef APART
#define APART __attribute__((noinline, aligned(512), section("apart"), disable_tail_calls))
#endif
#define STAY() __asm__ volatile("" ::: "memory")

static struct unwind_stack stack;

static bool is_in(uintptr_t code, uintptr_t function)
{
    return code - function < 512; /* none of them is longer, and nothing else stands between them */
}

/* How many frames are in a function, innermost ones first; they must follow each other. */
static unsigned count_in(uintptr_t function, unsigned *at)
{
    unsigned count = 0;
    while (*at < stack.count && !is_in(stack.frames[*at].code, function))
        ++*at;
    for (; *at < stack.count && is_in(stack.frames[*at].code, function); ++*at)
        count++;
    return count;
}

static APART void look(void)
{
    unwind_here(&stack);
    STAY();
}

static APART void dive(unsigned depth)
{
    char room[32];
    __asm__ volatile("" : : "r"(room) : "memory"); /* it has a frame of its own */
    if (depth == 0)
        look();
    else
        dive(depth - 1);
    STAY();
}

static APART void assert_dive(unsigned depth)
{
    dive(depth - 1);
    unsigned at = 0;
    assert_int_equal(count_in((uintptr_t)look, &at), 1);
    assert_int_equal(count_in((uintptr_t)dive, &at), depth);
    assert_int_equal(count_in((uintptr_t)assert_dive, &at), 1);
    assert_false(stack.is_cut);
}

TEST(callers_are_found)
{
    assert_dive(1);
    assert_dive(7);
    assert_dive(200);
    struct os_object *object = &stack.objects[stack.frames[2].object - 1];
    assert_true(stack.frames[2].object != 0 && object->name[0] == 0);
    assert_true(stack.frames[2].code - object->start < object->end - object->start);
}

/* The second by rows that the first left (profile/rows.h). */
TEST(again_is_the_same)
{
    static struct unwind_frame frames[UNWIND_MOST];
    unsigned count = 0;
    memset(&stack.kept, 0, sizeof(stack.kept));
    for (unsigned i = 0; i < 2; i++) {
        assert_dive(100);
        if (i == 0) {
            count = stack.count;
            memcpy(frames, stack.frames, count * sizeof(*frames));
        }
    }
    assert_int_equal(stack.count, count);
    unsigned others = 0; /* this function's, if the compiler made two calls of the one above */
    for (unsigned i = 0; i < count; i++)
        others += stack.frames[i].code != frames[i].code;
    assert_true(others <= 1);
}

TEST(deeper_stacks_are_cut)
{
    dive(5000);
    assert_true(stack.is_cut);
    assert_int_equal(stack.count, UNWIND_MOST);
}

/* A row that leads through memory that is allocated as the function runs. */
static APART void dive_by_pointer(size_t bytes)
{
    char *room = __builtin_alloca(bytes);
    memset(room, 1, bytes);
    look();
    STAY();
}

TEST(frames_of_unknown_size)
{
    for (size_t bytes = 16; bytes < 100000; bytes *= 3) {
        dive_by_pointer(bytes);
        unsigned at = 0;
        assert_int_equal(count_in((uintptr_t)look, &at), 1);
        assert_int_equal(count_in((uintptr_t)dive_by_pointer, &at), 1);
        assert_true(stack.count > at); /* and on to who called it */
    }
}

/* ---- Signals ---- */

static APART void on_signal(int signal)
{
    (void)signal;
    look();
    STAY();
}

static APART void raise_it(void)
{
    raise(SIGUSR1);
    STAY();
}

static void assert_through_handler(int flags)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = flags}, old;
    sigaction(SIGUSR1, &action, &old);
    raise_it();
    sigaction(SIGUSR1, &old, NULL);
    unsigned at = 0;
    assert_int_equal(count_in((uintptr_t)on_signal, &at), 1);
    assert_int_equal(count_in((uintptr_t)raise_it, &at), 1);
}

TEST(from_a_signal_handler)
{
    assert_through_handler(0);
}

TEST(from_a_handler_on_a_stack_of_its_own)
{
    static char room[65536];
    stack_t ours = {.ss_sp = room, .ss_size = sizeof(room)}, old;
    sigaltstack(&ours, &old);
    assert_through_handler(SA_ONSTACK);
    sigaltstack(&old, NULL);
}

/* ---- Other stacks ---- */

static ucontext_t outside, coroutine;

static APART void run_coroutine(void)
{
    dive(40);
    STAY();
}

TEST(in_a_coroutine)
{
    static char room[65536];
    getcontext(&coroutine);
    coroutine.uc_stack = (stack_t){.ss_sp = room, .ss_size = sizeof(room)};
    coroutine.uc_link = &outside;
    makecontext(&coroutine, run_coroutine, 0);
    swapcontext(&outside, &coroutine);
    unsigned at = 0;
    assert_int_equal(count_in((uintptr_t)dive, &at), 41);
    assert_int_equal(count_in((uintptr_t)run_coroutine, &at), 1);
    assert_false(stack.is_cut); /* and it ends there */
}

static APART void *run_thread(void *argument)
{
    dive((unsigned)(uintptr_t)argument);
    return NULL;
}

TEST(in_a_thread_with_a_small_stack)
{
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 32768);
    assert_int_equal(pthread_create(&thread, &attributes, run_thread, (void *)4), 0);
    pthread_join(thread, NULL);
    unsigned at = 0;
    assert_int_equal(count_in((uintptr_t)dive, &at), 5);
    assert_int_equal(count_in((uintptr_t)run_thread, &at), 1);
}

/* ---- Code that is made at run time ---- */

enum { HALF = 131072 };

/* Two stacks: the lower is for a coroutine; behind the upper one there is nothing. */
static char *stacks_make(void)
{
    char *room = mmap(NULL, 3 * HALF, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(room != MAP_FAILED && mprotect(room, 2 * HALF, PROT_READ | PROT_WRITE) == 0);
    return room;
}

static void run_on(char *room, size_t bytes, void (*run)(void))
{
    getcontext(&coroutine);
    coroutine.uc_stack = (stack_t){.ss_sp = room, .ss_size = bytes};
    coroutine.uc_link = &outside;
    makecontext(&coroutine, run, 0);
    swapcontext(&outside, &coroutine);
}

static char *code; /* a function without tables, in a page of its own */

static APART void run_code(void)
{
    void (*function)(void);
    memcpy(&function, &code, sizeof(function));
    function();
    STAY();
}

/* push %rbp; `load`, ten bytes, to %rbp; call look; pop %rbp; ret */
static void code_make(const char load[10])
{
    static const char rest[] = {(char)0xff, (char)0xd0, 0x5d, (char)0xc3}; /* call *%rax; ... */
    void (*function)(void) = look;
    if (code == NULL)
        code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                    0);
    assert_true((void *)code != MAP_FAILED);
    code[0] = 0x55;
    memcpy(code + 1, load, 10);
    memcpy(code + 11, "\x48\xb8", 2); /* movabs to %rax */
    memcpy(code + 13, &function, 8);
    memcpy(code + 21, rest, sizeof(rest));
}

TEST(through_code_that_keeps_frame_pointers)
{
    code_make("\x48\x89\xe5\x90\x90\x90\x90\x90\x90\x90"); /* mov %rsp, %rbp */
    run_code();
    unsigned at = 0;
    assert_int_equal(count_in((uintptr_t)look, &at), 1);
    assert_true(is_in(stack.frames[at].code, (uintptr_t)code) && stack.frames[at].object == 0);
    assert_int_equal(count_in((uintptr_t)run_code, &at), 1);
}

TEST(code_that_keeps_something_else_there)
{
    char *room = stacks_make(), load[10] = "\x48\xbd"; /* movabs to %rbp */
    uintptr_t nowhere = (uintptr_t)room + 2 * HALF + 64;
    memcpy(load + 2, &nowhere, 8);
    code_make(load);
    run_on(room + HALF, HALF, run_code);
    assert_true(is_in(stack.frames[stack.count - 1].code, (uintptr_t)code)); /* and no further */
    munmap(room, 3 * HALF);
}

TEST(an_address_of_the_stack_is_no_codes)
{
    char load[10] = "\x48\xbd"; /* movabs to %rbp */
    volatile uintptr_t frame[2] = {0, (uintptr_t)load};
    uintptr_t place = (uintptr_t)frame;
    memcpy(load + 2, &place, 8);
    code_make(load);
    run_code();
    assert_true(is_in(stack.frames[stack.count - 1].code, (uintptr_t)code)); /* and no further */
}

static void *run_code_in_thread(void *argument)
{
    run_code();
    return argument;
}

/* What looks like a frame there is none: another thread may be unmapping it. */
TEST(what_is_above_the_threads_stack_is_not_looked_at)
{
    enum { LOWER = 2 * MIB, ALL = LOWER + 65536 }; /* a sanitizer takes a MiB of the stack */
    char *room = mmap(NULL, ALL, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(room != MAP_FAILED);
    char load[10] = "\x48\xbd"; /* movabs to %rbp */
    uintptr_t frame[2] = {0, (uintptr_t)raise_it}, elsewhere = (uintptr_t)room + LOWER + 64;
    memcpy((void *)elsewhere, frame, sizeof(frame));
    memcpy(load + 2, &elsewhere, 8);
    code_make(load);
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, room, LOWER);
    assert_int_equal(pthread_create(&thread, &attributes, run_code_in_thread, NULL), 0);
    pthread_join(thread, NULL);
    assert_true(is_in(stack.frames[stack.count - 1].code, (uintptr_t)code)); /* and no further */
    munmap(room, ALL);
}

static void raise_with_stack_above(void)
{
    assert_through_handler(SA_ONSTACK);
}

TEST(from_a_handler_whose_stack_is_above)
{
    char *room = stacks_make();
    stack_t above = {.ss_sp = room + HALF, .ss_size = HALF}, old;
    sigaltstack(&above, &old);
    run_on(room, HALF, raise_with_stack_above);
    sigaltstack(&old, NULL);
    munmap(room, 3 * HALF);
}

/* ---- The loader's lock ---- */

static sem_t is_held, is_done;

static int hold(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)info;
    (void)size;
    (void)context;
    sem_post(&is_held);
    sem_wait(&is_done);
    return 1;
}

static void *hold_lock(void *argument)
{
    dl_iterate_phdr(hold, NULL); /* with the lock that dlopen takes, too */
    return argument;
}

TEST(while_the_loader_is_locked)
{
    pthread_t thread;
    sem_init(&is_held, 0, 0);
    sem_init(&is_done, 0, 0);
    assert_int_equal(pthread_create(&thread, NULL, hold_lock, NULL), 0);
    sem_wait(&is_held);
    assert_dive(30);
    sem_post(&is_done);
    pthread_join(thread, NULL);
}

/* ---- What is there ---- */

TEST(memory_that_is_not_there_is_not_read)
{
    static const char here[16] __attribute__((aligned(16)));
    assert_true(os_is_readable((uintptr_t)here));
    assert_false(os_is_readable(16));
    assert_false(os_is_readable((uintptr_t)1 << 46));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ROW(callers_are_found),
        ROW(again_is_the_same),
        ROW(deeper_stacks_are_cut),
        ROW(frames_of_unknown_size),
        ROW(from_a_signal_handler),
        ROW(from_a_handler_on_a_stack_of_its_own),
        ROW(in_a_coroutine),
        ROW(in_a_thread_with_a_small_stack),
        ROW(through_code_that_keeps_frame_pointers),
        ROW(code_that_keeps_something_else_there),
        ROW(an_address_of_the_stack_is_no_codes),
        ROW(what_is_above_the_threads_stack_is_not_looked_at),
        ROW(from_a_handler_whose_stack_is_above),
        ROW(while_the_loader_is_locked),
        ROW(memory_that_is_not_there_is_not_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    puts("SKIP: stacks are unwound on x86-64 with glibc 2.35 or newer");
    return TEST_SKIPPED;
}

#endif
