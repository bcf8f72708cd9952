/*
 * opened_object.c - an object with many words that the loader writes, and a function that
 * copies_opened.c calls. See there.
 */
#include <string.h>

void opened_copy(char *to, const char *from, size_t bytes);

static int here;

#define TEN(what) what, what, what, what, what, what, what, what, what, what
/* In pages that the loader protects when it has written the rest. */
void *(*const opened_pointer)(void *, const void *, size_t) = memcpy;
int *const opened_words[] = {TEN(TEN(TEN(TEN(TEN(&here)))))};

void opened_copy(char *to, const char *from, size_t bytes)
{
    memcpy(to, from, bytes);
}
