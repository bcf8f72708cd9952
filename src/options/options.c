/*
 * Reading the options. One row of `table` per line of options.def; a value is parsed by the kind
 * of its row. An unknown name is answered with the known one that it may be a slip of (edit
 * distance), since nearly all unknown names are misspelt ones.
 */
#include "options/options.h"

#include <limits.h>
#include <string.h>

#include "platform/file.h"
#include "platform/output.h"

enum option_kind {
    KIND_CHOICE,
    KIND_SET,
    KIND_NUMBER,
    KIND_SIZE,
    KIND_DELAY,
    KIND_LIMIT,
    KIND_FACTOR,
    KIND_PATH
};

/* Without pointers: those are set by the dynamic linker, in pages that each process then has for
 * itself. Names and choices stand in `words`. */
struct option_row {
    size_t least; /* of a path, where its copy is in struct paths */
    size_t most;
    uint16_t field; /* where it is in struct options */
    uint8_t kind;
};

#define OPTION_CHOICE(name, field, default_, choices, text) .field = (default_),
#define OPTION_SET(name, field, default_, choices, text) .field = (default_),
#define OPTION_NUMBER(name, field, default_, least, most, text) .field = (default_),
#define OPTION_SIZE(name, field, default_, least, most, text) .field = (default_),
#define OPTION_DELAY(name, field, default_, text) .field = (default_),
#define OPTION_LIMIT(name, field, word, number, text) .field = 0,
#define OPTION_FACTOR(name, field, default_, least, most, text) .field = (default_),
#define OPTION_PATH(name, field, text) .field = NULL,
struct options options = {
#include "options/options.def"
};

/* Paths are copied: a program that sets its title writes over its environment. */
#define OPTION_PATH(name, field, text) char field[OS_PATH_MOST];
BULKY static struct paths {
#include "options/options.def"
} paths;

/* Of each row its name, and behind that its choices, with commas between; of a limit, its word. */
#define OPTION_CHOICE(name, field, default_, choices, text) #name "\0" choices "\0"
#define OPTION_SET OPTION_CHOICE
#define OPTION_LIMIT(name, field, word, number, text) #name "\0" word "\0"
#define OPTION_NUMBER(name, ...) #name "\0\0"
#define OPTION_SIZE OPTION_NUMBER
#define OPTION_DELAY OPTION_NUMBER
#define OPTION_FACTOR OPTION_NUMBER
#define OPTION_PATH OPTION_NUMBER
static const char words[] =
#include "options/options.def"
    ;

#define ROW(kind, field, least, most) {least, most, offsetof(struct options, field), kind},
#define OPTION_CHOICE(name, field, ...) ROW(KIND_CHOICE, field, 0, 0)
#define OPTION_SET(name, field, ...) ROW(KIND_SET, field, 0, 0)
#define OPTION_NUMBER(name, field, default_, least, most, text) ROW(KIND_NUMBER, field, least, most)
#define OPTION_SIZE(name, field, default_, least, most, text) ROW(KIND_SIZE, field, least, most)
#define OPTION_DELAY(name, field, ...) ROW(KIND_DELAY, field, 0, DELAY_MOST)
#define OPTION_LIMIT(name, field, word, number, text) ROW(KIND_LIMIT, field, number, SIZE_MAX)
#define OPTION_FACTOR(name, field, default_, least, most, text) ROW(KIND_FACTOR, field, least, most)
#define OPTION_PATH(name, field, text) \
    ROW(KIND_PATH, field, offsetof(struct paths, field), OS_PATH_MOST - 1)
static const struct option_row table[] = {
#include "options/options.def"
};

enum { ROWS = sizeof(table) / sizeof(table[0]), NAME_MOST = 32, LINE_MOST = 512 };

/* A misspelt name has at most one wrong letter in so many. */
enum { LETTERS_PER_SLIP = 3 };

static const char prefix[] = "SNUG_";

/* The name of the next row. */
static const char *name_after(const char *name)
{
    const char *choices = name + strlen(name) + 1;
    return choices + strlen(choices) + 1;
}

static const char *name_of(const struct option_row *row)
{
    const char *name = words;
    for (const struct option_row *before = table; before != row; before++)
        name = name_after(name);
    return name;
}

static const char *choices_of(const struct option_row *row)
{
    const char *name = name_of(row);
    return name + strlen(name) + 1;
}

/* The fields of a row's option: a choice or a set, any number, a path. */
static unsigned *choice_of(const struct option_row *row)
{
    return (unsigned *)((char *)&options + row->field);
}

static size_t *number_of(const struct option_row *row)
{
    return (size_t *)((char *)&options + row->field);
}

static const char **path_of(const struct option_row *row)
{
    return (const char **)((char *)&options + row->field);
}

/* Parses digits, and a fraction, 0 to 999 thousandths, if `thousandths` is not NULL. Returns what
 * follows, or NULL if there is no digit or the number is too large. */
static const char *parse_number(const char *at, size_t *number, size_t *thousandths)
{
    const char *start = at;
    size_t value = 0;
    for (; *at >= '0' && *at <= '9'; at++)
        if (__builtin_mul_overflow(value, (size_t)10, &value) ||
            __builtin_add_overflow(value, (size_t)(*at - '0'), &value))
            return NULL;
    if (at == start)
        return NULL;
    *number = value;
    if (thousandths == NULL)
        return at;
    *thousandths = 0;
    if (*at == '.') {
        size_t unit = 100;
        for (at++; *at >= '0' && *at <= '9'; at++, unit /= 10)
            *thousandths += unit * (size_t)(*at - '0');
    }
    return at;
}

/* Parses "64", "4k", "1.5MiB", "2 GB": each letter stands for a power of 1024. */
static bool parse_size(const char *at, size_t *bytes)
{
    size_t number;
    size_t thousandths;
    at = parse_number(at, &number, &thousandths);
    if (at == NULL)
        return false;
    while (*at == ' ')
        at++;
    static const char letters[] = "kmgt";
    size_t unit = 1;
    const char *letter = *at == 0 ? NULL : strchr(letters, *at | 0x20);
    if (letter != NULL) {
        unit = (size_t)1 << (10 * (letter - letters + 1));
        at++;
        if ((*at | 0x20) == 'i')
            at++;
    }
    if ((*at | 0x20) == 'b')
        at++;
    if (*at != 0 || __builtin_mul_overflow(number, unit, bytes))
        return false;
    return !__builtin_add_overflow(
        *bytes, unit / 1000 * thousandths + unit % 1000 * thousandths / 1000, bytes);
}

/* Parses "-1" or "never", "250", "250ms", "10s", "1.5 s"; without a unit it is milliseconds. */
static bool parse_delay(const char *at, size_t *delay)
{
    if (strcmp(at, "-1") == 0 || strcmp(at, "never") == 0) {
        *delay = DELAY_NEVER;
        return true;
    }
    size_t number;
    size_t thousandths;
    at = parse_number(at, &number, &thousandths);
    if (at == NULL || number > DELAY_MOST)
        return false;
    while (*at == ' ')
        at++;
    bool seconds = strcmp(at, "s") == 0;
    *delay = seconds ? number * 1000 + thousandths : number;
    return *delay <= DELAY_MOST && (seconds || *at == 0 || strcmp(at, "ms") == 0);
}

/* The number of the choice that `value`, of this length, names. */
static bool parse_choice(const char *value, size_t length, const char *choices, unsigned *number)
{
    for (unsigned index = 0; *choices != 0; index++) {
        size_t choice = strcspn(choices, ",");
        if (choice == length && memcmp(choices, value, length) == 0) {
            *number = index;
            return true;
        }
        choices += choice + (choices[choice] == ',');
    }
    return false;
}

/* Parses choices with commas between them into a bit for each. Nothing at all is the empty set. */
static bool parse_set(const char *at, const char *choices, unsigned *set)
{
    unsigned chosen = 0, number;
    while (*at != 0) {
        size_t length = strcspn(at, ",");
        if (!parse_choice(at, length, choices, &number))
            return false;
        chosen |= 1u << number;
        at += length + (at[length] == ',');
    }
    *set = chosen;
    return true;
}

static void text_add_number(struct text *text, const struct option_row *row, size_t number)
{
    text_add_decimal(text, row->kind == KIND_FACTOR ? number / 1000 : number);
    if (row->kind != KIND_FACTOR)
        return;
    text_add(text, ".");
    for (size_t unit = 100, rest = number % 1000; unit == 100 || rest != 0; unit /= 10) {
        text_add_decimal(text, rest / unit);
        rest %= unit;
    }
}

/* Adds what a row accepts, for the message: "one of abort, warn" or "a size from 0 to 64". */
static void text_add_range(struct text *text, const struct option_row *row)
{
    if (row->kind == KIND_CHOICE || row->kind == KIND_SET) {
        text_add(text, row->kind == KIND_CHOICE ? "one of " : "some of ");
        for (const char *at = choices_of(row); *at != 0; at++)
            text_add_bytes(text, *at == ',' ? ", " : at, *at == ',' ? 2 : 1);
        return;
    }
    if (row->kind == KIND_LIMIT) {
        text_print(text, "a size in bytes or %s", choices_of(row));
        return;
    }
    if (row->kind == KIND_PATH) {
        text_print(text, "a path of at most %zu bytes", row->most);
        return;
    }
    text_add(text, row->kind == KIND_SIZE    ? "a size in bytes from "
                   : row->kind == KIND_DELAY ? "a delay in milliseconds, -1 for never, from "
                                             : "a number from ");
    text_add_number(text, row, row->least);
    text_add(text, " to ");
    text_add_number(text, row, row->most);
}

static void text_add_value(struct text *text, const struct option_row *row)
{
    if (row->kind == KIND_DELAY && *number_of(row) == DELAY_NEVER) {
        text_add(text, "-1");
        return;
    }
    if (row->kind == KIND_PATH) {
        text_add(text, *path_of(row) == NULL ? "none" : *path_of(row));
        return;
    }
    if (row->kind != KIND_CHOICE && row->kind != KIND_SET) {
        text_add_number(text, row, *number_of(row));
        return;
    }
    unsigned value = *choice_of(row);
    unsigned set = row->kind == KIND_SET ? value : 1u << value;
    size_t before = text->length;
    for (const char *at = choices_of(row); *at != 0; set >>= 1) {
        size_t length = strcspn(at, ",");
        if (set & 1) {
            text_add(text, text->length == before ? "" : ",");
            text_add_bytes(text, at, length);
        }
        at += length + (at[length] == ',');
    }
    if (text->length == before)
        text_add(text, "none");
}

static bool path_set(const struct option_row *row, const char *value)
{
    char *copy = (char *)&paths + row->least;
    size_t length = strlen(value);
    if (length > row->most)
        return false;
    memcpy(copy, value, length + 1);
    *path_of(row) = length == 0 ? NULL : copy;
    return true;
}

static bool option_set(const struct option_row *row, const char *value)
{
    size_t number = 0;
    switch ((enum option_kind)row->kind) {
    case KIND_PATH:
        return path_set(row, value);
    case KIND_CHOICE:
        return parse_choice(value, strlen(value), choices_of(row), choice_of(row));
    case KIND_SET:
        return parse_set(value, choices_of(row), choice_of(row));
    case KIND_DELAY:
        if (!parse_delay(value, &number))
            return false;
        *number_of(row) = number;
        return true;
    case KIND_NUMBER:
        value = parse_number(value, &number, NULL);
        if (value == NULL || *value != 0)
            return false;
        break;
    case KIND_SIZE:
        if (!parse_size(value, &number))
            return false;
        break;
    case KIND_LIMIT:
        if (strcmp(value, choices_of(row)) == 0) {
            *number_of(row) = row->least;
            return true;
        }
        if (!parse_size(value, &number) || number == row->least) /* which stands for the word */
            return false;
        *number_of(row) = number;
        return true;
    case KIND_FACTOR: {
        size_t thousandths;
        value = parse_number(value, &number, &thousandths);
        if (value == NULL || *value != 0 || number > row->most)
            return false;
        number = number * 1000 + thousandths;
        break;
    }
    }
    if (number < row->least || number > row->most)
        return false;
    *number_of(row) = number;
    return true;
}

static void report_value(int descriptor, const struct option_row *row, const char *value)
{
    char buffer[LINE_MOST];
    struct text text;
    text_init(&text, buffer, sizeof(buffer) - 1);
    text_print(&text, "snug: SNUG_%s=%.*s is not ", name_of(row), 200, value);
    text_add_range(&text, row);
    text_add(&text, "; using ");
    text_add_value(&text, row);
    text_add(&text, "\n");
    text_write(&text, descriptor);
}

/* Options have capital letters. */
static char capital(char letter)
{
    return letter >= 'a' && letter <= 'z' ? (char)(letter - 'a' + 'A') : letter;
}

/* How many letters must be changed, added or dropped to make one name of the other. `b` has
 * capitals only; the letters of `a` may be small.
 *
 * Source: V. Levenshtein (1966); the one-row form of the table. */
static size_t name_distance(const char *a, size_t a_length, const char *b)
{
    size_t b_length = strlen(b);
    size_t row[NAME_MOST + 1];
    for (size_t j = 0; j <= b_length; j++)
        row[j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            size_t changed = diagonal + (capital(a[i - 1]) != b[j - 1]);
            diagonal = row[j];
            row[j] = size_min(changed, size_min(row[j], row[j - 1]) + 1);
        }
    }
    return row[b_length];
}

/* A slip of the keyboard is one letter, or one in three of a long name. A name that is farther away
 * is another word, and to suggest it would only lead astray. */
static bool is_slip(size_t distance, size_t length)
{
    return distance <= size_max(length / LETTERS_PER_SLIP, 1);
}

static void report_name(int descriptor, const char *name, size_t length)
{
    const char *nearest = words;
    size_t least = SIZE_MAX;
    const char *known = words;
    for (unsigned i = 0; i < ROWS; i++, known = name_after(known)) {
        size_t distance = name_distance(name, length, known);
        if (distance < least) {
            least = distance;
            nearest = known;
        }
    }
    int shown = (int)size_min(length, 200);
    if (is_slip(least, length))
        os_print(descriptor, "snug: SNUG_%.*s is not an option; did you mean SNUG_%s?\n", shown,
                 name, nearest);
    else
        os_print(descriptor, "snug: SNUG_%.*s is not an option; see: snug options\n", shown, name);
}

/* Where nothing is no value, an empty variable is one that is not set, as scripts mean it. */
static bool may_be_empty(const struct option_row *row)
{
    return row->kind == KIND_SET || row->kind == KIND_PATH;
}

static void option_read(const char *variable, int descriptor)
{
    const char *name = variable + sizeof(prefix) - 1;
    size_t length = strcspn(name, "=");
    const char *known = words;
    for (unsigned i = 0; i < ROWS; i++, known = name_after(known)) {
        if (strlen(known) != length || memcmp(known, name, length) != 0)
            continue;
        const char *value = name + length + (name[length] == '=');
        bool is_kept = *value == 0 && !may_be_empty(&table[i]);
        if (!is_kept && !option_set(&table[i], value) && descriptor >= 0)
            report_value(descriptor, &table[i], value);
        return;
    }
    if (descriptor >= 0)
        report_name(descriptor, name, size_min(length, 4 * NAME_MOST));
}

/* Variables of the project's own tests, which run programs on the library. */
static const char tests_prefix[] = "SNUG_TEST_";

static bool has_prefix(const char *variable, const char *start, size_t length)
{
    return strncmp(variable, start, length) == 0;
}

/* Finds the preset, and makes its values the defaults. */
static void preset_read(const char *const *variables)
{
    static const char name[] = "SNUG_PRESET=";
    bool given = false;
    for (; *variables != NULL; variables++)
        if (has_prefix(*variables, name, sizeof(name) - 1)) {
            option_read(*variables, -1); /* an error is reported when options_read comes to it */
            given = true;
        }
    if (!given || options.preset == PRESET_BALANCED || options.preset == PRESET_HARDENED)
        return;
    bool lean = options.preset == PRESET_LEAN;
#define PRESET(name, field, of_lean, of_fast) options.field = lean ? (of_lean) : (of_fast);
#include "options/presets.def"
#undef PRESET
}

AT_START bool options_are_given(const char *const *variables)
{
    for (; *variables != NULL; variables++) {
        const char *name = *variables;
        if (name[0] == 'S' && name[1] == 'N' && name[2] == 'U' && name[3] == 'G' &&
            name[4] == '_' && !has_prefix(name, tests_prefix, sizeof(tests_prefix) - 1))
            return true;
    }
    return false;
}

void options_read(const char *const *variables, int report_descriptor)
{
    preset_read(variables);
    for (; *variables != NULL; variables++)
        if (has_prefix(*variables, prefix, sizeof(prefix) - 1) &&
            !has_prefix(*variables, tests_prefix, sizeof(tests_prefix) - 1))
            option_read(*variables, report_descriptor);
}

const char *options_describe(unsigned index, struct text *text)
{
    if (index >= ROWS)
        return NULL;
    const struct option_row *row = &table[index];
    text_add_value(text, row);
    return name_of(row);
}

unsigned options_find_choice(const char *option, const char *choice)
{
    unsigned number;
    for (unsigned i = 0; i < ROWS; i++)
        if (table[i].kind == KIND_CHOICE && strcmp(name_of(&table[i]), option) == 0 &&
            parse_choice(choice, strlen(choice), choices_of(&table[i]), &number))
            return number;
    return UINT_MAX;
}
