/*
 * The names of jemalloc (mallocx and its like, and the mallctl names that programs ask for),
 * each also with the prefix je_. What they mean is said in jemalloc's manual, whose interface of
 * version 5 this is: 32 bits of flags with the logarithm of an alignment (6 bits), "zero" (bit 6),
 * a thread's cache (from bit 8 on) and an arena (from bit 20 on). Caches and arenas are snug's own
 * matter, so those two are accepted and have no effect.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compat.h"

enum { FLAGS_LOG_ALIGN = 63, FLAGS_ZERO = 64, ALIGN_LEAST = 16 };

static size_t flags_alignment(int flags)
{
    size_t alignment = (size_t)1 << (flags & FLAGS_LOG_ALIGN);
    return alignment < ALIGN_LEAST ? ALIGN_LEAST : alignment;
}

/* A function under its plain name and with the prefix. */
#define BOTH_NAMES(result, name, parameters) \
    COMPAT_PUBLIC result name parameters; \
    COMPAT_PUBLIC result je_##name parameters __attribute__((alias(#name)));

BOTH_NAMES(void *, mallocx, (size_t size, int flags))
BOTH_NAMES(void *, rallocx, (void *block, size_t size, int flags))
BOTH_NAMES(size_t, xallocx, (void *block, size_t size, size_t extra, int flags))
BOTH_NAMES(size_t, sallocx, (const void *block, int flags))
BOTH_NAMES(void, dallocx, (void *block, int flags))
BOTH_NAMES(void, sdallocx, (void *block, size_t size, int flags))
BOTH_NAMES(size_t, nallocx, (size_t size, int flags))

void *mallocx(size_t size, int flags)
{
    size_t alignment = flags_alignment(flags);
    bool zero = flags & FLAGS_ZERO, aligned = alignment > ALIGN_LEAST;
    void *block = aligned ? snug_aligned_alloc(alignment, size)
                  : zero  ? snug_calloc(1, size)
                          : snug_malloc(size);
    /* "Zero" is meant of the usable size: rallocx goes on from there. */
    size_t cleared = aligned ? 0 : size;
    if (block != NULL && zero)
        memset((char *)block + cleared, 0, snug_malloc_usable_size(block) - cleared);
    return block;
}

/* The block at another alignment than realloc keeps. */
static void *move_aligned(void *block, size_t old, size_t size, size_t alignment)
{
    void *moved = snug_aligned_alloc(alignment, size);
    if (moved == NULL)
        return NULL;
    memcpy(moved, block, old < size ? old : size);
    snug_free(block);
    return moved;
}

void *rallocx(void *block, size_t size, int flags)
{
    size_t alignment = flags_alignment(flags), old = snug_malloc_usable_size(block);
    void *resized = alignment > ALIGN_LEAST ? move_aligned(block, old, size, alignment)
                                            : snug_realloc(block, size != 0 ? size : 1);
    size_t now = snug_malloc_usable_size(resized);
    if (resized != NULL && (flags & FLAGS_ZERO) && now > old)
        memset((char *)resized + old, 0, now - old);
    return resized;
}

/* snug has no resizing in place alone; to say that nothing could be done is always right. */
size_t xallocx(void *block, size_t size, size_t extra, int flags)
{
    (void)size, (void)extra, (void)flags;
    return snug_malloc_usable_size(block);
}

size_t sallocx(const void *block, int flags)
{
    (void)flags;
    return snug_malloc_usable_size((void *)block);
}

void dallocx(void *block, int flags)
{
    (void)flags;
    snug_free(block);
}

void sdallocx(void *block, size_t size, int flags)
{
    (void)flags;
    snug_free_sized(block, size);
}

size_t nallocx(size_t size, int flags)
{
    return compat_granted(flags_alignment(flags), size);
}

/* ---- malloc's own names with the prefix ---- */

COMPAT_PUBLIC void *je_malloc(size_t size);
COMPAT_PUBLIC void *je_calloc(size_t count, size_t size);
COMPAT_PUBLIC void *je_realloc(void *block, size_t size);
COMPAT_PUBLIC void *je_aligned_alloc(size_t alignment, size_t size);
COMPAT_PUBLIC int je_posix_memalign(void **result, size_t alignment, size_t size);
COMPAT_PUBLIC void je_free(void *block);
COMPAT_PUBLIC size_t je_malloc_usable_size(const void *block);

void *je_malloc(size_t size)
{
    return snug_malloc(size);
}

void *je_calloc(size_t count, size_t size)
{
    return snug_calloc(count, size);
}

void *je_realloc(void *block, size_t size)
{
    return snug_realloc(block, size);
}

void *je_aligned_alloc(size_t alignment, size_t size)
{
    return snug_aligned_alloc(alignment, size);
}

int je_posix_memalign(void **result, size_t alignment, size_t size)
{
    return snug_posix_memalign(result, alignment, size);
}

void je_free(void *block)
{
    snug_free(block);
}

size_t je_malloc_usable_size(const void *block)
{
    return snug_malloc_usable_size((void *)block);
}

/* ---- mallctl ---- */

enum type { TYPE_SIZE, TYPE_UNSIGNED, TYPE_U64, TYPE_BOOL, TYPE_TEXT, TYPE_NONE };

union value {
    size_t size;
    unsigned number;
    uint64_t u64;
    bool boolean;
    const char *text;
};

static const size_t type_bytes[] = {
    [TYPE_SIZE] = sizeof(size_t), [TYPE_UNSIGNED] = sizeof(unsigned), [TYPE_U64] = sizeof(uint64_t),
    [TYPE_BOOL] = sizeof(bool),   [TYPE_TEXT] = sizeof(char *),       [TYPE_NONE] = 0,
};

static void get_version(union value *value)
{
    value->text = "5.3.0-snug-" SNUG_VERSION_STRING;
}

static void get_epoch(union value *value)
{
    value->u64 = 1; /* statistics are always those of now */
}

static void get_page(union value *value)
{
    value->size = (size_t)sysconf(_SC_PAGESIZE);
}

static void get_quantum(union value *value)
{
    value->size = ALIGN_LEAST;
}

static void get_one(union value *value)
{
    value->number = 1;
}

static void get_none(union value *value)
{
    value->number = 0;
}

static void get_nothing(union value *value)
{
    value->size = 0;
}

static void get_false(union value *value)
{
    value->boolean = false;
}

static void get_allocated(union value *value)
{
    value->size = compat_stats().live;
}

static void get_active(union value *value)
{
    value->size = compat_active();
}

static void get_active_pages(union value *value)
{
    value->size = compat_active() / (size_t)sysconf(_SC_PAGESIZE);
}

static void get_resident(union value *value)
{
    value->size = compat_active() + compat_stats().purge_pending;
}

static void get_mapped(union value *value)
{
    value->size = compat_stats().mapped;
}

static void get_metadata(union value *value)
{
    value->size = compat_stats().metadata;
}

static void get_retained(union value *value)
{
    union value resident;
    get_resident(&resident);
    size_t mapped = compat_stats().mapped;
    value->size = mapped > resident.size ? mapped - resident.size : 0;
}

static void do_trim(void)
{
    snug_malloc_trim(0);
}

static void do_nothing(void) {}

/* A `#` stands for the number of an arena; there is but one to be seen, and each number is it. */
/* Of arenas, 0 is the heap, and 4096 means all of them. */
#define OF_ARENAS(name, get) \
    {"stats.arenas.0." name, TYPE_SIZE, get, NULL}, \
        {"stats.arenas.4096." name, TYPE_SIZE, get, NULL}, \
    { \
        "stats.arenas.#." name, TYPE_SIZE, get_nothing, NULL \
    }

static const struct control {
    const char *name;
    enum type type;
    void (*get)(union value *value); /* NULL: it cannot be read */
    void (*set)(void);               /* NULL: it cannot be written, nor called */
} controls[] = {
    {"version", TYPE_TEXT, get_version, NULL},
    {"epoch", TYPE_U64, get_epoch, do_nothing},
    {"background_thread", TYPE_BOOL, get_false, do_nothing},
    {"thread.tcache.flush", TYPE_NONE, NULL, do_trim},
    {"thread.idle", TYPE_NONE, NULL, do_trim},
    {"opt.narenas", TYPE_UNSIGNED, get_one, NULL},
    {"arenas.narenas", TYPE_UNSIGNED, get_one, NULL},
    {"arenas.page", TYPE_SIZE, get_page, NULL},
    {"arenas.quantum", TYPE_SIZE, get_quantum, NULL},
    /* Whoever makes an arena of his own gets the number of one in which nothing is, as all is in
       the first. */
    {"arenas.create", TYPE_UNSIGNED, get_one, do_nothing},
    {"arenas.nbins", TYPE_UNSIGNED, get_none, NULL},
    {"tcache.create", TYPE_UNSIGNED, get_none, NULL},
    {"tcache.flush", TYPE_UNSIGNED, NULL, do_nothing},
    {"tcache.destroy", TYPE_UNSIGNED, NULL, do_nothing},
    {"arena.#.purge", TYPE_NONE, NULL, do_trim},
    {"arena.#.decay", TYPE_NONE, NULL, do_trim},
    {"stats.allocated", TYPE_SIZE, get_allocated, NULL},
    {"stats.active", TYPE_SIZE, get_active, NULL},
    {"stats.resident", TYPE_SIZE, get_resident, NULL},
    {"stats.mapped", TYPE_SIZE, get_mapped, NULL},
    {"stats.metadata", TYPE_SIZE, get_metadata, NULL},
    {"stats.retained", TYPE_SIZE, get_retained, NULL},
    OF_ARENAS("small.allocated", get_allocated),
    OF_ARENAS("small.resident", get_resident),
    OF_ARENAS("large.allocated", get_nothing), /* they are among the others */
    OF_ARENAS("pactive", get_active_pages),
    OF_ARENAS("pmuzzy", get_nothing),
};

enum { CONTROLS = sizeof(controls) / sizeof(controls[0]) };

/* Whether `name` is that of a control, where digits may stand for its `#`. */
static bool name_fits(const char *pattern, const char *name)
{
    for (; *pattern != '\0'; pattern++) {
        if (*pattern != '#') {
            if (*name++ != *pattern)
                return false;
            continue;
        }
        size_t digits = strspn(name, "0123456789");
        if (digits == 0)
            return false;
        name += digits;
    }
    return *name == '\0';
}

static const struct control *control_find(const char *name)
{
    for (size_t i = 0; i < CONTROLS; i++)
        if (name_fits(controls[i].name, name))
            return &controls[i];
    return NULL;
}

/* As jemalloc: of a length that does not fit, what fits is copied, and EINVAL says so. */
static int control_read(const struct control *control, void *old, size_t *old_bytes)
{
    union value value;
    size_t bytes = type_bytes[control->type];
    if (control->get == NULL)
        return EPERM;
    if (old_bytes == NULL)
        return EINVAL;
    control->get(&value);
    size_t copied = *old_bytes < bytes ? *old_bytes : bytes;
    memcpy(old, &value, copied);
    int result = *old_bytes == bytes ? 0 : EINVAL;
    *old_bytes = copied;
    return result;
}

static int control_do(const struct control *control, void *old, size_t *old_bytes, const void *new,
                      size_t new_bytes)
{
    bool is_call = control->type == TYPE_NONE;
    if (new != NULL && control->set == NULL)
        return EPERM;
    if (new != NULL && new_bytes != type_bytes[control->type])
        return EINVAL;
    if ((new != NULL || is_call) && control->set != NULL)
        control->set();
    if (old == NULL)
        return 0;
    return control_read(control, old, old_bytes);
}

BOTH_NAMES(int, mallctl,
           (const char *name, void *old, size_t *old_bytes, void *new, size_t new_bytes))
BOTH_NAMES(int, mallctlnametomib, (const char *name, size_t *mib, size_t *parts))
BOTH_NAMES(int, mallctlbymib,
           (const size_t *mib, size_t parts, void *old, size_t *old_bytes, void *new,
            size_t new_bytes))
BOTH_NAMES(void, malloc_stats_print,
           (void (*print)(void *context, const char *text), void *context, const char *options))

int mallctl(const char *name, void *old, size_t *old_bytes, void *new, size_t new_bytes)
{
    const struct control *control = name != NULL ? control_find(name) : NULL;
    return control == NULL ? ENOENT : control_do(control, old, old_bytes, new, new_bytes);
}

static size_t name_parts(const char *name)
{
    size_t parts = 1;
    for (; *name != '\0'; name++)
        parts += *name == '.';
    return parts;
}

/* The first part is the control's number; a program may change the others, such as an arena's. */
int mallctlnametomib(const char *name, size_t *mib, size_t *parts)
{
    const struct control *control = name != NULL ? control_find(name) : NULL;
    if (control == NULL)
        return ENOENT;
    size_t needed = name_parts(name);
    if (*parts < needed)
        return EINVAL;
    memset(mib, 0, needed * sizeof(*mib));
    mib[0] = (size_t)(control - controls);
    *parts = needed;
    return 0;
}

int mallctlbymib(const size_t *mib, size_t parts, void *old, size_t *old_bytes, void *new,
                 size_t new_bytes)
{
    if (parts == 0 || mib[0] >= CONTROLS || parts != name_parts(controls[mib[0]].name))
        return ENOENT;
    return control_do(&controls[mib[0]], old, old_bytes, new, new_bytes);
}

void malloc_stats_print(void (*print)(void *context, const char *text), void *context,
                        const char *options)
{
    char text[512];
    (void)options;
    if (print == NULL) {
        snug_malloc_stats();
        return;
    }
    compat_write_stats(text, sizeof(text));
    print(context, text);
}
