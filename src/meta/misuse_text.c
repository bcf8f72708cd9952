/*
 * Misuse in words, and in JSON. See misuse.h.
 *
 * All words in a line are the library's own, so nothing in it need be escaped.
 */
#include <string.h>

#include "meta/misuse.h"
#include "platform/output.h"
#include "platform/thread.h"

const char *misuse_name(enum misuse_kind kind)
{
    static const char names[][20] = {
        [MISUSE_NONE] = "none",
        [MISUSE_DOUBLE_FREE] = "double-free",
        [MISUSE_INSIDE] = "pointer-inside",
        [MISUSE_UNKNOWN] = "unknown-pointer",
        [MISUSE_DAMAGED] = "damaged-header",
        [MISUSE_OTHER_HEAP] = "other-heap",
        [MISUSE_WRITTEN] = "write-after-free",
        [MISUSE_STALE] = "use-after-free",
        [MISUSE_BEYOND] = "write-beyond",
        [MISUSE_OVERFLOW] = "overflow",
        [MISUSE_UNDERFLOW] = "underflow",
        [MISUSE_SIZE] = "wrong-size",
        [MISUSE_ALIGNMENT] = "wrong-alignment",
        [MISUSE_COPY] = "copy-beyond",
        [MISUSE_MAKER] = "wrong-maker",
    };
    return names[kind];
}

const char *maker_name(enum maker maker)
{
    static const char names[][24] = {"malloc", "operator new", "operator new[]",
                                     "aligned operator new"};
    return names[maker];
}

const char *maker_freer(enum maker maker)
{
    static const char names[][24] = {"free", "operator delete", "operator delete[]",
                                     "aligned operator delete"};
    return names[maker];
}

/* ---- In words ---- */

static void text_add_object(struct text *text, size_t bytes)
{
    text_add(text, "a ");
    text_add_decimal(text, bytes);
    text_add(text, "-byte object");
}

static void text_add_number(struct text *text, const char *before, uint64_t number)
{
    text_add(text, before);
    text_add_hex(text, number);
}

/* Whether a misuse is the second free of an object of which the size is still known. */
static bool is_twice(const char *call, const struct misuse *misuse)
{
    return misuse->kind == MISUSE_DOUBLE_FREE && misuse->bytes != 0 && strcmp(call, "free") == 0;
}

/* What the line begins with. */
static void text_add_beginning(struct text *text, const char *call, const struct misuse *misuse)
{
    switch (misuse->kind) {
    case MISUSE_WRITTEN:
    case MISUSE_STALE:
        text_add(text, "snug: use after free");
        return;
    case MISUSE_BEYOND:
    case MISUSE_OVERFLOW:
        text_add(text, "snug: overflow");
        return;
    case MISUSE_UNDERFLOW:
        text_add(text, "snug: underflow");
        return;
    default:
        text_add(text, is_twice(call, misuse) ? "snug: double " : "snug: invalid ");
        text_add(text, call);
    }
}

static void text_add_free(struct text *text, const struct misuse *misuse, bool twice)
{
    if (misuse->bytes == 0) {
        text_add(text, misuse->kind == MISUSE_DOUBLE_FREE ? " is in free memory" : "");
        return;
    }
    text_add(text, twice ? ", " : " is ");
    text_add_object(text, misuse->bytes);
    text_add(text, twice ? "" : " that is free");
}

/* The object, and what was done to it. */
static void text_add_written(struct text *text, const struct misuse *misuse)
{
    if (misuse->bytes != 0) {
        text_add(text, ", ");
        text_add_object(text, misuse->bytes);
    }
    switch (misuse->kind) {
    case MISUSE_STALE:
        text_add(text, ", was written to or freed twice");
        break;
    case MISUSE_BEYOND:
        text_add(text, ", never handed out, was written to");
        break;
    case MISUSE_OVERFLOW:
        text_add(text, ", was written past its end");
        break;
    case MISUSE_UNDERFLOW:
        text_add(text, ", was written before its beginning");
        break;
    default:
        text_add(text, ", was written to");
    }
}

/* What follows the address. */
static void text_add_finding(struct text *text, const char *call, const struct misuse *misuse)
{
    switch (misuse->kind) {
    case MISUSE_DOUBLE_FREE:
        text_add_free(text, misuse, is_twice(call, misuse));
        break;
    case MISUSE_INSIDE:
    case MISUSE_COPY:
        text_add(text, misuse->kind == MISUSE_COPY ? " is past the end of " : " is inside ");
        text_add_object(text, misuse->bytes);
        text_add_number(text, " that starts at ", misuse->start);
        break;
    case MISUSE_DAMAGED:
        text_add(text, " was overwritten");
        break;
    case MISUSE_OTHER_HEAP:
        text_add(text, " is not in this heap");
        break;
    case MISUSE_SIZE:
        text_add(text, " is ");
        text_add_object(text, misuse->bytes);
        text_add(text, ", not one of ");
        text_add_decimal(text, misuse->said);
        break;
    case MISUSE_ALIGNMENT:
        text_add(text, " is ");
        text_add_object(text, misuse->bytes);
        text_add(text, " at no multiple of ");
        text_add_decimal(text, misuse->said);
        break;
    case MISUSE_MAKER:
        text_add(text, " is ");
        text_add_object(text, misuse->bytes);
        text_add(text, " that was made by ");
        text_add(text, maker_name(misuse->maker));
        break;
    case MISUSE_UNKNOWN:
        text_add(text, " was not allocated by snug");
        break;
    default:
        text_add_written(text, misuse);
    }
}

COLD void misuse_text_line(struct text *text, const char *call, const struct misuse *misuse)
{
    text_add_beginning(text, call, misuse);
    text_add(text, misuse->kind == MISUSE_DAMAGED ? ": the header of the object at " : ": ");
    text_add_hex(text, misuse->address);
    text_add_finding(text, call, misuse);
    if (misuse->has_found)
        text_add_number(text, ", found ", misuse->found);
}

static void text_add_stack(struct text *text, const char *title, const struct misuse_stack *stack)
{
    if (stack->count == 0)
        return;
    text_add(text, title);
    for (size_t i = 0; i < stack->count; i++)
        text_add_number(text, " ", stack->frames[i]);
    text_add(text, "\n");
}

COLD void misuse_text_stacks(struct text *text, const struct misuse_report *report)
{
    text_add_stack(text, "snug: allocated at", &report->allocated);
    text_add_stack(text, "snug: freed at", &report->freed);
}

/* ---- In JSON ---- */

static void json_add_word(struct text *text, const char *name, const char *value)
{
    text_add(text, name);
    text_add(text, value);
    text_add(text, "\"");
}

static void json_add_address(struct text *text, const char *name, uintptr_t address)
{
    text_add_number(text, name, address);
    text_add(text, "\"");
}

static void json_add_decimal(struct text *text, const char *name, uint64_t number)
{
    text_add(text, name);
    text_add_decimal(text, number);
}

static void json_add_stack(struct text *text, const char *name, const struct misuse_stack *stack)
{
    if (stack->count == 0)
        return;
    text_add(text, name);
    for (size_t i = 0; i < stack->count; i++)
        json_add_address(text, i == 0 ? "\"" : ",\"", stack->frames[i]);
    text_add(text, "]");
}

COLD void misuse_text_json(struct text *text, const struct misuse_report *report)
{
    const struct misuse *misuse = report->misuse;
    json_add_word(text, "{\"misuse\":\"", report->name);
    json_add_word(text, ",\"call\":\"", report->call);
    json_add_address(text, ",\"address\":\"", misuse->address);
    if (misuse->bytes != 0)
        json_add_decimal(text, ",\"bytes\":", misuse->bytes);
    if (misuse->kind == MISUSE_INSIDE || misuse->kind == MISUSE_COPY)
        json_add_address(text, ",\"start\":\"", misuse->start);
    if (misuse->kind == MISUSE_SIZE || misuse->kind == MISUSE_ALIGNMENT)
        json_add_decimal(text, ",\"said\":", misuse->said);
    if (misuse->kind == MISUSE_MAKER)
        json_add_word(text, ",\"maker\":\"", maker_name(misuse->maker));
    if (misuse->has_found)
        json_add_address(text, ",\"found\":\"", misuse->found);
    json_add_stack(text, ",\"allocated\":[", &report->allocated);
    json_add_stack(text, ",\"freed\":[", &report->freed);
    json_add_decimal(text, ",\"process\":", (uint64_t)os_process_id());
    json_add_decimal(text, ",\"thread\":", (uint64_t)os_thread_id());
    json_add_word(text, ",\"line\":\"", report->line);
    text_add(text, "}");
}
