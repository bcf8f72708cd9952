/*
 * The library's own code for reading statistics and writing them, as the tool uses it: on another
 * process. This file is its face towards Rust (live/ffi.rs), and has what that code refers to but
 * does not reach from outside. See src/base/peek.h and src/report/anchor.h.
 */
#include <assert.h>
#include <string.h>

#include "live/walk.h"
#include "options/options.h"
#include "platform/output.h"
#include "report/formats.h"

enum outside_result { OUTSIDE_DONE, OUTSIDE_UNREADABLE, OUTSIDE_NO_ANCHOR, OUTSIDE_OTHER_LAYOUT };

size_t outside_values_size(void);
int outside_anchor(outside_reader read, void *context, uintptr_t address, struct anchor *anchor);
size_t outside_anchor_size(void);
const char *outside_version(const struct anchor *anchor);
uintptr_t outside_trim_request(const struct anchor *anchor);
uintptr_t outside_trim_count(const struct anchor *anchor);
bool outside_read(outside_reader read, void *context, const struct anchor *anchor, int process,
                  unsigned depth, struct values *values);
void outside_because(struct values *values, const char *reason);
bool outside_write(const struct values *values, const char *format, bool detail, int descriptor);
bool outside_value(const struct values *values, const char *name, uint64_t *value);
bool outside_class(const struct values *values, size_t class, uint64_t *size, uint64_t *live,
                   uint64_t *idle);
bool outside_medium(const struct values *values, size_t row, uint64_t *to, uint64_t *blocks,
                    uint64_t *bytes);
bool outside_large(const struct values *values, size_t row, uint64_t *to, uint64_t *blocks,
                   uint64_t *bytes);
bool outside_heap(const struct values *values, size_t index, const char **name,
                  const char **provider, uint64_t numbers[6]);
bool outside_slabs(const struct values *values, size_t class, uint64_t numbers[6]);
bool outside_option(unsigned index, const char **name, const char **text, char *value,
                    size_t capacity);
bool outside_option_range(unsigned index, char *kind, uint64_t *least, uint64_t *most,
                          const char **choices);
void outside_options_reset(void);

/* Both in one piece, which is never moved. */
struct outside_values {
    struct values values;
    struct values_more more;
};

size_t outside_values_size(void)
{
    return sizeof(struct outside_values);
}

size_t outside_anchor_size(void)
{
    return sizeof(struct anchor);
}

/* Reads the anchor that should be at an address of the other process. */
int outside_anchor(outside_reader read, void *context, uintptr_t address, struct anchor *anchor)
{
    if (!read(context, address, anchor, sizeof(*anchor)))
        return OUTSIDE_UNREADABLE;
    if (memcmp(anchor->magic, ANCHOR_MAGIC, sizeof(ANCHOR_MAGIC)) != 0)
        return OUTSIDE_NO_ANCHOR;
    anchor->version[sizeof(anchor->version) - 1] = 0;
    static_assert(ANCHOR_LAYOUT != 0, "build.rs gives it");
    return anchor->layout == ANCHOR_LAYOUT ? OUTSIDE_DONE : OUTSIDE_OTHER_LAYOUT;
}

const char *outside_version(const struct anchor *anchor)
{
    return anchor->version;
}

uintptr_t outside_trim_request(const struct anchor *anchor)
{
    return (uintptr_t)&anchor->events->wanted.trim;
}

uintptr_t outside_trim_count(const struct anchor *anchor)
{
    return (uintptr_t)&anchor->events->trims;
}

bool outside_read(outside_reader read, void *context, const struct anchor *anchor, int process,
                  unsigned depth, struct values *values)
{
    struct peek peek = {.read = read, .context = context, .failed = false};
    struct values_more *more = &((struct outside_values *)values)->more;
    bool done = values_read(values, more, &peek, anchor, process, (enum values_depth)depth);
    values->reason = "asked for";
    if (done && depth == VALUES_WHOLE)
        outside_walk(read, context, anchor, values);
    return done;
}

/* `reason` is a constant. */
void outside_because(struct values *values, const char *reason)
{
    values->reason = reason;
}

/* The process that they are of, if they were read through another thread of it than its first. */
void outside_of(struct values *values, int process)
{
    values->process = process;
}

/* The format as SNUG_STATS_FORMAT has it. */
bool outside_write(const struct values *values, const char *format, bool detail, int descriptor)
{
    struct writer writer;
    char buffer[WRITER_BUFFER];
    writer_begin(&writer, descriptor, buffer, sizeof(buffer));
    return format_write(options_find_choice("STATS_FORMAT", format), values, detail, true, &writer);
}

/* A gauge or counter by its name in gauges.def or counters.def. False: unknown, or there is none.
 */
bool outside_value(const struct values *values, const char *name, uint64_t *value)
{
    *value = UNKNOWN;
#define GAUGE(group, field, unit, source, text) \
    if (strcmp(name, #field) == 0) \
        *value = values->field;
#include "report/gauges.def"
#undef GAUGE
#define COUNTER(field, text) \
    if (strcmp(name, #field) == 0) \
        *value = values->counters.field;
#include "stats/counters.def"
#undef COUNTER
    if (strcmp(name, "milliseconds") == 0)
        *value = values->milliseconds;
    return *value != UNKNOWN;
}

/* Blocks of a small class. False: there is no such class. */
bool outside_class(const struct values *values, size_t class, uint64_t *size, uint64_t *live,
                   uint64_t *idle)
{
    if (class == 0 || class >= CLASS_COUNT)
        return false;
    const struct class_totals *of = &values->more->classes[class];
    *size = class_bytes(class);
    *live = of->live;
    *idle = of->free + of->depots + of->cached;
    return true;
}

/* Medium blocks up to a size. False: there are no more rows. The counts are UNKNOWN if they are not
 * known. */
bool outside_medium(const struct values *values, size_t row, uint64_t *to, uint64_t *blocks,
                    uint64_t *bytes)
{
    if (row >= MEDIUM_ROWS)
        return false;
    *to = medium_row_to(row);
    const struct values_more *more = values->more;
    *blocks = more->medium_known ? more->medium[row].blocks : UNKNOWN;
    *bytes = more->medium_known ? more->medium[row].bytes : UNKNOWN;
    return true;
}

/* Large and huge blocks up to a size; UNKNOWN: without bound. False: there are no more rows. */
bool outside_large(const struct values *values, size_t row, uint64_t *to, uint64_t *blocks,
                   uint64_t *bytes)
{
    if (row >= LARGE_ROWS)
        return false;
    *to = large_row_to(row);
    *blocks = values->more->large.blocks[row];
    *bytes = values->more->large.bytes[row];
    return true;
}

/* A row of heaps of the program's own; the numbers are heaps, blocks, live, mapped, peak and quota.
 * False: there are no more rows. */
bool outside_heap(const struct values *values, size_t index, const char **name,
                  const char **provider, uint64_t numbers[6])
{
    if (index >= values->more->heaps.count)
        return false;
    const struct heap_row *row = &values->more->heaps.rows[index];
    *name = row->name;
    *provider = provider_name(row->provider);
    numbers[0] = row->heaps;
    numbers[1] = row->blocks;
    numbers[2] = row->live;
    numbers[3] = row->mapped;
    numbers[4] = row->peak;
    numbers[5] = row->quota;
    return true;
}

/* The slabs of a class: its size, slabs, objects in use and those there is room for, sparse slabs
 * and the bytes free in them. False: there is no such class, or they were not walked. */
bool outside_slabs(const struct values *values, size_t class, uint64_t numbers[6])
{
    if (class == 0 || class >= CLASS_COUNT || !values->more->sparse_known)
        return false;
    const struct class_totals *of = &values->more->classes[class];
    numbers[0] = class_bytes(class);
    numbers[1] = of->slabs;
    numbers[2] = of->live;
    numbers[3] = of->live + of->free + of->depots + of->cached;
    numbers[4] = values->more->sparse[class].slabs;
    numbers[5] = values->more->sparse[class].bytes;
    return true;
}

/* ---- Options: of the environment that the tool itself has ---- */

bool outside_option(unsigned index, const char **name, const char **text, char *value,
                    size_t capacity)
{
    static const char *const texts[] = {
#define OPTION_CHOICE(name, field, default_, choices, text_) text_,
#define OPTION_SET OPTION_CHOICE
#define OPTION_NUMBER(name, field, default_, least, most, text_) text_,
#define OPTION_SIZE OPTION_NUMBER
#define OPTION_FACTOR OPTION_NUMBER
#define OPTION_DELAY(name, field, default_, text_) text_,
#define OPTION_LIMIT(name, field, word, number, text_) text_,
#define OPTION_PATH(name, field, text_) text_,
#include "options/options.def"
    };
    if (index >= sizeof(texts) / sizeof(texts[0]))
        return false;
    struct text in_force;
    text_init(&in_force, value, capacity - 1);
    *name = options_describe(index, &in_force);
    value[in_force.length] = 0;
    *text = texts[index];
    return true;
}

/* What an option may be. Kinds: a choice, a set of choices, a number, size, delay, limit (a size or
 * the word that `choices` is), factor (in thousandths), path. */
bool outside_option_range(unsigned index, char *kind, uint64_t *least, uint64_t *most,
                          const char **choices)
{
    static const struct {
        const char *choices;
        size_t least, most;
        char kind;
    } ranges[] = {
#define OPTION_CHOICE(name, field, default_, choices_, text_) {choices_, 0, 0, 'c'},
#define OPTION_SET(name, field, default_, choices_, text_) {choices_, 0, 0, 's'},
#define OPTION_NUMBER(name, field, default_, least_, most_, text_) {"", least_, most_, 'n'},
#define OPTION_SIZE(name, field, default_, least_, most_, text_) {"", least_, most_, 'b'},
#define OPTION_FACTOR(name, field, default_, least_, most_, text_) {"", least_, most_, 'f'},
#define OPTION_DELAY(name, field, default_, text_) {"", 0, DELAY_MOST, 'd'},
#define OPTION_LIMIT(name, field, word, number, text_) {word, 0, 0, 'l'},
#define OPTION_PATH(name, field, text_) {"", 0, 0, 'p'},
#include "options/options.def"
    };
    if (index >= sizeof(ranges) / sizeof(ranges[0]))
        return false;
    *kind = ranges[index].kind;
    *least = ranges[index].least;
    *most = ranges[index].most;
    *choices = ranges[index].choices;
    return true;
}

/* All options are at their defaults again: those that they have before the first reading. */
void outside_options_reset(void)
{
    static struct options defaults;
    static bool known;
    if (!known)
        defaults = options;
    known = true;
    options = defaults;
}

/* ---- What is never reached from outside ---- */

const struct cache cache_none = {.held_bytes = 0};
__thread struct thread thread_self;
const struct anchor snug_anchor;
uint32_t lock_forking;
struct meta meta_system;
struct heap heap_default;
struct lock heaps_lock;
struct pages_in_use pages_in_use;
struct page_map page_map;
struct page_map_node *page_map_nodes[PAGE_MAP_NODES];

bool lock_is_forker(void)
{
    return false;
}

bool lock_try(struct lock *lock)
{
    (void)lock;
    return true;
}

void lock_wait(struct lock *lock)
{
    (void)lock;
}

void lock_wake(struct lock *lock)
{
    (void)lock;
}

void lock_acquire_call(struct lock *lock)
{
    (void)lock;
}

void lock_release_call(struct lock *lock)
{
    (void)lock;
}

size_t cache_cell_bytes(const struct cache *cache)
{
    (void)cache;
    return 0;
}
