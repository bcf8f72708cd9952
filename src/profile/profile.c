/*
 * Samples, from allocation to free. See profile.h.
 *
 * A signal handler that allocates or frees may interrupt a thread that is in here, with the lock
 * held. So it does not wait for the lock: its own sample is lost and counted, and if it frees a
 * sample, that stays in the tables until another block comes to its address.
 */
#include "profile/profile.h"
#include "platform/floats.h"
#include "platform/memory.h"

#define OF_THREAD __thread __attribute__((tls_model("initial-exec")))

uint32_t profile_watchers;

struct profile profile = {.lock = LOCK_INIT(RANK_PROFILE)};

/* Blocks (table): samples that were freed last, whose stacks are told if they are misused then. */
enum { PROFILE_FREED = 64 };

/* Under the profile's lock. */
BULKY static struct freed {
    uint64_t address;
    uint32_t site;
} freed_last[PROFILE_FREED];
static uint32_t freed_next;
static struct floats floats; /* of the thread that is in here; under the lock as well */

static OF_THREAD bool busy_self; /* the thread is between enter and leave */

static bool enter(void)
{
    if (busy_self)
        return false;
    busy_self = true;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    lock_acquire(&profile.lock);
    floats = floats_begin();
    return true;
}

static void leave(void)
{
    floats_end(floats);
    lock_release(&profile.lock);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    busy_self = false;
}

uint64_t profile_draw(void)
{
    return sampler_mix(&profile.random);
}

void profile_watch(enum profile_watcher who, bool on)
{
    /* release: who sees it on sees what was made ready before */
    if (on)
        __atomic_fetch_or(&profile_watchers, who, __ATOMIC_RELEASE);
    else
        __atomic_fetch_and(&profile_watchers, ~(uint32_t)who, __ATOMIC_RELEASE);
}

/* ---- Taking stacks ---- */

/* A buffer for a stack while it is taken: 20 KiB, which the thread's own stack need not have left.
 * There are as many as threads took stacks at the same time; they stay. */
struct scratch {
    struct unwind_stack stack;
    struct scratch *next;
};

/* NULL: there is no memory, or the thread is in here already. */
static struct scratch *scratch_get(void)
{
    if (!enter())
        return NULL;
    struct scratch *scratch = profile.scratch;
    if (scratch != NULL)
        profile.scratch = scratch->next;
    else
        scratch = meta_map(align_up(sizeof(*scratch), os_page_size()));
    leave();
    return scratch;
}

/* With the lock held. */
static void scratch_put(struct scratch *scratch)
{
    scratch->next = profile.scratch;
    profile.scratch = scratch;
}

NOINLINE uint32_t profile_stack_here(void)
{
    struct scratch *scratch = scratch_get();
    if (scratch == NULL)
        return 0;
    unwind_here(&scratch->stack);
    uint32_t number = 0;
    bool entered = enter();
    if (entered) {
        number = stacks_put(&profile.stacks, &scratch->stack);
        scratch_put(scratch);
        leave();
    }
    return number;
}

void profile_prepare(size_t mean, uint64_t seed)
{
    if (!enter())
        return;
    if (profile.rate.mean == 0) {
        profile.rate = sampler_rate_of(mean);
        profile.random = seed;
        profile.blocks.entry_bytes = sizeof(struct profile_block);
        stacks_init(&profile.stacks);
    }
    leave();
}

void profile_begin(void)
{
    __atomic_store_n(&profile.on, true, __ATOMIC_RELAXED); /* for who looks from outside */
    profile_watch(WATCH_PROFILE, true);
}

void profile_end(void)
{
    __atomic_store_n(&profile.on, false, __ATOMIC_RELAXED);
    profile_watch(WATCH_PROFILE, false);
}

void profile_miss(void)
{
    __atomic_fetch_add(&profile.lost, 1, __ATOMIC_RELAXED);
}

/* ---- With the lock held ---- */

static struct site *site_at(uint32_t number)
{
    return table_at(&profile.sites, number, sizeof(struct site));
}

/* The site of a stack; 0: there is no room. */
static uint32_t site_of(uint32_t number)
{
    struct stack_node *node = stacks_node(&profile.stacks, number);
    if (node->site == 0) {
        uint32_t site = table_add(&profile.sites, sizeof(struct site));
        if (site == 0)
            return 0;
        /* A site that is new had nothing at the peaks there were. */
        *site_at(site) = (struct site){.stack = number, .peak = profile.totals.peak};
        node->site = site;
    }
    return node->site;
}

/* Where in its chain the number of the block at an address stands; NULL if there is none. */
static uint32_t *block_find(uint64_t address)
{
    uint32_t *place = index_bucket(&profile.blocks, address, 0);
    for (; place != NULL && *place != 0;) {
        struct profile_block *block = index_at(&profile.blocks, *place);
        if (block->block.key == address)
            return place;
        place = &block->block.next;
    }
    return NULL;
}

/* Puts a number with those that no block has. */
static void block_drop(uint32_t number)
{
    struct profile_block *block = index_at(&profile.blocks, number);
    block->block.key = 0;
    block->block.next = profile.free_block;
    profile.free_block = number;
}

static bool block_remove(uint64_t address, struct profile_block *sample)
{
    uint32_t *place = block_find(address);
    if (place == NULL)
        return false;
    uint32_t number = *place;
    struct profile_block *block = index_at(&profile.blocks, number);
    struct site_change change = site_change_of(block->size, block->weight);
    *sample = *block;
    *place = block->block.next;
    block_drop(number);
    profile.blocks.count--;
    GAUGE_ADD(profile.live, -1);
    site_remove(site_at(sample->site), &profile.totals, &change);
    return true;
}

static uint32_t block_new(void)
{
    uint32_t number = profile.free_block;
    if (number == 0)
        return table_add(&profile.blocks.table, profile.blocks.entry_bytes);
    profile.free_block = ((struct profile_block *)index_at(&profile.blocks, number))->block.next;
    return number;
}

static bool block_add(uint64_t address, size_t size, float weight, uint32_t site)
{
    struct profile_block stale;
    block_remove(address, &stale); /* its free was missed */
    uint32_t number = block_new();
    if (number == 0)
        return false;
    struct profile_block *block = index_at(&profile.blocks, number);
    *block = (struct profile_block){{.key = address}, size, weight, site};
    if (!index_put(&profile.blocks, number)) {
        block_drop(number);
        return false;
    }
    struct site_change change = site_change_of(size, weight);
    GAUGE_ADD(profile.live, 1);
    site_add(site_at(site), &profile.totals, &change);
    return true;
}

/* ---- Without ---- */

NOINLINE void profile_put(const void *block, size_t size)
{
    uint32_t stack = profile_stack_here();
    if (!enter()) {
        profile_miss();
        return;
    }
    uint32_t site = stack == 0 ? 0 : site_of(stack);
    float weight = (float)sampler_weight(&profile.rate, size);
    if (site == 0 || !block_add((uintptr_t)block, size, weight, site))
        profile_miss();
    leave();
}

bool profile_take(const void *block, struct profile_block *sample)
{
    if (!enter())
        return false;
    bool found = block_remove((uintptr_t)block, sample);
    if (found)
        freed_last[freed_next++ % PROFILE_FREED] = (struct freed){(uintptr_t)block, sample->site};
    leave();
    return found;
}

/* The site of a block that is a sample, or was one; 0: it is not known. The lock is held. */
static uint32_t site_at_address(uintptr_t address)
{
    const uint32_t *place = block_find(address);
    if (place != NULL && *place != 0)
        return ((const struct profile_block *)index_at(&profile.blocks, *place))->site;
    for (uint32_t i = 1; i <= PROFILE_FREED; i++) {
        const struct freed *freed = &freed_last[(freed_next - i) % PROFILE_FREED];
        if (freed->address == address)
            return freed->site;
    }
    return 0;
}

void profile_tell(uintptr_t address, struct misuse_stack *allocated, struct misuse_stack *freed)
{
    (void)freed; /* no stack is taken when a sample is freed */
    if (!enter())
        return;
    uint32_t site = site_at_address(address);
    uint32_t number = site == 0 ? 0 : site_at(site)->stack;
    while (number != 0 && allocated->count < MISUSE_FRAMES_MOST) {
        const struct stack_node *node = stacks_node(&profile.stacks, number);
        allocated->frames[allocated->count++] = node->call.key;
        number = node->call.salt;
    }
    leave();
}

void profile_put_back(const void *block, const struct profile_block *sample)
{
    if (!enter())
        return;
    struct site *site = site_at(sample->site);
    uint64_t bytes = site->bytes, count = site->count, samples = site->samples;
    double variance = site->variance;
    if (!block_add((uintptr_t)block, sample->size, sample->weight, sample->site))
        profile_miss();
    /* The block was not allocated anew, so the totals of its site stay. */
    GAUGE_SET(site->bytes, bytes);
    GAUGE_SET(site->count, count);
    GAUGE_SET(site->samples, samples);
    site->variance = variance;
    leave();
}
