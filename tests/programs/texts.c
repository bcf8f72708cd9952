/*
 * texts.c - keeps some thousand lines of text in blocks, some of them resized and some freed, and
 * prints what is left. It does nothing with the text but print it, so a malloc that silently
 * changes a letter changes the output and nothing else.
 */
#include <stdio.h>
#include <stdlib.h>

enum { LINES = 20000, LINE_MOST = 200 };

static char *line_new(unsigned number)
{
    size_t size = 40 + number * 7919u % (LINE_MOST - 40);
    char *line = malloc(size);
    if (line != NULL)
        snprintf(line, size, "number %u, between others, occupies %zu characters", number, size);
    return line;
}

int main(void)
{
    static char *lines[LINES];
    for (unsigned i = 0; i < LINES; i++) {
        lines[i] = line_new(i);
        if (lines[i] == NULL)
            return 1;
        if (i % 3 == 2) {
            free(lines[i - 1]);
            lines[i - 1] = NULL;
        }
        if (i % 5 == 4) {
            char *longer = realloc(lines[i], 2 * LINE_MOST);
            if (longer == NULL)
                return 1;
            lines[i] = longer;
        }
    }
    for (unsigned i = 0; i < LINES; i++) {
        if (lines[i] != NULL)
            puts(lines[i]);
        free(lines[i]);
    }
    return 0;
}
