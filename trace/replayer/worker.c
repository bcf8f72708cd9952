/*
 * worker.c - carries out the operations of one thread; see worker.h.
 *
 * Blocks are checked as they are used: the first and the last byte of each carry a mark that is
 * looked at before it is resized or freed, so that an allocator that hands out memory twice, loses
 * bytes in realloc or returns dirty memory from calloc is found out, not timed.
 */
#include "worker.h"

#include "memory.h"
#include "meter.h"

#include <errno.h>
#include <malloc.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SIZE_SHIFT = 24, TURN_MASK = (1 << SIZE_SHIFT) - 1, PAGE = 4096 };
enum { SPINS = 100, YIELDS = 100, NAP_NS = 20000 };

static _Noreturn void found_fault(const char *what, const void *block, uint64_t size)
{
    char text[160];
    int length =
        snprintf(text, sizeof text, "snugreplay: the allocator is wrong: %s %p, %llu bytes\n", what,
                 block, (unsigned long long)size);
    if (write(STDERR_FILENO, text, (size_t)length) < 0)
        _exit(2);
    _exit(1);
}

static unsigned char mark_of(uint32_t slot)
{
    return (unsigned char)(slot * 37 + 1);
}

/* Writes a block from `from` to its end. */
static void touch(const struct replay *replay, unsigned char *block, uint64_t from, uint64_t size,
                  unsigned char mark)
{
    if (replay->touch == TOUCH_NONE || size == 0 || block == NULL)
        return;
    if (replay->touch == TOUCH_ALL) {
        if (from < size)
            memset(block + from, mark, size - from);
    } else {
        for (uint64_t at = from; at < size; at += PAGE)
            block[at] = mark;
    }
    block[0] = block[size - 1] = mark;
}

static void check_mark(const struct replay *replay, const unsigned char *block, uint64_t size,
                       unsigned char mark)
{
    if (replay->touch == TOUCH_NONE || size == 0 || block == NULL)
        return;
    if (block[0] != mark || block[size - 1] != mark)
        found_fault("another wrote into the block at", block, size);
}

static void wait_for_turn(const struct slot *slot, uint32_t turn)
{
    for (unsigned i = 0;; i++) {
        /* acquire: the block and its contents, as the thread whose turn it was left them */
        uint64_t state = atomic_load_explicit(&slot->state, memory_order_acquire);
        if ((state & TURN_MASK) == (turn & TURN_MASK))
            return;
        if (i < SPINS) {
#if defined __x86_64__
            __builtin_ia32_pause();
#endif
        } else if (i < SPINS + YIELDS) {
            sched_yield();
        } else {
            nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
        }
    }
}

/* A hash of a size that can be added up. (The finaliser of splitmix64.) */
static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static unsigned char *allocate(const struct replay *replay, const struct operation *operation)
{
    uint64_t size = operation->size;
    unsigned char *block;
    if (operation->kind == OPERATION_MALLOC)
        return malloc(size);
    if (operation->kind == OPERATION_ALIGNED) {
        uint64_t alignment = UINT64_C(1) << operation->alignment;
        block = memalign(alignment, size);
        if (((uintptr_t)block & (alignment - 1)) != 0)
            found_fault("not aligned:", block, size);
        return block;
    }
    block = calloc(1, size);
    if (block != NULL && replay->touch != TOUCH_NONE && size > 0 &&
        (block[0] | block[size / 2] | block[size - 1]) != 0)
        found_fault("calloc did not clear the block at", block, size);
    return block;
}

/* The kinds that have a block afterwards. Returns it. */
static unsigned char *obtain(struct worker *worker, const struct operation *operation,
                             struct slot *slot, uint64_t old_size)
{
    const struct replay *replay = worker->replay;
    unsigned char mark = mark_of(operation->slot);
    uint64_t size = operation->size, kept = 0;
    unsigned char *block;
    if (operation->kind == OPERATION_REALLOC) {
        check_mark(replay, slot->block, old_size, mark);
        kept = old_size < size ? old_size : size;
        block = realloc(slot->block, size > 0 ? size : 1);
        if (block != NULL && kept > 0 && replay->touch != TOUCH_NONE && block[0] != mark)
            found_fault("realloc did not keep the bytes of", block, size);
        if (block != NULL && kept == old_size)
            check_mark(replay, block, kept, mark);
    } else {
        block = allocate(replay, operation);
        worker->live_blocks++;
    }
    if (block == NULL)
        die("an allocation failed");
    touch(replay, block, kept, size, mark);
    worker->sizes += mix(size);
    return block;
}

static void carry_out(struct worker *worker, const struct operation *operation)
{
    struct slot *slot = &worker->replay->slots[operation->slot];
    if (operation->waits)
        wait_for_turn(slot, operation->turn);
    /* relaxed: it was this thread that wrote it, or the wait has acquired it */
    uint64_t old_state = atomic_load_explicit(&slot->state, memory_order_relaxed);
    uint64_t old_size = old_state >> SIZE_SHIFT, size = 0;
    if (operation->kind == OPERATION_FREE) {
        check_mark(worker->replay, slot->block, old_size, mark_of(operation->slot));
        free(slot->block);
        slot->block = NULL;
        worker->live_blocks--;
    } else {
        slot->block = obtain(worker, operation, slot, old_size);
        size = operation->size;
    }
    worker->live_bytes += (int64_t)size - (int64_t)old_size;
    if (worker->replay->many)
        meter_add((unsigned)worker->number, (int64_t)size - (int64_t)old_size);
    else
        meter_set((unsigned)worker->number, worker->live_bytes);
    /* release: for the thread that waits for this turn */
    atomic_store_explicit(&slot->state, size << SIZE_SHIFT | ((operation->turn + 1) & TURN_MASK),
                          memory_order_release);
}

static void spawn(struct replay *replay, uint32_t number)
{
    enum { STACK = 512 * 1024 };
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK);
    struct worker *worker = &replay->workers[number];
    errno = pthread_create(&worker->thread, &attributes, worker_run, worker);
    if (errno != 0)
        die("cannot start a thread");
    pthread_attr_destroy(&attributes);
}

static void wait_until(const struct replay *replay, uint64_t ns)
{
    uint64_t due = replay->start + ns;
    struct timespec time = {(time_t)(due / 1000000000u), (long)(due % 1000000000u)};
    while (now_ns() < due)
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL);
}

static void take_sample(struct replay *replay, uint64_t done)
{
    uint64_t index = atomic_fetch_add_explicit(&replay->sample_count, 1, memory_order_relaxed);
    if (index >= replay->sample_room)
        return;
    int64_t live = 0;
    for (unsigned i = 0; i < METER_SLOTS; i++)
        live += __atomic_load_n(&meter->slots[i].live, __ATOMIC_RELAXED);
    replay->samples[index] =
        (struct sample){.done = done, .live = live, .anonymous_kib = anonymous_kib()};
}

/* Runs operations, with stops for samples after every `interval` at most. */
static void run_chunk(struct worker *worker, const struct operation *operations, uint64_t count)
{
    struct replay *replay = worker->replay;
    uint64_t step = replay->interval == 0 || replay->interval > count ? count : replay->interval;
    for (uint64_t first = 0; first < count; first += step) {
        uint64_t last = first + step < count ? first + step : count;
        for (uint64_t i = first; i < last; i++) {
            const struct operation *operation = &operations[i];
            if (operation->kind < OPERATION_SPAWN)
                carry_out(worker, operation);
            else if (operation->kind == OPERATION_SPAWN)
                spawn(replay, operation->slot);
            else if (operation->kind == OPERATION_AT)
                wait_until(replay, operation->size);
            else
                pthread_join(replay->workers[operation->slot].thread, NULL);
        }
        if (replay->interval == 0)
            continue;
        uint64_t done =
            last - first +
            atomic_fetch_add_explicit(&replay->done, last - first, memory_order_relaxed);
        if (done / replay->interval != (done - (last - first)) / replay->interval)
            take_sample(replay, done);
    }
}

void *worker_run(void *argument)
{
    struct worker *worker = argument;
    struct replay *replay = worker->replay;
    struct operation operations[PROGRAM_CHUNK];
    struct program_thread thread = replay->program.threads[worker->number];
    for (uint64_t i = 0; i < thread.chunks; i++)
        run_chunk(worker, operations,
                  program_read(&replay->program, thread.first_chunk + i, operations));
    return worker;
}
