/*
 * How malloc's heap begins.
 *
 * The first malloc may come before libc and the library's own constructor are ready: from the
 * loader, or from another library's constructor. So the heap is made by whichever slow path comes
 * first, and what needs libc is registered by the constructor later (start.c).
 */
#include "heap/heap.h"
#include "heap/source.h"
#include "options/options.h"
#include "platform/thread.h"

struct heap heap_default;

static struct arena first_arena;
static struct lock init_lock = LOCK_INIT(RANK_INIT);
static bool init_done;
static bool options_done;

/* Where the environment may be that of somebody with fewer rights nothing in it counts, and nothing
 * is said about it: files would be opened, and lines be written, with rights that he does not have.
 * The variables are removed as well, as libc does with its own: if the process becomes another user
 * for good, a program that it starts cannot tell any more whose the environment was. */
void heap_read_options(char **environment)
{
    if (options_done || environment == NULL)
        return;
    if (os_is_privileged())
        os_environment_remove(environment, "SNUG_");
    else
        options_read((const char *const *)environment, 2);
    options_done = true;
}

void heap_init(void)
{
    /* acquire: pairs with the release below */
    if (__atomic_load_n(&init_done, __ATOMIC_ACQUIRE))
        return;
    lock_acquire(&init_lock);
    if (!init_done) {
        heap_read_options(os_environment());
        size_classes_init();
        /* Bits 62 and 63 make the key of any address no address, no small number and no text. */
        page_map.key = (os_random() & ~((uint64_t)3 << 62)) | (uint64_t)1 << 62;
        page_heap_init(&heap_default.page_heap, heap_source());
        page_heap_prepare(&heap_default.page_heap); /* and with it the home of the page map */
        unsigned arenas = options.arenas != 0 ? (unsigned)options.arenas : os_cpu_count();
        arenas_init(&heap_default.arenas, &heap_default.page_heap, &first_arena, arenas);
        /* release: who sees the heap ready sees it whole */
        __atomic_store_n(&init_done, true, __ATOMIC_RELEASE);
    }
    lock_release(&init_lock);
}

struct lock *heap_init_lock(void)
{
    return &init_lock;
}
