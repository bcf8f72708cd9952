/*
 * Slots and guards. See guard.h.
 */
#include "profile/guard.h"

#include <string.h>

#include "base/peek.h"
#include "meta/meta.h"
#include "meta/page_map.h"
#include "options/options.h"
#include "platform/check.h"
#include "platform/fault.h"
#include "platform/memory.h"
#include "platform/output.h"
#include "platform/signal.h"
#include "platform/thread.h"
#include "profile/profile.h"

/* Layout: of a byte beside a block: no text, no small number, no part of an address. */
enum { PATTERN = 0xd7 };

struct guard guard = {.lock = LOCK_INIT(RANK_PROFILE), .rate = {SAMPLER_MEAN_MOST}};

/* ---- Under the lock, and without signals ---- */

static void enter(struct os_signals *signals)
{
    os_signals_block(signals);
    lock_acquire(&guard.lock);
}

static void leave(const struct os_signals *signals)
{
    lock_release(&guard.lock);
    os_signals_unblock(signals);
}

static uint64_t draw(void)
{
    return sampler_mix(&guard.random);
}

static uintptr_t slot_start(uint32_t number)
{
    return guard.start + guard.page + number * (guard.slot + guard.page);
}

/* The number of the slot that an address is in, or in the guard behind. */
static uint32_t slot_of(uintptr_t address)
{
    uintptr_t offset = address - guard.start;
    return offset < guard.page ? 0 : (uint32_t)((offset - guard.page) / (guard.slot + guard.page));
}

static uint32_t slot_take(void)
{
    if (guard.live == guard.most)
        return guard.slots;
    GAUGE_ADD(guard.live, 1);
    if (guard.fresh != 0)
        return guard.slots - guard.fresh--;
    uint32_t number = guard.first_free - 1;
    guard.first_free = guard.blocks[number].next;
    return number;
}

/* Behind all others that are free. */
static void slot_give(uint32_t number)
{
    struct guard_block *block = &guard.blocks[number];
    bool only = guard.first_free == 0;
    block->next = 0;
    if (only)
        guard.first_free = number + 1;
    else
        guard.blocks[guard.last_free - 1].next = number + 1;
    guard.last_free = number + 1;
    GAUGE_ADD(guard.live, -1);
}

/* ---- The pages of a block, and what is beside it ---- */

static uintptr_t pages_start(const struct guard_block *block)
{
    return align_down(block->start, guard.page);
}

static uintptr_t pages_end(const struct guard_block *block)
{
    return align_up(block->start + block->bytes, guard.page);
}

/* The byte nearest to the block, before or behind it, that has lost the pattern; 0: there is
 * none. */
static uintptr_t damage_before(const struct guard_block *block)
{
    uintptr_t at = block->start;
    while (at-- > pages_start(block))
        if (*(const uint8_t *)at != PATTERN)
            return at;
    return 0;
}

static uintptr_t damage_behind(const struct guard_block *block)
{
    for (uintptr_t at = block->start + block->bytes; at < pages_end(block); at++)
        if (*(const uint8_t *)at != PATTERN)
            return at;
    return 0;
}

static struct guard_finding finding_of(const struct guard_block *block)
{
    uintptr_t behind = damage_behind(block), before = behind != 0 ? 0 : damage_before(block);
    struct guard_finding finding = {.at_free = true, .address = behind + before};
    if (behind != 0) {
        finding.fault = GUARD_OVERFLOW;
        finding.distance = behind - (block->start + block->bytes) + 1;
    } else if (before != 0) {
        finding.fault = GUARD_UNDERFLOW;
        finding.distance = block->start - before;
    }
    return finding;
}

/* Where a block begins that lies, by chance, at one end of its slot or the other. */
static uintptr_t place_in(uint32_t number, size_t bytes, size_t alignment)
{
    uintptr_t start = slot_start(number);
    bool at_end = (draw() & 1) != 0;
    return at_end ? align_down(start + guard.slot - bytes, alignment) : start;
}

/* ---- Taking and freeing ---- */

static struct guard_block *take(size_t bytes, size_t alignment, uint32_t stack)
{
    uint32_t number = slot_take();
    if (number == guard.slots)
        return NULL;
    struct guard_block *block = &guard.blocks[number];
    uintptr_t start = place_in(number, bytes, alignment);
    uint32_t thread = (uint32_t)os_thread_id();
    *block = (struct guard_block){.start = start,
                                  .bytes = bytes,
                                  .state = GUARD_UNUSED,
                                  .taken_stack = stack,
                                  .taken_thread = thread};
    uintptr_t first = pages_start(block), end = pages_end(block);
    if (!os_open((void *)first, end - first)) {
        slot_give(number);
        return NULL;
    }
    memset((void *)first, PATTERN, start - first);
    memset((void *)(start + bytes), PATTERN, end - (start + bytes));
    GAUGE_ADD(guard.live_bytes, bytes);
    GAUGE_ADD(guard.taken, 1);
    /* release: who finds it live finds all of the above */
    __atomic_store_n(&block->state, GUARD_LIVE, __ATOMIC_RELEASE);
    return block;
}

static void on_fault(uintptr_t address, const void *context);

void *guard_alloc(size_t bytes, size_t alignment)
{
    if (alignment > guard.page || bytes > GUARD_BYTES)
        return NULL;
    alignment = size_max(alignment, MIN_ALIGN);
    bytes += bytes == 0;
    /* relaxed: a hint; not to take a stack in vain */
    bool full = __atomic_load_n(&guard.live, __ATOMIC_RELAXED) == guard.most;
    struct guard_block *block = NULL;
    if (!full) {
        struct os_signals signals;
        os_fault_watch(on_fault);
        uint32_t stack = profile_stack_here();
        enter(&signals);
        block = take(bytes, alignment, stack);
        leave(&signals);
    }
    if (block == NULL) /* relaxed: a total that nothing is decided by */
        __atomic_fetch_add(&guard.missed, 1, __ATOMIC_RELAXED);
    return block == NULL ? NULL : (void *)block->start;
}

/* What is wrong with an address that should be a live block's. */
static struct misuse misuse_of(uintptr_t address, const struct guard_block *block)
{
    struct misuse misuse = {.kind = MISUSE_UNKNOWN, .address = address};
    uint32_t state = __atomic_load_n(&block->state, __ATOMIC_ACQUIRE);
    if (state == GUARD_UNUSED || address - slot_start(slot_of(address)) >= guard.slot)
        return misuse;
    misuse.bytes = block->bytes;
    misuse.start = block->start;
    if (state == GUARD_FREED)
        misuse.kind = MISUSE_DOUBLE_FREE;
    else if (address == block->start)
        misuse.kind = MISUSE_NONE;
    else if (address - block->start < block->bytes)
        misuse.kind = MISUSE_INSIDE;
    return misuse;
}

struct misuse guard_usable(uintptr_t address, size_t *bytes)
{
    const struct guard_block *block = &guard.blocks[slot_of(address)];
    struct misuse misuse = misuse_of(address, block);
    *bytes = misuse.kind == MISUSE_NONE ? block->bytes : 0;
    return misuse;
}

static void give(struct guard_block *block, uint32_t stack)
{
    uintptr_t first = pages_start(block), end = pages_end(block);
    block->freed_stack = stack;
    block->freed_thread = (uint32_t)os_thread_id();
    GAUGE_ADD(guard.live_bytes, -block->bytes);
    /* release: as in take */
    __atomic_store_n(&block->state, GUARD_FREED, __ATOMIC_RELEASE);
    if (!os_shut((void *)first, end - first)) /* too many mappings: the pages can be touched */
        memset((void *)first, 0, end - first);
    slot_give((uint32_t)(block - guard.blocks));
}

/* What was found at free, as misuse. */
static enum misuse_kind kind_of(enum guard_fault fault)
{
    if (fault == GUARD_DOUBLE_FREE)
        return MISUSE_DOUBLE_FREE;
    return fault == GUARD_OVERFLOW ? MISUSE_OVERFLOW : MISUSE_UNDERFLOW;
}

void guard_free(uintptr_t address, const char *call)
{
    struct os_signals signals;
    struct guard_block *block = &guard.blocks[slot_of(address)];
    struct guard_finding finding = {.fault = GUARD_SOUND};
    os_fault_watch(on_fault);
    uint32_t stack = profile_stack_here();
    enter(&signals);
    struct misuse misuse = misuse_of(address, block);
    struct guard_block was = *block;
    if (misuse.kind == MISUSE_NONE) {
        finding = finding_of(block);
        give(block, stack);
        was = *block;
    } else if (misuse.kind == MISUSE_DOUBLE_FREE && address == block->start) {
        finding = (struct guard_finding){.fault = GUARD_DOUBLE_FREE, .address = address};
    }
    leave(&signals);
    if (finding.fault == GUARD_SOUND) {
        misuse_report(call, &misuse);
        return;
    }
    guard_report(&was, &finding);
    misuse =
        (struct misuse){.kind = kind_of(finding.fault), .address = was.start, .bytes = was.bytes};
    misuse_report_said(call, &misuse);
}

/* ---- Faults ---- */

/* What a touch of an address is for a block: what kind of fault, and how far from the block. */
static struct guard_finding finding_at(const struct guard_block *block, uintptr_t address)
{
    struct guard_finding finding = {.fault = GUARD_SOUND, .address = address};
    uint32_t state = __atomic_load_n(&block->state, __ATOMIC_ACQUIRE);
    uintptr_t end = block->start + block->bytes;
    if (state == GUARD_UNUSED)
        return finding;
    finding.fault = address < block->start ? GUARD_UNDERFLOW : GUARD_OVERFLOW;
    finding.distance = address < block->start ? block->start - address : address - end + 1;
    if (state == GUARD_FREED)
        finding.fault = GUARD_USE_AFTER_FREE;
    if (address >= block->start && address < end)
        finding.distance = 0;
    return finding;
}

/* In a signal handler: without the lock. */
static void on_fault(uintptr_t address, const void *context)
{
    if (!guard_has(address))
        return;
    uint32_t number = slot_of(address);
    struct guard_finding finding = finding_at(&guard.blocks[number], address);
    /* In the guard between two blocks the nearer one counts. */
    if (address - slot_start(number) >= guard.slot && number + 1 < guard.slots) {
        struct guard_finding next = finding_at(&guard.blocks[number + 1], address);
        if (next.fault != GUARD_SOUND &&
            (finding.fault == GUARD_SOUND || next.distance < finding.distance)) {
            finding = next;
            number++;
        }
    }
    struct guard_block *block = &guard.blocks[number];
    /* relaxed: of two threads one reports it */
    if (finding.fault == GUARD_SOUND ||
        __atomic_exchange_n(&block->reported, true, __ATOMIC_RELAXED))
        return;
    finding.context = context;
    guard_report(block, &finding);
}

/* ---- Beginning, checking ---- */

bool guard_begin(size_t every, size_t most, uint64_t seed)
{
    guard.page = os_page_size();
    guard.slot = size_max(GUARD_BYTES, guard.page);
    guard.slots = (uint32_t)most * GUARD_SLOTS_PER_BLOCK;
    size_t bytes = guard.page + guard.slots * (guard.slot + guard.page);
    guard.blocks = meta_map(guard.slots * sizeof(*guard.blocks));
    char *start = guard.blocks == NULL ? NULL : meta_map(bytes);
    if (start == NULL || !page_map_reserve(start, bytes) || !os_shut(start, bytes))
        return false;
    page_map_fill_classes(start, bytes >> PAGE_SHIFT, PAGE_MAP_OTHER);
    /* relaxed: as long as `bytes` is 0 no address is among the slots */
    __atomic_store_n(&guard.start, (uintptr_t)start, __ATOMIC_RELAXED);
    __atomic_store_n(&guard.bytes, bytes, __ATOMIC_RELAXED);
    guard.fresh = guard.slots;
    guard.most = (uint32_t)most;
    guard.random = seed;
    guard.rate = sampler_rate_of(every);
    profile_watch(WATCH_GUARDS, true);
    return true;
}

static const char *check(void)
{
    uint32_t live = 0, freed = 0;
    for (uint32_t number = 0; number < guard.slots - guard.fresh; number++) {
        const struct guard_block *block = &guard.blocks[number];
        live += block->state == GUARD_LIVE;
        if (block->state == GUARD_LIVE && finding_of(block).fault != GUARD_SOUND)
            return check_found((const void *)block->start,
                               "a guarded block was written past its end");
    }
    for (uint32_t next = guard.first_free; next != 0; next = guard.blocks[next - 1].next)
        freed++;
    return live != guard.live || live + freed + guard.fresh != guard.slots
               ? "guarded blocks and free slots are not all slots"
               : NULL;
}

const char *guard_check(void)
{
    struct os_signals signals;
    if (guard.start == 0)
        return NULL;
    enter(&signals);
    const char *wrong = check();
    leave(&signals);
    return wrong;
}
