/*
 * The report of a wrong touch of a guarded block: what, where, and the stacks, as one text, written
 * by one call. A frame is a file and the distance from where it was mapped, which addr2line -e FILE
 * takes, since the library has no symbols.
 *
 * It is made in signal handlers, on stacks of some KiB. So its buffers are static, for one thread
 * at a time. It takes no lock of the profile, since no stack is ever removed there.
 */
#include "profile/guard.h"

#include "base/peek.h"
#include "platform/fault.h"
#include "platform/output.h"
#include "platform/thread.h"
#include "profile/profile.h"

/* Frames (table): of each stack that are told; the outermost are left out. */
enum { FRAMES_MOST = 40 };

/* Bytes (table): three stacks of lines that are not too long; what does not fit is cut. */
enum { TEXT_MOST = 16384 };

/* Times: so often, for a millisecond, a thread waits for another's report, which may not end. */
enum { WAIT_MOST = 1000 };

BULKY static char buffer[TEXT_MOST];
BULKY static struct unwind_stack stack_here;
static bool busy;

static void text_add_frame(struct text *text, unsigned number, uint64_t code, const char *file,
                           uint64_t bias)
{
    text_add(text, number < 10 ? "     #" : "    #");
    text_add_decimal(text, number);
    text_add(text, " ");
    text_add_hex(text, code);
    if (file != NULL) {
        text_add(text, " ");
        text_add(text, file[0] == 0 ? os_program_name() : file);
        text_add(text, "+");
        text_add_hex(text, code - bias);
    }
    text_add(text, "\n");
}

/* Adds a stack that the profile has kept. */
static void text_add_kept(struct text *text, uint32_t number)
{
    const struct stacks *stacks = &profile.stacks;
    unsigned frame = 0;
    for (; number != 0 && frame < FRAMES_MOST; frame++) {
        const struct stack_node *node = stacks_node(stacks, number);
        const struct stack_object *object =
            node->object == 0 ? NULL : table_at(&stacks->objects, node->object, sizeof(*object));
        text_add_frame(text, frame, node->call.key, object == NULL ? NULL : object->name,
                       object == NULL ? 0 : object->bias);
        number = node->call.salt;
    }
    if (frame == 0)
        text_add(text, "     (its stack was not kept)\n");
}

static void text_add_here(struct text *text, const void *context)
{
    if (context != NULL)
        unwind_from(context, &stack_here);
    else
        unwind_here(&stack_here);
    for (unsigned i = 0; i < stack_here.count && i < FRAMES_MOST; i++) {
        const struct unwind_frame *frame = &stack_here.frames[i];
        const struct os_object *object =
            frame->object == 0 ? NULL : &stack_here.objects[frame->object - 1];
        text_add_frame(text, i, frame->code, object == NULL ? NULL : object->name,
                       object == NULL ? 0 : object->bias);
    }
}

static void text_add_thread(struct text *text, const char *what, uint32_t thread)
{
    text_add(text, "  ");
    text_add(text, what);
    text_add(text, " by thread ");
    text_add_decimal(text, thread);
    text_add(text, ":\n");
}

static void text_add_where(struct text *text, const struct guard_block *block,
                           const struct guard_finding *finding)
{
    text_add_hex(text, finding->address);
    if (finding->address < block->start)
        text_add(text, " is before a ");
    else if (finding->address - block->start < block->bytes)
        text_add(text, finding->address == block->start ? " is a " : " is in a ");
    else
        text_add(text, " is behind a ");
    text_add_decimal(text, block->bytes);
    text_add(text, "-byte block");
    if (finding->address != block->start) {
        text_add(text, " at ");
        text_add_hex(text, block->start);
    }
}

static void text_add_what(struct text *text, const struct guard_finding *finding)
{
    static const char *const names[] = {"", "overflow", "underflow", "use after free",
                                        "double free"};
    text_add(text, "snug: ");
    text_add(text, names[finding->fault]);
    if (finding->fault == GUARD_OVERFLOW || finding->fault == GUARD_UNDERFLOW) {
        text_add(text, " by ");
        text_add_decimal(text, finding->distance);
        text_add(text, finding->distance == 1 ? " byte" : " bytes");
    }
    text_add(text, ": ");
}

static void text_add_report(struct text *text, const struct guard_block *block,
                            const struct guard_finding *finding)
{
    text_add_what(text, finding);
    text_add_where(text, block, finding);
    text_add(text, finding->at_free ? ", found when that was freed\n" : "\n");
    text_add_thread(text, finding->context != NULL ? "touched" : "found", (uint32_t)os_thread_id());
    text_add_here(text, finding->context);
    if (block->state == GUARD_FREED && !finding->at_free) {
        text_add_thread(text, "freed", block->freed_thread);
        text_add_kept(text, block->freed_stack);
    }
    text_add_thread(text, "allocated", block->taken_thread);
    text_add_kept(text, block->taken_stack);
}

COLD void guard_report(const struct guard_block *block, const struct guard_finding *finding)
{
    struct text text;
    /* acquire and release: one thread at a time has the above */
    for (unsigned i = 0; __atomic_exchange_n(&busy, true, __ATOMIC_ACQUIRE); i++) {
        if (i == WAIT_MOST)
            return;
        os_rest();
    }
    __atomic_fetch_add(&guard.reports, 1, __ATOMIC_RELAXED);
    text_init(&text, buffer, sizeof(buffer));
    text_add_report(&text, block, finding);
    text_write(&text, 2);
    __atomic_store_n(&busy, false, __ATOMIC_RELEASE);
}

void guard_fork_in_child(void)
{
    os_fault_fork_in_child();
    __atomic_store_n(&busy, false, __ATOMIC_RELAXED);
}
