/*
 * The C names of gperftools' MallocExtension on snug.
 */
#include <string.h>

#include "check.h"

int MallocExtension_VerifyAllMemory(void);
void MallocExtension_GetStats(char *text, int bytes);
int MallocExtension_GetNumericProperty(const char *name, size_t *value);
int MallocExtension_SetNumericProperty(const char *name, size_t value);
void MallocExtension_MarkThreadIdle(void);
void MallocExtension_MarkThreadBusy(void);
void MallocExtension_ReleaseToSystem(size_t bytes);
void MallocExtension_ReleaseFreeMemory(void);
void MallocExtension_SetMemoryReleaseRate(double rate);
size_t MallocExtension_GetEstimatedAllocatedSize(size_t size);
size_t MallocExtension_GetAllocatedSize(const void *block);

static size_t ask(const char *name)
{
    size_t value = 0;
    CHECK_MSG(MallocExtension_GetNumericProperty(name, &value) == 1, "%s", name);
    return value;
}

int main(void)
{
    enum { BLOCKS = 2000, BYTES = 4096 };
    static void *blocks[BLOCKS];
    char text[600], little[5];
    size_t value;
    test_begin(30);
    size_t before = ask("generic.current_allocated_bytes");
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(BYTES);
        memset(blocks[i], 1, BYTES);
    }
    CHECK(ask("generic.current_allocated_bytes") >= before + BLOCKS * (size_t)BYTES);
    CHECK(ask("generic.heap_size") >= BLOCKS * (size_t)BYTES);
    CHECK(MallocExtension_GetAllocatedSize(blocks[0]) >= BYTES);
    CHECK(MallocExtension_GetEstimatedAllocatedSize(BYTES) ==
          MallocExtension_GetAllocatedSize(blocks[0]));
    for (size_t i = 0; i < BLOCKS; i++)
        free(blocks[i]);
    MallocExtension_MarkThreadIdle();
    MallocExtension_MarkThreadBusy();
    MallocExtension_SetMemoryReleaseRate(5);
    MallocExtension_ReleaseToSystem(1 << 20);
    MallocExtension_ReleaseFreeMemory();
    CHECK(ask("tcmalloc.pageheap_free_bytes") == 0);
    CHECK(MallocExtension_GetNumericProperty("tcmalloc.nonsense", &value) == 0);
    CHECK(MallocExtension_SetNumericProperty("tcmalloc.max_total_thread_cache_bytes", 1) == 0);
    CHECK(MallocExtension_VerifyAllMemory() == 1);
    MallocExtension_GetStats(text, sizeof(text));
    CHECK_MSG(strstr(text, "in use") != NULL, "%s", text);
    MallocExtension_GetStats(little, sizeof(little));
    CHECK(strcmp(little, "snug") == 0);
    return test_end();
}
