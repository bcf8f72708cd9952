/*
 * sparse.c - a program that touches little of what it takes needs no more memory than on the
 * system's malloc: of each block one byte is written, for sizes from 1 KiB to 64 MiB, and blocks
 * that calloc gives again and again are not cleared by hand where nobody wrote to them.
 *
 *   sparse CASE                 runs itself, for each size, on the malloc that it finds and on the
 *                               system's, and compares what was resident at most and the page
 * faults sparse run CASE NUMBER      one of the two: with blocks of this size, or this row sparse
 * always [FILE]        all cases with huge pages for all that do not decline them; for people: it
 * changes the setting of the whole machine meanwhile
 *
 * Cases: live (many blocks), ring (few, in turn), calloc (many that are zero), recycled (the same
 * again and again), rows (blocks of 200 MB to 4 GB; of these the processor's time, too).
 * Faults it finds: SNUG_HUGE_PAGES=always; a calloc that clears whatever it gives (planted.c).
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define KB ((size_t)1000)
#define MB (1000 * KB)
#define GB (1000 * MB)

static const struct amount {
    size_t size;
    size_t few, many; /* blocks: by default, and in a full run */
} amounts[] = {
    {1024, 50000, 200000},       {4096, 20000, 100000},    {40 * KB, 5000, 20000},
    {300 * KB, 5000, 20000},     {1500 * KB, 2000, 10000}, {5 * MB, 500, 2000},
    {(size_t)64 << 20, 50, 200},
};
enum { AMOUNTS = sizeof amounts / sizeof *amounts, BLOCKS_MOST = 200000, RING = 60 };

/* What is longer is not a cell. */
#define CELL_MOST ((size_t)128 * 1024 - 8)

static unsigned char *blocks[BLOCKS_MOST];

/* ---- What the program does ------------------------------------------------------------------- */

static void free_all(size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(blocks[i]);
}

static void take_live(size_t size, size_t count, bool zero)
{
    for (size_t i = 0; i < count; i++) {
        blocks[i] = opaque(zero ? calloc(1, size) : malloc(size));
        CHECK_MSG(blocks[i] != NULL, "block %zu of %zu bytes", i, size);
        blocks[i][0] = 1;
    }
}

static void run_live(size_t size, size_t count)
{
    take_live(size, count, false);
    free_all(count);
}

static void run_calloc(size_t size, size_t count)
{
    take_live(size, count, true);
    free_all(count);
}

/* Cells of which as many were soon wanted again are kept, from the third time on, and cleared by
 * hand: a cell is too short for the system to be asked how much of it is there. */
static void run_recycled(size_t size, size_t count)
{
    unsigned rounds = size > CELL_MOST ? 5 : 2;
    for (unsigned round = 0; round < rounds; round++) {
        take_live(size, count / 2, round > 0);
        free_all(count / 2);
    }
}

/* The blocks are up to half as long again. */
static void run_ring(size_t size, size_t count)
{
    uint64_t random = 1;
    for (size_t i = 0; i < count; i++) {
        free(blocks[i % RING]);
        blocks[i % RING] = opaque(malloc(size + random_next(&random) % (size / 2)));
        CHECK(blocks[i % RING] != NULL);
        blocks[i % RING][0] = 1;
    }
    free_all(RING);
}

/* ---- Rows that were a thousand times too slow ------------------------------------------------ */

static const struct row {
    size_t count, size;
    bool touch;
} rows[] = {{20, GB, true}, {5, 4 * GB, true}, {3000, 200 * MB, false}};
enum { ROWS = sizeof rows / sizeof *rows };

enum { ROW_SECONDS = 3 }; /* then it is ended */

static void run_row(const struct row *row)
{
    struct rlimit limit = {ROW_SECONDS, ROW_SECONDS};
    CHECK(setrlimit(RLIMIT_CPU, &limit) == 0);
    for (size_t i = 0; i < row->count; i++) {
        unsigned char *block = opaque(calloc(1, row->size));
        if (block == NULL && i == 0)
            test_skip("the system does not give so large a block");
        CHECK_MSG(block != NULL, "block %zu of %zu bytes", i, row->size);
        size_t middle = row->size / 2;
        CHECK(!row->touch || (block[middle] == 0 && block[middle - 1] == 0));
        if (row->touch)
            block[middle] = 1;
        free(block);
    }
}

static const struct {
    const char *name;
    void (*run)(size_t size, size_t count); /* NULL: rows */
} cases[] = {{"live", run_live},
             {"ring", run_ring},
             {"calloc", run_calloc},
             {"recycled", run_recycled},
             {"rows", NULL}};
enum { CASES = sizeof cases / sizeof *cases };

static size_t case_of(const char *name)
{
    for (size_t i = 0; i < CASES; i++)
        if (strcmp(cases[i].name, name) == 0)
            return i;
    check_failed(__FILE__, __LINE__, "no such case: %s", name);
}

static void run_case(size_t which, size_t number)
{
    test_begin(120);
    if (cases[which].run == NULL)
        run_row(&rows[number]);
    else
        cases[which].run(amounts[number].size,
                         test_scale(amounts[number].few, amounts[number].many));
    _exit(test_end());
}

/* ---- What it takes --------------------------------------------------------------------------- */

struct taken {
    bool skipped;
    size_t peak_kib, faults;
    double seconds; /* of the processor */
};

static double seconds_of(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

static struct taken run_apart(size_t which, size_t number, bool on_system)
{
    char text[24];
    snprintf(text, sizeof text, "%zu", number);
    fflush(NULL);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        if (on_system) {
            unsetenv("LD_PRELOAD");
            unsetenv("SNUG_TEST_EXPECT");
        }
        execl("/proc/self/exe", "sparse", "run", cases[which].name, text, (char *)NULL);
        _exit(127);
    }
    int status = 0;
    struct rusage usage;
    CHECK(wait4(child, &status, 0, &usage) == child);
    bool skipped = WIFEXITED(status) && WEXITSTATUS(status) == TEST_SKIPPED;
    CHECK_MSG(skipped || (WIFEXITED(status) && WEXITSTATUS(status) == 0), "%s %zu: status %#x",
              cases[which].name, number, (unsigned)status);
    return (struct taken){skipped, (size_t)usage.ru_maxrss, (size_t)usage.ru_minflt,
                          seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime)};
}

static size_t size_of(size_t which, size_t number)
{
    return cases[which].run == NULL ? rows[number].size : amounts[number].size;
}

/* Returns whether something was compared. */
static bool compare(size_t which, size_t number)
{
    struct taken there = run_apart(which, number, true);
    struct taken here = there.skipped ? there : run_apart(which, number, false);
    size_t size = size_of(which, number);
    if (here.skipped) {
        printf("%s, %zu bytes: not so much memory here\n", cases[which].name, size);
        return false;
    }
    printf("%s, %zu bytes: %zu KiB, %zu faults, %.2f s; the system's %zu, %zu, %.2f\n",
           cases[which].name, size, here.peak_kib, here.faults, here.seconds, there.peak_kib,
           there.faults, there.seconds);
    fflush(stdout);
    CHECK_MSG(here.peak_kib <= there.peak_kib + there.peak_kib / 10 + 1024,
              "%s, %zu bytes: %zu KiB are resident, on the system's malloc %zu", cases[which].name,
              size, here.peak_kib, there.peak_kib);
    CHECK_MSG(here.faults <= 2 * there.faults + 1000,
              "%s, %zu bytes: %zu page faults, on the system's malloc %zu", cases[which].name, size,
              here.faults, there.faults);
    CHECK_MSG(cases[which].run != NULL || here.seconds < 1, "%zu bytes: %.2f seconds", size,
              here.seconds);
    return true;
}

static int compare_all(size_t which)
{
    bool any = false;
    for (size_t i = 0; i < (cases[which].run == NULL ? (size_t)ROWS : (size_t)AMOUNTS); i++)
        any = compare(which, i) || any;
    if (!any)
        test_skip("the system does not give so large a block");
    return 0;
}

/* ---- With huge pages for all ----------------------------------------------------------------- */

static const char *setting_file = "/sys/kernel/mm/transparent_hugepage/enabled";
static char setting_before[16];

static void setting_write(const char *setting)
{
    int file = open(setting_file, O_WRONLY | O_CLOEXEC | O_TRUNC);
    ssize_t length = (ssize_t)strlen(setting);
    if (file < 0 || write(file, setting, (size_t)length) != length)
        test_skip("the setting of huge pages cannot be changed: it takes root");
    close(file);
}

static void setting_restore(int signal_number)
{
    setting_write(setting_before);
    _exit(128 + signal_number);
}

/* The setting is the word in brackets. */
static void setting_read(void)
{
    char text[128];
    int file = open(setting_file, O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (length <= 0)
        test_skip("the kernel has no transparent huge pages");
    close(file);
    text[length] = '\0';
    CHECK(sscanf(text, "%*[^[][%15[a-z]", setting_before) == 1 ||
          sscanf(text, "[%15[a-z]", setting_before) == 1);
}

/* The work is a child's, so that whatever becomes of it the setting is put back. */
static int compare_always(void)
{
    static const int signals[] = {SIGHUP, SIGINT, SIGTERM, SIGQUIT, SIGPIPE, SIGALRM};
    setting_read();
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        signal(signals[i], setting_restore);
    setting_write("always");
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
            signal(signals[i], SIG_DFL);
        for (size_t i = 0; i < CASES; i++)
            compare_all(i);
        _exit(0);
    }
    int status = 1;
    if (child > 0)
        waitpid(child, &status, 0);
    setting_write(setting_before);
    return status == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "run") == 0)
        run_case(case_of(argv[2]), strtoul(argv[3], NULL, 10));
    CHECK(argc >= 2);
    if (strcmp(argv[1], "always") != 0) {
        test_begin(300);
        return compare_all(case_of(argv[1]));
    }
    if (argc == 3)
        setting_file = argv[2];
    return compare_always();
}
