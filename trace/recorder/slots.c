/*
 * slots.c - takes and submits slots of the shared memory; see slots.h.
 */
#include "slots.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    WAIT_MS = 100,
    /* The tool does a round every 50 ms. One that was not heard of for this many waits is gone. */
    WAITS_WITHOUT_BEAT = 100,
    /* After so many of the tool's rounds it has seen every slot that was full. */
    BEATS_OF_A_WHOLE_ROUND = 3,
    /* Slots that wait for the tool, 4 MiB: the processor's cache has room for as much, and the
     * system clears no more pages for them. In a loop that only allocates that was a sixth of the
     * time, when all 128 MiB could wait. */
    BACKLOG_MOST = 64,
};

/* As in <linux/futex.h>, which is not everywhere; between processes, so not the private ones. */
enum { FUTEX_WAIT = 0, FUTEX_WAKE = 1 };

struct region *slots_region;

bool slots_attach(const char *path)
{
    int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0)
        return false;
    struct stat found;
    struct region *region = MAP_FAILED;
    if (fstat(file, &found) == 0 && found.st_size > REGION_STATES)
        region = mmap(NULL, (size_t)found.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (region == MAP_FAILED)
        return false;
    if (region->magic != REGION_MAGIC || region->version != REGION_VERSION) {
        munmap(region, (size_t)found.st_size);
        return false;
    }
    slots_region = region;
    return true;
}

/* Submitted, and not emptied yet; one or two more or fewer while that changes. */
static int32_t backlog(void)
{
    /* acquire: the other is not read before it, so that it is not the older one */
    uint32_t freed = atomic_load_explicit(&slots_region->freed, memory_order_acquire);
    return (int32_t)(atomic_load_explicit(&slots_region->submitted, memory_order_relaxed) - freed);
}

static struct region_slot *take_free(void)
{
    for (uint32_t i = 0; i < slots_region->slot_count; i++) {
        uint32_t expected = SLOT_FREE;
        /* acquire: the tool has emptied the slot before it was freed */
        if (atomic_compare_exchange_strong_explicit(region_state(slots_region, i), &expected,
                                                    SLOT_OWNED, memory_order_acquire,
                                                    memory_order_relaxed))
            return region_slot(slots_region, i);
    }
    return NULL;
}

static bool any_full(void)
{
    for (uint32_t i = 0; i < slots_region->slot_count; i++)
        if (atomic_load_explicit(region_state(slots_region, i), memory_order_relaxed) == SLOT_FULL)
            return true;
    return false;
}

static void wait_for_change(_Atomic uint32_t *word, uint32_t seen)
{
    const struct timespec limit = {.tv_nsec = WAIT_MS * 1000000l};
    syscall(SYS_futex, word, FUTEX_WAIT, seen, &limit, NULL, 0);
}

enum slots_answer slots_take(struct region_slot **taken)
{
    uint32_t first_beat = atomic_load_explicit(&slots_region->beat, memory_order_relaxed);
    uint32_t last_beat = first_beat;
    for (int silent = 0; silent < WAITS_WITHOUT_BEAT; silent++) {
        /* acquire, before the look at the slots: one freed after it ends the wait at once */
        uint32_t freed = atomic_load_explicit(&slots_region->freed, memory_order_acquire);
        if (atomic_load_explicit(&slots_region->closed, memory_order_relaxed) != 0)
            return SLOTS_CLOSED;
        *taken = backlog() < BACKLOG_MOST ? take_free() : NULL;
        if (*taken != NULL)
            return SLOTS_TAKEN;

        uint32_t beat = atomic_load_explicit(&slots_region->beat, memory_order_relaxed);
        if (beat != last_beat) {
            last_beat = beat;
            silent = 0;
        }
        if (beat - first_beat >= BEATS_OF_A_WHOLE_ROUND && !any_full())
            return SLOTS_NONE;
        wait_for_change(&slots_region->freed, freed);
    }
    return SLOTS_CLOSED;
}

void slots_submit(struct region_slot *slot)
{
    size_t offset = (size_t)((char *)slot - (char *)region_slot(slots_region, 0));
    uint32_t index = (uint32_t)(offset / slots_region->slot_size);
    /* release: what was written is there for the tool, which reads the state first */
    atomic_store_explicit(region_state(slots_region, index), SLOT_FULL, memory_order_release);
    atomic_fetch_add_explicit(&slots_region->submitted, 1, memory_order_release);
    syscall(SYS_futex, &slots_region->submitted, FUTEX_WAKE, 1, NULL, NULL, 0);
}

void slots_count_lost(void)
{
    atomic_fetch_add_explicit(&slots_region->lost, 1, memory_order_relaxed);
}
