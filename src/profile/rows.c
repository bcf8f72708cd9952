/*
 * Keeping rows. See rows.h.
 */
#include "profile/rows.h"

/* Bytes: a longer entry is hashed no sooner than it is run. */
enum { ENTRY_MOST = 2048 };

const uint8_t kept_registers[KEPT_SAVED] = {3 /* rbx */, CFI_RBP, 12, 13, 14, 15, CFI_RETURN};

/* Source: the finalizer of MurmurHash3 (A. Appleby, 2011), half of it for each word. */
static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0xff51afd7ed558ccdu;
    return hash ^ hash >> 33;
}

/* Mixes an entry into a hash; the entry begins with its length. 0: it is of another layout, or too
 * long. */
static uint64_t mix_entry(uint64_t hash, const uint8_t *entry)
{
    const uint8_t *at = entry;
    uint64_t length = cfi_take(&at, 4);
    if (length < 8 || length > ENTRY_MOST || hash == 0)
        return 0;
    hash = mix(hash, (uintptr_t)entry ^ length << 48);
    for (; length >= 8; length -= 8)
        hash = mix(hash, cfi_take(&at, 8));
    for (; length != 0; length--)
        hash = mix(hash, *at++);
    return hash;
}

uint64_t rows_key(const uint8_t *entry, uintptr_t pc)
{
    const uint8_t *field = entry + 4, *at = field;
    uint64_t back = cfi_take(&at, 4);
    return back == 0 ? 0 : mix_entry(mix_entry(mix(0, pc), entry), field - back);
}

/* Layout: words below the CFA, as a byte says them. */
enum { WORDS_MOST = 254 };

/* How many words below the CFA a register is saved. 0: it keeps its value; more than WORDS_MOST:
 * neither. */
static unsigned words_below(const struct cfi_rule *rule)
{
    enum { WORD = sizeof(uintptr_t) };
    if (rule->where == CFI_SAME)
        return 0;
    bool below = rule->where == CFI_AT && rule->offset < 0 && rule->offset % WORD == 0 &&
                 rule->offset >= -WORDS_MOST * WORD;
    return below ? (unsigned)(-rule->offset / WORD) : WORDS_MOST + 1;
}

void rows_keep(struct kept_row *place, uint64_t key, const struct cfi_row *row)
{
    struct kept_row kept = {key, (int32_t)row->cfa.offset, row->cfa_register, {0}};
    unsigned others = CFI_REGISTERS - KEPT_SAVED; /* registers that must keep their values */
    if (key == 0 || row->is_signal || row->cfa.where != CFI_IS ||
        row->cfa.offset != kept.cfa_offset || row->rules[CFI_RETURN].where != CFI_AT)
        return;
    for (unsigned number = 0, i = 0; number < CFI_REGISTERS; number++) {
        unsigned words = words_below(&row->rules[number]);
        if (i < KEPT_SAVED && number == kept_registers[i])
            kept.saved[i++] = (uint8_t)words;
        else
            others -= words == 0;
        if (words > WORDS_MOST)
            return;
    }
    if (others == 0)
        *place = kept;
}
