/*
 * The anchor of this process. See anchor.h.
 */
#include "report/anchor.h"

#include "meta/meta.h"
#include "platform/lock.h"
#include "snug/snug.h"

const struct anchor snug_anchor __attribute__((used)) = {
    .magic = ANCHOR_MAGIC,
    .layout = ANCHOR_LAYOUT,
    .version = SNUG_VERSION_STRING,
    .heap = &heap_default,
    .heaps = &heaps_all,
    .tallies = &tallies,
    .lock_waits = lock_waits,
    .os_calls = &os_calls,
    .options = &options,
    .peak = &peak_kept,
    .profile = &profile,
    .guard = &guard,
    .events = &events,
    .outside = &outside_area,
    .outside_self = &outside_self,
    .borrow_entry = BORROW_ENTRY,
    .outside_call = outside_call_run,
    .served = {&page_map.small_sizes, &page_map.form_sizes, &page_map.cell_sizes,
               &page_map.counted_sizes},
};

__asm__(".pushsection .note.snug,\"a\",%note\n"
        ".balign 4\n"
        ".long 5, 8, 1\n" /* bytes of the name, bytes of the contents, type */
        ".asciz \"snug\"\n"
        ".balign 4\n"
        "0: .quad snug_anchor - 0b\n"
        ".popsection\n");
