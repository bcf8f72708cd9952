/*
 * main.c - snugreplay: carries out a recorded program's calls of malloc, under the malloc that is
 * preloaded.
 *
 * usage: snugreplay [--touch=all|pages|none] [--samples=N] PROGRAM
 *
 * It prints one line
 *     ops=N ns_per_op=N threads=N live=N live_bytes=N sizes=HASH base_kib=N peak_rss_kib=N
 * after lines `sample=DONE,LIVE_BYTES,ANONYMOUS_KIB`, if there are to be some. Memory is that
 * without the tables of the replay. base_kib is the anonymous memory before the first operation, of
 * the program itself and the allocator's start; peak_rss_kib is the most of all kinds. With samples
 * the time is longer and not to be used. What is needed for the replay itself comes from mmap, but
 * for what pthread_create takes. Live bytes are told to `snug replay` as those of a workload are,
 * see bench/meter.h.
 */
#include "memory.h"
#include "meter.h"
#include "number.h"
#include "worker.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct arguments {
    const char *path;
    enum touch touch;
    uint64_t samples;
};

static _Noreturn void refuse(const char *word)
{
    fprintf(stderr, "snugreplay: does not understand %s\n", word);
    exit(2);
}

static struct arguments parse(int count, char **words)
{
    static const char *const touches[] = {"--touch=all", "--touch=pages", "--touch=none"};
    struct arguments arguments = {.touch = TOUCH_ALL};
    for (int i = 1; i < count; i++) {
        const char *word = words[i];
        bool known = false;
        for (int j = 0; j < 3; j++)
            if (strcmp(word, touches[j]) == 0) {
                arguments.touch = (enum touch)j;
                known = true;
            }
        if (strncmp(word, "--samples=", 10) == 0)
            arguments.samples = number_at(word + 10);
        else if (!known && (word[0] == '-' || arguments.path != NULL))
            refuse(word);
        else if (!known)
            arguments.path = word;
    }
    if (arguments.path == NULL)
        refuse("this without a PROGRAM");
    return arguments;
}

static void prepare(struct replay *replay, const struct arguments *arguments)
{
    replay->program = program_open(arguments->path);
    replay->touch = arguments->touch;
    const struct program_header *header = &replay->program.header;
    replay->slots = memory_of_our_own(header->slots * sizeof *replay->slots);
    replay->workers = memory_of_our_own(header->threads * sizeof *replay->workers);
    for (uint64_t i = 0; i < header->threads; i++)
        replay->workers[i] = (struct worker){.replay = replay, .number = i};
    replay->many = header->threads > METER_SLOTS;
    if (arguments->samples > 0) {
        replay->interval = header->operations / arguments->samples;
        if (replay->interval == 0)
            replay->interval = 1;
        replay->sample_room = header->operations / replay->interval + 1;
        replay->samples = memory_of_our_own(replay->sample_room * sizeof *replay->samples);
    }
}

static void print_samples(struct replay *replay)
{
    uint64_t count = atomic_load(&replay->sample_count);
    for (uint64_t i = 0; i < count && i < replay->sample_room; i++) {
        const struct sample *sample = &replay->samples[i];
        printf("sample=%llu,%lld,%ld\n", (unsigned long long)sample->done, (long long)sample->live,
               sample->anonymous_kib);
    }
}

static void print_figures(struct replay *replay, uint64_t ns, long base, long peak)
{
    const struct program_header *header = &replay->program.header;
    int64_t live_bytes = 0, live = 0;
    uint64_t sizes = 0;
    for (uint64_t i = 0; i < header->threads; i++) {
        live_bytes += replay->workers[i].live_bytes;
        live += replay->workers[i].live_blocks;
        sizes += replay->workers[i].sizes;
    }
    double operations = header->operations > 0 ? (double)header->operations : 1;
    printf("ops=%llu ns_per_op=%.2f threads=%llu live=%lld live_bytes=%lld sizes=%016llx "
           "base_kib=%ld peak_rss_kib=%ld\n",
           (unsigned long long)header->operations, (double)ns / operations,
           (unsigned long long)header->threads, (long long)live, (long long)live_bytes,
           (unsigned long long)sizes, base, peak);
}

int main(int count, char **words)
{
    static struct replay replay;
    struct arguments arguments = parse(count, words);
    prepare(&replay, &arguments);

    long base = anonymous_kib();
    replay.start = now_ns();
    worker_run(&replay.workers[0]);
    uint64_t ns = now_ns() - replay.start;
    long peak = peak_resident_kib();

    print_samples(&replay);
    print_figures(&replay, ns, base, peak);
    return 0;
}
