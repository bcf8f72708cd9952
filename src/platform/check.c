/*
 * What happens when an invariant does not hold. See check.h.
 */
#include "platform/check.h"

#include "platform/output.h"

_Noreturn COLD void check_failed(const char *condition, const char *file, int line)
{
    char buffer[256];
    struct text text;
    text_init(&text, buffer, sizeof(buffer));
    text_add(&text, "snug: internal error: ");
    text_add(&text, file);
    text_add(&text, ":");
    text_add_decimal(&text, (uint64_t)line);
    text_add(&text, ": ");
    text_add(&text, condition);
    text_add(&text, " does not hold\n");
    text_write(&text, 2);
    os_abort();
}
