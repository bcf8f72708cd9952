/*
 * From frame to frame. See unwind.h.
 */
#include "profile/unwind.h"

#include <ucontext.h>

#include "platform/borrow.h"

/* Bytes: a frame pointer that is further up than this is none. */
#define FRAME_MOST ((uintptr_t)1 * MIB)

/* Layout: no code is below. */
#define CODE_LEAST ((uintptr_t)4096)

/* Layout: the number of no object. */
enum { NO_LIBRARY = UNWIND_OBJECTS + 1 };

struct cursor {
    uintptr_t registers[CFI_REGISTERS];
    uintptr_t readable, readable_end; /* memory that is there */
    bool exact; /* the address is that of the next instruction, not of one behind a call */
};

/* Reads a word of the stack; false: it is not there. A cfi_read as well. */
static bool read_word(void *context, uintptr_t address, uintptr_t *value)
{
    struct cursor *cursor = context;
    if (address % sizeof(*value) != 0)
        return false;
    if (address - cursor->readable >= cursor->readable_end - cursor->readable) {
        uintptr_t page = align_down(address, PAGE_BYTES);
        if (!os_is_readable(address))
            return false;
        if (page != cursor->readable_end)
            cursor->readable = page;
        cursor->readable_end = page + PAGE_BYTES;
    }
    *value = *(const uintptr_t *)address;
    return true;
}

/* The object that code is in, from those that the stack passed through if it can be. Returns its
 * number plus 1, 0 if it is in none. */
static uint32_t object_find(struct unwind_stack *stack, uintptr_t code)
{
    for (unsigned i = 0; i < stack->object_count; i++)
        if (code - stack->objects[i].start < stack->objects[i].end - stack->objects[i].start)
            return i + 1;
    if (stack->object_count == UNWIND_OBJECTS ||
        !os_object_of(code, &stack->objects[stack->object_count]))
        return 0;
    return ++stack->object_count;
}

static bool apply_rule(struct cursor *cursor, const struct cfi_rule *rule, uintptr_t cfa,
                       unsigned number, uintptr_t *value)
{
    switch (rule->where) {
    case CFI_SAME:
        *value = number == CFI_RSP ? cfa : cursor->registers[number];
        return true;
    case CFI_AT:
        return read_word(cursor, cfa + (uintptr_t)rule->offset, value);
    case CFI_IS:
        *value = cfa + (uintptr_t)rule->offset;
        return true;
    case CFI_IN_REGISTER:
        if ((uint64_t)rule->offset >= CFI_REGISTERS)
            return false;
        *value = cursor->registers[rule->offset];
        return true;
    case CFI_AT_EXPRESSION:
        return cfi_evaluate(rule->expression, cursor->registers, cfa, read_word, cursor, value) &&
               read_word(cursor, *value, value);
    case CFI_IS_EXPRESSION:
        return cfi_evaluate(rule->expression, cursor->registers, cfa, read_word, cursor, value);
    default:
        *value = 0;
        return number != CFI_RETURN;
    }
}

/* To the caller's frame, by a row. False: there is none, or it cannot be reached. */
static bool step_by_row(struct cursor *cursor, const struct cfi_row *row)
{
    uintptr_t cfa, registers[CFI_REGISTERS];
    if (row->cfa.where == CFI_IS_EXPRESSION) {
        if (!cfi_evaluate(row->cfa.expression, cursor->registers, 0, read_word, cursor, &cfa))
            return false;
    } else {
        cfa = cursor->registers[row->cfa_register] + (uintptr_t)row->cfa.offset;
    }
    if (row->rules[CFI_RETURN].where == CFI_SAME) /* nobody said where it is */
        return false;
    for (unsigned number = 0; number < CFI_REGISTERS; number++)
        if (!apply_rule(cursor, &row->rules[number], cfa, number, &registers[number]))
            return false;
    /* A stack grows downwards, so callers are above; only a signal's handler may have its own. */
    if (!row->is_signal && registers[CFI_RSP] <= cursor->registers[CFI_RSP])
        return false;
    __builtin_memcpy(cursor->registers, registers, sizeof(registers));
    cursor->exact = row->is_signal;
    return true;
}

/* Whether a frame is in other memory than the stack below it. What a thread is known by lies at the
 * upper end of its stack, but for the first one's, with which nothing above may be unmapped. */
static bool is_elsewhere(uintptr_t frame, uintptr_t sp)
{
    uintptr_t end = borrow_thread_pointer();
    return frame < sp || frame - sp > FRAME_MOST || (sp < end && frame >= end);
}

/* The same for code without tables, which is taken to keep frame pointers. What it has in that
 * register instead may be an address that another thread unmaps just now, so only the thread's own
 * stack is looked at. Or it is the address of something else there, and an address of the stack
 * stands where code's should: no code is there. */
static bool step_by_frame_pointer(struct cursor *cursor)
{
    uintptr_t frame = cursor->registers[CFI_RBP];
    if (is_elsewhere(frame, cursor->registers[CFI_RSP]) ||
        !read_word(cursor, frame + sizeof(frame), &cursor->registers[CFI_RETURN]) ||
        !is_elsewhere(cursor->registers[CFI_RETURN], cursor->registers[CFI_RSP]) ||
        !read_word(cursor, frame, &cursor->registers[CFI_RBP]))
        return false;
    cursor->registers[CFI_RSP] = frame + 2 * sizeof(frame);
    cursor->exact = false;
    return true;
}

/* As step_by_row, by a row that was kept. */
static bool step_by_kept(struct cursor *cursor, const struct kept_row *row)
{
    uintptr_t cfa = cursor->registers[row->cfa_register] + (uintptr_t)(intptr_t)row->cfa_offset;
    if (cfa <= cursor->registers[CFI_RSP])
        return false;
    for (unsigned i = 0; i < KEPT_SAVED; i++)
        if (row->saved[i] != 0 && !read_word(cursor, cfa - row->saved[i] * sizeof(uintptr_t),
                                             &cursor->registers[kept_registers[i]]))
            return false;
    cursor->registers[CFI_RSP] = cfa;
    cursor->exact = false;
    return true;
}

static bool step(struct cursor *cursor, struct unwind_stack *stack, uint32_t object, uintptr_t code)
{
    struct cfi_row row;
    const struct os_object *within = object == 0 ? NULL : &stack->objects[object - 1];
    const uint8_t *header = within == NULL ? NULL : within->unwinding;
    const uint8_t *entry = header == NULL ? NULL : cfi_entry(header, code);
    if (entry == NULL || !cfi_is_within(entry, within->start, within->end))
        return step_by_frame_pointer(cursor);
    uint64_t key = rows_key(entry, code);
    struct kept_row *kept = rows_place(&stack->kept, key);
    if (LIKELY(key != 0 && kept->key == key))
        return step_by_kept(cursor, kept);
    if (!cfi_row_of(entry, code, &row))
        return step_by_frame_pointer(cursor);
    rows_keep(kept, key, &row);
    return step_by_row(cursor, &row);
}

/* Whether a frame at the beginning is the library's. `library`: the object that it is all of; 0: it
 * is part of one; NO_LIBRARY: no frame is left out. */
static bool is_left_out(uint32_t library, uint32_t object, uintptr_t code)
{
    return library == 0 ? os_is_own_code(code) : object == library;
}

/* Walks up the stack. `library`: as above. */
static void walk(struct cursor *cursor, struct unwind_stack *stack, uint32_t library)
{
    while (cursor->registers[CFI_RETURN] >= CODE_LEAST) {
        uintptr_t code = cursor->registers[CFI_RETURN] - !cursor->exact;
        uint32_t object = object_find(stack, code);
        bool is_own = stack->count == 0 && is_left_out(library, object, code);
        if (stack->count == UNWIND_MOST) {
            stack->is_cut = true;
            return;
        }
        if (!is_own)
            stack->frames[stack->count++] = (struct unwind_frame){code, object};
        if (!step(cursor, stack, object, code))
            return;
    }
}

/* The number of this library among the objects, plus 1; 0: it is part of the program. */
static uint32_t own_library(struct unwind_stack *stack, uintptr_t code)
{
    uint32_t library = object_find(stack, code);
    return library != 0 && stack->objects[library - 1].name[0] == 0 ? 0 : library;
}

static void stack_init(struct unwind_stack *stack)
{
    stack->count = stack->object_count = 0;
    stack->is_cut = false;
}

#if defined(__x86_64__)

/* Stores the registers that a function must leave as they were, and the address of this code. */
#define TAKE_REGISTERS(registers) \
    __asm__ volatile("movq %%rbx, 24(%0)\n\tmovq %%rbp, 48(%0)\n\tmovq %%rsp, 56(%0)\n\t" \
                     "movq %%r12, 96(%0)\n\tmovq %%r13, 104(%0)\n\tmovq %%r14, 112(%0)\n\t" \
                     "movq %%r15, 120(%0)\n\tleaq 0(%%rip), %%rax\n\tmovq %%rax, 128(%0)" \
                     : \
                     : "r"(registers) \
                     : "rax", "memory")

NOINLINE void unwind_here(struct unwind_stack *stack)
{
    struct cursor cursor = {.exact = true};
    stack_init(stack);
    TAKE_REGISTERS(cursor.registers);
    cursor.readable = align_down(cursor.registers[CFI_RSP], sizeof(uintptr_t));
    cursor.readable_end = align_down(cursor.readable, PAGE_BYTES) + PAGE_BYTES;
    walk(&cursor, stack, own_library(stack, cursor.registers[CFI_RETURN]));
}

/* Where DWARF's registers, the return address last, are in what the kernel keeps. */
static const uint8_t places[CFI_REGISTERS] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
                                              REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                              REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};

void unwind_from(const void *context, struct unwind_stack *stack)
{
    struct cursor cursor = {.exact = true}; /* and nothing is known to be readable */
    const ucontext_t *kept = context;
    stack_init(stack);
    for (unsigned i = 0; i < CFI_REGISTERS; i++)
        cursor.registers[i] = (uintptr_t)kept->uc_mcontext.gregs[places[i]];
    walk(&cursor, stack, NO_LIBRARY);
}

#else

/* No frames at all: the numbers of registers in cfi.h are those of x86-64. */
NOINLINE void unwind_here(struct unwind_stack *stack)
{
    stack_init(stack);
    stack->is_cut = true;
    (void)walk, (void)own_library;
}

void unwind_from(const void *context, struct unwind_stack *stack)
{
    (void)context;
    unwind_here(stack);
}

#endif
