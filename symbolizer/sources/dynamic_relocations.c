/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/sources/dynamic_relocations.h"

#include <stdlib.h>

#include "common/limits.h"
#include "common/reader.h"
#include "common/search.h"
#include "symbolizer/table/huge_array.h"

void dynamic_relocations_deinit(struct dynamic_relocations *r)
{
        free(r->items);
        *r = (struct dynamic_relocations){ 0 };
}

static bool classify_relocation(uint16_t machine, uint32_t type, enum dynamic_relocation_kind *ret)
{
        switch ((uint64_t)machine << 32 | type) {
        case (uint64_t)EM_X86_64 << 32 | R_X86_64_RELATIVE:
        case (uint64_t)EM_AARCH64 << 32 | R_AARCH64_RELATIVE:
        case (uint64_t)EM_RISCV << 32 | R_RISCV_RELATIVE:
        case (uint64_t)EM_PPC64 << 32 | R_PPC64_RELATIVE:
        case (uint64_t)EM_S390 << 32 | R_390_RELATIVE:
                *ret = DYNAMIC_RELATIVE;
                return true;
        case (uint64_t)EM_X86_64 << 32 | R_X86_64_IRELATIVE:
        case (uint64_t)EM_AARCH64 << 32 | R_AARCH64_IRELATIVE:
                *ret = DYNAMIC_IRELATIVE;
                return true;
        case (uint64_t)EM_X86_64 << 32 | R_X86_64_JUMP_SLOT:
        case (uint64_t)EM_X86_64 << 32 | R_X86_64_GLOB_DAT:
        case (uint64_t)EM_AARCH64 << 32 | R_AARCH64_JUMP_SLOT:
        case (uint64_t)EM_AARCH64 << 32 | R_AARCH64_GLOB_DAT:
                *ret = DYNAMIC_SYMBOL;
                return true;
        default:
                return false;
        }
}

static const char *get_relocation_symbol(struct elf_symbol_cursor *symbols, uint32_t index)
{
        struct elf_symbol sym;

        symbols->index = index;
        return index < symbols->count && elf_symbols_next(symbols, &sym) ? sym.name : "";
}

static enum status read_relocation_section(const struct elf_image *img, const struct elf_section *s,
                                           struct dynamic_relocations *r, struct error *err)
{
        const struct elf_section *linked = elf_image_section_at(img, s->link);
        struct elf_symbol_cursor symbols = { 0 };
        const uint8_t *bytes;
        struct reader in;
        size_t size;

        if (elf_section_raw(img, s, &bytes, &size, NULL))
                return ST_OK;
        if (linked && linked->type == SHT_DYNSYM && elf_symbols_begin(img, linked, &symbols, NULL))
                symbols = (struct elf_symbol_cursor){ 0 };
        reader_init(&in, bytes, size);
        in.big_endian = img->big_endian;
        while (reader_left(&in) >= sizeof(Elf64_Rela)) {
                struct dynamic_relocation d = { .symbol = "" };
                uint64_t info, addend;

                if (!reader_u64(&in, &d.address) || !reader_u64(&in, &info) || !reader_u64(&in, &addend))
                        break;
                if (!classify_relocation(img->machine, (uint32_t)info, &d.kind))
                        continue;
                d.addend = (int64_t)addend;
                if (d.kind == DYNAMIC_SYMBOL)
                        d.symbol = get_relocation_symbol(&symbols, (uint32_t)(info >> 32));
                if (r->count >= LIMIT_DYNAMIC_RELOCATIONS)
                        return ST_OK;
                if (!huge_array_reserve(&r->items, &r->capacity, r->count))
                        return error_no_memory(err);
                r->items[r->count++] = d;
        }
        return ST_OK;
}

static int compare_relocations(const void *a, const void *b)
{
        const struct dynamic_relocation *x = a, *y = b;

        return x->address < y->address ? -1 : x->address > y->address;
}

enum status dynamic_relocations_read(const struct elf_image *img, struct dynamic_relocations *ret, struct error *err)
{
        struct dynamic_relocations r = { 0 };
        enum status st = ST_OK;

        for (size_t i = 1; !st && img->is_64 && i < img->section_count; i++) {
                const struct elf_section *s = &img->sections[i];

                if (s->type == SHT_RELA && (s->flags & SHF_ALLOC))
                        st = read_relocation_section(img, s, &r, err);
        }
        if (st) {
                dynamic_relocations_deinit(&r);
                return st;
        }
        if (r.count)
                qsort(r.items, r.count, sizeof *r.items, compare_relocations);
        *ret = r;
        return ST_OK;
}

/* Index of the first relocation at or after address. */
static size_t find_first_relocation(const struct dynamic_relocations *r, uint64_t address)
{
        size_t found = find_lower_bound(i, 0, r->count, r->items[i].address < address);

        return found;
}

const struct dynamic_relocation *dynamic_relocations_find(const struct dynamic_relocations *r, uint64_t address)
{
        size_t i = find_first_relocation(r, address);

        return i < r->count && r->items[i].address == address ? &r->items[i] : NULL;
}

void dynamic_relocations_apply(const struct dynamic_relocations *r, uint64_t address, uint8_t *bytes, size_t size,
                               bool big_endian)
{
        for (size_t i = find_first_relocation(r, address); i < r->count; i++) {
                const struct dynamic_relocation *d = &r->items[i];
                uint64_t at = d->address - address;

                if (size < 8 || at > size - 8)
                        return;
                for (unsigned k = 0; d->kind == DYNAMIC_RELATIVE && k < 8; k++)
                        bytes[at + k] = (uint8_t)((uint64_t)d->addend >> 8 * (big_endian ? 7 - k : k));
        }
}
