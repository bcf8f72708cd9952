/*
 * What waited in the caches of threads that a child of fork does not have: the child gets all of
 * it back, and nothing that is not free.
 *
 * At rest: the threads have filled their caches and wait. In one child a trim leaves nothing; in
 * another the objects that waited serve again, and no slab is made for them. So it is in a heap of
 * the program's own, which may also be cleared or destroyed by the child.
 *
 * Amid work: the threads, and the one that forks, take and free all the while, and pass each other
 * what they have. Each child takes blocks until all that waited is in use again, and checks that
 * they are nobody else's: neither of each other nor of those that wait in slots. When it has freed
 * all, little is left: what each thread had in hand.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/common.h"
#include "heap/totals.h"
#include "heap/user_heaps.h"
#include "heap_calls.h"
#include "snug/snug.h"
#include "team.h"

enum { THREADS = 4, BLOCKS = 3600, SLOTS = 600, TAKEN = 12000, SECONDS = 200 };

/* ---- At rest ---- */

static pthread_barrier_t rest;

/* So many that each thread's magazines of some classes are loaded, and have a spare. */
static size_t size_of(size_t i)
{
    static const size_t sizes[] = {16, 16, 16, 48, 64, 64, 100, 200, 500, 1000, 1500, 2500};
    return sizes[i % 12];
}

static void take_and_free_all(void)
{
    static __thread void *blocks[BLOCKS];
    for (size_t i = 0; i < BLOCKS; i++)
        EXPECT((blocks[i] = snug_malloc(size_of(i))) != NULL, "no block");
    for (size_t i = 0; i < BLOCKS; i++)
        snug_free(blocks[i]);
}

static void *fill_and_rest(void *argument)
{
    take_and_free_all();
    pthread_barrier_wait(&rest);
    pthread_barrier_wait(&rest);
    take_and_free_all();
    return argument;
}

static void expect_nothing_cached(void)
{
    struct heap_totals totals = heap_totals();
    EXPECT(totals.small_cached == 0 && totals.cells_cached == 0,
           "%zu bytes of small objects and %zu of cells wait for threads that are not there",
           totals.small_cached, totals.cells_cached);
}

static void trim_in_child(void)
{
    snug_malloc_trim(0);
    expect_nothing_cached();
    expect_empty_heap();
    EXPECT(heap_default.arenas.threads <= 1, "%u threads have a cache",
           heap_default.arenas.threads);
    EXPECT(heap_default.arenas.magazine_bytes <= MIB, "the magazines of nobody hold %zu bytes",
           heap_default.arenas.magazine_bytes);
}

/* Takes all objects of a class that there are without another slab. But of each other arena, up to
 * a slab's worth is left to the threads there. */
static void take_what_waits(size_t size)
{
    size_t class = class_of_size(size);
    struct class_totals before = heap_class_totals(class);
    size_t count = before.total - before.live;
    EXPECT(before.cached > THREADS, "only %zu objects of %zu bytes are cached", before.cached,
           size);
    void **blocks = calloc(count, sizeof(*blocks));
    for (size_t i = 0; i < count; i++)
        EXPECT((blocks[i] = snug_malloc(size)) != NULL, "no block");
    struct class_totals after = heap_class_totals(class);
    size_t slack = (heap_default.arenas.end - 1) * (before.total / before.slabs);
    EXPECT(after.total <= before.total + slack && after.live == before.total,
           "of %zu objects of %zu bytes, %zu were free; when so many were taken, there were %zu",
           before.total, size, count, after.total);
    for (size_t i = 0; i < count; i++)
        snug_free(blocks[i]);
    free((void *)blocks);
}

static void reuse_in_child(void)
{
    static const size_t sizes[] = {16, 64, 1000};
    for (size_t i = 0; i < 3; i++)
        take_what_waits(sizes[i]);
    expect_empty_heap();
}

static void fork_at_rest(void (*live)(void))
{
    pid_t child = fork();
    if (child == 0) {
        child_begin(SECONDS);
        live();
        child = fork(); /* its own child has no more, and no less */
        if (child == 0) {
            child_begin(SECONDS);
            snug_malloc_trim(0);
            expect_nothing_cached();
            expect_empty_heap();
            _exit(0);
        }
        child_wait(child, "a child");
        _exit(0);
    }
    child_wait(child, "a child");
}

static void nothing(void) {}

static void at_rest(void)
{
    pthread_t threads[THREADS];
    pthread_barrier_init(&rest, NULL, THREADS + 1);
    for (size_t i = 0; i < THREADS; i++)
        EXPECT(pthread_create(&threads[i], NULL, fill_and_rest, NULL) == 0, "no thread");
    take_and_free_all();
    pthread_barrier_wait(&rest);
    struct heap_totals before = heap_totals();
    EXPECT(before.small_cached != 0 && before.cells_cached != 0, "nothing waits");
    fork_at_rest(trim_in_child);
    fork_at_rest(reuse_in_child);
    fork_at_rest(nothing);
    struct heap_totals after = heap_totals();
    EXPECT(after.small_cached == before.small_cached && after.cells_cached == before.cells_cached,
           "a fork changed what waits in its parent");
    pthread_barrier_wait(&rest);
    for (size_t i = 0; i < THREADS; i++)
        EXPECT(pthread_join(threads[i], NULL) == 0, "no thread to join");
    expect_empty_heap();
}

/* ---- A heap of its own ---- */

static struct heap *heap;

static void take_and_free_there(void)
{
    static __thread void *blocks[BLOCKS];
    for (size_t i = 0; i < BLOCKS; i++)
        EXPECT((blocks[i] = heap_alloc_in(heap, size_of(i))) != NULL, "no block");
    for (size_t i = 0; i < BLOCKS; i++)
        heap_free_in(heap, blocks[i]);
}

static void *fill_there_and_rest(void *argument)
{
    take_and_free_there();
    pthread_barrier_wait(&rest);
    pthread_barrier_wait(&rest);
    take_and_free_there();
    return argument;
}

/* What waits for other threads counts as live in such a heap. */
static void expect_nothing_there(void)
{
    heap_trim_of(heap, 0);
    struct heap_totals totals = heap_totals_of(NULL, heap, NULL);
    EXPECT(totals.small_live == 0 && totals.cells_count == 0 && totals.small_cached == 0,
           "%zu bytes of small objects and %zu cells of a heap wait for threads that are not there",
           totals.small_live, totals.cells_count);
    EXPECT(totals.segments == 0, "%zu bytes of segments are left after a trim", totals.segments);
    EXPECT(heap->arenas.threads <= 1 && heap->arenas.magazine_bytes <= MIB,
           "%u threads have a cache of the heap, of %zu bytes", heap->arenas.threads,
           heap->arenas.magazine_bytes);
    expect_sound_heap();
}

static void trim_there(void)
{
    expect_nothing_there();
    take_and_free_there();
    expect_nothing_there();
}

static void clear_there(void)
{
    heap_clear(heap);
    expect_nothing_there();
}

static void destroy_there(void)
{
    size_t before = heap_totals().meta_used;
    heap_destroy(heap);
    EXPECT(heap_totals().meta_used < before, "the magazines of a heap that is gone are left");
    struct heap_settings settings = {.name = "another"};
    heap = heap_create(&settings);
    take_and_free_there();
    expect_nothing_there();
}

static void on_a_heap(void)
{
    pthread_t threads[THREADS];
    struct heap_settings settings = {.name = "orphans"};
    heap = heap_create(&settings);
    for (size_t i = 0; i < THREADS; i++)
        EXPECT(pthread_create(&threads[i], NULL, fill_there_and_rest, NULL) == 0, "no thread");
    take_and_free_there();
    pthread_barrier_wait(&rest);
    fork_at_rest(trim_there);
    fork_at_rest(clear_there);
    fork_at_rest(destroy_there);
    pthread_barrier_wait(&rest);
    for (size_t i = 0; i < THREADS; i++)
        EXPECT(pthread_join(threads[i], NULL) == 0, "no thread to join");
    expect_nothing_there();
    heap_destroy(heap);
    expect_empty_heap();
}

/* ---- Amid work ---- */

static struct slots slots;
static atomic_bool done;

/* Small objects and cells, as only those wait in caches. */
static size_t small_size(struct random *random)
{
    return random_one_in(random, 8) ? random_below(random, 6000) : 1 + random_below(random, 200);
}

static void turn(struct member *member)
{
    if (member->current->block == NULL)
        ticket_take_size(member->current, &member->random, small_size(&member->random));
    else
        ticket_free(member->current, &member->random);
    member->current = slots_exchange(&slots, &member->random, member->current);
}

static void *work(void *argument)
{
    struct member *member = argument;
    while (!atomic_load_explicit(&done, memory_order_relaxed))
        turn(member);
    return NULL;
}

/* What each thread may have had in hand: its ticket, and two magazines that it was moving. */
enum { LOST_MOST = THREADS * (1 + 2 * MAGAZINE_SLOTS_MOST) };

_Noreturn static void live_as_child(struct random random)
{
    child_begin(SECONDS);
    static struct ticket taken[TAKEN];
    for (size_t i = 0; i < TAKEN; i++)
        ticket_take_size(&taken[i], &random, small_size(&random));
    expect_sound_heap();
    slots_free_blocks(&slots, &random);
    for (size_t i = 0; i < TAKEN; i++)
        ticket_free(&taken[i], &random);
    expect_sound_heap();
    snug_malloc_trim(0);
    expect_nothing_cached();
    struct heap_totals totals = heap_totals();
    size_t lost = totals.small_live_count + totals.cells_count;
    EXPECT(lost <= LOST_MOST, "%zu blocks are live, but all were freed", lost);
    _exit(0);
}

static void amid_work(void)
{
    static struct member members[THREADS + 1]; /* the last is that of this thread */
    slots_init(&slots, SLOTS);
    for (size_t i = 0; i <= THREADS; i++) {
        member_init(&members[i], i);
        if (i < THREADS)
            EXPECT(pthread_create(&members[i].thread, NULL, work, &members[i]) == 0, "no thread");
    }
    struct member *here = &members[THREADS];
    for (size_t forks = scaled(30); forks != 0; forks--) {
        for (size_t turns = random_log(&here->random, 1, 20000); turns != 0; turns--)
            turn(here);
        struct random for_child = {random_next(&here->random)};
        pid_t child = fork();
        if (child == 0) {
            ticket_free(here->current, &for_child);
            live_as_child(for_child);
        }
        child_wait(child, "a child");
    }
    atomic_store(&done, true);
    for (size_t i = 0; i < THREADS; i++)
        EXPECT(pthread_join(members[i].thread, NULL) == 0, "no thread to join");
    for (size_t i = 0; i <= THREADS; i++)
        ticket_free(members[i].current, &here->random);
    slots_free_blocks(&slots, &here->random);
    expect_empty_heap();
    slots_end(&slots);
}

int main(int count, char **arguments)
{
    stress_begin(count, arguments, SECONDS);
    at_rest();
    on_a_heap();
    amid_work();
    return 0;
}
