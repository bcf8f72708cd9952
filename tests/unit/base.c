/*
 * Tests of base/: bits, bitmaps, lists, clearing and copying, and the arithmetic of sizes, each
 * against a plain computation.
 */
#include "support.h"

#include <inttypes.h>
#include <string.h>

#include "base/bits.h"
#include "base/bytes.h"
#include "base/list.h"
#include "base/siphash.h"

/* ---- bits.h ---- */

TEST(single_bits_are_lowest_and_highest)
{
    for (unsigned i = 0; i < 64; i++) {
        uint64_t word = (uint64_t)1 << i;
        assert_int_equal(bit_lowest(word), i);
        assert_int_equal(bit_highest(word), i);
        assert_int_equal(bit_count(word), 1);
    }
}

TEST(bits_of_random_words_agree_with_a_loop)
{
    uint64_t seed = 1;
    for (unsigned round = 0; round < 2000; round++) {
        uint64_t word = random_next(&seed) & random_next(&seed);
        unsigned count = 0, lowest = 64, highest = 0;
        for (unsigned i = 0; i < 64; i++)
            if (word >> i & 1) {
                count++;
                highest = i;
                lowest = lowest == 64 ? i : lowest;
            }
        assert_int_equal(bit_count(word), count);
        if (word != 0) {
            assert_int_equal(bit_lowest(word), lowest);
            assert_int_equal(bit_highest(word), highest);
        }
    }
    assert_int_equal(bit_count(0), 0);
    assert_int_equal(bit_count(~(uint64_t)0), 64);
}

/* Exact where both have room in 32 bits; otherwise nine digits of what is a part. */
TEST(numbers_are_scaled_as_by_long_division)
{
    uint64_t seed = 4;
    for (unsigned round = 0; round < 200000; round++) {
        uint64_t whole = (random_next(&seed) >> random_below(&seed, 64)) | 1;
        uint64_t part = random_next(&seed) >> random_below(&seed, 64);
        uint64_t value = random_next(&seed) >> random_below(&seed, 64);
        bool are_short = (part | whole) >> 32 == 0;
        long double exact = (long double)value * part / whole;
        if (exact > (long double)INT64_MAX || (!are_short && part > whole))
            continue;
        long double wrong = exact - scale(value, part, whole);
        long double most = are_short ? 2 : 2 + value / (long double)(1 << 30);
        ASSERT_THAT(wrong < most && wrong > -most, "%" PRIu64 " * %" PRIu64 " / %" PRIu64, value,
                    part, whole);
    }
    assert_int_equal(scale(1000, 1, 3), 333);
    assert_int_equal(scale(1000, 2, 3), 666);
    assert_int_equal(scale(UINT64_MAX, 0, 1), 0);
    assert_int_equal(scale(5, UINT64_MAX, UINT64_MAX), 5);
    assert_int_equal(scale(1, UINT64_MAX, 1), UINT32_MAX); /* no division by what became zero */
}

enum { WORDS = 5 };

TEST(bitmap_changes_one_bit_at_a_time)
{
    uint64_t map[WORDS] = {0};
    bool model[WORDS * 64] = {false};
    uint64_t seed = 2;
    for (unsigned round = 0; round < 3000; round++) {
        size_t index = random_below(&seed, sizeof(model));
        model[index] = random_next(&seed) >> 63;
        if (model[index])
            bitmap_set(map, index);
        else
            bitmap_clear(map, index);
        if (round % 100 == 0)
            for (size_t i = 0; i < sizeof(model); i++)
                assert_int_equal(bitmap_get(map, i), model[i]);
    }
}

static size_t next_by_loop(const uint64_t *map, size_t from)
{
    while (from < WORDS * 64 && !bitmap_get(map, from))
        from++;
    return from;
}

TEST(bitmap_next_finds_what_a_loop_finds)
{
    uint64_t map[WORDS];
    uint64_t seed = 3;
    for (unsigned bits = 0; bits <= 40; bits++) {
        memset(map, 0, sizeof(map));
        for (unsigned i = 0; i < bits; i++)
            bitmap_set(map, random_below(&seed, WORDS * 64));
        for (size_t from = 0; from < WORDS * 64; from++)
            assert_int_equal(bitmap_next(map, WORDS, from), next_by_loop(map, from));
        for (size_t from = 0; from < WORDS * 64; from++) {
            size_t previous = from + 1;
            while (previous-- > 0 && !bitmap_get(map, previous))
                continue;
            assert_int_equal(bitmap_previous(map, from), previous);
        }
    }
}

TEST(bitmap_next_stops_at_the_end)
{
    uint64_t map[WORDS + 1] = {0};
    map[WORDS] = ~(uint64_t)0; /* beyond what it is told to search */
    assert_int_equal(bitmap_next(map, WORDS, 0), WORDS * 64);
    assert_int_equal(bitmap_next(map, WORDS, WORDS * 64 - 1), WORDS * 64);
    assert_int_equal(bitmap_next(map, WORDS, WORDS * 64), WORDS * 64);
    assert_int_equal(bitmap_next(map, WORDS, WORDS * 64 + 7), WORDS * 64);
    bitmap_set(map, WORDS * 64 - 1);
    assert_int_equal(bitmap_next(map, WORDS, 0), WORDS * 64 - 1);
    assert_int_equal(bitmap_next(map, WORDS, WORDS * 64 - 1), WORDS * 64 - 1);
}

/* ---- list.h ---- */

struct element {
    int before;
    struct list link;
};

TEST(list_keeps_the_order_of_pushes)
{
    struct list head;
    struct element elements[5];
    list_init(&head);
    assert_true(list_empty(&head));
    for (int i = 0; i < 5; i++) {
        elements[i].before = i;
        list_push(&head, &elements[i].link);
        assert_false(list_empty(&head));
    }
    int expected = 4;
    LIST_EACH(node, &head)
        assert_int_equal(CONTAINER_OF(node, struct element, link)->before, expected--);
    assert_int_equal(expected, -1);
}

/* The ring is whole in both directions and has `count` nodes. */
static void assert_ring(const struct list *head, size_t count)
{
    size_t seen = 0;
    for (const struct list *node = head;; node = node->next) {
        assert_ptr_equal(node->next->prev, node);
        assert_ptr_equal(node->prev->next, node);
        if (node->next == head)
            break;
        seen++;
    }
    assert_int_equal(seen, count);
}

TEST(list_nodes_leave_from_anywhere)
{
    enum { NODES = 6 };
    static const int orders[][NODES] = {{0, 1, 2, 3, 4, 5}, {5, 4, 3, 2, 1, 0}, {2, 5, 0, 3, 1, 4}};
    for (size_t order = 0; order < sizeof(orders) / sizeof(orders[0]); order++) {
        struct list head;
        struct list nodes[NODES];
        list_init(&head);
        for (int i = 0; i < NODES; i++)
            list_push(&head, &nodes[i]);
        for (int i = 0; i < NODES; i++) {
            struct list *node = &nodes[orders[order][i]];
            list_remove(node);
            assert_true(list_empty(node));
            assert_ring(&head, (size_t)(NODES - 1 - i));
        }
        assert_true(list_empty(&head));
    }
}

TEST(list_remove_is_harmless_when_repeated)
{
    struct list head, node, other;
    list_init(&head);
    list_push(&head, &node);
    list_push(&head, &other);
    list_remove(&node);
    list_remove(&node);
    assert_ring(&head, 1);
    list_push(&head, &node);
    assert_ring(&head, 2);
}

/* ---- common.h ---- */

TEST(alignment_rounds_up_and_down)
{
    for (size_t alignment = 1; alignment <= 64; alignment *= 2)
        for (size_t value = 0; value < 300; value++) {
            assert_int_equal(align_down(value, alignment), value / alignment * alignment);
            assert_int_equal(align_up(value, alignment),
                             (value + alignment - 1) / alignment * alignment);
        }
    assert_int_equal(align_up(MAX_REQUEST, 64 * MIB), PTRDIFF_MAX / (64 * MIB) * (64 * MIB));
}

TEST(powers_of_two_are_told_from_others)
{
    assert_false(is_power_of_two(0));
    for (unsigned i = 0; i < 64; i++) {
        size_t power = (size_t)1 << i;
        assert_true(is_power_of_two(power));
        assert_int_equal(is_power_of_two(power + 1), power == 1);
        assert_int_equal(is_power_of_two(power - 1), power == 2);
    }
}

TEST(pages_are_rounded_up)
{
    assert_int_equal(bytes_to_pages(0), 0);
    assert_int_equal(bytes_to_pages(1), 1);
    assert_int_equal(bytes_to_pages(PAGE_BYTES), 1);
    assert_int_equal(bytes_to_pages(PAGE_BYTES + 1), 2);
    assert_int_equal(bytes_to_pages(MAX_REQUEST), MAX_REQUEST / PAGE_BYTES + 1);
    assert_int_equal(size_min(1, 2), 1);
    assert_int_equal(size_min(SIZE_MAX, 0), 0);
    assert_int_equal(size_max(1, 2), 2);
    assert_int_equal(size_max(SIZE_MAX, 0), SIZE_MAX);
}

/* ---- bytes.h ---- */

enum { ROOM = 2048, WALL = 64 }; /* of an area, and what must stay before and behind */

/* Whether from `start` on there are `bytes` of `inside`, and rubbish around them. */
static bool is_within(const unsigned char *area, size_t bytes, const unsigned char *inside)
{
    for (size_t i = 0; i < WALL; i++)
        if (area[i] != 0xee || area[WALL + bytes + i] != 0xee)
            return false;
    return memcmp(area + WALL, inside, bytes) == 0;
}

TEST(clearing_clears_all_and_no_more)
{
    static unsigned char area[ROOM], zero[ROOM];
    for (size_t bytes = BYTES_STEP; bytes <= 1024; bytes += BYTES_STEP) {
        memset(area, 0xee, sizeof(area));
        assert_ptr_equal(bytes_clear(area + WALL, bytes), area + WALL);
        ASSERT_THAT(is_within(area, bytes, zero), "%zu bytes", bytes);
    }
}

TEST(copying_copies_all_and_no_more)
{
    static unsigned char area[ROOM], from[ROOM];
    for (size_t i = 0; i < ROOM; i++)
        from[i] = (unsigned char)(i * 7 + i / 256);
    for (size_t bytes = BYTES_STEP; bytes <= BYTES_SHORT; bytes += BYTES_STEP) {
        memset(area, 0xee, sizeof(area));
        bytes_copy(area + WALL, from, bytes);
        ASSERT_THAT(is_within(area, bytes, from), "%zu bytes", bytes);
    }
}

/* The one of the authors' test vectors that is of eight bytes. */
TEST(siphash_is_as_published)
{
    static const uint64_t secret[2] = {0x0706050403020100, 0x0f0e0d0c0b0a0908};
    assert_int_equal(siphash(secret, 0x0706050403020100), 0x93f5f5799a932462);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW(siphash_is_as_published),
        ROW(single_bits_are_lowest_and_highest),
        ROW(bits_of_random_words_agree_with_a_loop),
        ROW(numbers_are_scaled_as_by_long_division),
        ROW(bitmap_changes_one_bit_at_a_time),
        ROW(bitmap_next_finds_what_a_loop_finds),
        ROW(bitmap_next_stops_at_the_end),
        ROW(list_keeps_the_order_of_pushes),
        ROW(list_nodes_leave_from_anywhere),
        ROW(list_remove_is_harmless_when_repeated),
        ROW(alignment_rounds_up_and_down),
        ROW(powers_of_two_are_told_from_others),
        ROW(pages_are_rounded_up),
        ROW(clearing_clears_all_and_no_more),
        ROW(copying_copies_all_and_no_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
