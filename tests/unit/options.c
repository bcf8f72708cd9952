/*
 * Tests of options/: every kind of value, its range, what is said about what cannot be used, and
 * the nearest name.
 */
#include "support.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "options/options.h"

/* Reads one variable, and returns what was reported. */
static const char *read_one(const char *variable)
{
    const char *const variables[] = {variable, NULL};
    int file = text_file();
    options_read(variables, file);
    const char *text = text_written(file);
    close(file);
    return text;
}

static void assert_silent(const char *variable)
{
    const char *said = read_one(variable);
    if (said[0] != 0)
        fail_msg("%s: \"%s\"", variable, said);
}

/* ---- Sizes ---- */

struct size_row {
    const char *value;
    size_t bytes;
};

TEST(sizes_are_read)
{
    static const struct size_row rows[] = {
        {"0", 0},
        {"64", 64},
        {"64b", 64},
        {"64B", 64},
        {"007", 7},
        {"4k", 4 * KIB},
        {"4K", 4 * KIB},
        {"4kb", 4 * KIB},
        {"4KB", 4 * KIB},
        {"4KiB", 4 * KIB},
        {"4kib", 4 * KIB},
        {"4Ki", 4 * KIB},
        {"4 KiB", 4 * KIB},
        {"4   m", 4 * MIB},
        {"3m", 3 * MIB},
        {"2 GB", 2 * GIB},
        {"1t", 1024 * GIB},
        {"1024G", 1024 * GIB},
        {"1.5k", 1536},
        {"1.5MiB", 1536 * KIB},
        {"0.25g", 256 * MIB},
        {"1.999k", 2046},
        {"1.9999999k", 2046}, /* thousandths are all that counts */
        {"0.001t", 1099511627},
        {"1.5", 1}, /* there is no half byte */
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char variable[64];
        snprintf(variable, sizeof(variable), "SNUG_DIRTY=%s", rows[i].value);
        options.dirty = 12345;
        assert_silent(variable);
        ASSERT_THAT(options.dirty == rows[i].bytes, "%s gave %zu", rows[i].value, options.dirty);
    }
}

TEST(what_is_no_size_is_refused)
{
    static const char *const values[] = {
        " ",
        "k",
        "MiB",
        "x",
        "4x",
        "4kk",
        "4kbb",
        "4kibi",
        "4i",
        "-1",
        "+1",
        " 4",
        "4k ",
        "0x10",
        "1e3",
        "1,5M",
        "1..5k",
        ".5k",
        "4 k b",
        "1025g",
        "1.001t",
        "2t",
        "99999999999t",
        "18446744073709551615",
        "18446744073709551616",
        "99999999999999999999999999999",
        "16777216t",
        "4\n",
    };
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        char variable[64], expected[160];
        snprintf(variable, sizeof(variable), "SNUG_DIRTY=%s", values[i]);
        snprintf(expected, sizeof(expected),
                 "snug: SNUG_DIRTY=%s is not a size in bytes from 0 to 1099511627776; "
                 "using 4194304\n",
                 values[i]);
        assert_string_equal(read_one(variable), expected);
        assert_int_equal(options.dirty, 4 * MIB);
    }
}

/* ---- Delays ---- */

TEST(delays_are_read)
{
    static const struct size_row rows[] = {
        {"-1", DELAY_NEVER}, {"never", DELAY_NEVER}, {"0", 0},       {"250", 250},
        {"250ms", 250},      {"250 ms", 250},        {"10s", 10000}, {"10 s", 10000},
        {"1.5s", 1500},      {"0.25s", 250},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char variable[64];
        snprintf(variable, sizeof(variable), "SNUG_PURGE_DELAY=%s", rows[i].value);
        options.purge_delay = 12345;
        assert_silent(variable);
        ASSERT_THAT(options.purge_delay == rows[i].bytes, "%s gave %zu", rows[i].value,
                    options.purge_delay);
    }
    assert_int_equal(options_nanoseconds(250), 250000000);
    assert_true(options_nanoseconds(DELAY_NEVER) == UINT64_MAX);
}

TEST(what_is_no_delay_is_refused)
{
    static const char *const values[] = {"nev", "-2", "-1s",         "s",  "1m",   "1 h",
                                         "1S",  "x",  "99999999999", "-0", "1e9s", "31622401s"};
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        char variable[64], expected[160];
        snprintf(variable, sizeof(variable), "SNUG_PURGE_DELAY=%s", values[i]);
        snprintf(
            expected, sizeof(expected),
            "snug: SNUG_PURGE_DELAY=%s is not a delay in milliseconds, -1 for never, from 0 to "
            "31622400000; using 10000\n",
            values[i]);
        assert_string_equal(read_one(variable), expected);
    }
    assert_silent("SNUG_PURGE_DELAY=-1");
    assert_contains(read_one("SNUG_PURGE_DELAY=-2"), "; using -1\n");
}

/* ---- Numbers and choices ---- */

TEST(numbers_are_read)
{
    assert_silent("SNUG_ARENAS=64");
    assert_int_equal(options.arenas, 64);
    assert_silent("SNUG_ARENAS=0");
    assert_int_equal(options.arenas, 0);
    assert_silent("SNUG_ARENAS=7");
    assert_int_equal(options.arenas, 7);
}

TEST(what_is_no_number_is_refused)
{
    static const char *const values[] = {
        "65", "-1", "3.5", " 3", "3 ", "3k", "x", "0x3", "99999999999999999999"};
    options.arenas = 5;
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        char variable[64], expected[128];
        snprintf(variable, sizeof(variable), "SNUG_ARENAS=%s", values[i]);
        snprintf(expected, sizeof(expected),
                 "snug: SNUG_ARENAS=%s is not a number from 0 to 64; using 5\n", values[i]);
        assert_string_equal(read_one(variable), expected);
        assert_int_equal(options.arenas, 5);
    }
}

TEST(choices_are_read)
{
    assert_int_equal(options.misuse, MISUSE_ABORT);
    assert_silent("SNUG_MISUSE=warn");
    assert_int_equal(options.misuse, MISUSE_WARN);
    assert_silent("SNUG_MISUSE=abort");
    assert_int_equal(options.misuse, MISUSE_ABORT);
    assert_silent("SNUG_CHECK=full");
    assert_int_equal(options.check, CHECK_FULL);
    assert_silent("SNUG_CHECK=fast");
    assert_int_equal(options.check, CHECK_FAST);
}

TEST(what_is_no_choice_is_refused)
{
    static const char *const values[] = {"foo", "abor", "aborts", "abort,warn", "WARN", " warn"};
    options.misuse = MISUSE_WARN;
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        char variable[64], expected[128];
        snprintf(variable, sizeof(variable), "SNUG_MISUSE=%s", values[i]);
        snprintf(expected, sizeof(expected),
                 "snug: SNUG_MISUSE=%s is not one of abort, warn, trap; using warn\n", values[i]);
        assert_string_equal(read_one(variable), expected);
        assert_int_equal(options.misuse, MISUSE_WARN);
    }
}

TEST(an_empty_value_is_none)
{
    static const char *const variables[] = {"SNUG_MISUSE",       "SNUG_MISUSE=", "SNUG_DIRTY=",
                                            "SNUG_PURGE_DELAY=", "SNUG_ARENAS=", "SNUG_PRESET="};
    struct options before = options;
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        assert_silent(variables[i]);
        assert_memory_equal(&options, &before, sizeof(options));
    }
}

TEST(paths_are_kept_as_they_are)
{
    char variable[] = "SNUG_STATS=/some/where=%p else";
    assert_null(options.stats);
    assert_silent(variable);
    /* A program that sets its title writes over its environment. */
    memset(variable, 'x', sizeof(variable) - 1);
    assert_string_equal(options.stats, "/some/where=%p else");
    assert_silent("SNUG_STATS=");
    assert_null(options.stats);
}

TEST(a_path_that_is_too_long_is_refused)
{
    static char variable[5000] = "SNUG_FILE=";
    memset(variable + 10, '/', 4095);
    assert_silent(variable);
    assert_int_equal(strlen(options.file), 4095);
    variable[10 + 4095] = '/';
    const char *said = read_one(variable);
    assert_non_null(strstr(said, " is not a path of at most 4095 bytes; using ////"));
    assert_int_equal(strlen(options.file), 4095);
    assert_silent("SNUG_FILE=");
}

/* ---- The whole table ---- */

static void assert_bounds(const char *name, size_t least, size_t most, const size_t *field)
{
    char variable[96];
    assert_in_range(*field, least, most); /* the default */
    snprintf(variable, sizeof(variable), "SNUG_%s=%zu", name, least);
    assert_silent(variable);
    assert_int_equal(*field, least);
    snprintf(variable, sizeof(variable), "SNUG_%s=%zu", name, most);
    assert_silent(variable);
    assert_int_equal(*field, most);
    snprintf(variable, sizeof(variable), "SNUG_%s=%zu", name, most + 1);
    assert_contains(read_one(variable), " is not a ");
    assert_int_equal(*field, most);
    if (least != 0) {
        snprintf(variable, sizeof(variable), "SNUG_%s=%zu", name, least - 1);
        assert_contains(read_one(variable), " is not a ");
        assert_int_equal(*field, most);
    }
}

static void assert_choices(const char *name, const char *choices, const unsigned *field)
{
    char variable[96];
    unsigned number = 0;
    while (*choices != 0) {
        size_t length = strcspn(choices, ",");
        snprintf(variable, sizeof(variable), "SNUG_%s=%.*s", name, (int)length, choices);
        assert_silent(variable);
        assert_int_equal(*field, number);
        number++;
        choices += length + (choices[length] == ',');
    }
    assert_true(number >= 2);
}

/* Each alone, all of them, and none. */
static void assert_set(const char *name, const char *choices, const unsigned *field)
{
    char variable[160];
    unsigned number = 0;
    for (const char *at = choices; *at != 0; number++) {
        size_t length = strcspn(at, ",");
        snprintf(variable, sizeof(variable), "SNUG_%s=%.*s", name, (int)length, at);
        assert_silent(variable);
        assert_int_equal(*field, 1u << number);
        at += length + (at[length] == ',');
    }
    snprintf(variable, sizeof(variable), "SNUG_%s=%s", name, choices);
    assert_silent(variable);
    assert_int_equal(*field, (1u << number) - 1);
    snprintf(variable, sizeof(variable), "SNUG_%s=", name);
    assert_silent(variable);
    assert_int_equal(*field, 0);
}

TEST(every_option_accepts_its_range_and_no_more)
{
#define OPTION_CHOICE(name, field, default_, choices, text) \
    assert_choices(#name, choices, &options.field);
#define OPTION_SET(name, field, default_, choices, text) assert_set(#name, choices, &options.field);
#define OPTION_NUMBER(name, field, default_, least, most, text) \
    assert_bounds(#name, least, most, &options.field);
#define OPTION_SIZE OPTION_NUMBER
#define OPTION_DELAY(name, field, default_, text) \
    assert_bounds(#name, 0, DELAY_MOST, &options.field);
#define OPTION_LIMIT(name, field, word, number, text) \
    assert_silent("SNUG_" #name "=1.5k"); \
    assert_int_equal(options.field, 1536); \
    assert_silent("SNUG_" #name "=" word); \
    assert_true(options.field == (number)); \
    assert_contains(read_one("SNUG_" #name "=" word "s"), "a size in bytes or " word); \
    assert_contains(read_one("SNUG_" #name "=18446744073709551615"), "a size in bytes or " word);
#define OPTION_FACTOR(name, field, default_, least, most, text) \
    assert_silent("SNUG_" #name "=1.75"); \
    assert_int_equal(options.field, 1750); \
    assert_silent("SNUG_" #name "=2"); \
    assert_int_equal(options.field, 2000); \
    assert_contains(read_one("SNUG_" #name "=1"), "a number from 1.01 to 16.0"); \
    assert_contains(read_one("SNUG_" #name "=1.2x"), "using 2.0");
#define OPTION_PATH(name, field, text) \
    assert_silent("SNUG_" #name "=x"); \
    assert_string_equal(options.field, "x");
#include "options/options.def"
}

/* ---- Presets ---- */

static void read_all(const char *first, const char *second)
{
    const char *const variables[] = {first, second, NULL};
    options_reset(NULL);
    options_read(variables, -1);
}

TEST(a_preset_sets_the_defaults_of_others)
{
    read_all("SNUG_PRESET=balanced", NULL);
    assert_int_equal(options.dirty, 4 * MIB);
    assert_int_equal(options.purge_delay, 10000);
    read_all("SNUG_PRESET=lean", NULL);
    assert_int_equal(options.dirty, MIB);
    assert_int_equal(options.thread_cache, 256 * KIB);
    assert_int_equal(options.huge_pages, HUGE_PAGES_NEVER);
    read_all("SNUG_PRESET=fast", NULL);
    assert_int_equal(options.dirty, 64 * MIB);
    assert_int_equal(options.cache_bytes, 4 * GIB);
    assert_int_equal(options.huge_pages, HUGE_PAGES_ALWAYS);
}

TEST(an_option_that_is_given_has_the_last_word)
{
    read_all("SNUG_PRESET=lean", "SNUG_DIRTY=3m");
    assert_int_equal(options.dirty, 3 * MIB);
    assert_int_equal(options.depot, 256 * KIB);
    read_all("SNUG_DIRTY=3m", "SNUG_PRESET=fast"); /* in any order */
    assert_int_equal(options.dirty, 3 * MIB);
    assert_int_equal(options.depot, 4 * MIB);
    options_reset(NULL);
    assert_string_equal(
        read_one("SNUG_PRESET=slim"),
        "snug: SNUG_PRESET=slim is not one of lean, balanced, fast, hardened; using balanced\n");
    assert_int_equal(options.dirty, 4 * MIB);
}

/* ---- Names ---- */

#define OPTION_CHOICE(name, field, default_, choices, text) #name,
#define OPTION_SET(name, field, default_, choices, text) #name,
#define OPTION_NUMBER(name, field, default_, least, most, text) #name,
#define OPTION_SIZE(name, field, default_, least, most, text) #name,
#define OPTION_DELAY(name, field, default_, text) #name,
#define OPTION_LIMIT(name, field, word, number, text) #name,
#define OPTION_FACTOR(name, field, default_, least, most, text) #name,
#define OPTION_PATH(name, field, text) #name,
static const char *const names[] = {
#include "options/options.def"
};
enum { NAMES = sizeof(names) / sizeof(names[0]) };

/* Levenshtein's distance by its definition: the table of all beginnings of both names. */
static size_t distance(const char *a, const char *b)
{
    size_t table[64][64];
    for (size_t i = 0; i <= strlen(a); i++)
        for (size_t j = 0; j <= strlen(b); j++) {
            if (i == 0 || j == 0) {
                table[i][j] = i + j;
                continue;
            }
            size_t changed = table[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            table[i][j] = size_min(changed, 1 + size_min(table[i - 1][j], table[i][j - 1]));
        }
    return table[strlen(a)][strlen(b)];
}

/* The suggestion for a name is at the least distance of all. */
static void assert_nearest(const char *name)
{
    char variable[64], suggested[64];
    snprintf(variable, sizeof(variable), "SNUG_%s=1", name);
    const char *said = read_one(variable);
    char format[96];
    snprintf(format, sizeof(format), "snug: SNUG_%s is not an option; did you mean SNUG_%%60[^?]",
             name);
    if (sscanf(said, format, suggested) != 1)
        fail_msg("SNUG_%s: \"%s\"", name, said);
    assert_string_equal(said + strlen(said) - 2, "?\n");
    size_t least = SIZE_MAX;
    for (size_t i = 0; i < NAMES; i++)
        least = size_min(least, distance(name, names[i]));
    ASSERT_THAT(distance(name, suggested) == least, "SNUG_%s: SNUG_%s", name, suggested);
}

static bool is_name(const char *name)
{
    for (size_t i = 0; i < NAMES; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

TEST(misspelt_names_are_answered_with_the_nearest)
{
    for (size_t i = 0; i < NAMES; i++) {
        size_t length = strlen(names[i]);
        for (size_t at = 0; at < length; at++) {
            char wrong[64];
            /* one letter less, one more, one changed */
            snprintf(wrong, sizeof(wrong), "%.*s%s", (int)at, names[i], names[i] + at + 1);
            if (!is_name(wrong))
                assert_nearest(wrong);
            snprintf(wrong, sizeof(wrong), "%.*sQ%s", (int)at, names[i], names[i] + at);
            assert_nearest(wrong);
            snprintf(wrong, sizeof(wrong), "%.*sQ%s", (int)at, names[i], names[i] + at + 1);
            if (!is_name(wrong)) /* it was a Q */
                assert_nearest(wrong);
        }
    }
}

TEST(small_letters_are_a_slip)
{
    assert_string_equal(read_one("SNUG_misuse=warn"),
                        "snug: SNUG_misuse is not an option; did you mean SNUG_MISUSE?\n");
    assert_string_equal(read_one("SNUG_Chek=full"),
                        "snug: SNUG_Chek is not an option; did you mean SNUG_CHECK?\n");
}

TEST(a_name_with_nothing_near_is_answered_with_where_all_are)
{
    static const char *const wrong[] = {"MAX_MEMRY", "NOPE", "X", "", "VERBOSE", "HELLO_WORLD"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        char variable[64], expected[96];
        snprintf(variable, sizeof(variable), "SNUG_%s=1", wrong[i]);
        snprintf(expected, sizeof(expected), "snug: SNUG_%s is not an option; see: snug options\n",
                 wrong[i]);
        assert_string_equal(read_one(variable), expected);
    }
    /* Of a long name one letter in three may be wrong, and no more. */
    assert_contains(read_one("SNUG_TRED_CASHE=1"), "did you mean SNUG_THREAD_CACHE?");
    assert_contains(read_one("SNUG_TRD_CASHEZZ=1"), "; see: snug options");
}

TEST(an_unknown_name_is_said_in_one_line)
{
    assert_string_equal(read_one("SNUG_MISUS=warn"),
                        "snug: SNUG_MISUS is not an option; did you mean SNUG_MISUSE?\n");
    assert_string_equal(read_one("SNUG_ARENA"),
                        "snug: SNUG_ARENA is not an option; did you mean SNUG_ARENAS?\n");
    assert_int_equal(options.misuse, MISUSE_ABORT);
}

TEST(what_is_not_ours_is_passed_over)
{
    static const char *const variables[] = {"PATH=/bin",
                                            "SNUG",
                                            "XSNUG_MISUSE=x",
                                            "",
                                            "=",
                                            "snug_misuse=x",
                                            "SNUGMISUSE=x",
                                            "SNUG_TEST_FULL=1",
                                            "SNUG_TEST_=",
                                            NULL};
    int file = text_file();
    struct options before = options;
    options_read(variables, file);
    assert_string_equal(text_written(file), "");
    assert_memory_equal(&options, &before, sizeof(options));
    close(file);
}

TEST(it_is_known_whether_any_is_given)
{
    const char *none[] = {"HOME=/", "SNUG=1", "SNUGGLE=1", "S", "", "SNUG_TEST_FULL=1", NULL};
    const char *wrong[] = {"HOME=/", "SNUG_NO_SUCH=1", NULL};
    const char *last[] = {"SNUG_TEST_FULL=1", "S", "SNUG_CHECK=full", NULL};
    assert_false(options_are_given(none));
    assert_true(options_are_given(wrong));
    assert_true(options_are_given(last));
}

TEST(several_variables_are_read_in_turn)
{
    static const char *const variables[] = {
        "SNUG_DEPOT=2k",   "HOME=/",        "SNUG_NOPE=1", "SNUG_ARENAS=x",
        "SNUG_CHECK=full", "SNUG_DEPOT=3k", NULL};
    int file = text_file();
    options_read(variables, file);
    const char *said = text_written(file);
    assert_int_equal(count_of(said, "\n"), 2);
    assert_contains(said, "SNUG_NOPE is not an option");
    assert_contains(said, "SNUG_ARENAS=x is not a number");
    assert_int_equal(options.depot, 3 * KIB);
    assert_int_equal(options.check, CHECK_FULL);
    assert_int_equal(options.arenas, 0);
    close(file);
}

TEST(without_a_descriptor_nothing_is_said)
{
    static const char *const variables[] = {"SNUG_NOPE=1", "SNUG_ARENAS=x", "SNUG_DEPOT=5", NULL};
    stderr_capture();
    options_read(variables, -1);
    assert_string_equal(stderr_restore(), "");
    assert_int_equal(options.depot, 5);
    assert_int_equal(options.arenas, 0);
}

TEST(long_names_and_values_are_cut)
{
    static char variable[5000] = "SNUG_MISUSE=";
    memset(variable + strlen(variable), 'v', 4000);
    const char *said = read_one(variable);
    assert_true(strlen(said) < 512);
    assert_contains(said, "vvv is not one of abort, warn, trap; using abort\n");
    memset(variable, 'N', 4000);
    memcpy(variable, "SNUG_", 5);
    said = read_one(variable);
    assert_true(strlen(said) < 512);
    assert_contains(said, "NNN is not an option; see: snug options");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW(sizes_are_read),
        ROW(what_is_no_size_is_refused),
        ROW(delays_are_read),
        ROW(what_is_no_delay_is_refused),
        ROW(numbers_are_read),
        ROW(what_is_no_number_is_refused),
        ROW(choices_are_read),
        ROW(what_is_no_choice_is_refused),
        ROW(an_empty_value_is_none),
        ROW(paths_are_kept_as_they_are),
        ROW(a_path_that_is_too_long_is_refused),
        ROW(every_option_accepts_its_range_and_no_more),
        ROW(a_preset_sets_the_defaults_of_others),
        ROW(an_option_that_is_given_has_the_last_word),
        ROW(misspelt_names_are_answered_with_the_nearest),
        ROW(small_letters_are_a_slip),
        ROW(a_name_with_nothing_near_is_answered_with_where_all_are),
        ROW(an_unknown_name_is_said_in_one_line),
        ROW(what_is_not_ours_is_passed_over),
        ROW(it_is_known_whether_any_is_given),
        ROW(several_variables_are_read_in_turn),
        ROW(without_a_descriptor_nothing_is_said),
        ROW(long_names_and_values_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
