/*
 * The expressions in unwinding tables: a calculator with a stack, of which the tables use a little:
 * the C library's frame of a signal handler, procedure linkage tables, and functions that align
 * their stack. See cfi.h. Source: DWARF 5, 2.5.
 */
#include "profile/cfi.h"

/* Layout: more than any expression in a table has on its stack. */
enum { DEPTH = 16 };

/* Layout: the steps of an expression. */
enum {
    OP_ADDRESS = 0x03,
    OP_DEREF = 0x06,
    OP_CONST1U = 0x08, /* then 1s, 2u, 2s, 4u, 4s, 8u, 8s */
    OP_CONST8S = 0x0f,
    OP_CONSTU = 0x10,
    OP_CONSTS = 0x11,
    OP_DUP = 0x12,
    OP_DROP = 0x13,
    OP_SWAP = 0x16,
    OP_AND = 0x1a,
    OP_MINUS = 0x1c,
    OP_MUL = 0x1e,
    OP_OR = 0x21,
    OP_PLUS = 0x22,
    OP_PLUS_CONST = 0x23,
    OP_SHL = 0x24,
    OP_SHR = 0x25,
    OP_EQ = 0x29,
    OP_GE = 0x2a,
    OP_GT = 0x2b,
    OP_LE = 0x2c,
    OP_LT = 0x2d,
    OP_NE = 0x2e,
    OP_LITERAL = 0x30, /* 32 of them */
    OP_REGISTER = 0x70 /* plus a number, 32 of them */
};

struct machine {
    uintptr_t stack[DEPTH];
    unsigned used;
    const uintptr_t *registers;
    cfi_read read;
    void *context;
};

static bool push(struct machine *machine, uintptr_t value)
{
    if (machine->used == DEPTH)
        return false;
    machine->stack[machine->used++] = value;
    return true;
}

/* A step that puts a number on the stack. */
static bool step_push(struct machine *machine, uint8_t step, const uint8_t **at)
{
    if (step >= OP_LITERAL && step < OP_LITERAL + 32)
        return push(machine, step - OP_LITERAL);
    if (step >= OP_REGISTER && step < OP_REGISTER + CFI_REGISTERS)
        return push(machine,
                    machine->registers[step - OP_REGISTER] + (uintptr_t)cfi_take_leb_signed(at));
    if (step >= OP_CONST1U && step <= OP_CONST8S) {
        unsigned bytes = 1u << (step - OP_CONST1U) / 2;
        bool is_signed = (step - OP_CONST1U) % 2 != 0;
        return push(machine,
                    is_signed ? (uintptr_t)cfi_take_signed(at, bytes) : cfi_take(at, bytes));
    }
    switch (step) {
    case OP_ADDRESS:
        return push(machine, cfi_take(at, 8));
    case OP_CONSTU:
        return push(machine, cfi_take_leb(at));
    case OP_CONSTS:
        return push(machine, (uintptr_t)cfi_take_leb_signed(at));
    default:
        return false;
    }
}

/* A step that changes what is on top. */
static bool step_top(struct machine *machine, uint8_t step, const uint8_t **at)
{
    if (machine->used == 0)
        return false;
    uintptr_t *top = &machine->stack[machine->used - 1];
    switch (step) {
    case OP_DEREF:
        return machine->read(machine->context, *top, top);
    case OP_DUP:
        return push(machine, *top);
    case OP_DROP:
        machine->used--;
        return true;
    case OP_PLUS_CONST:
        *top += cfi_take_leb(at);
        return true;
    default:
        return false;
    }
}

/* A step that makes one of the two on top. */
static bool step_two(struct machine *machine, uint8_t step)
{
    if (machine->used < 2)
        return false;
    uintptr_t b = machine->stack[machine->used - 1], a = machine->stack[machine->used - 2], result;
    switch (step) {
    case OP_AND:
        result = a & b;
        break;
    case OP_OR:
        result = a | b;
        break;
    case OP_PLUS:
        result = a + b;
        break;
    case OP_MINUS:
        result = a - b;
        break;
    case OP_MUL:
        result = a * b;
        break;
    case OP_SHL:
        result = b < 64 ? a << b : 0;
        break;
    case OP_SHR:
        result = b < 64 ? a >> b : 0;
        break;
    case OP_EQ:
        result = a == b;
        break;
    case OP_NE:
        result = a != b;
        break;
    case OP_GE:
        result = (intptr_t)a >= (intptr_t)b;
        break;
    case OP_GT:
        result = (intptr_t)a > (intptr_t)b;
        break;
    case OP_LE:
        result = (intptr_t)a <= (intptr_t)b;
        break;
    case OP_LT:
        result = (intptr_t)a < (intptr_t)b;
        break;
    case OP_SWAP:
        machine->stack[machine->used - 1] = a;
        machine->stack[machine->used - 2] = b;
        return true;
    default:
        return false;
    }
    machine->stack[--machine->used - 1] = result;
    return true;
}

bool cfi_evaluate(const uint8_t *expression, const uintptr_t registers[CFI_REGISTERS],
                  uintptr_t first, cfi_read read, void *context, uintptr_t *value)
{
    struct machine machine = {
        .stack = {first}, .used = 1, .registers = registers, .read = read, .context = context};
    uint64_t length = cfi_take_leb(&expression);
    const uint8_t *end = expression + length;
    while (expression < end) {
        uint8_t step = *expression++;
        if (!step_push(&machine, step, &expression) && !step_top(&machine, step, &expression) &&
            !step_two(&machine, step))
            return false;
    }
    if (machine.used == 0)
        return false;
    *value = machine.stack[machine.used - 1];
    return true;
}
