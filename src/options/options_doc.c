/*
 * Prints docs/options.md from the table of options. It is a program of its own, run by hand when
 * the table changes, and by the test docs.options, which compares.
 */
#include <stdio.h>
#include <string.h>

#include "options/options.h"

static void print_size(size_t bytes)
{
    static const char *const units[] = {"", " KiB", " MiB", " GiB", " TiB"};
    unsigned unit = 0;
    while (bytes != 0 && bytes % 1024 == 0 && unit < 4) {
        bytes /= 1024;
        unit++;
    }
    printf("%zu%s", bytes, units[unit]);
}

static void print_delay(size_t delay)
{
    if (delay == DELAY_NEVER)
        printf("-1");
    else if (delay != 0 && delay % 1000 == 0)
        printf("%zu s", delay / 1000);
    else
        printf("%zu ms", delay);
}

/* Prints the choices with commas between them; the default in bold. */
static void print_choices(const char *choices, unsigned in_force)
{
    for (unsigned index = 0; *choices != 0; index++) {
        size_t length = strcspn(choices, ",");
        printf("%s%s`%.*s`%s", index == 0 ? "" : ", ", index == in_force ? "**" : "", (int)length,
               choices, index == in_force ? "**" : "");
        choices += length + (choices[length] == ',');
    }
}

/* The same for a set, a bit for each. */
static void print_set(const char *choices, unsigned in_force)
{
    for (unsigned index = 0; *choices != 0; index++) {
        size_t length = strcspn(choices, ",");
        const char *mark = in_force >> index & 1 ? "**" : "";
        printf("%s%s`%.*s`%s", index == 0 ? "" : ", ", mark, (int)length, choices, mark);
        choices += length + (choices[length] == ',');
    }
}

static void print_choice(const char *choices, size_t number)
{
    for (; number != 0; number--)
        choices += strcspn(choices, ",") + 1;
    printf("`%.*s`", (int)strcspn(choices, ","), choices);
}

/* Prints the value of an option as it stands in the table of presets. */
static void print_value(const char *option, size_t value)
{
#define PRINT(name, print) \
    if (strcmp(option, #name) == 0) \
        print;
#define OPTION_CHOICE(name, field, default_, choices, text) \
    PRINT(name, print_choice(choices, value))
#define OPTION_NUMBER(name, field, default_, least, most, text) PRINT(name, printf("%zu", value))
#define OPTION_SIZE(name, field, default_, least, most, text) PRINT(name, print_size(value))
#define OPTION_DELAY(name, field, default_, text) PRINT(name, print_delay(value))
#include "options/options.def"
#undef PRINT
}

static void print_presets(void)
{
    printf(
        "\n## Presets\n\n| variable | `lean` | `balanced` | `fast` |\n| --- | --- | --- | --- |\n");
#define PRESET(name, field, lean, fast) \
    printf("| `SNUG_%s` | ", #name); \
    print_value(#name, lean); \
    printf(" | "); \
    print_value(#name, options.field); /* nothing has changed the defaults */ \
    printf(" | "); \
    print_value(#name, fast); \
    printf(" |\n");
#include "options/presets.def"
#undef PRESET
}

int main(void)
{
    printf(
        "# Options\n\n"
        "Options are environment variables, read once, at the program's first allocation. A name "
        "that does\nnot exist and a value that cannot be used are reported by one line on stderr, "
        "and the default\nholds. Sizes take `k`, `MiB`, `1.5G` and the like, in powers of 1024; "
        "delays `ms`, `s` and `never`.\nAn empty value is none. "
        "Names that begin with `SNUG_TEST_` are left to the project's own tests.\n\n"
        "A program that runs with rights that its caller need not have (set-user-ID, set-group-ID, "
        "capabilities of its\nfile: `AT_SECURE`) obeys none of them, says nothing about them, and "
        "does not hand them on to the programs that it\nstarts, as libc does it with its own.\n\n"
        "This page is made from `src/options/options.def`.\n\n"
        "| variable | values (default) | what it does |\n| --- | --- | --- |\n");
#define OPTION_CHOICE(name, field, default_, choices, text) \
    printf("| `SNUG_%s` | ", #name); \
    print_choices(choices, default_); \
    printf(" | %s |\n", text);
#define OPTION_SET(name, field, default_, choices, text) \
    printf("| `SNUG_%s` | any of ", #name); \
    print_set(choices, default_); \
    printf(" | %s |\n", text);
#define OPTION_NUMBER(name, field, default_, least, most, text) \
    printf("| `SNUG_%s` | %zu to %zu (%zu) | %s |\n", #name, (size_t)(least), (size_t)(most), \
           (size_t)(default_), text);
#define OPTION_SIZE(name, field, default_, least, most, text) \
    printf("| `SNUG_%s` | ", #name); \
    print_size(least); \
    printf(" to "); \
    print_size(most); \
    printf(" ("); \
    print_size(default_); \
    printf(") | %s |\n", text);
#define OPTION_DELAY(name, field, default_, text) \
    printf("| `SNUG_%s` | -1 (never), or 0 to %zu ms (", #name, (size_t)DELAY_MOST); \
    print_delay(default_); \
    printf(") | %s |\n", text);
#define OPTION_LIMIT(name, field, word, number, text) \
    printf("| `SNUG_%s` | bytes or `%s` (none) | %s |\n", #name, word, text);
#define OPTION_FACTOR(name, field, default_, least, most, text) \
    printf("| `SNUG_%s` | %g to %g (%g) | %s |\n", #name, (least) / 1000.0, (most) / 1000.0, \
           (default_) / 1000.0, text);
#define OPTION_PATH(name, field, text) printf("| `SNUG_%s` | a path (none) | %s |\n", #name, text);
#include "options/options.def"
    print_presets();
    return 0;
}
