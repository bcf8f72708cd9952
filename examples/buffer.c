/*
 * A heap in a static buffer: for a program that must know how much memory it has. Nothing is taken
 * from the system, for blocks or for bookkeeping.
 *
 *   cc buffer.c -lsnug && ./a.out
 */
#include <stdio.h>

#include <snug/snug.h>

static char buffer[1 << 20];

int main(void)
{
    struct snug_heap_config config = {
        .size = sizeof(config),
        .buffer = buffer,
        .buffer_bytes = sizeof(buffer),
    };
    snug_heap *heap = snug_heap_create(&config);
    if (heap == NULL)
        return 1;
    struct snug_heap_statistics statistics = {.size = sizeof(statistics)};
    snug_heap_get_statistics(heap, &statistics);
    printf("nine tenths of the buffer are for blocks: %s\n",
           statistics.taken >= sizeof(buffer) / 10 * 9 ? "yes" : "no");
    size_t blocks = 0;
    while (snug_heap_malloc(heap, 100) != NULL)
        blocks++;
    printf("8000 blocks of 100 bytes, some more, then none: %s\n", blocks >= 8000 ? "yes" : "no");
    snug_heap_clear(heap);
    char *block = snug_heap_malloc(heap, 500000);
    printf("after clearing, half a megabyte in one: %s\n", block != NULL ? "yes" : "no");
    printf("in the buffer: %s\n",
           block >= buffer && block < buffer + sizeof(buffer) ? "yes" : "no");
    snug_heap_destroy(heap);
    return block == NULL;
}
