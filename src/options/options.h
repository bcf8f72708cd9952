/*
 * The options in force. They are read from SNUG_* variables once, at the first allocation; nothing
 * changes them afterwards, so they are read without a lock.
 */
#ifndef SNUG_OPTIONS_OPTIONS_H
#define SNUG_OPTIONS_OPTIONS_H

#include "base/common.h"

/* The preset of a build: CMake's SNUG_HARDENED. */
#if defined(SNUG_HARDENED)
#define PRESET_OF_BUILD PRESET_HARDENED
#else
#define PRESET_OF_BUILD PRESET_BALANCED
#endif

#define OPTION_CHOICE(name, field, default_, choices, text) unsigned field;
#define OPTION_SET(name, field, default_, choices, text) unsigned field;
#define OPTION_NUMBER(name, field, default_, least, most, text) size_t field;
#define OPTION_SIZE(name, field, default_, least, most, text) size_t field;
#define OPTION_DELAY(name, field, default_, text) size_t field;
#define OPTION_LIMIT(name, field, word, number, text) size_t field;
#define OPTION_FACTOR(name, field, default_, least, most, text) size_t field;
#define OPTION_PATH(name, field, text) const char *field;
struct options {
#include "options/options.def"
};

/* A delay that never ends; others are milliseconds, up to a year. */
#define DELAY_NEVER SIZE_MAX
#define DELAY_MOST ((size_t)366 * 24 * 3600 * 1000)

/* The numbers of choices; those in sets are bits: PRESET_LEAN, STATS_ON_EXIT, ... */
#define FIRST_CHOICE(id, word) id,
#define CHOICE FIRST_CHOICE
#define OPTION_CHOICE(name, field, default_, choices, text) enum { choices };
#include "options/options.def"
#define FIRST_CHOICE(id, word) id##_NUMBER,
#define CHOICE FIRST_CHOICE
#define OPTION_SET(name, field, default_, choices, text) enum { choices };
#include "options/options.def"
#define FIRST_CHOICE(id, word) id = 1 << id##_NUMBER,
#define CHOICE FIRST_CHOICE
#define OPTION_SET(name, field, default_, choices, text) enum { choices };
#include "options/options.def"

/* Defaults and bounds of SNUG_FILE that hold for the files of snug_provider_file as well. */
#define OPTION_SIZE(name, field, default_, least, most, text) enum { DEFAULT_##name = default_ };
#define OPTION_FACTOR(name, field, default_, least, most, text) \
    enum { LEAST_##name = least, MOST_##name = most };
#include "options/options.def"
#define DEFAULT_FILE_DIR "/var/tmp"

/* The values of a limit that are no size. */
#define LIMIT_NONE ((size_t)0)
#define LIMIT_CGROUP SIZE_MAX

struct text;

extern INTERNAL struct options options;

/* A delay in nanoseconds; UINT64_MAX for one that never ends. */
static inline uint64_t options_nanoseconds(size_t delay)
{
    return delay == DELAY_NEVER ? UINT64_MAX : delay * (uint64_t)1000000;
}

/* Sets `options` from a list of "NAME=value" strings that ends in NULL, as environ is; strings
 * that do not begin with SNUG_ are passed over. What cannot be used is reported by one line each
 * on `report_descriptor` (-1: nowhere), and the default holds. The strings must stay: paths point
 * into them. */
void options_read(const char *const *variables, int report_descriptor);

/* Whether one of the variables is an option, or meant to be one: if none is, there is nothing to
 * read. Calls nothing of libc unless one begins with SNUG_, since most processes ask this and no
 * more. */
bool options_are_given(const char *const *variables);

/* The name of the option in this line of the table, counted from 0, without SNUG_; adds the value
 * in force to `text`. NULL: the table has no such line. */
const char *options_describe(unsigned index, struct text *text);

/* The number of a choice: options_find_choice("STATS_FORMAT", "json") is FORMAT_JSON. UINT_MAX:
 * there is none of that name. */
unsigned options_find_choice(const char *option, const char *choice);

#endif
