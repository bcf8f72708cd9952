/* worker.c - one thread of a generated program; see worker.h. */
#include "worker.h"

#include <malloc.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

/* ---- One block ------------------------------------------------------------------------------- */

/* What stands in the first byte of a block that is written to at all: never zero. */
static unsigned char mark_of(size_t size)
{
    return (unsigned char)((size * 0x9e3779b97f4a7c15ULL >> 56) | 1);
}

/* Writes to what a block has from `from` on, as the phase wants it, and its mark. */
static void touch_block(struct block *block, size_t from)
{
    unsigned char mark = mark_of(block->size);
    size_t touched = plan_touched(block->touch, block->size);
    if (block->touch == TOUCH_NONE)
        return;
    if (block->touch == TOUCH_PAGES) {
        for (size_t at = from; at < block->size; at += PLAN_PAGE)
            block->at[at] = mark;
    } else if (from < touched) {
        memset(block->at + from, mark, touched - from);
    }
    block->at[0] = mark;
}

static void check_zero(const struct block *block)
{
    if (block->touch == TOUCH_NONE)
        return;
    CHECK_MSG(block->at[0] == 0, "calloc of %zu bytes is not zero", block->size);
    if (block->touch != TOUCH_PAGES && block->touch != TOUCH_ALL)
        return;
    for (size_t at = 0; at < block->size; at += PLAN_PAGE)
        CHECK_MSG(block->at[at] == 0, "calloc of %zu bytes is not zero", block->size);
    CHECK_MSG(block->at[block->size - 1] == 0, "calloc of %zu bytes is not zero", block->size);
}

static void check_mark(const struct block *block)
{
    CHECK_MSG(block->touch == TOUCH_NONE || block->at[0] == mark_of(block->size),
              "a block of %zu bytes has lost its contents", block->size);
}

static void resize_block(struct block *block, const struct phase *phase)
{
    size_t old = block->size;
    check_mark(block);
    block->size = phase->shrink ? old - old / PLAN_GROWTH : old + old / PLAN_GROWTH + 1;
    unsigned char *moved = realloc(block->at, block->size);
    CHECK(moved != NULL);
    block->at = moved;
    CHECK_MSG(block->touch == TOUCH_NONE || moved[0] == mark_of(old),
              "realloc from %zu to %zu bytes has lost the contents", old, block->size);
    touch_block(block, phase->shrink ? block->size : old);
}

static bool chance(struct worker *worker, unsigned percent)
{
    return percent > 0 && random_next(&worker->random) % 100 < percent;
}

static void take_block(struct worker *worker, const struct phase *phase, struct block *block)
{
    block->size = plan_size(&phase->sizes, &worker->random);
    block->touch = phase->touch;
    if (chance(worker, phase->aligned_percent)) {
        uint64_t bits = plan_between(&worker->random, 5, phase->alignment_bits);
        block->at = opaque(memalign((size_t)1 << bits, block->size));
        CHECK(is_aligned(block->at, (size_t)1 << bits));
    } else if (chance(worker, phase->calloc_percent)) {
        block->at = opaque(calloc(1, block->size));
        CHECK(block->at != NULL);
        check_zero(block);
    } else {
        block->at = opaque(malloc(block->size));
    }
    CHECK_MSG(block->at != NULL, "no memory for %zu bytes", block->size);
    touch_block(block, 0);
    if (chance(worker, phase->resize_percent))
        for (unsigned i = 0; i < phase->resizes; i++)
            resize_block(block, phase);
    worker->takes++;
    if (phase->keep_each > 0 && worker->takes % phase->keep_each == 0 &&
        worker->kept_count < worker->most_kept) {
        worker->kept[worker->kept_count++] = *block;
        take_block(worker, phase, block);
    }
}

static void free_block(struct block *block)
{
    if (block->at == NULL)
        return;
    check_mark(block);
    free(block->at);
    block->at = NULL;
}

/* ---- Lifetimes ------------------------------------------------------------------------------- */

static void free_slots(struct worker *worker, uint32_t count, enum order order)
{
    struct block *slots = worker->slots;
    if (order == ORDER_MIXED) /* each goes where a random one of those before it was */
        for (uint32_t i = count; i > 1; i--) {
            uint32_t other = (uint32_t)plan_between(&worker->random, 0, i - 1);
            struct block block = slots[i - 1];
            slots[i - 1] = slots[other];
            slots[other] = block;
        }
    for (uint32_t i = 0; i < count; i++)
        free_block(&slots[order == ORDER_LAST ? count - 1 - i : i]);
}

/* Takes blocks until `count` slots from 0 on are full. */
static uint64_t fill_slots(struct worker *worker, const struct phase *phase, uint32_t from,
                           uint32_t count)
{
    for (uint32_t i = from; i < count; i++)
        take_block(worker, phase, &worker->slots[i]);
    return count > from ? count - from : 0;
}

static void live_as_stack(struct worker *worker, const struct phase *phase)
{
    uint32_t depth = 0;
    for (uint64_t done = 0; done < phase->takes;) {
        uint32_t up = (uint32_t)plan_between(&worker->random, depth, phase->blocks);
        done += fill_slots(worker, phase, depth, up);
        depth = (uint32_t)plan_between(&worker->random, 0, up);
        for (uint32_t i = up; i > depth; i--)
            free_block(&worker->slots[i - 1]);
        if (phase->blocks == 1 && up == depth) /* may draw the same again and again */
            done++;
    }
}

static void live_in_order(struct worker *worker, const struct phase *phase)
{
    uint32_t at = 0;
    for (uint64_t done = 0; done < phase->takes; done++) {
        if (phase->lifetime == LIFE_RANDOM)
            at = (uint32_t)plan_between(&worker->random, 0, phase->blocks - 1);
        else
            at = at + 1 < phase->blocks ? at + 1 : 0;
        free_block(&worker->slots[at]);
        take_block(worker, phase, &worker->slots[at]);
    }
}

static void live_all_then_none(struct worker *worker, const struct phase *phase)
{
    for (uint64_t done = 0; done < phase->takes;) {
        done += fill_slots(worker, phase, 0, phase->blocks);
        free_slots(worker, phase->blocks, phase->order);
    }
}

/* A quarter of the slots is for the old; each generation fills the others, makes one of 16 old in
 * place of one of those that are, and frees the rest. */
static void live_by_generations(struct worker *worker, const struct phase *phase)
{
    uint32_t old = phase->blocks / 4, next_old = 0;
    for (uint64_t done = 0; done < phase->takes;) {
        done += fill_slots(worker, phase, old, phase->blocks);
        for (uint32_t i = old; i < phase->blocks; i++) {
            struct block *young = &worker->slots[i];
            if (old > 0 && i % 16 == 0) {
                free_block(&worker->slots[next_old]);
                worker->slots[next_old] = *young;
                young->at = NULL;
                next_old = next_old + 1 < old ? next_old + 1 : 0;
            }
            free_block(young);
        }
    }
}

/* Up to all, then down to an eighth, where those that stay are anywhere. */
static void live_in_peaks(struct worker *worker, const struct phase *phase)
{
    for (uint64_t done = 0; done < phase->takes;) {
        for (uint32_t i = 0; i < phase->blocks; i++)
            if (worker->slots[i].at == NULL) {
                take_block(worker, phase, &worker->slots[i]);
                done++;
            }
        for (uint32_t i = 0; i < phase->blocks; i++)
            if (phase->blocks < 8 || random_next(&worker->random) % 8 != 0)
                free_block(&worker->slots[i]);
    }
}

/* ---- From thread to thread ------------------------------------------------------------------- */

static bool ring_put(struct ring *ring, struct block *block)
{
    uint32_t put = atomic_load_explicit(&ring->put, memory_order_relaxed);
    if (put - atomic_load_explicit(&ring->taken, memory_order_acquire) >= ring->capacity)
        return false;
    ring->blocks[put % ring->capacity] = *block;
    block->at = NULL;
    atomic_store_explicit(&ring->put, put + 1, memory_order_release);
    return true;
}

static bool ring_free_one(struct ring *ring)
{
    uint32_t taken = atomic_load_explicit(&ring->taken, memory_order_relaxed);
    if (atomic_load_explicit(&ring->put, memory_order_acquire) == taken)
        return false;
    free_block(&ring->blocks[taken % ring->capacity]);
    atomic_store_explicit(&ring->taken, taken + 1, memory_order_release);
    return true;
}

/* The inbox is kept half full, and what does not fit the neighbour's is freed here. */
static void live_by_exchange(struct worker *worker, const struct phase *phase)
{
    struct ring *inbox = &worker->inbox;
    for (uint64_t done = 0; done < phase->takes; done++) {
        struct block block;
        take_block(worker, phase, &block);
        if (!ring_put(&worker->next->inbox, &block))
            free_block(&block);
        if (atomic_load(&inbox->put) - atomic_load(&inbox->taken) > phase->blocks / 2)
            ring_free_one(inbox);
    }
}

static void live_as_pipeline(struct worker *worker, const struct phase *phase)
{
    enum { WAIT_US = 20 };
    if (worker->index % 2 != 0) {
        const struct worker *producer = worker; /* whose next this is: the one before */
        while (producer->next != worker)
            producer = producer->next;
        while (ring_free_one(&worker->inbox) || atomic_load(&producer->produces))
            if (atomic_load(&worker->inbox.put) == atomic_load(&worker->inbox.taken))
                usleep(WAIT_US);
        return;
    }
    for (uint64_t done = 0; done < phase->takes; done++) {
        struct block block;
        take_block(worker, phase, &block);
        while (!ring_put(&worker->next->inbox, &block))
            usleep(WAIT_US);
    }
    atomic_store(&worker->produces, false);
}

void worker_run(struct worker *worker, const struct phase *phase)
{
    switch (phase->lifetime) {
    case LIFE_STACK:
        live_as_stack(worker, phase);
        break;
    case LIFE_QUEUE:
    case LIFE_RANDOM:
        live_in_order(worker, phase);
        break;
    case LIFE_FILL:
        live_all_then_none(worker, phase);
        break;
    case LIFE_GENERATION:
        live_by_generations(worker, phase);
        break;
    case LIFE_PEAKS:
        live_in_peaks(worker, phase);
        break;
    case LIFE_EXCHANGE:
        live_by_exchange(worker, phase);
        break;
    case LIFE_PIPELINE:
    case LIFE_KINDS:
        live_as_pipeline(worker, phase);
        break;
    }
    free_slots(worker, phase->blocks, phase->order);
}

void worker_drain(struct worker *worker)
{
    while (ring_free_one(&worker->inbox))
        ;
}

void worker_end(struct worker *worker)
{
    for (uint32_t i = 0; i < worker->kept_count; i++)
        free_block(&worker->kept[i]);
    worker->kept_count = 0;
}
