/*
 * Reporting misuse. See misuse.h.
 */
#include "meta/misuse.h"

#include "options/options.h"
#include "platform/output.h"
#include "platform/tags.h"

typedef void listener(const struct misuse_report *report);
typedef void source(uintptr_t address, struct misuse_stack *allocated, struct misuse_stack *freed);

/* Written by whoever sets them, read in reports: release and acquire, so that a thread that finds
 * one finds what it needs. */
static listener *misuse_listener;
static source *misuse_source;

void misuse_set_listener(listener *told)
{
    __atomic_store_n(&misuse_listener, told, __ATOMIC_RELEASE);
}

void misuse_set_source(source *known)
{
    __atomic_store_n(&misuse_source, known, __ATOMIC_RELEASE);
}

COLD void misuse_follow(void)
{
    if (options.misuse == MISUSE_ABORT)
        os_abort();
    if (options.misuse == MISUSE_TRAP)
        os_trap();
}

/* Writes the report by one system call. */
static void say(const struct misuse_report *report)
{
    char buffer[4096];
    struct text text;
    text_init(&text, buffer, sizeof(buffer));
    if (options.misuse_format == MISUSE_FORMAT_JSON) {
        misuse_text_json(&text, report);
        text_add(&text, "\n");
    } else {
        text_add(&text, report->line);
        text_add(&text, "\n");
        misuse_text_stacks(&text, report);
    }
    text_write(&text, 2);
}

/* `said`: the program's user knows. */
static void report_of(const char *call, const struct misuse *misuse, bool said)
{
    bool ignored = tags_ignore(false); /* tags count again: the program's handler need not return */
    char buffer[256];
    struct text line;
    text_init(&line, buffer, sizeof(buffer) - 1);
    misuse_text_line(&line, call, misuse);
    buffer[line.length] = '\0';
    struct misuse_report report = {
        .misuse = misuse, .name = misuse_name(misuse->kind), .call = call, .line = buffer};
    source *known = __atomic_load_n(&misuse_source, __ATOMIC_ACQUIRE);
    if (known != NULL)
        known(misuse->kind == MISUSE_INSIDE || misuse->kind == MISUSE_COPY ? misuse->start
                                                                           : misuse->address,
              &report.allocated, &report.freed);
    if (!said)
        say(&report);
    listener *told = __atomic_load_n(&misuse_listener, __ATOMIC_ACQUIRE);
    if (misuse_waiting == NULL) { /* or it is one too many, and others follow */
        if (told != NULL)
            told(&report);
        misuse_follow();
    }
    tags_ignore(ignored);
}

void misuse_report_waits(const struct misuse_waits *waits)
{
    for (unsigned i = 0; i < waits->count; i++)
        misuse_report(waits->each[i].call, &waits->each[i].misuse);
}

COLD void misuse_report(const char *call, const struct misuse *misuse)
{
    struct misuse_waits *waits = misuse_waiting;
    if (misuse->kind == MISUSE_NONE)
        return;
    if (waits != NULL && waits->count < MISUSE_WAITS)
        waits->each[waits->count++] = (struct misuse_wait){call, *misuse};
    else
        report_of(call, misuse, false);
}

COLD void misuse_report_said(const char *call, const struct misuse *misuse)
{
    report_of(call, misuse, true);
}
