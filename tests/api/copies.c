/*
 * copies.c - SNUG_CHECK_COPIES=1: what libc's copying functions are asked to do is looked at before
 * it is done. Each function does its right work up to the very end of a block, and is stopped one
 * byte further, in blocks of slabs, cells and pages, from their beginnings and from inside; with a
 * free block, and in an object that is opened at run time.
 *
 *   copies             all of it; children do what is to be stopped
 *   copies static      the program has libsnug.a in it: nothing is looked at, and a line says so
 *
 * Fault it finds: run without the option nothing is stopped.
 */
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

void *__memcpy_chk(void *to, const void *from, size_t bytes, size_t room);
void *__memmove_chk(void *to, const void *from, size_t bytes, size_t room);
void *__mempcpy_chk(void *to, const void *from, size_t bytes, size_t room);
void *__memset_chk(void *to, int byte, size_t bytes, size_t room);
char *__strcpy_chk(char *to, const char *from, size_t room);
char *__stpcpy_chk(char *to, const char *from, size_t room);
char *__strncpy_chk(char *to, const char *from, size_t bytes, size_t room);
char *__stpncpy_chk(char *to, const char *from, size_t bytes, size_t room);
char *__strcat_chk(char *to, const char *from, size_t room);
char *__strncat_chk(char *to, const char *from, size_t bytes, size_t room);

static const size_t UNKNOWN =
    (size_t)-1; /* what compilers pass as the room that they do not know */

/* Functions that write `bytes` at `to`; from `from`, which has as many, and is a text for those of
 * texts.
 */
static void do_memcpy(char *to, const char *from, size_t bytes)
{
    CHECK(memcpy(to, from, bytes) == to);
}

static void do_memmove(char *to, const char *from, size_t bytes)
{
    CHECK(memmove(to, from, bytes) == to);
}

static void do_mempcpy(char *to, const char *from, size_t bytes)
{
    CHECK(mempcpy(to, from, bytes) == to + bytes);
}

static void do_bcopy(char *to, const char *from, size_t bytes)
{
    bcopy(from, to, bytes);
}

static void do_strcpy(char *to, const char *from, size_t bytes)
{
    (void)bytes;
    CHECK(strcpy(to, from) == to);
}

static void do_stpcpy(char *to, const char *from, size_t bytes)
{
    CHECK(stpcpy(to, from) == to + bytes - 1);
}

static void do_strncpy(char *to, const char *from, size_t bytes)
{
    CHECK(strncpy(to, from, bytes) == to);
}

static void do_stpncpy(char *to, const char *from, size_t bytes)
{
    CHECK(stpncpy(to, from, bytes) == to + bytes - 1);
}

/* What is appended to; that of a free block is left as it is, for a word of it says that it is
 * free. */
static bool is_free;

static void begin_text(char *to)
{
    if (!is_free)
        to[0] = 'x', to[1] = 0;
}

static void do_strcat(char *to, const char *from, size_t bytes)
{
    (void)bytes;
    begin_text(to);
    CHECK(strcat(to, from + 1) == to);
}

static void do_strncat(char *to, const char *from, size_t bytes)
{
    begin_text(to);
    CHECK(strncat(to, from + 1, bytes) == to);
}

static void do_memcpy_chk(char *to, const char *from, size_t bytes)
{
    CHECK(__memcpy_chk(to, from, bytes, UNKNOWN) == to);
}

static void do_memmove_chk(char *to, const char *from, size_t bytes)
{
    CHECK(__memmove_chk(to, from, bytes, UNKNOWN) == to);
}

static void do_mempcpy_chk(char *to, const char *from, size_t bytes)
{
    CHECK(__mempcpy_chk(to, from, bytes, UNKNOWN) == to + bytes);
}

static void do_strcpy_chk(char *to, const char *from, size_t bytes)
{
    (void)bytes;
    CHECK(__strcpy_chk(to, from, UNKNOWN) == to);
}

static void do_stpcpy_chk(char *to, const char *from, size_t bytes)
{
    CHECK(__stpcpy_chk(to, from, UNKNOWN) == to + bytes - 1);
}

static void do_strncpy_chk(char *to, const char *from, size_t bytes)
{
    CHECK(__strncpy_chk(to, from, bytes, UNKNOWN) == to);
}

static void do_stpncpy_chk(char *to, const char *from, size_t bytes)
{
    CHECK(__stpncpy_chk(to, from, bytes, UNKNOWN) == to + bytes - 1);
}

static void do_strcat_chk(char *to, const char *from, size_t bytes)
{
    (void)bytes;
    begin_text(to);
    CHECK(__strcat_chk(to, from + 1, UNKNOWN) == to);
}

static void do_strncat_chk(char *to, const char *from, size_t bytes)
{
    begin_text(to);
    CHECK(__strncat_chk(to, from + 1, bytes, UNKNOWN) == to);
}

/* These have no source: they write the x of which the texts here consist, and zero at the end. */
static void do_memset(char *to, const char *from, size_t bytes)
{
    (void)from;
    CHECK(memset(to, 'x', bytes) == to);
    to[bytes - 1] = 0;
}

static void do_memset_chk(char *to, const char *from, size_t bytes)
{
    (void)from;
    CHECK(__memset_chk(to, 'x', bytes, UNKNOWN) == to);
    to[bytes - 1] = 0;
}

static void do_bzero(char *to, const char *from, size_t bytes)
{
    bzero(to, bytes);
    CHECK(all_zero(to, bytes));
    memcpy(to, from, bytes);
}

static void do_explicit_bzero(char *to, const char *from, size_t bytes)
{
    explicit_bzero(to, bytes);
    CHECK(all_zero(to, bytes));
    memcpy(to, from, bytes);
}

#define FUNCTION(name, reads) {#name, do_##name, reads}
static const struct function {
    const char *name;
    void (*call)(char *to, const char *from, size_t bytes);
    bool reads;
} functions[] = {
    FUNCTION(memcpy, true),      FUNCTION(memmove, true),         FUNCTION(mempcpy, true),
    FUNCTION(bcopy, true),       FUNCTION(strcpy, true),          FUNCTION(stpcpy, true),
    FUNCTION(strncpy, true),     FUNCTION(stpncpy, true),         FUNCTION(strcat, true),
    FUNCTION(strncat, true),     FUNCTION(memset, false),         FUNCTION(bzero, false),
    FUNCTION(memcpy_chk, true),  FUNCTION(memmove_chk, true),     FUNCTION(mempcpy_chk, true),
    FUNCTION(strcpy_chk, true),  FUNCTION(stpcpy_chk, true),      FUNCTION(strncpy_chk, true),
    FUNCTION(stpncpy_chk, true), FUNCTION(strcat_chk, true),      FUNCTION(strncat_chk, true),
    FUNCTION(memset_chk, false), FUNCTION(explicit_bzero, false),
};

static char text[400000];

/* A text of `bytes` bytes with its zero, which is in no heap. */
static const char *text_of(size_t bytes)
{
    memset(text, 'x', sizeof text);
    text[bytes - 1] = 0;
    return text;
}

/* A child does it: it must be stopped, with a line that begins like this. */
static void must_stop(const struct function *function, char *to, const char *from, size_t bytes,
                      const char *line)
{
    int ends[2], status;
    char said[300];
    CHECK(pipe(ends) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        function->call(to, from, bytes);
        _exit(0);
    }
    close(ends[1]);
    ssize_t length = read(ends[0], said, sizeof said - 1);
    said[length > 0 ? length : 0] = 0;
    close(ends[0]);
    CHECK(waitpid(child, &status, 0) == child);
    CHECK_MSG(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT,
              "%s was not stopped: %zu bytes, %s", function->name, bytes, said);
    size_t name = strcspn(function->name, "_");
    if (strncmp(function->name, "explicit", 8) == 0)
        name = strlen(function->name);
    char expected[100];
    snprintf(expected, sizeof expected, "snug: invalid %.*s: 0x", (int)name, function->name);
    CHECK_MSG(strncmp(said, expected, strlen(expected)) == 0, "%s: %s", function->name, said);
    CHECK_MSG(strstr(said, line) != NULL, "%s: %s", function->name, said);
}

static void look_at(const struct function *function, size_t size)
{
    char *around[3];
    for (size_t i = 0; i < 3; i++)
        CHECK((around[i] = opaque(malloc(size))) != NULL);
    char *block = around[1];
    size_t usable = malloc_usable_size(block);
    for (size_t offset = 0; offset < usable - 4; offset += usable / 3 - 1) {
        size_t room = usable - offset;
        function->call(block + offset, text_of(room), room);
        CHECK_MSG(strlen(block + offset) == room - 1 && block[offset] == 'x', "%s", function->name);
        must_stop(function, block + offset, text_of(room + 1), room + 1, "is past the end of a");
        if (!function->reads)
            continue;
        memset(block, 'x', usable);
        must_stop(function, memset(text, 'x', sizeof text), block + offset, room + 1,
                  "is past the end of a");
        block[usable - 1] = 0;
        function->call(text, block + offset, room);
    }
    free(around[0]);
    is_free = true;
    must_stop(function, around[0], text_of(20), 20, "is in free memory");
    is_free = false;
    free(around[1]);
    free(around[2]);
}

/* In nobody's memory, and in none at all, everything is as it was. */
static void look_at_others(const struct function *function)
{
    char memory[300];
    static char statics[300];
    function->call(memory, text_of(sizeof memory), sizeof memory);
    function->call(statics, text_of(sizeof statics), sizeof statics);
    CHECK(strcmp(memory, statics) == 0);
    CHECK(memcpy(opaque(NULL), opaque(NULL), opaque_size(0)) == NULL);
    CHECK(memset(opaque(NULL), 0, opaque_size(0)) == NULL);
}

int main(int argc, char **argv)
{
    test_begin(120);
    if (argc == 2 && strcmp(argv[1], "static") == 0) {
        void *block = opaque(malloc(10));
        memcpy(block, text_of(11), opaque_size(11));
        return 0;
    }
    static const size_t sizes[] = {64, 1000, 5000, 300000};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        for (size_t j = 0; j < sizeof sizes / sizeof *sizes; j++)
            look_at(&functions[i], sizes[j]);
        look_at_others(&functions[i]);
    }
    return test_end();
}
