/*
 * Tests of files that a process has memory in: how they are named, and what is there already.
 */
#include "scratch.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "platform/file.h"
#include "platform/memory.h"

static const char *path_of(const char *name)
{
    static char path[160];
    snprintf(path, sizeof(path), "%s/%s", scratch, name);
    return path;
}

static void take_away(const char *name)
{
    ASSERT_THAT(remove(path_of(name)) == 0, "%s is gone", name);
}

/* ---- What is there already ---- */

static void make_file(const char *name, const char *text)
{
    FILE *file = fopen(path_of(name), "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void make_link(const char *name, const char *to)
{
    assert_int_equal(symlink(to, path_of(name)), 0);
}

static void make_directory(const char *name, const char *nothing)
{
    (void)nothing;
    assert_int_equal(mkdir(path_of(name), 0700), 0);
}

static void make_fifo(const char *name, const char *nothing)
{
    (void)nothing;
    assert_int_equal(mkfifo(path_of(name), 0600), 0);
}

static const struct kind {
    const char *name;
    void (*make)(const char *name, const char *argument);
    const char *argument;
} kinds[] = {
    {"an empty file", make_file, ""},
    {"a file", make_file, "important"},
    {"a directory", make_directory, NULL},
    {"a FIFO", make_fifo, NULL},
    {"a link to an empty file", make_link, "t"},
    {"a link to nothing", make_link, "nothing"},
    {"a link to a directory", make_link, "."},
};

/* A name that the next file would have, had it not been made before. */
static void numbered(char name[64], int number)
{
    snprintf(name, 64, "heap.%d.%d", (int)getpid(), number);
}

static void stays(const struct kind *kind)
{
    struct stat before, after;
    char path[160], next[2][64];
    strcpy(path, path_of("heap"));
    kind->make("heap", kind->argument);
    make_file("t", "");
    for (int i = 0; i < 2; i++) {
        numbered(next[i], i + 1);
        make_file(next[i], "");
    }
    assert_int_equal(lstat(path, &before), 0);
    int file = os_file_new(NULL, path, 2 * os_page_size());
    ASSERT_THAT(file >= 0, "beside %s: %s", kind->name, os_error_text(-file));
    assert_int_equal(fstat(file, &after), 0);
    assert_int_equal(after.st_nlink, 0);
    assert_int_equal(after.st_size, 2 * os_page_size());
    close(file);
    assert_int_equal(scratch_count(), 4);
    ASSERT_THAT(lstat(path, &after) == 0 && after.st_ino == before.st_ino &&
                    after.st_mode == before.st_mode && after.st_size == before.st_size,
                "%s is not there any more", kind->name);
    take_away("heap");
    take_away("t");
    take_away(next[0]);
    take_away(next[1]);
}

TEST(whatever_has_the_name_stays)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        stays(&kinds[i]);
}

TEST(a_free_name_is_used_for_a_moment)
{
    struct stat status;
    char path[160], link[64], name[200] = "";
    strcpy(path, path_of("heap"));
    int file = os_file_new(NULL, path, os_page_size());
    assert_true(file >= 0 && fstat(file, &status) == 0);
    assert_int_equal(status.st_nlink, 0);
    snprintf(link, sizeof(link), "/proc/self/fd/%d", file);
    assert_true(readlink(link, name, sizeof(name) - 1) > 0);
    strcat(path, " (deleted)");
    assert_string_equal(name, path);
    close(file);
}

/* ---- Signals ---- */

/* Makes files until a signal ends it. */
static void make_files_for_ever(void *argument)
{
    const struct itimerval soon = {.it_value = {.tv_usec = 200 + *(const int *)argument * 37}};
    char path[160];
    strcpy(path, path_of("heap"));
    CHILD_CHECK(setitimer(ITIMER_REAL, &soon, NULL) == 0);
    for (;;) {
        int file = os_file_new(NULL, path, os_page_size());
        CHILD_CHECK(file >= 0);
        close(file);
    }
}

TEST(a_signal_that_ends_the_process_leaves_no_name)
{
    char said[TEXT_MOST];
    for (int i = 0; i < 60; i++) {
        int status = child_status(make_files_for_ever, &i, said);
        ASSERT_THAT(WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM, "status %#x, \"%s\"",
                    (unsigned)status, said);
        ASSERT_THAT(scratch_count() == 0, "child %d left a file", i);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ROW_WITH(whatever_has_the_name_stays, scratch_begin, scratch_end),
        ROW_WITH(a_free_name_is_used_for_a_moment, scratch_begin, scratch_end),
        ROW_WITH(a_signal_that_ends_the_process_leaves_no_name, scratch_begin, scratch_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
