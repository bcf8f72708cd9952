/*
 * Finding a function's unwinding program, and running it. See cfi.h.
 */
#include "profile/cfi.h"

/* Layout: how pointers are written: the low four bits say in which form, the next three from
 * where. */
enum {
    FORM_MASK = 0x0f,
    FORM_ADDRESS = 0x00,
    FORM_U4 = 0x03,
    FORM_U8 = 0x04,
    FORM_S4 = 0x0b,
    FORM_S8 = 0x0c,
    FROM_HERE = 0x10,
    FROM_TABLE = 0x30,
    OMITTED = 0xff
};

/* Layout: how many rows a program may have put aside; compilers put aside one. */
enum { SAVED_MOST = 4 };

struct common {
    const uint8_t *begin, *end; /* the part of the program that all functions share */
    uint64_t code_unit;
    int64_t data_unit;
    uint64_t return_register;
    uint8_t form;   /* of addresses in functions' entries */
    bool augmented; /* entries have more data, after its length ('z') */
    bool is_signal;
};

struct run {
    struct cfi_row *row;
    struct cfi_rule initial[CFI_REGISTERS]; /* after the shared part */
    struct cfi_row saved[SAVED_MOST];
    unsigned saved_count;
    const struct common *common;
    uintptr_t at; /* the code that the row is for */
};

/* A pointer; 0 in a form that no linker writes. */
static uintptr_t take_pointer(const uint8_t **at, uint8_t form)
{
    uintptr_t from = (form & 0x70) == FROM_HERE ? (uintptr_t)*at : 0;
    switch (form & FORM_MASK) {
    case FORM_ADDRESS:
    case FORM_U8:
    case FORM_S8:
        return from + cfi_take(at, 8);
    case FORM_U4:
        return from + cfi_take(at, 4);
    case FORM_S4:
        return from + (uintptr_t)cfi_take_signed(at, 4);
    default:
        return 0;
    }
}

const uint8_t *cfi_entry(const uint8_t *header, uintptr_t pc)
{
    uint8_t version = header[0], frame_form = header[1], count_form = header[2];
    if (version != 1 || count_form != FORM_U4 || header[3] != (FROM_TABLE | FORM_S4))
        return NULL;
    const uint8_t *at = header + 4;
    if (frame_form != OMITTED)
        take_pointer(&at, frame_form);
    size_t low = 0, high = cfi_take(&at, 4);
    int64_t wanted = (int64_t)(pc - (uintptr_t)header);
    while (low < high) { /* the last entry whose code does not begin behind `pc` */
        size_t middle = low + (high - low) / 2;
        const uint8_t *pair = at + 8 * middle;
        if (cfi_take_signed(&pair, 4) <= wanted)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return NULL;
    const uint8_t *pair = at + 8 * (low - 1) + 4;
    return header + cfi_take_signed(&pair, 4);
}

static bool record_is_within(const uint8_t *record, uintptr_t start, uintptr_t end)
{
    enum { FIELDS = 8 }; /* Layout: its length, and what the other kind of entry is found by */
    uintptr_t at = (uintptr_t)record;
    if (at < start || at >= end || end - at < FIELDS)
        return false;
    return cfi_take(&record, 4) <= end - at - 4;
}

bool cfi_is_within(const uint8_t *entry, uintptr_t start, uintptr_t end)
{
    const uint8_t *field = entry + 4, *at = field;
    return record_is_within(entry, start, end) &&
           record_is_within(field - cfi_take(&at, 4), start, end);
}

/* Reads what the letters in a shared entry announce. False: one is not known. */
static bool common_read_letters(struct common *common, const char *letters, const uint8_t *at)
{
    for (; *letters != 0; letters++) {
        if (*letters == 'R') {
            common->form = *at++;
        } else if (*letters == 'P') {
            uint8_t form = *at++;
            take_pointer(&at, form);
        } else if (*letters == 'L') {
            at++;
        } else if (*letters == 'S') {
            common->is_signal = true;
        } else {
            return false;
        }
    }
    return true;
}

static bool common_read(struct common *common, const uint8_t *at)
{
    uint64_t length = cfi_take(&at, 4);
    *common = (struct common){.end = at + length};
    uint64_t id = cfi_take(&at, 4);
    uint8_t version = *at++;
    const char *letters = (const char *)at;
    if (id != 0 || (version != 1 && version != 3))
        return false;
    at += __builtin_strlen(letters) + 1;
    common->code_unit = cfi_take_leb(&at);
    common->data_unit = cfi_take_leb_signed(&at);
    common->return_register = version == 1 ? *at++ : cfi_take_leb(&at);
    common->augmented = letters[0] == 'z';
    if (common->augmented) {
        uint64_t bytes = cfi_take_leb(&at);
        if (!common_read_letters(common, letters + 1, at))
            return false;
        at += bytes;
    } else if (letters[0] != 0) {
        return false;
    }
    common->begin = at;
    return common->return_register == CFI_RETURN;
}

/* ---- Running the program ---- */

/* Layout: the steps of the program. */
enum {
    CFA_ADVANCE = 0x40, /* these three in the high two bits */
    CFA_OFFSET = 0x80,
    CFA_RESTORE = 0xc0,
    CFA_SET_LOC = 0x01,
    CFA_ADVANCE1 = 0x02,
    CFA_ADVANCE2 = 0x03,
    CFA_ADVANCE4 = 0x04,
    CFA_OFFSET_EXTENDED = 0x05,
    CFA_RESTORE_EXTENDED = 0x06,
    CFA_UNDEFINED = 0x07,
    CFA_SAME_VALUE = 0x08,
    CFA_REGISTER = 0x09,
    CFA_REMEMBER = 0x0a,
    CFA_RECALL = 0x0b,
    CFA_DEF = 0x0c,
    CFA_DEF_REGISTER = 0x0d,
    CFA_DEF_OFFSET = 0x0e,
    CFA_DEF_EXPRESSION = 0x0f,
    CFA_EXPRESSION = 0x10,
    CFA_OFFSET_EXTENDED_SF = 0x11,
    CFA_DEF_SF = 0x12,
    CFA_DEF_OFFSET_SF = 0x13,
    CFA_VAL_OFFSET = 0x14,
    CFA_VAL_OFFSET_SF = 0x15,
    CFA_VAL_EXPRESSION = 0x16,
    CFA_GNU_ARGS_SIZE = 0x2e
};

static void set_rule(struct run *run, uint64_t number, enum cfi_where where, int64_t offset)
{
    if (number < CFI_REGISTERS)
        run->row->rules[number] = (struct cfi_rule){{.offset = offset}, (uint8_t)where};
}

static void restore_rule(struct run *run, uint64_t number)
{
    if (number < CFI_REGISTERS)
        run->row->rules[number] = run->initial[number];
}

static void skip_block(const uint8_t **at)
{
    uint64_t length = cfi_take_leb(at);
    *at += length;
}

static void set_expression(struct run *run, const uint8_t **at, enum cfi_where where)
{
    uint64_t number = cfi_take_leb(at);
    if (number < CFI_REGISTERS)
        run->row->rules[number] = (struct cfi_rule){{.expression = *at}, (uint8_t)where};
    skip_block(at);
}

static void set_cfa(struct run *run, uint64_t number, int64_t offset)
{
    run->row->cfa = (struct cfi_rule){{.offset = offset}, CFI_IS};
    run->row->cfa_register = number < CFI_REGISTERS ? (uint8_t)number : CFI_RETURN;
}

/* A step that says where a register is. False: it is none of these. */
static bool step_register(struct run *run, uint8_t step, const uint8_t **at)
{
    int64_t unit = run->common->data_unit;
    uint64_t number;
    switch (step) {
    case CFA_OFFSET_EXTENDED:
        number = cfi_take_leb(at);
        set_rule(run, number, CFI_AT, (int64_t)cfi_take_leb(at) * unit);
        return true;
    case CFA_OFFSET_EXTENDED_SF:
        number = cfi_take_leb(at);
        set_rule(run, number, CFI_AT, cfi_take_leb_signed(at) * unit);
        return true;
    case CFA_VAL_OFFSET:
        number = cfi_take_leb(at);
        set_rule(run, number, CFI_IS, (int64_t)cfi_take_leb(at) * unit);
        return true;
    case CFA_VAL_OFFSET_SF:
        number = cfi_take_leb(at);
        set_rule(run, number, CFI_IS, cfi_take_leb_signed(at) * unit);
        return true;
    case CFA_REGISTER:
        number = cfi_take_leb(at);
        set_rule(run, number, CFI_IN_REGISTER, (int64_t)cfi_take_leb(at));
        return true;
    case CFA_RESTORE_EXTENDED:
        restore_rule(run, cfi_take_leb(at));
        return true;
    case CFA_UNDEFINED:
        set_rule(run, cfi_take_leb(at), CFI_UNDEFINED, 0);
        return true;
    case CFA_SAME_VALUE:
        set_rule(run, cfi_take_leb(at), CFI_SAME, 0);
        return true;
    case CFA_EXPRESSION:
        set_expression(run, at, CFI_AT_EXPRESSION);
        return true;
    case CFA_VAL_EXPRESSION:
        set_expression(run, at, CFI_IS_EXPRESSION);
        return true;
    default:
        return false;
    }
}

/* A step that says where the CFA is, or keeps rows. False: it is not known. */
static bool step_frame(struct run *run, uint8_t step, const uint8_t **at)
{
    struct cfi_row *row = run->row;
    int64_t unit = run->common->data_unit;
    uint64_t number;
    switch (step) {
    case CFA_DEF:
        number = cfi_take_leb(at);
        set_cfa(run, number, (int64_t)cfi_take_leb(at));
        return true;
    case CFA_DEF_SF:
        number = cfi_take_leb(at);
        set_cfa(run, number, cfi_take_leb_signed(at) * unit);
        return true;
    case CFA_DEF_REGISTER:
        set_cfa(run, cfi_take_leb(at), row->cfa.offset);
        return true;
    case CFA_DEF_OFFSET:
        set_cfa(run, row->cfa_register, (int64_t)cfi_take_leb(at));
        return true;
    case CFA_DEF_OFFSET_SF:
        set_cfa(run, row->cfa_register, cfi_take_leb_signed(at) * unit);
        return true;
    case CFA_DEF_EXPRESSION:
        row->cfa = (struct cfi_rule){{.expression = *at}, CFI_IS_EXPRESSION};
        skip_block(at);
        return true;
    case CFA_REMEMBER:
        if (run->saved_count == SAVED_MOST)
            return false;
        run->saved[run->saved_count++] = *row;
        return true;
    case CFA_RECALL:
        if (run->saved_count == 0)
            return false;
        *row = run->saved[--run->saved_count];
        return true;
    case CFA_GNU_ARGS_SIZE:
        cfi_take_leb(at);
        return true;
    default:
        return step == 0; /* filling */
    }
}

/* By how many bytes of code a step goes on; -1 if it is no such step. */
static int64_t step_advance(const struct run *run, uint8_t step, const uint8_t **at)
{
    uint64_t unit = run->common->code_unit;
    if ((step & 0xc0) == CFA_ADVANCE)
        return (int64_t)((step & 0x3f) * unit);
    switch (step) {
    case CFA_SET_LOC:
        return (int64_t)(take_pointer(at, run->common->form) - run->at);
    case CFA_ADVANCE1:
        return (int64_t)(cfi_take(at, 1) * unit);
    case CFA_ADVANCE2:
        return (int64_t)(cfi_take(at, 2) * unit);
    case CFA_ADVANCE4:
        return (int64_t)(cfi_take(at, 4) * unit);
    default:
        return -1;
    }
}

/* Runs a program up to the row for `pc`. False: something in it is not known. */
static bool run_program(struct run *run, const uint8_t *at, const uint8_t *end, uintptr_t pc)
{
    while (at < end) {
        uint8_t step = *at++;
        int64_t advance = step_advance(run, step, &at);
        if (advance >= 0) {
            run->at += (uintptr_t)advance;
            if (run->at > pc)
                return true;
        } else if ((step & 0xc0) == CFA_OFFSET) {
            set_rule(run, step & 0x3f, CFI_AT, (int64_t)cfi_take_leb(&at) * run->common->data_unit);
        } else if ((step & 0xc0) == CFA_RESTORE) {
            restore_rule(run, step & 0x3f);
        } else if (!step_register(run, step, &at) && !step_frame(run, step, &at)) {
            return false;
        }
    }
    return true;
}

bool cfi_row_of(const uint8_t *entry, uintptr_t pc, struct cfi_row *row)
{
    struct common common;
    const uint8_t *at = entry;
    uint64_t length = cfi_take(&at, 4);
    const uint8_t *end = at + length, *field = at;
    uint64_t back = cfi_take(&at, 4);
    if (length == 0 || length >= 0xfffffff0 || back == 0 || !common_read(&common, field - back))
        return false;
    uintptr_t start = take_pointer(&at, common.form);
    uintptr_t bytes = take_pointer(&at, common.form & FORM_MASK);
    if (pc - start >= bytes)
        return false;
    if (common.augmented)
        skip_block(&at);
    *row = (struct cfi_row){.is_signal = common.is_signal};
    struct run run;
    run.row = row;
    run.saved_count = 0;
    run.common = &common;
    run.at = start;
    __builtin_memcpy(run.initial, row->rules, sizeof(run.initial));
    if (!run_program(&run, common.begin, common.end, UINTPTR_MAX))
        return false;
    __builtin_memcpy(run.initial, row->rules, sizeof(run.initial));
    return run_program(&run, at, end, pc);
}
