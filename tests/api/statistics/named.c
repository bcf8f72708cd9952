/*
 * A program with heaps of its own, for the tests of statistics: two of one name and quota, one
 * without either, one in a buffer whose name means something to JSON, CSV and OpenMetrics, one of
 * its own functions whose name is cut within a character. It ends, or waits at its input with the
 * word `wait`.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <snug/snug.h>

static char buffer[1 << 20];

static void fill(snug_heap *heap, size_t count, size_t size)
{
    for (size_t i = 0; i < count; i++) {
        char *block = snug_heap_malloc(heap, size);
        if (block != NULL)
            memset(block, 1, size);
    }
}

static snug_heap *make(struct snug_heap_config config)
{
    config.size = sizeof(config);
    return snug_heap_create(&config);
}

int main(int count, char **arguments)
{
    snug_heap *first = make((struct snug_heap_config){.name = "request", .quota = 64 << 20});
    snug_heap *second = make((struct snug_heap_config){.name = "request", .quota = 64 << 20});
    snug_heap *plain = make((struct snug_heap_config){.name = NULL});
    snug_heap *small = make((struct snug_heap_config){
        .name = "a \"b\\c\",\n", .buffer = buffer, .buffer_bytes = sizeof(buffer)});
    snug_heap *cut = make((struct snug_heap_config){.name = "thirty-characters-and-then-ä-ö"});
    if (first == NULL || second == NULL || plain == NULL || small == NULL || cut == NULL)
        return 1;
    fill(first, 30, 1 << 20);
    fill(second, 8, 1 << 20);
    fill(plain, 20, 1 << 20);
    fill(small, 100, 1000);
    fill(cut, 1, 100);
    snug_heap_clear(first);
    fill(first, 10, 1 << 20);
    if (count > 1 && strcmp(arguments[1], "wait") == 0) {
        char line[8];
        puts("ready");
        fflush(stdout);
        return read(0, line, sizeof(line)) < 0;
    }
    return 0;
}
