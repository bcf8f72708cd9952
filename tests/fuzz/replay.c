/*
 * Runs the harness without libFuzzer, so that every compiler will do:
 *
 *   replay [--seed=N] [--first=N] [--runs=N] [FILE | FOLDER]...
 *
 * first each file, and each file in each folder; then `runs` random inputs (none unless given),
 * those with the numbers from `first` on of the sequence that `seed` begins. If one fails, the last
 * line says how to run that one alone. With SNUG_TEST_FULL=1, fifty times as many.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "world.h"

enum { FULL_TIMES = 50, PATH_LENGTH = 4096 };

/* How to run again what runs now. */
static char running[PATH_LENGTH + 64] = "";

static void say(const char *text)
{
    if (write(2, text, strlen(text)) < 0)
        _exit(2);
}

static void say_what_ran(int number)
{
    say("replay: it was ");
    say(running);
    say("\n");
    signal(number, SIG_DFL);
    raise(number);
}

static void die(const char *what)
{
    fprintf(stderr, "replay: %s: %s\n", what, strerror(errno));
    exit(2);
}

/* ---- Files ---- */

static void run_file(const char *path)
{
    uint8_t bytes[INPUT_MOST];
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t count = file < 0 ? -1 : read(file, bytes, sizeof(bytes));
    if (count < 0)
        die(path);
    close(file);
    snprintf(running, sizeof(running), "%s", path);
    LLVMFuzzerTestOneInput(bytes, (size_t)count);
}

static size_t run_folder(const char *path, DIR *folder)
{
    size_t count = 0;
    const struct dirent *entry;
    while ((entry = readdir(folder)) != NULL) {
        char name[PATH_LENGTH];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
        run_file(name);
        count++;
    }
    closedir(folder);
    return count;
}

static size_t run_path(const char *path)
{
    DIR *folder = opendir(path);
    if (folder != NULL)
        return run_folder(path, folder);
    run_file(path);
    return 1;
}

/* ---- Random inputs ---- */

static uint64_t random_state;

/* splitmix64. Source: G. Steele et al., "Fast Splittable Pseudorandom Number Generators" (2014). */
static uint64_t random_next(void)
{
    uint64_t value = random_state += 0x9e3779b97f4a7c15u;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
    return value ^ (value >> 31);
}

static void run_random(size_t seed, size_t number)
{
    uint8_t bytes[INPUT_MOST];
    random_state = seed * 0x100000001b3u + number * 0xd1342543de82ef95u;
    /* Lengths of which short ones are as frequent as long ones. */
    size_t most = (size_t)64 << random_next() % 7;
    size_t length = 1 + random_next() % most;
    for (size_t i = 0; i < length; i++)
        bytes[i] = (uint8_t)random_next();
    snprintf(running, sizeof(running), "--seed=%zu --first=%zu --runs=1", seed, number);
    LLVMFuzzerTestOneInput(bytes, length);
}

/* ---- Arguments ---- */

/* The number behind `name` in `word`, if it is there. */
static bool option_read(const char *word, const char *name, size_t *value)
{
    size_t length = strlen(name);
    if (strncmp(word, name, length) != 0)
        return false;
    char *end;
    *value = strtoull(word + length, &end, 10);
    if (*end != '\0' || end == word + length) {
        fprintf(stderr, "replay: %s needs a number\n", name);
        exit(2);
    }
    return true;
}

int main(int count, char **words)
{
    size_t seed = 1;
    size_t first = 0;
    size_t runs = 0;
    size_t files = 0;
    signal(SIGABRT, say_what_ran);
    for (int i = 1; i < count; i++)
        if (!option_read(words[i], "--seed=", &seed) &&
            !option_read(words[i], "--first=", &first) && !option_read(words[i], "--runs=", &runs))
            files += run_path(words[i]);
    const char *full = getenv("SNUG_TEST_FULL");
    if (full != NULL && strcmp(full, "1") == 0 && runs != 1)
        runs *= FULL_TIMES;
    for (size_t i = 0; i < runs; i++)
        run_random(seed, first + i);
    printf("replay: %zu files and %zu random inputs ran\n", files, runs);
    return files + runs == 0;
}
