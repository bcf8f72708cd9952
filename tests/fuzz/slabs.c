/*
 * Bins of slabs: taking objects, giving them back, misuse. The harness is the magazine: like it, it
 * writes an object's key when it is freed.
 */
#include "slab/slab.h"

#include "world.h"

/* Two bins have one class, as two arenas do. */
enum { BINS = 4, OBJECTS_MOST = 2048, BATCH_MOST = 128, FREED = 16 };
static const uint8_t bin_classes[BINS] = {1, 6, 6, 64};

static struct shadow_bin {
    struct bin bin;
    size_t live_count;
    struct shadow_object {
        uintptr_t address;
        uint32_t id; /* of the contents */
    } live[OBJECTS_MOST];
} bins[BINS];

/* Some addresses that were freed, to be freed again. */
static uintptr_t freed[FREED];
static unsigned freed_next;

void slabs_begin(void)
{
    for (size_t i = 0; i < BINS; i++) {
        bins[i].bin = (struct bin){0};
        bin_init(&bins[i].bin, &page_heap, bin_classes[i]);
        bins[i].live_count = 0;
    }
    for (size_t i = 0; i < FREED; i++)
        freed[i] = 0;
}

/* The shadow knows itself how large a class is, and where its objects may lie. */
static size_t object_bytes(size_t class)
{
    return class * MIN_ALIGN;
}

static struct shadow_bin *bin_decode(struct input *input)
{
    return &bins[input_index(input, BINS)];
}

/* ---- Taking ---- */

static void object_enter(struct shadow_bin *shadow, uintptr_t address)
{
    size_t class = shadow->bin.class;
    size_t bytes = object_bytes(class);
    EXPECT(address % (64 * KIB) % bytes == 0, "an object of %zu bytes is not on the grid", bytes);
    EXPECT(page_map_class(address) == class, "an object's page has another class");
    EXPECT(*object_key_word(address) == object_key(address), "a free object has lost its key");
    struct shadow_object *object = &shadow->live[shadow->live_count++];
    *object = (struct shadow_object){address, pattern_new()};
    claim(address, bytes, CLAIM_NONE, CLAIM_BLOCK);
    pattern_fill(address, bytes, object->id);
}

static void take(struct input *input)
{
    struct shadow_bin *shadow = bin_decode(input);
    uint8_t how = input_byte(input);
    size_t count = 1 + how % BATCH_MOST;
    bool may_grow = how < 192 || how % 2 == 0;
    uintptr_t objects[BATCH_MOST];
    if (shadow->live_count + count > OBJECTS_MOST)
        return;
    size_t refused = fuzz_provider.refused;
    size_t taken = bin_alloc(&shadow->bin, objects, count, may_grow);
    EXPECT(taken <= count, "%zu objects were taken instead of %zu", taken, count);
    if (taken == 0) {
        EXPECT(shadow->bin.total_objects == shadow->live_count, "no object, but some are free");
        EXPECT(!may_grow || fuzz_provider.refused != refused,
               "no object, but the provider was not asked");
    }
    for (size_t i = 0; i < taken; i++) {
        if (i > 0 && page_map_entry(objects[i - 1]) == page_map_entry(objects[i]))
            EXPECT(objects[i - 1] < objects[i], "a slab's objects are not taken in order");
        object_enter(shadow, objects[i]);
    }
}

/* ---- Giving back ---- */

/* Makes an object look as the program leaves it to its magazine; returns its address. */
static uintptr_t object_leave(struct shadow_bin *shadow, size_t index)
{
    struct shadow_object object = shadow->live[index];
    size_t bytes = object_bytes(shadow->bin.class);
    shadow->live[index] = shadow->live[--shadow->live_count];
    pattern_expect(object.address, bytes, bytes, object.id);
    claim(object.address, bytes, CLAIM_BLOCK, CLAIM_NONE);
    *object_key_word(object.address) = object_key(object.address);
    freed[freed_next++ % FREED] = object.address;
    return object.address;
}

/* Of a class that two bins have, objects of both go together. */
static void give(struct input *input)
{
    struct shadow_bin *shadow = bin_decode(input);
    struct shadow_bin *other = shadow == &bins[1]   ? &bins[2]
                               : shadow == &bins[2] ? &bins[1]
                                                    : shadow;
    size_t count = 1 + input_byte(input) % BATCH_MOST;
    size_t step = input_byte(input);
    uintptr_t objects[BATCH_MOST];
    size_t given = 0;
    for (size_t at = step; given < count && shadow->live_count != 0; at += step) {
        objects[given++] = object_leave(shadow, at % shadow->live_count);
        if (given % 4 != 0 && other->live_count != 0) {
            struct shadow_bin *swap = shadow;
            shadow = other;
            other = swap;
        }
    }
    slabs_free(objects, given, "free");
}

static void trim(struct input *input)
{
    bin_trim(&bin_decode(input)->bin);
}

/* ---- Misuse ---- */

static bool is_live(uintptr_t address)
{
    for (size_t i = 0; i < BINS; i++)
        for (size_t k = 0; k < bins[i].live_count; k++)
            if (bins[i].live[k].address == address)
                return true;
    return false;
}

static size_t free_objects(void)
{
    size_t count = 0;
    for (size_t i = 0; i < BINS; i++)
        count += bins[i].bin.free_objects;
    return count;
}

/* Frees what must not be freed; returns what is reported. */
static struct misuse misuse_of(uintptr_t address)
{
    size_t count;
    size_t free_before = free_objects();
    misuse_expect();
    slabs_free(&address, 1, "free");
    struct misuse misuse = misuse_expected(&count);
    EXPECT(count == 1, "a bad pointer was reported %zu times", count);
    EXPECT(misuse.address == address, "another address than the bad one was reported");
    EXPECT(free_objects() == free_before, "a bad pointer was freed");
    return misuse;
}

static void give_again(struct input *input)
{
    uintptr_t address = freed[input_index(input, FREED)];
    if (address != 0 && !is_live(address))
        misuse_of(address);
}

static void give_inside(struct input *input)
{
    struct shadow_bin *shadow = bin_decode(input);
    if (shadow->live_count == 0)
        return;
    uintptr_t start = shadow->live[input_index(input, shadow->live_count)].address;
    size_t bytes = object_bytes(shadow->bin.class);
    struct misuse misuse = misuse_of(start + 1 + input_pair(input) % (bytes - 1));
    EXPECT(misuse.kind == MISUSE_INSIDE && misuse.start == start && misuse.bytes == bytes,
           "a pointer into an object was not recognised as such");
}

const struct operation slabs_operations[] = {
    {"bin_alloc", take, 8},
    {"slabs_free", give, 8},
    {"bin_trim", trim, 1},
    {"slabs_give twice", give_again, 1},
    {"slabs_give inside", give_inside, 1},
    {NULL, NULL, 0},
};

/* ---- The whole ---- */

void slabs_expect_sound(void)
{
    for (size_t i = 0; i < BINS; i++) {
        struct bin *bin = &bins[i].bin;
        const char *wrong = bin_check(bin);
        EXPECT(wrong == NULL, "bin_check: %s", wrong);
        EXPECT(bin->free_objects + bins[i].live_count == bin->total_objects,
               "%zu objects are free and %zu live of %zu", bin->free_objects, bins[i].live_count,
               bin->total_objects);
    }
}

size_t slabs_pages(void)
{
    size_t pages = 0;
    for (size_t i = 0; i < BINS; i++)
        pages += bins[i].bin.slab_count * size_classes[bin_classes[i]].slab_pages;
    return pages;
}

void slabs_end(void)
{
    for (size_t i = 0; i < BINS; i++) {
        while (bins[i].live_count != 0) {
            uintptr_t address = object_leave(&bins[i], bins[i].live_count - 1);
            slabs_free(&address, 1, "free");
        }
        bin_trim(&bins[i].bin);
    }
    slabs_expect_sound();
    for (size_t i = 0; i < BINS; i++)
        EXPECT(bins[i].bin.slab_count == 0 && bins[i].bin.total_objects == 0,
               "%u slabs stay after all objects were freed", bins[i].bin.slab_count);
}
