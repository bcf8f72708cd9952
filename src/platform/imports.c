/*
 * Standing in for functions of libc. See imports.h.
 */
#include "platform/imports.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>

#include "platform/memory.h"

/* Layout: relocations that are the address of a name's function and nothing else. */
#if defined(__x86_64__)
enum {
    RELOCATION_SLOT = R_X86_64_JUMP_SLOT,
    RELOCATION_DATA = R_X86_64_GLOB_DAT,
    RELOCATION_WORD = R_X86_64_64
};
#elif defined(__aarch64__)
enum {
    RELOCATION_SLOT = R_AARCH64_JUMP_SLOT,
    RELOCATION_DATA = R_AARCH64_GLOB_DAT,
    RELOCATION_WORD = R_AARCH64_ABS64
};
#elif defined(__riscv)
enum {
    RELOCATION_SLOT = R_RISCV_JUMP_SLOT,
    RELOCATION_DATA = R_RISCV_64,
    RELOCATION_WORD = R_RISCV_64
};
#endif

/* What is needed of an object. */
struct object {
    const struct dl_phdr_info *info;
    uintptr_t base;
    const ElfW(Dyn) * dynamic;
    const ElfW(Sym) * symbols;
    const char *names;
    const ElfW(Rela) * tables[2]; /* DT_JMPREL: what is called; DT_RELA: all else */
    size_t bytes[2];
    uintptr_t relro, relro_end; /* pages that were made read-only when all was relocated */
};

struct search {
    const struct import *imports;
    unsigned long long loaded; /* objects that had ever been loaded, and are relocated */
    bool begun;
    bool is_behind; /* more have come since */
    bool is_static;
};

/* How often a search begins anew because others load objects meanwhile. */
enum { SEARCHES_MOST = 64 };

/* How many objects had ever been loaded when all were looked at last. */
static unsigned long long objects_seen;

/* Some loaders have added the base to the addresses in this section, others leave them as they are
 * in the file. */
static uintptr_t place(const struct object *object, ElfW(Addr) address)
{
    return address < object->base ? object->base + address : address;
}

static void object_read_dynamic(struct object *object, const ElfW(Dyn) * entry)
{
    for (; entry->d_tag != DT_NULL; entry++) {
        uintptr_t at = place(object, entry->d_un.d_ptr);
        switch (entry->d_tag) {
        case DT_SYMTAB:
            object->symbols = (const ElfW(Sym) *)at;
            break;
        case DT_STRTAB:
            object->names = (const char *)at;
            break;
        case DT_JMPREL:
            object->tables[0] = (const ElfW(Rela) *)at;
            break;
        case DT_PLTRELSZ:
            object->bytes[0] = entry->d_un.d_val;
            break;
        case DT_RELA:
            object->tables[1] = (const ElfW(Rela) *)at;
            break;
        case DT_RELASZ:
            object->bytes[1] = entry->d_un.d_val;
            break;
        default:
            break;
        }
    }
}

static bool object_read(struct object *object, const struct dl_phdr_info *info)
{
    *object = (struct object){.info = info, .base = info->dlpi_addr};
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + header->p_vaddr;
        if (header->p_type == PT_DYNAMIC)
            object->dynamic = (const ElfW(Dyn) *)start;
        if (header->p_type == PT_GNU_RELRO) {
            object->relro = align_down(start, os_page_size());
            object->relro_end = align_down(start + header->p_memsz, os_page_size());
        }
    }
    if (object->dynamic != NULL)
        object_read_dynamic(object, object->dynamic);
    return object->symbols != NULL && object->names != NULL;
}

static void object_protect(const struct object *object, int protection)
{
    if (object->relro < object->relro_end)
        (void)mprotect((void *)object->relro, object->relro_end - object->relro, protection);
}

static const struct import *import_find(const struct import *imports, const char *name)
{
    for (; imports->name != NULL; imports++)
        if (imports->name[0] == name[0] && strcmp(imports->name, name) == 0)
            return imports;
    return NULL;
}

/* Whether an address is in a part of an object that has these flags, which are PF_W or 0. */
static bool covers(const struct dl_phdr_info *info, uintptr_t address, unsigned flags)
{
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type == PT_LOAD && (header->p_flags & flags) == flags &&
            address - (info->dlpi_addr + header->p_vaddr) < header->p_memsz)
            return true;
    }
    return false;
}

/* Exchanges the word that a relocation wrote, unless it is in the midst of code. `*writable`: the
 * object's protected pages are writable already. */
static void relocation_replace(const struct object *object, const ElfW(Rela) * relocation,
                               const struct import *imports, bool *writable)
{
    unsigned type = (unsigned)ELF64_R_TYPE(relocation->r_info);
    size_t symbol = ELF64_R_SYM(relocation->r_info);
    if ((type != RELOCATION_SLOT && type != RELOCATION_DATA && type != RELOCATION_WORD) ||
        symbol == 0 || relocation->r_addend != 0)
        return;
    const struct import *import =
        import_find(imports, object->names + object->symbols[symbol].st_name);
    uintptr_t *word = (uintptr_t *)(object->base + relocation->r_offset);
    /* relaxed, both: a thread that calls finds the old function or the new one */
    if (import == NULL || __atomic_load_n(word, __ATOMIC_RELAXED) == import->function ||
        !covers(object->info, (uintptr_t)word, PF_W))
        return;
    bool is_protected = (uintptr_t)word - object->relro < object->relro_end - object->relro;
    if (is_protected && !*writable)
        object_protect(object, PROT_READ | PROT_WRITE);
    *writable |= is_protected;
    __atomic_store_n(word, import->function, __ATOMIC_RELAXED);
}

static void object_replace(const struct object *object, const struct import *imports)
{
    bool writable = false;
    for (size_t table = 0; table < 2; table++)
        for (size_t i = 0; i < object->bytes[table] / sizeof(ElfW(Rela)); i++)
            relocation_replace(object, &object->tables[table][i], imports, &writable);
    if (writable)
        object_protect(object, PROT_READ);
}

/* The loader's lock is held, so one thread is here at a time. */
static int look(struct dl_phdr_info *info, size_t size, void *context)
{
    struct search *search = context;
    struct object object;
    if (size >= offsetof(struct dl_phdr_info, dlpi_subs) && !search->begun) {
        search->is_behind = search->loaded != info->dlpi_adds;
        if (search->is_behind || objects_seen == info->dlpi_adds)
            return 1;
        objects_seen = info->dlpi_adds;
    }
    search->begun = true;
    if (covers(info, (uintptr_t)&objects_seen, 0))
        search->is_static = info->dlpi_name[0] == 0; /* this library: its stand-ins call libc's */
    else if (object_read(&object, info))
        object_replace(&object, search->imports);
    return 0;
}

static int note_loaded(struct dl_phdr_info *info, size_t size, void *loaded)
{
    if (size >= offsetof(struct dl_phdr_info, dlpi_subs))
        *(unsigned long long *)loaded = info->dlpi_adds;
    return 1;
}

/* The list has objects in it that another thread is loading, and of which the loader has yet to
 * write the words that are exchanged here. dladdr takes the lock that dlopen holds for as long as
 * that; what is in the list before, and still all that is there afterwards, is relocated. */
bool os_imports_replace(const struct import *imports)
{
    struct search search = {.imports = imports};
    Dl_info unused;
    for (unsigned i = 0; i < SEARCHES_MOST && (i == 0 || search.is_behind); i++) {
        (void)dl_iterate_phdr(note_loaded, &search.loaded);
        (void)dladdr(&objects_seen, &unused);
        (void)dl_iterate_phdr(look, &search);
    }
    return !search.is_static;
}

/* ---- What objects call elsewhere ---- */

/* Looks for a symbol of which `is_it` says so, among those that an object's relocations name. */
static bool object_has(const struct object *object, const void *wanted,
                       bool (*is_it)(const struct object *object, const ElfW(Sym) * symbol,
                                     const void *wanted))
{
    for (size_t table = 0; table < 2; table++)
        for (size_t i = 0; i < object->bytes[table] / sizeof(ElfW(Rela)); i++) {
            size_t symbol = ELF64_R_SYM(object->tables[table][i].r_info);
            if (symbol != 0 && is_it(object, &object->symbols[symbol], wanted))
                return true;
        }
    return false;
}

/* The address of its own stub stands in a program's table in place of the function's, which is
 * elsewhere. */
static bool is_stub_at(const struct object *object, const ElfW(Sym) * symbol, const void *address)
{
    return symbol->st_shndx == SHN_UNDEF && symbol->st_value != 0 &&
           object->base + symbol->st_value == (uintptr_t)address;
}

static int look_for_stub(struct dl_phdr_info *info, size_t size, void *context)
{
    struct object object;
    (void)size;
    return object_read(&object, info) && object_has(&object, context, is_stub_at);
}

COLD bool os_is_stub(uintptr_t address)
{
    return dl_iterate_phdr(look_for_stub, (void *)address) != 0;
}

static bool is_operator(const struct object *object, const ElfW(Sym) * symbol, const void *unused)
{
    const char *name = object->names + symbol->st_name;
    (void)unused;
    return strcmp(name, "_Znwm") == 0 || strcmp(name, "_ZdlPv") == 0;
}

/* Whether an object is linked with a C++ runtime, or is one. */
static bool has_runtime(const struct object *object)
{
    for (const ElfW(Dyn) *entry = object->dynamic; entry->d_tag != DT_NULL; entry++) {
        const char *name = object->names + entry->d_un.d_val;
        if ((entry->d_tag == DT_NEEDED || entry->d_tag == DT_SONAME) &&
            (strncmp(name, "libstdc++", 9) == 0 || strncmp(name, "libc++", 6) == 0))
            return true;
    }
    return false;
}

static int look_for_parts(struct dl_phdr_info *info, size_t size, void *context)
{
    struct object object;
    (void)size;
    return !covers(info, (uintptr_t)&objects_seen, 0) && object_read(&object, info) &&
           !has_runtime(&object) && object_has(&object, context, is_operator);
}

COLD bool os_runtime_is_in_parts(void)
{
    return dl_iterate_phdr(look_for_parts, NULL) != 0;
}
