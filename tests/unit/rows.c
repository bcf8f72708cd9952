/*
 * Tests of profile/rows.h: what is kept is what the program of a function comes to, and is not
 * found any more once a byte of that program, or of where it is, is another.
 */
#include "support.h"

#include <string.h>

#include "profile/rows.h"

enum { CODE_BYTES = 64, SHARED = 0, ENTRY = 20, BYTES = ENTRY + 28 };

/* A shared entry, "zR", CFA = rsp + 8, return address at CFA - 8; and that of a function at
 * `code`, which saves rbp in its first byte. Length, and what it is or where the shared one is;
 * in the second then the code relative to the field, and how long it is. */
static const uint8_t tables[BYTES] = {16, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b,
                                      0x0c, 7, 8,
                                      /* the return address stands in the function's own */
                                      24, 0, 0, 0, ENTRY + 4, 0, 0, 0};

struct object {
    uint8_t tables[BYTES];
    uint8_t code[CODE_BYTES];
};

static void object_init(struct object *object)
{
    static const uint8_t program[] = {0, 0x90, 1, 0x41, 0x0e, 16, 0x86, 2, 0, 0, 0, 0};
    memcpy(object->tables, tables, sizeof(tables));
    uint8_t *field = object->tables + ENTRY + 8;
    int32_t distance = (int32_t)(object->code - field);
    uint32_t bytes = CODE_BYTES;
    memcpy(field, &distance, 4);
    memcpy(field + 4, &bytes, 4);
    memcpy(field + 8, program, sizeof(program));
}

static uint64_t key_of(const struct object *object, unsigned offset)
{
    return rows_key(object->tables + ENTRY, (uintptr_t)object->code + offset);
}

TEST(entries_lie_in_their_object)
{
    struct object object;
    object_init(&object);
    uint8_t *entry = object.tables + ENTRY;
    uintptr_t start = (uintptr_t)object.tables, end = start + BYTES;
    assert_true(cfi_is_within(entry, start, end));
    assert_false(cfi_is_within(entry, start, end - 1));
    assert_false(cfi_is_within(entry, start + 1, end)); /* the shared one is not */
    assert_false(cfi_is_within(entry, end, end + BYTES));
    assert_false(cfi_is_within((uint8_t *)end - 7, start, end));
    entry[3] = 0x7f; /* longer than anything */
    assert_false(cfi_is_within(entry, start, end));
    entry[3] = 0;
    object.tables[SHARED + 3] = 0x7f;
    assert_false(cfi_is_within(entry, start, end));
    object.tables[SHARED + 3] = 0;
    entry[7] = 0x7f; /* far before */
    assert_false(cfi_is_within(entry, start, end));
}

TEST(what_is_kept_is_the_row)
{
    struct object object;
    struct cfi_row row;
    struct kept_row before = {0}, behind = {0};
    object_init(&object);
    const uint8_t *entry = object.tables + ENTRY;
    assert_true(cfi_row_of(entry, (uintptr_t)object.code, &row));
    rows_keep(&before, key_of(&object, 0), &row);
    assert_true(cfi_row_of(entry, (uintptr_t)object.code + 1, &row));
    rows_keep(&behind, key_of(&object, 1), &row);
    assert_true(before.key == key_of(&object, 0) && before.key != behind.key);
    assert_true(before.cfa_register == CFI_RSP && before.cfa_offset == 8);
    assert_true(behind.cfa_register == CFI_RSP && behind.cfa_offset == 16);
    const uint8_t nothing[KEPT_SAVED] = {[6] = 1}, frame[KEPT_SAVED] = {[1] = 2, [6] = 1};
    assert_memory_equal(before.saved, nothing, KEPT_SAVED);
    assert_memory_equal(behind.saved, frame, KEPT_SAVED);
    assert_false(cfi_row_of(entry, (uintptr_t)object.code + CODE_BYTES, &row));
}

/* As if another library had come to the place of the one that the row was kept of. */
TEST(another_byte_is_another_key)
{
    struct object object;
    object_init(&object);
    uint64_t key = key_of(&object, 1);
    for (unsigned i = 0; i < BYTES; i++) {
        bool leads_there = i < 4 || (i >= ENTRY && i < ENTRY + 8); /* a length, or to the shared */
        if (leads_there)
            continue;
        object.tables[i] ^= 0x10;
        ASSERT_THAT(key_of(&object, 1) != key, "byte %u is no part of the key", i);
        object.tables[i] ^= 0x10;
    }
    assert_true(key_of(&object, 1) == key);
    object.tables[ENTRY] = 20; /* shorter by what does nothing */
    assert_true(key_of(&object, 1) != key);
    object.tables[ENTRY + 3] = 0xff; /* of another layout */
    assert_true(key_of(&object, 1) == 0);
}

TEST(other_rows_are_not_kept)
{
    struct object object;
    struct cfi_row row, plain;
    struct kept_row kept = {0};
    object_init(&object);
    assert_true(cfi_row_of(object.tables + ENTRY, (uintptr_t)object.code + 1, &plain));
    const struct cfi_rule others[] = {{{.offset = 8}, CFI_AT},
                                      {{.offset = -12}, CFI_AT},
                                      {{.offset = -8 * 255}, CFI_AT},
                                      {{.offset = -16}, CFI_IS},
                                      {{.offset = 0}, CFI_UNDEFINED}};
    for (unsigned i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        row = plain;
        row.rules[CFI_RBP] = others[i];
        rows_keep(&kept, 1, &row);
    }
    row = plain;
    row.rules[0] = (struct cfi_rule){{.offset = -16}, CFI_AT};
    rows_keep(&kept, 1, &row);
    row = plain;
    row.is_signal = true;
    rows_keep(&kept, 1, &row);
    row = plain;
    row.cfa.offset = (int64_t)1 << 40;
    rows_keep(&kept, 1, &row);
    row = plain;
    row.rules[CFI_RETURN].where = CFI_SAME;
    rows_keep(&kept, 1, &row);
    rows_keep(&kept, 0, &plain);
    assert_true(kept.key == 0);
    rows_keep(&kept, 1, &plain);
    assert_true(kept.key == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ROW(entries_lie_in_their_object), ROW(what_is_kept_is_the_row),
        ROW(another_byte_is_another_key), ROW(other_rows_are_not_kept)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
