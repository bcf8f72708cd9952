/*
 * Reporting wrong pointers. See misuse.h.
 */
#include "meta/misuse.h"

#include <string.h>

#include "options/options.h"
#include "platform/output.h"

static size_t reported;

static void text_add_object(struct text *text, size_t bytes)
{
    text_add(text, "a ");
    if (bytes != 0) {
        text_add_decimal(text, bytes);
        text_add(text, "-byte ");
    }
    text_add(text, "object");
}

COLD void misuse_report(const char *call, const struct misuse *misuse)
{
    if (misuse->kind == MISUSE_NONE)
        return;
    char buffer[256];
    struct text text;
    text_init(&text, buffer, sizeof(buffer));
    bool twice = misuse->kind == MISUSE_DOUBLE_FREE && strcmp(call, "free") == 0;
    text_add(&text, twice ? "snug: double " : "snug: invalid ");
    text_add(&text, call);
    text_add(&text, ": ");
    text_add_hex(&text, misuse->address);
    switch (misuse->kind) {
    case MISUSE_DOUBLE_FREE:
        text_add(&text, twice ? ", " : " is ");
        text_add_object(&text, misuse->bytes);
        text_add(&text, twice ? "" : " that is free");
        break;
    case MISUSE_INSIDE:
        text_add(&text, " is inside ");
        text_add_object(&text, misuse->bytes);
        text_add(&text, " that starts at ");
        text_add_hex(&text, misuse->start);
        break;
    default:
        text_add(&text, " was not allocated by snug");
        break;
    }
    text_add(&text, "\n");
    text_write(&text, 2);
    __atomic_fetch_add(&reported, 1, __ATOMIC_RELAXED);
    if (options.misuse == MISUSE_ABORT)
        os_abort();
}

size_t misuse_count(void)
{
    return __atomic_load_n(&reported, __ATOMIC_RELAXED);
}
