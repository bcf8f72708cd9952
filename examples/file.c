/*
 * A heap in a file: more data than there is memory for. The file has no name; it vanishes with the
 * process.
 *
 *   cc file.c -lsnug && ./a.out [DIRECTORY]
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <snug/snug.h>

int main(int count, char **arguments)
{
    struct snug_file_config config = {
        .size = sizeof(config),
        .directory = count > 1 ? arguments[1] : NULL,
        .bytes = 16 << 20,
        .grow_factor = 1.6,
    };
    snug_provider *file = snug_provider_file(&config);
    if (file == NULL) {
        fprintf(stderr, "no file in %s: %s\n", count > 1 ? arguments[1] : "/var/tmp",
                strerror(errno));
        return 1;
    }
    struct snug_heap_config on_file = {.size = sizeof(on_file), .provider = file};
    snug_heap *heap = snug_heap_create(&on_file);
    if (heap == NULL)
        return 1;
    enum { ROWS = 1000, ROW_BYTES = 64000 };
    static char *rows[ROWS];
    for (int i = 0; i < ROWS; i++) {
        rows[i] = snug_heap_malloc(heap, ROW_BYTES);
        if (rows[i] == NULL) {
            fprintf(stderr, "the disk is full after %d rows\n", i);
            return 1;
        }
        memset(rows[i], i, ROW_BYTES);
    }
    int right = 0;
    for (int i = 0; i < ROWS; i++)
        right += rows[i][0] == (char)i && rows[i][ROW_BYTES - 1] == (char)i;
    struct snug_heap_statistics statistics = {.size = sizeof(statistics)};
    snug_heap_get_statistics(heap, &statistics);
    printf("%d rows of %d bytes in a file; %d of them right\n", ROWS, ROW_BYTES, right);
    printf("the heap takes at least what they need: %s\n",
           statistics.taken >= (size_t)ROWS * ROW_BYTES ? "yes" : "no");
    snug_heap_destroy(heap);
    snug_provider_destroy(file);
    return right == ROWS ? 0 : 1;
}
