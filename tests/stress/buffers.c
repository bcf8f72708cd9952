/*
 * Threads with large buffers of a few sizes, which they mostly free themselves and take again at
 * once, as those that read files or pictures do: so they wait for the page heap, and the buffers
 * stay near processors (pageheap/nearby.h). Now and then one asks for a buffer's size, resizes it,
 * or passes it to another thread. Each buffer has a stamp at either end, with which nobody else's
 * may be overwritten. The main thread reads statistics, checks and trims meanwhile. At the end
 * everything is freed, and nothing may be left.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/common.h"
#include "heap/heap.h"
#include "heap/totals.h"
#include "snug/snug.h"
#include "team.h"

enum { THREADS = 4, OWN = 6, SHARED = 8, SIZES = 4 };

/* The last two take as many pages. */
static const size_t sizes[SIZES] = {160 * KIB, 260 * KIB, 200 * KIB, 200 * KIB - 1000};

struct stamp {
    size_t size;
    uint64_t id;
    uint64_t more[14]; /* each as `id` */
};

static struct stamp *_Atomic shared[SHARED];

struct worker {
    pthread_t thread;
    struct random random;
    struct stamp *own[OWN];
};

static struct stamp *last_of(struct stamp *first, size_t size)
{
    return (struct stamp *)((char *)first + align_down(size, 16)) - 1;
}

static void stamp(struct stamp *first, size_t size, uint64_t id)
{
    EXPECT(first != NULL, "no buffer of %zu bytes", size);
    *first = (struct stamp){.size = size, .id = id};
    for (size_t i = 0; i < sizeof(first->more) / sizeof(*first->more); i++)
        first->more[i] = id;
    *last_of(first, size) = *first;
}

static void check(struct stamp *first)
{
    EXPECT(first->size >= 100 * KIB && first->size <= MIB &&
               memcmp(first, last_of(first, first->size), sizeof(*first)) == 0,
           "a buffer has lost its contents");
}

static void give(struct stamp *buffer)
{
    if (buffer == NULL)
        return;
    check(buffer);
    buffer->size = 0; /* who finds it again has it twice */
    snug_free(buffer);
}

static struct stamp *take(struct random *random)
{
    size_t size = sizes[random_below(random, SIZES)];
    bool zero = random_one_in(random, 100);
    struct stamp *buffer = zero ? snug_calloc(1, size) : snug_malloc(size);
    EXPECT(buffer != NULL && (!zero || buffer->size == 0), "a new buffer is not zero");
    stamp(buffer, size, random_next(random));
    return buffer;
}

static struct stamp *resize(struct stamp *buffer, struct random *random)
{
    uint64_t id = buffer->id;
    size_t size = sizes[random_below(random, SIZES)];
    check(buffer);
    buffer = snug_realloc(buffer, size);
    EXPECT(buffer != NULL && buffer->id == id, "a buffer has lost its contents");
    stamp(buffer, size, id);
    return buffer;
}

static void turn(struct worker *worker)
{
    struct random *random = &worker->random;
    struct stamp **place = &worker->own[random_below(random, OWN)];
    switch (*place == NULL ? 5 : random_below(random, 40)) {
    case 0:
        *place = atomic_exchange(&shared[random_below(random, SHARED)], *place);
        break;
    case 1:
        *place = resize(*place, random);
        break;
    case 2:
        EXPECT(snug_malloc_usable_size(*place) >= (*place)->size, "a buffer is too short");
        break;
    default:
        give(*place);
        *place = take(random);
        break;
    }
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    size_t turns = scaled(400000);
    for (size_t i = 0; i < turns; i++)
        turn(worker);
    return NULL;
}

/* What the main thread does meanwhile. Blocks become known to processors on any machine. */
static void interfere(struct random *random)
{
    __atomic_fetch_add(&lock_waits[RANK_PAGE_HEAP], 1, __ATOMIC_RELAXED);
    struct heap_totals totals = heap_totals();
    EXPECT(totals.large <= (THREADS * OWN + SHARED + 1) * 264 * KIB, "%zu bytes are live",
           totals.large);
    if (random_one_in(random, 20))
        expect_sound_heap();
    if (random_one_in(random, 200))
        snug_malloc_trim(0);
}

int main(int count, char **arguments)
{
    static struct worker workers[THREADS];
    stress_begin(count, arguments, 200);
    struct random random = stress_random(THREADS);
    double begun = seconds_now();
    for (size_t i = 0; i < THREADS; i++) {
        workers[i].random = stress_random(i);
        EXPECT(pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0, "no thread");
    }
    for (size_t i = 0; i < THREADS; i++) {
        while (pthread_tryjoin_np(workers[i].thread, NULL) != 0)
            interfere(&random);
        for (size_t buffer = 0; buffer < OWN; buffer++)
            give(workers[i].own[buffer]);
    }
    for (size_t i = 0; i < SHARED; i++)
        give(shared[i]);
    EXPECT(nearby_there(&heap_default.page_heap), "no buffer stayed near a processor");
    expect_empty_heap();
    printf("buffers: %.1f s\n", seconds_now() - begun);
    return 0;
}
