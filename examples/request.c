/*
 * A heap per request: everything that serves one request is allocated from one heap, and goes with
 * it at once. Nothing has to be freed by hand, nothing can be forgotten, and a request that wants
 * too much is refused alone.
 *
 *   cc request.c -lsnug && ./a.out
 */
#include <stdio.h>
#include <string.h>

#include <snug/snug.h>

struct word {
    struct word *next;
    size_t count;
    char text[];
};

/* Counts the words of a text. Returns the most frequent one, which lives as long as the heap; NULL
 * if the heap's quota is used up. */
static const char *serve(snug_heap *heap, const char *text)
{
    struct word *words = NULL, *best = NULL;
    while (*text != 0) {
        size_t length = strcspn(text, " ");
        struct word *word = words;
        while (word != NULL &&
               (strlen(word->text) != length || memcmp(word->text, text, length) != 0))
            word = word->next;
        if (word == NULL) {
            word = snug_heap_calloc(heap, 1, sizeof(*word) + length + 1);
            if (word == NULL)
                return NULL;
            memcpy(word->text, text, length);
            word->next = words;
            words = word;
        }
        word->count++;
        if (best == NULL || word->count > best->count)
            best = word;
        text += length;
        text += *text == ' ';
    }
    return best == NULL ? "" : best->text;
}

int main(void)
{
    static const char *const requests[] = {"to be or not to be", "", "a rose is a rose is a rose"};
    struct snug_heap_config config = {
        .size = sizeof(config),
        .name = "request",
        .quota = 1 << 20,
    };
    snug_heap *heap = snug_heap_create(&config);
    if (heap == NULL)
        return 1;
    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
        const char *word = serve(heap, requests[i]);
        printf("%s\n", word == NULL ? "(too much)" : word);
        snug_heap_clear(heap);
    }
    /* One that wants too much. */
    void *block = NULL;
    size_t blocks = 0;
    while ((block = snug_heap_malloc(heap, 1000)) != NULL)
        blocks++;
    printf("refused after %s\n", blocks > 800 ? "most of a MiB" : "too little");
    snug_heap_destroy(heap);
    return 0;
}
