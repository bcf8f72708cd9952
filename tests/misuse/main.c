/*
 * main.c - one wrong thing done to the heap, as a program by itself; and all of them one by one.
 *
 *   misuse list             the kinds: "# TITLE" or "NAME<TAB>TEXT"
 *   misuse NAME SIZE        does it, and ends with NO_HARM or HARM if nobody stops it
 *   misuse all              each kind in each size as a program of its own: "NAME SIZE RESULT" with
 *                           RESULT one of reported, faulted, harm, harmless, hung; or "odd STATUS"
 *
 * The program has been running for a while before the misuse, and goes on for a while after it.
 */
#include "kinds.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NO_HARM = 40, HARM = 41, SECONDS = 20 };

/* One of slabs, one of cells, one of pages; none is a power of two or the size of a class. */
static const size_t sizes[] = {40, 5000, 300000};

static const struct kinds *const all_kinds[] = {&kinds_free,   &kinds_wrong,  &kinds_bounds,
                                                &kinds_used,   &kinds_copied, &kinds_deleted,
                                                &kinds_strange};

/* ---- What kinds share ------------------------------------------------------------------------ */

unsigned char *secret_block(size_t size)
{
    unsigned char *block = opaque(malloc(size));
    CHECK(block != NULL);
    memset(block, SECRET, size);
    return block;
}

bool secret_is_seen(const unsigned char *bytes, size_t count)
{
    enum { ENOUGH = 4 };
    const volatile unsigned char *from = opaque(bytes);
    size_t longest = 0, row = 0;
    for (size_t i = 0; i < count; i++) {
        row = from[i] == SECRET ? row + 1 : 0;
        longest = row > longest ? row : longest;
    }
    return longest != 0 && longest >= (count < ENOUGH ? count : ENOUGH);
}

void traffic(size_t size)
{
    enum { MOST = 60 };
    void *some[MOST];
    size_t most = size < 100000 ? MOST : 4;
    for (size_t count = 1; count <= most; count = count * 3 / 2 + 1) {
        for (size_t i = 0; i < count; i++)
            some[i] = opaque(malloc(size));
        for (size_t i = 0; i < count; i++)
            free(some[i]);
    }
}

void around_make(struct around *around, size_t size)
{
    around->size = size;
    for (size_t i = 0; i < AROUND; i++) {
        unsigned char *block = secret_block(size);
        size_t at = i;
        for (; at > 0 && around->blocks[at - 1] > block; at--)
            around->blocks[at] = around->blocks[at - 1];
        around->blocks[at] = block;
    }
}

unsigned char *around_victim(struct around *around)
{
    return around->blocks[AROUND / 2];
}

bool around_is_damaged(const struct around *around)
{
    for (size_t i = 0; i < AROUND; i++)
        for (size_t byte = 0; i != AROUND / 2 && byte < around->size; byte++)
            if (around->blocks[i][byte] != SECRET)
                return true;
    return false;
}

void around_free(struct around *around)
{
    for (size_t i = 0; i < AROUND; i++)
        free(around->blocks[i]);
}

bool handed_out_twice(size_t size, const void *mine)
{
    enum { COUNT = 200 };
    static void *blocks[COUNT];
    bool twice = false;
    for (size_t i = 0; i < COUNT; i++) {
        blocks[i] = opaque(malloc(size));
        twice = twice || blocks[i] == mine;
        for (size_t j = 0; j < i; j++)
            twice = twice || blocks[i] == blocks[j];
    }
    return twice; /* they stay: freeing one of them twice is another misuse */
}

void in_thread(void *(*function)(void *), void *argument)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, function, argument) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
}

void *free_in_thread(void *block)
{
    free(opaque(block));
    return NULL;
}

/* ---- One ------------------------------------------------------------------------------------- */

static const struct kind *find(const char *name)
{
    for (size_t i = 0; i < sizeof all_kinds / sizeof *all_kinds; i++)
        for (size_t j = 0; j < all_kinds[i]->count; j++)
            if (strcmp(all_kinds[i]->first[j].name, name) == 0)
                return &all_kinds[i]->first[j];
    return NULL;
}

static int do_one(const char *name, size_t size)
{
    const struct kind *kind = find(name);
    CHECK_MSG(kind != NULL && size > 0, "%s", name);
    alarm(SECONDS);
    for (size_t other = 16; other < 2000; other *= 2)
        traffic(other);
    traffic(size);
    bool harm = kind->misuse(size);
    traffic(size);
    return harm ? HARM : NO_HARM;
}

/* ---- All ------------------------------------------------------------------------------------- */

/* The beginning of what comes out of a pipe until it is closed. */
static void read_all(int from, char *text, size_t capacity)
{
    size_t length = 0;
    char rest[256];
    for (;;) {
        bool room = length < capacity - 1;
        ssize_t count =
            read(from, room ? text + length : rest, room ? capacity - 1 - length : sizeof rest);
        if (count <= 0)
            break;
        length += room ? (size_t)count : 0;
    }
    text[length] = 0;
}

static void say_result(const char *name, size_t size, int status, const char *text)
{
    const char *result = NULL;
    int number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    if (number == SIGABRT || number == SIGTRAP || number == SIGILL)
        result = *text != 0 ? "reported" : NULL;
    else if (number == SIGSEGV || number == SIGBUS)
        result = strstr(text, "snug: ") != NULL ? "reported" : "faulted";
    else if (number == SIGALRM)
        result = "hung";
    else if (WIFEXITED(status) && WEXITSTATUS(status) == NO_HARM)
        result = "harmless";
    else if (WIFEXITED(status) && WEXITSTATUS(status) == HARM)
        result = "harm";
    if (result != NULL)
        printf("%s %zu %s\n", name, size, result);
    else
        printf("%s %zu odd %d: %s\n", name, size, status, text);
}

static void run_one(const char *program, const char *name, size_t size)
{
    extern char **environ;
    char number[32], text[512];
    snprintf(number, sizeof number, "%zu", size);
    char *arguments[] = {(char *)program, (char *)name, number, NULL};
    int ends[2], status;
    CHECK(pipe(ends) == 0);
    posix_spawn_file_actions_t actions;
    CHECK(posix_spawn_file_actions_init(&actions) == 0);
    CHECK(posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO) == 0);
    CHECK(posix_spawn_file_actions_addclose(&actions, ends[0]) == 0);
    CHECK(posix_spawn_file_actions_addclose(&actions, ends[1]) == 0);
    pid_t child;
    CHECK(posix_spawn(&child, "/proc/self/exe", &actions, NULL, arguments, environ) == 0);
    CHECK(posix_spawn_file_actions_destroy(&actions) == 0);
    close(ends[1]);
    read_all(ends[0], text, sizeof text);
    close(ends[0]);
    CHECK(waitpid(child, &status, 0) == child);
    say_result(name, size, status, text);
}

static void each_kind(void (*title)(const char *text), void (*each)(const struct kind *kind))
{
    for (size_t i = 0; i < sizeof all_kinds / sizeof *all_kinds; i++) {
        title(all_kinds[i]->title);
        for (size_t j = 0; j < all_kinds[i]->count; j++)
            each(&all_kinds[i]->first[j]);
    }
}

static void list_title(const char *text)
{
    printf("# %s\n", text);
}

static void list_kind(const struct kind *kind)
{
    printf("%s\t%s\n", kind->name, kind->text);
}

static void skip_title(const char *text)
{
    (void)text;
}

static void run_kind(const struct kind *kind)
{
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        run_one("misuse", kind->name, sizes[i]);
}

int main(int argc, char **argv)
{
    if (argc == 3)
        return do_one(argv[1], strtoul(argv[2], NULL, 10));
    CHECK(argc == 2);
    if (strcmp(argv[1], "list") == 0)
        each_kind(list_title, list_kind);
    else if (strcmp(argv[1], "all") == 0)
        each_kind(skip_title, run_kind);
    else
        CHECK_MSG(false, "%s", argv[1]);
    return 0;
}
