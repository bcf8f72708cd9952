/*
 * Reporting wrong pointers. See misuse.h.
 */
#include "meta/misuse.h"

#include <string.h>

#include "options/options.h"
#include "platform/output.h"

static void text_add_object(struct text *text, size_t bytes)
{
    text_add(text, "a ");
    text_add_decimal(text, bytes);
    text_add(text, "-byte object");
}

/* What follows the address. */
static void text_add_finding(struct text *text, const struct misuse *misuse, bool twice)
{
    switch (misuse->kind) {
    case MISUSE_DOUBLE_FREE:
        if (misuse->bytes == 0) {
            text_add(text, " is in free memory");
            break;
        }
        text_add(text, twice ? ", " : " is ");
        text_add_object(text, misuse->bytes);
        text_add(text, twice ? "" : " that is free");
        break;
    case MISUSE_INSIDE:
        text_add(text, " is inside ");
        text_add_object(text, misuse->bytes);
        text_add(text, " that starts at ");
        text_add_hex(text, misuse->start);
        break;
    case MISUSE_DAMAGED:
        text_add(text, " was overwritten");
        break;
    case MISUSE_OTHER_HEAP:
        text_add(text, " is not in this heap");
        break;
    case MISUSE_WRITTEN:
    case MISUSE_STALE:
        text_add(text, ", ");
        text_add_object(text, misuse->bytes);
        text_add(text, ", was written to");
        text_add(text, misuse->kind == MISUSE_STALE ? " or freed twice" : "");
        break;
    default:
        text_add(text, " was not allocated by snug");
        break;
    }
}

COLD void misuse_report(const char *call, const struct misuse *misuse)
{
    if (misuse->kind == MISUSE_NONE)
        return;
    char buffer[256];
    struct text text;
    text_init(&text, buffer, sizeof(buffer));
    bool twice =
        misuse->kind == MISUSE_DOUBLE_FREE && misuse->bytes != 0 && strcmp(call, "free") == 0;
    if (misuse->kind == MISUSE_WRITTEN || misuse->kind == MISUSE_STALE) {
        text_add(&text, "snug: use after free");
    } else {
        text_add(&text, twice ? "snug: double " : "snug: invalid ");
        text_add(&text, call);
    }
    text_add(&text, misuse->kind == MISUSE_DAMAGED ? ": the header of the object at " : ": ");
    text_add_hex(&text, misuse->address);
    text_add_finding(&text, misuse, twice);
    text_add(&text, "\n");
    text_write(&text, 2);
    if (options.misuse == MISUSE_ABORT)
        os_abort();
}
