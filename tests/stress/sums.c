/*
 * The statistics add up: threads fill the heap, free half of it, exchange blocks with each other,
 * trim, and end; after every such phase, while they rest, each byte that is mapped is found in
 * exactly one part, what is live is what the threads have, and what is resident is reconciled. All
 * the while another thread reads the numbers, which must do no harm.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "platform/memory.h"
#include "provider/provider.h"
#include "snug/snug.h"
#include "team.h"
#include "values_sum.h"

enum { THREADS = 4, TICKETS = 1200, SLOTS = 400, ROUNDS = 6 };

static struct slots slots;
static pthread_barrier_t rest, go_on;
static atomic_bool done;

struct worker {
    struct random random;
    struct ticket tickets[TICKETS];
    struct ticket *current;
};

/* ---- What the threads have ---- */

struct live {
    size_t small, cells, cell_count;
    size_t large; /* as asked for, which is what is usable of them */
    size_t large_pages;
};

static void live_add(struct live *live, const struct ticket *ticket)
{
    if (ticket->block == NULL)
        return;
    size_t bytes = snug_malloc_usable_size(ticket->block);
    size_t class = page_map_class((uintptr_t)ticket->block);
    if (class == 0) {
        live->large += bytes;
        live->large_pages += align_up(bytes, PAGE_BYTES);
    } else if (class == PAGE_MAP_CELL) {
        live->cells += bytes;
        live->cell_count++;
    } else {
        live->small += bytes;
    }
}

static struct live live_of(const struct worker *workers)
{
    struct live live = {0};
    for (size_t w = 0; w < THREADS; w++) {
        for (size_t i = 0; i < TICKETS; i++)
            live_add(&live, &workers[w].tickets[i]);
        live_add(&live, workers[w].current);
    }
    for (size_t i = 0; i < SLOTS; i++)
        live_add(&live, atomic_load(&slots.at[i]));
    return live;
}

/* What mincore says of a range, which does not ask the page map that the statistics ask. */
static size_t present(const char *start, size_t bytes)
{
    static unsigned char pages[1 << 16];
    size_t page = os_kernel_page_size(), count = 0;
    for (size_t place = 0, most = sizeof(pages) * page; place < bytes; place += most) {
        size_t length = size_min(bytes - place, most);
        if (mincore((void *)(start + place), length, pages) != 0)
            return SIZE_MAX;
        for (size_t i = 0; i < length / page; i++)
            count += pages[i] & 1;
    }
    return count * page;
}

static size_t present_segments(const struct list *head)
{
    size_t bytes = 0;
    LIST_EACH(node, head) {
        const struct segment *segment = CONTAINER_OF(node, struct segment, link);
        bytes += present(segment->start, segment->pages << PAGE_SHIFT);
    }
    return bytes;
}

/* All of snug's resident memory, counted once more. */
static size_t present_in_all(void)
{
    const struct page_heap *page_heap = &heap_default.page_heap;
    size_t bytes =
        present_segments(&page_heap->segments) + present_segments(&page_heap->cache.list);
    for (const struct span *span = page_heap->huge; span != NULL; span = span->right)
        bytes += present(span->start, (size_t)span->pages << PAGE_SHIFT);
    for (size_t i = 0; i < size_min(page_heap->meta->range_count, META_RANGES); i++)
        bytes += present((const char *)page_heap->meta->ranges[i].start,
                         page_heap->meta->ranges[i].bytes);
    return bytes;
}

static void expect_resident(const struct values *values, const char *phase)
{
    if (values->resident_snug == UNKNOWN)
        return;
    size_t counted = present_in_all();
    size_t slack = 64 * os_page_size(); /* a stack, or a table of libc's, has grown meanwhile */
    EXPECT(values->resident_snug <= counted + slack && counted <= values->resident_snug + slack,
           "%s: %llu bytes are resident, mincore finds %zu", phase,
           (unsigned long long)values->resident_snug, counted);
    EXPECT(values->resident_snug + values->resident_other == values->resident &&
               values->resident_snug + values->untouched == values->mapped,
           "%s: what is resident is not reconciled", phase);
    EXPECT(values->resident_excess <= values->free_clean && values->resident_snug <= values->mapped,
           "%s: more is resident than there is", phase);
}

static void expect_medium(const struct values *values, const char *phase)
{
    uint64_t blocks = 0, bytes = 0;
    for (size_t i = 0; i < MEDIUM_ROWS; i++) {
        blocks += values->more->medium[i].blocks;
        bytes += values->more->medium[i].bytes;
    }
    EXPECT(values->more->medium_known && blocks == values->blocks_medium,
           "%s: %llu medium blocks by size, %llu in all", phase, (unsigned long long)blocks,
           (unsigned long long)values->blocks_medium);
    EXPECT(bytes == values->live_cells, "%s: %llu bytes of medium blocks by size, %llu in all",
           phase, (unsigned long long)bytes, (unsigned long long)values->live_cells);
}

static void expect_large(const struct values *values, const char *phase)
{
    uint64_t blocks = 0, bytes = 0;
    for (size_t i = 0; i < LARGE_ROWS; i++) {
        blocks += values->more->large.blocks[i];
        bytes += values->more->large.bytes[i];
    }
    EXPECT(blocks == values->blocks_large + values->blocks_huge,
           "%s: %llu large blocks by size, %llu in all", phase, (unsigned long long)blocks,
           (unsigned long long)(values->blocks_large + values->blocks_huge));
    EXPECT(bytes == values->requested_large + values->requested_huge,
           "%s: %llu bytes of large blocks by size, %llu in all", phase, (unsigned long long)bytes,
           (unsigned long long)(values->requested_large + values->requested_huge));
}

static void expect_sums(const struct worker *workers, const char *phase)
{
    static struct values values;
    static struct values_more more;
    struct live live = live_of(workers);
    EXPECT(values_read(&values, &more, NULL, &snug_anchor, 0, VALUES_WHOLE), "no numbers");
    uint64_t sum = values_sum(&values);
    EXPECT(sum == values.mapped, "%s: %llu bytes are mapped, the parts are %llu", phase,
           (unsigned long long)values.mapped, (unsigned long long)sum);
    uint64_t system = values.counters.map_bytes - values.counters.unmap_bytes;
    EXPECT(values.mapped - values.metadata == system,
           "%s: %llu bytes are mapped, the system gave %llu", phase,
           (unsigned long long)(values.mapped - values.metadata), (unsigned long long)system);
    EXPECT(values.live_small == live.small, "%s: %llu bytes of small objects are live, not %zu",
           phase, (unsigned long long)values.live_small, live.small);
    EXPECT(values.live_large + values.live_huge == live.large_pages,
           "%s: %llu bytes of large blocks, not %zu", phase,
           (unsigned long long)(values.live_large + values.live_huge), live.large_pages);
    EXPECT(values.requested_large + values.requested_huge == live.large,
           "%s: %llu bytes of large blocks were asked for, not %zu", phase,
           (unsigned long long)(values.requested_large + values.requested_huge), live.large);
    EXPECT(values.blocks_medium == live.cell_count, "%s: %llu medium blocks are live, not %zu",
           phase, (unsigned long long)values.blocks_medium, live.cell_count);
    EXPECT(values.live_cells == live.cells, "%s: %llu bytes of medium blocks are live, not %zu",
           phase, (unsigned long long)values.live_cells, live.cells);
    expect_resident(&values, phase);
    expect_medium(&values, phase);
    expect_large(&values, phase);
    printf("sums: %-10s %8llu KiB mapped, %8llu live, %6llu cached, %8llu resident, %5llu excess\n",
           phase, (unsigned long long)values.mapped / 1024, (unsigned long long)values.live / 1024,
           (unsigned long long)(values.cached_small + values.cached_cells) / 1024,
           (unsigned long long)values.resident_snug / 1024,
           (unsigned long long)values.resident_excess / 1024);
}

/* ---- The phases ---- */

static const char *const phases[] = {"fill", "thin out", "exchange", "trim", "empty"};

enum { PHASES = sizeof(phases) / sizeof(phases[0]) };

static void phase_run(struct worker *worker, size_t phase)
{
    for (size_t i = 0; i < TICKETS; i++) {
        struct ticket *ticket = &worker->tickets[i];
        if (phase == 0 && ticket->block == NULL)
            ticket_take(ticket, &worker->random);
        if ((phase == 1 && i % 2 == 0) || phase == 4)
            ticket_free(ticket, &worker->random);
        if (phase == 2) {
            ticket_free(worker->current, &worker->random);
            ticket_take_size(worker->current, &worker->random,
                             random_log(&worker->random, 1, 40 * KIB));
            worker->current = slots_exchange(&slots, &worker->random, worker->current);
        }
    }
    if (phase == 3)
        snug_malloc_trim(0);
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    for (size_t round = 0; round < scaled(ROUNDS) * PHASES; round++) {
        phase_run(worker, round % PHASES);
        pthread_barrier_wait(&rest);
        pthread_barrier_wait(&go_on);
    }
    return NULL;
}

static void *look(void *argument)
{
    static struct values values;
    (void)argument;
    size_t looks = 0;
    while (!atomic_load(&done)) {
        EXPECT(values_read(&values, NULL, NULL, &snug_anchor, 0, VALUES_QUICK), "no numbers");
        looks++;
    }
    printf("sums: %zu looks meanwhile\n", looks);
    return NULL;
}

int main(int count, char **arguments)
{
    static struct worker workers[THREADS];
    static struct ticket travelling[THREADS];
    pthread_t threads[THREADS], looker;
    stress_begin(count, arguments, 200);
    slots_init(&slots, SLOTS);
    pthread_barrier_init(&rest, NULL, THREADS + 1);
    pthread_barrier_init(&go_on, NULL, THREADS + 1);
    for (size_t i = 0; i < THREADS; i++) {
        workers[i].random = stress_random(i);
        workers[i].current = &travelling[i];
        EXPECT(pthread_create(&threads[i], NULL, work, &workers[i]) == 0, "no thread");
    }
    EXPECT(pthread_create(&looker, NULL, look, NULL) == 0, "no thread");
    for (size_t round = 0; round < scaled(ROUNDS) * PHASES; round++) {
        pthread_barrier_wait(&rest);
        expect_sums(workers, phases[round % PHASES]);
        pthread_barrier_wait(&go_on);
    }
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    atomic_store(&done, true);
    pthread_join(looker, NULL);
    struct random random = stress_random(THREADS);
    for (size_t i = 0; i < THREADS; i++)
        ticket_free(workers[i].current, &random);
    slots_free_blocks(&slots, &random);
    expect_sums(workers, "the end");
    expect_empty_heap();
    slots_end(&slots);
    return 0;
}
