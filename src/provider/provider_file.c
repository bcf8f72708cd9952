/*
 * Memory in files. See provider_file.h.
 */
#include "provider/provider_file.h"

#include <string.h>

#include "base/bits.h"
#include "platform/file.h"
#include "platform/memory.h"
#include "platform/output.h"

/* All providers of files, for fork. The lock of the list of locks guards it. */
static struct list files = {&files, &files};

static struct file_provider *file_of(struct pool *pool)
{
    return CONTAINER_OF(pool, struct file_provider, pool);
}

/* ---- Growing ---- */

static void report_failure(struct file_provider *file, size_t bytes, int error)
{
    if (file->reported || file->settings.silent)
        return;
    file->reported = true;
    const struct file_settings *settings = &file->settings;
    const char *path = settings->path != NULL ? settings->path : settings->directory;
    os_print(2, "snug: no file of %zu MiB for the heap %s%.*s: %s%s\n", bytes >> 20,
             settings->path != NULL ? "by the name " : "in ", 300, path, os_error_text(error),
             file->pool.fallback != NULL ? "; using memory" : "");
}

/* Adds a file as an extent. Returns 0 or -errno. */
static int extent_new(struct file_provider *file, size_t bytes)
{
    int descriptor = os_file_new(file->settings.directory, file->settings.path, bytes);
    if (descriptor < 0)
        return descriptor;
    char *start = os_file_map(descriptor, NULL, bytes);
    os_close(descriptor);
    if (start == NULL)
        return -os_error_memory;
    if (pool_add(&file->pool, start, bytes))
        return 0;
    os_unmap(start, bytes);
    return -os_error_memory;
}

/* Returns 0 or an errno. */
static int files_grow(struct file_provider *file, size_t bytes)
{
    const struct pool *pool = &file->pool;
    size_t least = align_up(bytes, os_page_size());
    size_t wanted = pool->bytes / 1000 * (file->settings.factor - 1000);
    if (pool->bytes == 0)
        wanted = file->settings.bytes;
    if (file->begun && !file->settings.grows)
        return os_error_memory;
    wanted = align_up(size_max(wanted, least), os_page_size());
    int error = extent_new(file, wanted);
    if (error != 0 && wanted > least && file->begun) {
        wanted = least;
        error = extent_new(file, wanted);
    }
    if (error != 0)
        report_failure(file, wanted, -error);
    return -error;
}

static bool grow(struct pool *pool, size_t bytes)
{
    return files_grow(file_of(pool), bytes) == 0;
}

int provider_file_init(struct file_provider *file, const struct file_settings *settings,
                       const struct provider *fallback)
{
    memset(file, 0, sizeof(*file));
    pool_init(&file->pool, KIND_FILES, grow);
    file->pool.fallback = fallback;
    file->pool.gives_back = settings->grows;
    file->settings = *settings;
    lock_acquire(provider_locks_lock());
    list_push(&files, &file->link);
    lock_release(provider_locks_lock());
    /* A fork copies what is in the list, and waits for this lock: it finds the file whole, or none.
     */
    lock_acquire(&file->pool.lock.lock);
    int error = files_grow(file, size_min(settings->bytes, os_page_size()));
    file->begun = true;
    lock_release(&file->pool.lock.lock);
    return error;
}

void provider_file_end(struct file_provider *file)
{
    lock_acquire(provider_locks_lock());
    list_remove(&file->link);
    lock_release(provider_locks_lock());
    pool_end(&file->pool);
}

bool provider_files_have(uintptr_t address)
{
    /* The only thread of a process, in a signal handler, may have the locks itself. */
    bool found = false, alone = lock_is_alone();
    if (!alone)
        lock_acquire(provider_locks_lock());
    LIST_EACH(node, &files) {
        struct pool *pool = &CONTAINER_OF(node, struct file_provider, link)->pool;
        if (!alone)
            lock_acquire(&pool->lock.lock);
        for (const struct extent *extent = pool->extents; extent != NULL; extent = extent->next)
            found |= address - (uintptr_t)extent->start < extent->pages << PAGE_SHIFT;
        if (!alone)
            lock_release(&pool->lock.lock);
    }
    if (!alone)
        lock_release(provider_locks_lock());
    return found;
}

/* ---- Fork ---- */

/* Calls `act` for each extent of each provider. */
static void each_extent(void (*act)(struct file_provider *file, struct extent *extent))
{
    LIST_EACH(node, &files) {
        struct file_provider *file = CONTAINER_OF(node, struct file_provider, link);
        for (struct extent *extent = file->pool.extents; extent != NULL; extent = extent->next)
            act(file, extent);
    }
}

/* The length in pages of the run from `page` on that is all handed out, or all not. */
static size_t run_length(const struct extent *extent, size_t page)
{
    bool taken = bitmap_get(extent->taken, page);
    size_t end = page + 1;
    while (end < extent->pages && bitmap_get(extent->taken, end) == taken)
        end++;
    return end - page;
}

/* Pages that are all zero, as most of a new segment is, need not be written. */
static bool page_is_zero(const char *page)
{
    const uint64_t *words = (const uint64_t *)page;
    for (size_t i = 0; i < PAGE_BYTES / sizeof(*words); i++)
        if (words[i] != 0)
            return false;
    return true;
}

static bool run_copy(const struct extent *extent, size_t page, size_t pages, int descriptor)
{
    const char *start = extent->start + (page << PAGE_SHIFT);
    for (size_t at = 0; at < pages;) {
        size_t end = at;
        while (end < pages && !page_is_zero(start + (end << PAGE_SHIFT)))
            end++;
        if (end != at && !os_file_write(descriptor, start + (at << PAGE_SHIFT),
                                        (end - at) << PAGE_SHIFT, (page + at) << PAGE_SHIFT))
            return false;
        at = end + 1;
    }
    return true;
}

static bool extent_copy_to_file(struct file_provider *file, struct extent *extent)
{
    extent->copy =
        os_file_new(file->settings.directory, file->settings.path, extent->pages << PAGE_SHIFT);
    if (extent->copy < 0)
        return false;
    size_t pages;
    for (size_t page = 0; page < extent->pages; page += pages) {
        pages = run_length(extent, page);
        if (bitmap_get(extent->taken, page) && !run_copy(extent, page, pages, extent->copy)) {
            os_close(extent->copy);
            extent->copy = -1;
            return false;
        }
    }
    return true;
}

static void extent_copy(struct file_provider *file, struct extent *extent)
{
    extent->copy_memory = NULL;
    if (extent_copy_to_file(file, extent))
        return;
    /* Most of it may never have been touched. */
    char *memory = os_map(extent->pages << PAGE_SHIFT, OS_PAGES_UNRESERVED);
    for (size_t page = 0; memory != NULL && page < extent->pages; page++) {
        const char *from = extent->start + (page << PAGE_SHIFT);
        if (bitmap_get(extent->taken, page) && !page_is_zero(from))
            memcpy(memory + (page << PAGE_SHIFT), from, PAGE_BYTES);
    }
    extent->copy_memory = memory;
}

static void extent_forget_copy(struct file_provider *file, struct extent *extent)
{
    (void)file;
    if (extent->copy >= 0)
        os_close(extent->copy);
    else if (extent->copy_memory != NULL)
        os_unmap(extent->copy_memory, extent->pages << PAGE_SHIFT);
    extent->copy = -1;
    extent->copy_memory = NULL;
}

static void extent_use_copy(struct file_provider *file, struct extent *extent)
{
    static const char message[] =
        "snug: no room for a copy of the heap, which a child of fork needs\n";
    size_t bytes = extent->pages << PAGE_SHIFT;
    bool done = extent->copy >= 0 ? os_file_map(extent->copy, extent->start, bytes) != NULL
                                  : extent->copy_memory != NULL &&
                                        os_move(extent->copy_memory, extent->start, bytes);
    if (!done) {
        /* A child that went on would write into the parent's heap. */
        os_write(2, message, sizeof(message) - 1);
        os_abort();
    }
    extent->copy_memory = NULL;
    extent_forget_copy(file, extent);
}

void provider_files_fork_before(void)
{
    each_extent(extent_copy);
}

void provider_files_fork_in_parent(void)
{
    each_extent(extent_forget_copy);
}

void provider_files_fork_in_child(void)
{
    each_extent(extent_use_copy);
}
