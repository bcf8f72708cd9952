/*
 * The way to the profile. See view.h.
 */
#include "view.h"

#include "check.h"

#include <link.h>
#include <string.h>

#include "report/anchor.h"

/* As the note says: bytes of the name, of the contents, the type; the name; a distance. */
struct note {
    uint32_t name_bytes, bytes, type;
    char name[8];
} __attribute__((packed, aligned(4)));

static int find(struct dl_phdr_info *info, size_t size, void *result)
{
    (void)size;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        const char *at = (const char *)(info->dlpi_addr + header->p_vaddr);
        const char *end = at + header->p_memsz;
        while (header->p_type == PT_NOTE && at + 12 <= end) {
            const struct note *note = (const struct note *)at;
            if (note->name_bytes == 5 && note->type == 1 && strcmp(note->name, "snug") == 0) {
                int64_t distance;
                memcpy(&distance, note + 1, sizeof(distance));
                *(const struct anchor **)result =
                    (const struct anchor *)((const char *)(note + 1) + distance);
                return 1;
            }
            at += 12 + ((note->name_bytes + 3) & ~3U) + ((note->bytes + 3) & ~3U);
        }
    }
    return 0;
}

struct profile *view_profile(void)
{
    const struct anchor *anchor = NULL;
    CHECK(dl_iterate_phdr(find, &anchor) == 1);
    CHECK(strcmp(anchor->magic, ANCHOR_MAGIC) == 0);
    return (struct profile *)(uintptr_t)anchor->profile;
}

const struct site *view_site(const struct profile *profile, uint32_t number)
{
    return table_at(&profile->sites, number, sizeof(struct site));
}

bool view_goes_through(const struct profile *profile, const struct site *site, const void *function,
                       size_t bytes)
{
    for (uint32_t number = site->stack; number != 0;) {
        const struct stack_node *node = stacks_node(&profile->stacks, number);
        if (node->call.key - (uintptr_t)function < bytes)
            return true;
        number = node->call.salt;
    }
    return false;
}

struct site view_sum(const struct profile *profile, const void *function, size_t bytes)
{
    struct site sum = {0};
    for (uint32_t number = 1; number < profile->sites.used; number++) {
        const struct site *site = view_site(profile, number);
        if (!view_goes_through(profile, site, function, bytes))
            continue;
        sum.live_samples += site->live_samples;
        sum.samples += site->samples;
        sum.live_bytes += site->live_bytes;
        sum.live_count += site->live_count;
        sum.bytes += site->bytes;
        sum.count += site->count;
        sum.live_variance += site->live_variance;
        sum.variance += site->variance;
    }
    return sum;
}
